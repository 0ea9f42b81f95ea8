"""What is said of results in memory, word for word and figure by figure: answers, choice, the table of figures."""

from __future__ import annotations

import json
from itertools import starmap

import pytest
from syrupy.assertion import SnapshotAssertion

from corpus.control_scenarios import CONTROLS, FILTERED
from corpus.figures import figure, written
from corpus.scenarios import SCENARIOS
from corpus.test_texts import page_text
from tuneoff.judge.answers import answers_json
from tuneoff.judge.answers.answers_json import choice_to_json, to_json
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.answers.phrases import claims, sentence
from tuneoff.judge.choice.choice import Choice
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.choice.filters import filtered
from tuneoff.judge.controls.compute import controls
from tuneoff.judge.controls.controls_output import headlines
from tuneoff.judge.controls.controls_output import lines as control_lines
from tuneoff.judge.controls.controls_output import to_json as controls_to_json
from tuneoff.judge.groups import in_plan_order
from tuneoff.tell.page.report import page
from tuneoff.tell.page.report import render as html
from tuneoff.tell.report.interference import interference, interference_json, interference_lines
from tuneoff.tell.report.tables import ending, render, report_lines

WIDTH = 130
TABLES = {  # what the table of figures is shown of too
    "runs that failed",
    "most failed",
    "skipped",
    "interrupted and not begun",
    "emulated at run time",
    "a sampler that is another one",
    "flags",
    "other limits",
    "a missing metric",
    "hostile names",
    "modelled energy",
    "energies of two kinds",
    "energies of two kinds without the test",
    "clocks that are unsure and trials of each state",
    "caveats",
    "frameworks, tpe and asha",
    "over workers",
}
WIDE = {"clocks that are unsure and trials of each state"}  # whose table is as wide as it comes
PAGES = (
    "four frameworks",
    "caveats",
    "over trial length",
    "utilization over workers",
    "an adapter with few tasks",
    "a control over tasks that differs",
    "several that failed",
    "modelled energy",
    "tasks with failures",
    "failed searches",  # whose trials tell how good they were
)


@pytest.fixture(autouse=True)
def only_what_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the estimates that `figures` drops: most of the time of these tests, and in the figures of recorded folders."""
    monkeypatch.setattr(answers_json, "METRICS", ())


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_is_told(name: str, snapshot: SnapshotAssertion) -> None:
    found = choose(answers(SCENARIOS[name]()))
    table = render(in_plan_order(found.answers.results), None if name in WIDE else WIDTH) if name in TABLES else ""
    assert "\n".join([*report_lines(found, WIDTH), table, figures(found)]) == snapshot


def figures(found: Choice) -> str:
    """Return the columns of what `report --json` has beside texts: settings, groups, verdicts and claims over tasks."""
    told = {**to_json(found.answers), "settings": choice_to_json(found)["settings"]}
    json.dumps(told, allow_nan=False)
    asked = {question["metric"] for question in told["questions"]}
    for group in told["groups"]:
        group["estimates"] = {name: one["median"] for name, one in group["estimates"].items() if name in asked}
    for setting in told["settings"]:
        setting["rows"] = [
            {**row, "columns": list(row["columns"].values()), "column": list(row["columns"])} for row in setting["rows"]
        ]
    return written(figure({name: told[name] for name in ("settings", "groups", "verdicts", "across")}, 0))


@pytest.mark.parametrize("name", CONTROLS)
def test_controls_are_told(name: str, snapshot: SnapshotAssertion) -> None:
    results = CONTROLS[name]()
    found = controls(results)
    between = interference(results)
    told = {"is_empty": found.is_empty, **controls_to_json(found), "interference": interference_json(between)}
    said = [*headlines(found, results.folder), "", *control_lines(found), *interference_lines(between)]
    assert "\n".join([*said, written(figure(json.loads(json.dumps(told, allow_nan=False))))]) == snapshot


@pytest.mark.parametrize("name", FILTERED)
def test_a_filtered_choice_is_told(name: str, snapshot: SnapshotAssertion) -> None:
    asked = FILTERED[name]
    filters = filtered(asked.folder(), asked.known, asked.faults, asked.request_of)
    choice = choose(filters.answers, filters)
    told = written(figure(json.loads(json.dumps(filters.to_json(), allow_nan=False))))
    left = [[*map(str, filters.answers.across)], *(list(setting.chosen) for setting in choice.settings)]
    assert "\n".join([*ending(choice, WIDTH), *starmap(sentence, claims(filters.answers)), told, str(left)]) == snapshot


@pytest.mark.parametrize("name", PAGES)
def test_the_page_of_a_scenario(name: str, snapshot: SnapshotAssertion) -> None:
    found = choose(answers({**CONTROLS, **SCENARIOS}[name]()))
    assert page_text(html(page(found, found.answers.results.folder / "report"))) == snapshot
