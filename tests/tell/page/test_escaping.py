"""Whatever stands in names, parameters and error texts is text on the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from builders.page_folders import ENVIRONMENT, folder, specs
from tell.page.documents import Document, faults
from tell.page.test_page import made_page
from tuneoff.record.run_record import FlagRecord, RunRecord
from tuneoff.tell.page.report import visible
from tuneoff.tell.page.texts import path_link

EVIL = "</td></table><script>alert('x')</script><img src=x onerror=alert(1)>\x1b[31m\x00\u202e{{ 7*7 }}"
SHOWN = "</td></table><script>alert('x')</script><img src=x onerror=alert(1)>\\x1b[31m\\x00\\u202e{{ 7*7 }}"


def spoil(run: RunRecord) -> RunRecord:
    """Put the text wherever a record has one from outside."""
    return replace(
        run,
        status="failed",
        reason=EVIL,
        charged="framework",
        flags=(FlagRecord(name=EVIL, text=EVIL),),
        versions={"framework": EVIL, EVIL: EVIL},
        environment={**ENVIRONMENT, "host": EVIL, "versions": {EVIL: EVIL}},
        metrics={},
    )


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of a folder that has the text everywhere."""
    planned = specs([EVIL, "serial"], 2, variant={"workload.name": EVIL})
    path = folder(tmp_path_factory.mktemp("spoiled") / "r", planned, {1: spoil})
    return made_page(path)


def test_a_script_in_a_text_is_text(spoiled: str) -> None:
    assert faults(spoiled) == []
    document = Document(spoiled)
    assert len(document.all("script")) == 1
    assert document.all("img") == []
    assert sum(SHOWN in one.text for one in document.all("td", "th", "dd", "li", "caption", "small")) >= 10


def test_control_characters_are_shown_as_escapes(spoiled: str) -> None:
    assert not any(one in spoiled for one in ("\x1b", "\x00", "\u202e"))
    assert "\\x1b[31m\\x00\\u202e" in spoiled


def test_braces_are_no_template(spoiled: str) -> None:
    assert "{{ 7*7 }}" in spoiled
    assert not any(one.text.strip().endswith("49") for one in Document(spoiled).all("th", "dd"))


def test_a_page_that_does_not_escape_is_found(spoiled: str) -> None:
    broken = spoiled.replace("&lt;/td&gt;", "</td>", 1).replace("&lt;script&gt;", "<script>", 1).replace("&lt;img", "<img", 1)
    assert broken != spoiled
    assert faults(broken)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\u202edlrow", "\\u202edlrow"),
        ("\ud800", "\\ud800"),
        ("\u200b\x7f\x9b", "\\u200b\\x7f\\x9b"),
        ("1\u202f%", "1\u202f%"),
        ("Größe 世界 😀", "Größe 世界 😀"),
    ],
)
def test_what_cannot_be_seen_is_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("name", ["javascript:alert(1)", 'a"b<c>', "a b", "#x", "?q", "%2e", "data:text/html,x", "\udcff"])
def test_a_link_to_a_file_is_a_relative_path(name: str) -> None:
    link = path_link(Path("/r") / name / "run.json", Path("/r"))
    assert all(one not in link for one in "\"<>:#? '")
    assert link.endswith("/run.json")
