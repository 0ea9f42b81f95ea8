"""What the addresses answer: errors as one line, the report made once per state of the folder, all text escaped."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from builders.live_folders import Folder
from builders.live_states import state
from tell.page.documents import Document
from tuneoff.errors import MissingPackageError
from tuneoff.tell.live import site as module
from tuneoff.tell.live.sentences import to_json
from tuneoff.tell.live.site import POLICY, SCRIPT, STYLE, Site, page
from tuneoff.tell.live.state import Activity
from tuneoff.tell.live.watcher import Watcher

HOSTILE = "<script>alert(1)</script>\"'&\x1b[2J\x00\u202e"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "results")


class Renderer:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, results: Path) -> str:
        self.count += 1
        return f"report {self.count}"


def test_the_report_is_made_once_per_state_of_the_folder(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_SECONDS", 0.0)
    render = Renderer()
    site = Site(Watcher(folder.path), render)
    assert [site.answer("/report/").body for _ in range(3)] == [b"report 1"] * 3
    folder.end("serial", 0)
    assert [site.answer("/report/").body for _ in range(2)] == [b"report 2"] * 2


def test_a_record_that_has_become_a_link_out_of_the_folder_is_not_served(folder: Folder, tmp_path: Path) -> None:
    folder.end("serial", 0)
    site = Site(Watcher(folder.path), Renderer())
    (record,) = folder.path.glob("runs/*/*/run.json")
    address = f"/{record.relative_to(folder.path)}"
    assert site.answer(address).status == 200
    secret = tmp_path / "secret"
    secret.write_text("a secret")
    record.unlink()
    record.symlink_to(secret)
    answer = site.answer(address)
    assert answer.status == 503
    assert b"run.json is a link" in answer.body
    assert b"a secret" not in answer.body


def test_many_who_ask_cost_one_look(folder: Folder) -> None:
    now = 0.0
    watcher = Watcher(folder.path)
    site = Site(watcher, Renderer(), lambda: now)
    first = site.answer("/state.json").body
    folder.end("serial", 0)
    assert site.answer("/state.json").body == first
    now = 1.0
    assert site.answer("/state.json").body != first


def test_an_error_is_one_line(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_SECONDS", 0.0)

    def lacks(results: Path) -> str:
        raise MissingPackageError("the report needs x; run: pip install x")

    def breaks(results: Path) -> str:
        raise KeyError("<planted>\n")

    lacking = Site(Watcher(folder.path), lacks).answer("/report/")
    assert (lacking.status, lacking.body) == (503, b"the report needs x; run: pip install x\n")
    broken = Site(Watcher(folder.path), breaks).answer("/report/")
    assert (broken.status, broken.body.count(b"\n")) == (500, 1)
    assert broken.content_type.startswith("text/plain")
    site = Site(Watcher(folder.path), Renderer())
    shutil.rmtree(folder.path)
    gone = site.answer("/")
    assert (gone.status, gone.body.count(b"\n")) == (503, 1)
    assert b"is gone" in gone.body


def hostile_page() -> str:
    made = state(name=HOSTILE, folder=HOSTILE, file=HOSTILE, problems=(HOSTILE,), activity=Activity.STOPPED)
    rows = tuple(
        replace(
            row,
            text=HOSTILE,
            adapter=HOSTILE,
            cells=tuple(cell and replace(cell, run_id=HOSTILE, name=HOSTILE, reason=HOSTILE) for cell in row.cells),
        )
        for row in made.rows
    )
    return page(to_json(replace(made, rows=rows)))


def names_of(document: Document) -> set[str]:
    """Return the names of all attributes."""
    return {name for one in document.elements for name in one.attributes}


def test_what_comes_from_the_folder_is_text() -> None:
    text = hostile_page()
    found, plain = Document(text), Document(page(to_json(state(problems=("x",), activity=Activity.STOPPED))))
    assert len(found.all("script")) == len(plain.all("script")) == 1
    assert names_of(found) == names_of(plain)
    assert "<script>alert" not in text
    assert "<script>alert(1)</script>" in unescape(text)
    assert not re.search("[\x00\x1b\u202e]", text)
    assert "\\x1b" in text
    assert len(Document(unescape(text)).all("script")) > 1  # the planted one would be seen


def test_ids_are_used_once_and_the_script_finds_them() -> None:
    found = [one.attributes["id"] for one in Document(page(to_json(state()))).elements if "id" in one.attributes]
    assert len(found) == len(set(found))
    assert set(re.findall(r'at\("([a-z-]+)"\)', SCRIPT)) <= set(found)
    assert {f"run-{key}" for key in to_json(state())["texts"]["figures"]} <= set(found)
    without = Document(page(to_json(state(current=None, problems=("x",)))))
    assert found == [one.attributes["id"] for one in without.elements if "id" in one.attributes], "what is put in has its place"


def test_the_policy_allows_the_own_script_and_style_alone() -> None:
    text = page(to_json(state()))
    assert f"<script>{SCRIPT}</script>" in text
    assert f"<style>{STYLE}</style>" in text
    assert POLICY.count("sha256-") == 2
    assert " style=" not in text
    assert not re.search(r"\son[a-z]+=", text)
    assert "http://" not in text.replace("http-equiv", "")
    assert "https://" not in text


def test_without_script_the_page_reloads_itself() -> None:
    assert re.search(r'<noscript><meta http-equiv="refresh" content="\d+"></noscript>', page(to_json(state())))


@pytest.mark.parametrize(
    ("activity", "judged"), [(Activity.WORKING, "Not judged yet"), (Activity.FINISHED, "the verdicts are in")]
)
def test_no_verdict_is_given_before_the_end(activity: Activity, judged: str) -> None:
    shown = page(to_json(state(activity=activity)))
    assert judged in shown
    assert ("Report</a> of what has ended" in shown) is (activity is Activity.WORKING)
