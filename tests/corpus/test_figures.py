"""Recorded results folders say today what they said: every figure of every command, and the plan that their file makes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corpus.cases import CASES, Case
from corpus.conftest import Recorded
from corpus.figures import EXPECTED, call, differences, figure, figures, summary
from tuneoff.experiment.plan import OBSOLETE

SHOWN = 20
ANEW = "python tests/corpus/make.py --figures, or --derive where records have other fields or metrics"
PLANNED = [case for case in CASES if not case.of and case.how not in ("reproduce", "add a seed")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_folder_says_what_it_said(case: Case, recorded: Recorded, tmp_path: Path) -> None:
    expected = json.loads((EXPECTED / f"{case.name}.json").read_text())
    found = list(differences(expected, figures(recorded(case.name), tmp_path)))
    assert not found, "\n".join([*found[:SHOWN], f"{len(found)} differences; if all are meant: {ANEW}"])


@pytest.mark.parametrize("case", PLANNED, ids=lambda case: case.name)
def test_a_file_makes_the_plan_that_was_recorded(
    case: Case, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    case.write(tmp_path)
    answer = call(tmp_path, "plan", f"{case.name}.yaml", "--json")
    expected = json.loads((recorded(case.name) / "matrix.json").read_text())
    for run in expected["runs"]:
        for key in OBSOLETE:
            run.pop(key, None)
    if "threshold" in (objective := expected["content"].get("objective", {})):  # as files called it then
        objective["goal"] = objective.pop("threshold")
    found = list(differences(expected, json.loads(answer.out)))
    assert not found, "\n".join([*found[:SHOWN], f"{len(found)} differences"])


@pytest.mark.parametrize("name", ["judged", "partly-failed", "katib"])
def test_the_json_of_a_report_is_strict_and_every_null_has_its_reason(name: str, recorded: Recorded) -> None:
    text = call(recorded(name), "report", str(recorded(name)), "--json").out
    told = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    nulls = list(_nulls(told))
    assert nulls
    assert not [path for path, parent, key in nulls if not parent.get(f"{key}_reason_if_null")]


def _nulls(value: Any, path: str = "", parent: Any = None, name: str = "") -> Iterator[tuple[str, Any, str]]:
    """Yield (path, the mapping it is in, its name) of every null outside the frozen analysis and configurations."""
    if value is None:
        yield path, parent, name
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in ("analysis", "configuration"):
                yield from _nulls(item, f"{path}.{key}", value, key)
    elif isinstance(value, list):
        for item in value:
            yield from _nulls(item, path, value, name)


def test_a_figure_that_differs_is_found() -> None:
    assert list(differences({"a": [1.0, {"b": True}]}, {"a": [1.0 + 1e-12, {"b": True}]})) == []
    assert list(differences({"a": [1.0, True], "b": 1}, {"a": [1.1, 1], "c": 1})) == [
        ".a[0]: 1.0 expected, but it is 1.1",
        ".a[1]: True expected, but it is 1",
        ".b: is missing",
        ".c: is new",
    ]
    assert figure({"text": "3 of 4 are 12.5 s", "name": "serial#2"}) == {"text": "~ 3 4 12.5", "name": "serial#2"}
    rows: list[dict[str, Any]] = [{"x": 1.5, "y": "done"}, {"x": None, "y": "failed"}]
    assert summary("runs", rows) == {"rows": 2, "x": [1, 1.5, 1.5], "y": {"done": 1, "failed": 1}}
