"""What holds of every page: it is sound HTML that loads nothing, and folded in its order; what it says: tests/corpus."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from builders.page_folders import folder, specs
from corpus.conftest import Recorded, recorded
from corpus.scenarios import SCENARIOS
from tell.page.documents import Document, faults
from tuneoff.errors import ResultsError
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.results import read_results
from tuneoff.record.run_record import FlagRecord
from tuneoff.tell.page.report import page, render, resource, style, with_command
from tuneoff.tell.page.runs import fault_tables
from tuneoff.tell.page.texts import confidence

__all__ = ["recorded"]
SOUND = (
    "a choice over tasks",
    "several that failed",
    "nothing ran",
    "skipped",
    "over trial length",
    "over releases",
    "an adapter with few tasks",
)
SECTIONS = ["frameworks", "parts", "pairs", "accuracy", "figures", "runs", "best", "environment", "limits"]
MOST_LINES = 500  # of our own JavaScript


def made_page(path: Path) -> str:
    """Return the page of a results folder."""
    return render(page(choose(answers(read_results(path))), path / "report"))


@pytest.fixture
def judged(recorded: Recorded) -> str:
    return made_page(recorded("judged"))


@pytest.mark.parametrize("name", SOUND)
def test_a_page_is_sound_and_loads_nothing(name: str) -> None:
    assert faults(render(page(choose(answers(SCENARIOS[name]())), Path("report")))) == []


@pytest.mark.parametrize("name", ["judged", "tasks", "failed", "katib", "interrupted", "pruners"])
def test_the_page_of_a_recorded_folder_is_sound(name: str, recorded: Recorded) -> None:
    assert faults(made_page(recorded(name))) == []


def test_the_choice_is_what_the_page_begins_with() -> None:
    found = choose(answers(SCENARIOS["caveats"]()))
    document = Document(render(page(found, Path("report"))))
    assert [one.text for one in document.all("h1")] == [found.lines[0]]
    (block,) = [one for one in document.all("section") if one.attributes.get("class") == "answer"]
    at = [block.text.index(line) for line in (*found.lines, *found.short_warnings)]
    assert at == sorted(at)


def test_the_sections_are_in_their_order_and_all_but_the_first_are_folded(judged: str) -> None:
    document = Document(judged)
    assert [one.attributes["id"] for one in document.elements if one.attributes.get("id") in SECTIONS] == SECTIONS
    folded = [one for one in document.all("details") if "fold" in one.attributes.get("class", "")]
    assert [one.attributes["id"] for one in folded] == SECTIONS[2:]
    assert not any("open" in one.attributes for one in document.all("details"))


def test_each_run_is_a_dot_that_leads_to_its_row_and_its_record(judged: str, recorded: Recorded) -> None:
    document = Document(judged)
    rows = {one.attributes["id"] for one in document.all("tr") if one.attributes.get("id", "").startswith("run-")}
    dots = {one.attributes.get("href", "")[1:] for one in document.all("a") if "svg" in one.above}
    assert len(dots) == 20  # without the A/A repetition
    assert dots < rows
    files = {one.attributes["href"] for one in document.all("a") if one.attributes["href"].startswith("..")}
    assert len(files) == len(rows)
    assert all((recorded("judged") / "report" / link).resolve().is_file() for link in files)


def test_a_serious_flag_looks_different_from_a_harmless_one_and_each_has_its_meaning(tmp_path: Path) -> None:
    flags = tuple(FlagRecord(name=name, text="planted") for name in ("best_tied", "best_differs"))
    document = Document(made_page(folder(tmp_path / "r", specs(["serial"], 1), {0: lambda run: replace(run, flags=flags)})))
    found = {one.text: one.attributes for one in document.all("span") if "best_" in one.text and "title" in one.attributes}
    assert [(text, of.get("class")) for text, of in found.items()] == [("! best_differs", "bad"), ("best_tied", None)]


def test_the_policy_allows_the_script_of_the_page_and_no_other(judged: str) -> None:
    (script,) = Document(judged).all("script")
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in judged
    source = resource("report.js")
    assert "innerHTML" not in source
    assert len(source.splitlines()) <= MOST_LINES


def test_both_themes_have_all_colours() -> None:
    names = {f"--{name}:" for name in ("ink", "paper", "grid", "c1", "c8", "part-waiting", "link", "better", "worse")}
    light, _, dark = style().partition("prefers-color-scheme")
    assert all(name in light and name in dark for name in names - {"--link:", "--better:", "--worse:"})
    assert all(style().count(name) >= 3 for name in names)


def test_a_command_breaks_at_its_blanks_alone() -> None:
    text = with_command("<Busy>. To repeat: tuneoff compare a.yaml --retry flagged")
    words = " ".join(f'<span class="word">{word}</span>' for word in ["tuneoff", "compare", "a.yaml", "--retry", "flagged"])
    assert text == f"&lt;Busy&gt;. To repeat: <code>{words}</code>"
    assert with_command("the work of tuneoff itself: <b>") == "the work of tuneoff itself: &lt;b&gt;"


def test_a_confidence_is_never_rounded_to_certainty() -> None:
    values = (0.95, 0.95 + 0.05 * 14 / 15, 0.9997)
    assert [confidence(value) for value in values] == ["95\u202f%", "99.67\u202f%", "99.97\u202f%"]


def test_a_fault_matrix_beside_the_results_is_a_table_per_setting_and_a_damaged_one_is_one_line(tmp_path: Path) -> None:
    assert fault_tables(tmp_path) == []
    runs = [
        {"adapter": adapter, "setting": setting, "fault": fault, "outcome": outcome, "reason": "x", "wasted_seconds": 1.0}
        for adapter, outcome in (("serial", "recovered"), ("optuna", "silently wrong"), ("ray", None))
        for setting in ("defaults", "adapter")
        for fault in ("none", "raise", "one<of>ours")
    ]
    (tmp_path / "faults.json").write_text(json.dumps({"about": {}, "runs": runs, "exit_code": 0}))
    tables = fault_tables(tmp_path)
    assert [table.title for table in tables] == ["The framework's own defaults", "The adapter's settings"]
    for table in tables:
        assert table.frameworks == ("serial", "optuna", "ray")
        assert {fault for fault, _ in table.rows} == {"none", "raise", "one<of>ours"}
        cells = {tuple((cell.text, cell.is_serious) for cell in row) for _, row in table.rows}
        assert cells == {(("recovered", False), ("silently wrong", True), ("–", False))}
    for text in ("{", "[]", '{"runs": 3}', '{"runs": [{"adapter": "x"}]}', "[" * 200_000):
        (tmp_path / "faults.json").write_text(text)
        with pytest.raises(ResultsError, match=r"faults\.json is not what `tuneoff faults --json` writes: .*; write it again"):
            fault_tables(tmp_path)
