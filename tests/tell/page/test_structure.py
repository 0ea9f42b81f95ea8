"""What is on the page, in which order, and that it is sound HTML that loads nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from builders.made_curves import Made, made_results
from builders.page_folders import folder, specs
from judge.choice.test_curve import ADDED, LENGTHS, results_of
from tell.page.conftest import made_page
from tell.page.documents import Document, faults
from tell.plots.made_view import ANALYSIS, SEVERAL
from tuneoff.judge.answers.answers_json import choice_to_json
from tuneoff.judge.choice.choose import answered
from tuneoff.judge.results import read_results
from tuneoff.record.run_record import FlagRecord, RunRecord
from tuneoff.tell.page.render import content_hash, resource, style, with_command
from tuneoff.tell.page.report import composed
from tuneoff.tell.report.tables import table

SECTIONS = ["frameworks", "parts", "pairs", "accuracy", "figures", "runs", "best", "environment", "limits"]
TASKS = tuple(f"task-{number}" for number in range(16))
MOST_LINES = 500  # of our own JavaScript


def page_of(made: Made) -> str:
    return composed(answered(made_results(made)), Path("report"))


@pytest.fixture(scope="module")
def several() -> str:
    return page_of(replace(SEVERAL, repeated=True))


@pytest.fixture(scope="module")
def over_tasks() -> str:
    return page_of(Made(adapters=("serial", "optuna", "ray-tune"), seeds=(0, 1), trials=2, tasks=TASKS, analysis=ANALYSIS))


@pytest.mark.parametrize("which", ["judged", "unjudged", "several", "over_tasks"])
def test_the_page_is_sound_and_loads_nothing(which: str, request: pytest.FixtureRequest) -> None:
    assert faults(request.getfixturevalue(which)) == []


def test_the_choice_is_what_the_page_begins_with() -> None:
    found = answered(made_results(SEVERAL))
    choice = found.choice
    document = Document(composed(found, Path("report")))
    (heading,) = document.all("h1")
    assert heading.text == choice.lines[0]
    (block,) = [one for one in document.all("section") if one.attributes.get("class") == "answer"]
    at = [block.text.index(line) for line in (*choice.lines, *choice.caveats)]
    assert at == sorted(at)
    assert choice.lengths is not None
    assert choice.lengths.caption in block.text
    assert len(choice.caveats) > 1


@pytest.mark.parametrize(("mode", "arrow"), [("min", "↓"), ("max", "↑")])
def test_the_heading_of_the_test_score_says_which_direction_is_better(mode: str, arrow: str) -> None:
    found = answered(made_results(replace(SEVERAL, mode=mode)))
    best = choice_to_json(found.choice)["best"]
    assert (best["mode"], best["metric"]) == (mode, {"min": "validation_loss", "max": "validation_accuracy"}[mode])
    heads = [one.text for one in Document(composed(found, Path("report"))).all("th")]
    assert f"test score {arrow}" in heads
    assert f"test {arrow}" in table(found.choice, 120)[0]


def test_where_no_run_has_a_test_page_and_terminal_show_validation(tmp_path: Path) -> None:
    def untested(run: RunRecord) -> RunRecord:
        return replace(run, metrics={name: value for name, value in run.metrics.items() if name != "quality.test"})

    planned = specs(["serial", "optuna"], 3)
    found = answered(read_results(folder(tmp_path / "r", planned, dict.fromkeys(range(6), untested))))
    document = Document(composed(found, tmp_path))
    heads = [one.text for one in document.all("th")]
    assert "validation" in heads
    assert "test score" not in heads
    (row,) = [one.text for one in document.all("tr") if one.attributes.get("data-framework") == "optuna"]
    shown = table(found.choice, 120)
    assert "valid-" in shown[0]
    assert "0.9030" in row
    assert "0.9030" in shown[-1]


def test_a_command_breaks_at_its_blanks_alone() -> None:
    text = with_command("<Busy>. To repeat: tuneoff compare a.yaml --retry flagged")
    words = " ".join(f'<span class="word">{word}</span>' for word in ["tuneoff", "compare", "a.yaml", "--retry", "flagged"])
    assert text == f"&lt;Busy&gt;. To repeat: <code>{words}</code>"
    assert with_command("the work of tuneoff itself: <b>") == "the work of tuneoff itself: &lt;b&gt;"


def test_what_would_decide_is_a_command(several: str) -> None:
    few = page_of(replace(SEVERAL, adapters=("serial", "optuna", "ray-tune"), emulated=(), failed=(), seeds=(0, 1, 2)))
    (block,) = [one for one in Document(few).all("section") if one.attributes.get("class") == "answer"]
    assert "What would decide" in block.text
    assert "tuneoff compare made.yaml" in block.text
    assert "What would decide" not in several


def test_the_sections_are_in_their_order_and_all_but_the_first_are_folded(several: str) -> None:
    document = Document(several)
    ids = [one.attributes["id"] for one in document.elements if one.attributes.get("id") in SECTIONS]
    assert ids == SECTIONS
    folded = [one for one in document.all("details") if "fold" in one.attributes.get("class", "")]
    assert [one.attributes["id"] for one in folded] == SECTIONS[2:]
    assert not any("open" in one.attributes for one in document.all("details"))


def test_each_framework_is_one_row_and_what_is_emulated_stands_apart(several: str) -> None:
    rows = [one for one in Document(several).all("tr") if "data-framework" in one.attributes]
    assert [one.attributes["data-framework"] for one in rows] == ["serial", "optuna", "katib@emulated"]
    apart = several.index("emulated: a local stand-in")
    assert several.index('tr data-framework="optuna"') < apart < several.index('tr data-framework="katib@emulated"')
    assert "the floor" in rows[0].text
    assert "1 of 10" in rows[1].text, "a failed run"


def test_each_task_is_a_column_of_one_table(over_tasks: str) -> None:
    (table,) = [one for one in Document(over_tasks).all("table") if "frameworks" in one.attributes.get("class", "")]
    rows = [one for one in Document(over_tasks).all("tr") if "data-framework" in one.attributes]
    assert len(rows) == 3
    assert all(task in table.text for task in TASKS)
    assert sum("data-ratios" in one.attributes for one in Document(over_tasks).all("td")) == 3 * len(TASKS)


def test_a_matrix_over_trial_length_has_a_curve_and_a_table_of_the_same_and_no_other_has(over_tasks: str, judged: str) -> None:
    page = composed(answered(results_of(*LENGTHS)), Path("report"))
    assert faults(page) == []
    (table,) = [one for one in Document(page).all("table") if one.attributes.get("class") == "shares"]
    texts = [one.text for one in Document(page).all("title") if "predicted" in one.text]
    assert len(texts) == 2 * len(ADDED), "each point but those of the shortest trials"
    assert all(text.partition(": ")[2].partition(" (")[0] in table.text for text in texts)
    assert not any('class="shares"' in one for one in (over_tasks, judged))


def test_each_run_is_a_dot_that_leads_to_its_row_and_its_record(judged: str) -> None:
    document = Document(judged)
    rows = {one.attributes["id"] for one in document.all("tr") if one.attributes.get("id", "").startswith("run-")}
    dots = [one.attributes.get("href", "") for one in document.all("a") if "svg" in one.above]
    assert len(rows) == 24
    assert rows == {link[1:] for link in dots}
    files = [one.attributes["href"] for one in document.all("a") if one.attributes["href"].endswith("/run.json")]
    assert len(set(files)) == 24
    assert all(link.startswith("../runs/") for link in files)


def test_the_table_of_runs_has_their_results(judged: str) -> None:
    (table,) = [one for one in Document(judged).all("table") if "runs" in one.attributes.get("class", "")]
    assert all(heading in table.text for heading in ("job time, s", "quality", "status", "flags"))
    rows = [one for one in Document(judged).all("tr") if one.attributes.get("id", "").startswith("run-")]
    assert "0.9100" in rows[5].text
    (status,) = [one for one in Document(judged).all("p") if one.attributes.get("class") == "statuses"]
    assert "Of 24 planned runs" in status.text


def test_a_serious_flag_looks_different_from_a_harmless_one_and_each_has_its_meaning(tmp_path: Path) -> None:
    flags = tuple(FlagRecord(name=name, text="planted") for name in ("best_tied", "best_differs"))
    document = Document(made_page(folder(tmp_path / "r", specs(["serial"], 1), {0: lambda run: replace(run, flags=flags)})))
    found = {one.text: one.attributes for one in document.all("span") if "best_" in one.text and "title" in one.attributes}
    assert [(text, of.get("class")) for text, of in found.items()] == [("! best_differs", "bad"), ("best_tied", None)]


def test_each_file_that_a_link_names_is_there(tmp_path: Path) -> None:
    path = folder(tmp_path / "r", specs(["serial"], 2))
    links = [one.attributes.get("href", "") for one in Document(made_page(path)).all("a")]
    files = {link for link in links if link.startswith("..")}
    assert len(files) == 2
    assert all((path / "report" / link).resolve().is_file() for link in files)


def test_below_ten_seeds_no_pair_has_a_row_and_the_reason_stands_once(judged: str, unjudged: str) -> None:
    assert "verdicts" in {one.attributes.get("class", "").split(" ")[0] for one in Document(judged).all("table")}
    assert "verdicts" not in {one.attributes.get("class", "").split(" ")[0] for one in Document(unjudged).all("table")}
    assert unjudged.count("a verdict needs 10") == 1
    assert "Accuracy over time" not in unjudged


def test_an_outcome_is_told_by_symbol_and_word(judged: str) -> None:
    outcomes = [one for one in Document(judged).all("span") if one.attributes.get("class", "").startswith("outcome")]
    assert outcomes
    assert all(len(one.text.split()) >= 2 for one in outcomes)


def test_what_is_estimated_is_marked_and_what_is_missing_has_its_reason(several: str, judged: str) -> None:
    assert any(one.text.startswith("~") for one in Document(several).all("td"))
    cells = [one for one in Document(judged).all("td") if one.text == "–" and one.attributes.get("title")]
    assert any("its record has no such metric" in one.attributes["title"] for one in cells)


def test_the_best_configuration_is_shown(several: str) -> None:
    (fold,) = [one for one in Document(several).all("details") if one.attributes.get("id") == "best"]
    assert any(one.text == "x" for one in Document(several).all("dt"))
    assert "found by" in fold.text


def test_the_policy_allows_the_script_of_the_page_and_no_other(judged: str) -> None:
    (script,) = Document(judged).all("script")
    assert f"script-src '{content_hash(script.text)}'" in judged
    assert content_hash(script.text + " ") not in judged
    source = resource("report.js")
    assert "innerHTML" not in source
    assert len(source.splitlines()) <= MOST_LINES


def test_both_themes_have_all_colours() -> None:
    names = {f"--{name}:" for name in ("ink", "paper", "grid", "c1", "c8", "part-waiting", "link", "better", "worse")}
    light, _, dark = style().partition("prefers-color-scheme")
    assert all(name in light and name in dark for name in names - {"--link:", "--better:", "--worse:"})
    assert all(style().count(name) >= 3 for name in names)
