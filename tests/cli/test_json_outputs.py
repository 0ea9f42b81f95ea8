"""`--json` of commands: a number that is not finite is null, never a text, and has its reason beside it in every command."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders.made_results import Entry, Metrics, results
from builders.made_runs import write_results
from command_line import Call
from tuneoff.base.json_values import BEYOND, UNDEFINED
from tuneoff.base.output import write_json
from tuneoff.judge.stats.location import Interval

pytest.importorskip("scipy")
TELLING = ("report", "controls", "recommend", "status", "watch --once", "verify")  # of a results folder


def not_finite(value: Any, path: str = "") -> Iterator[str]:
    """Yield where a number is that JSON has not, or its text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from not_finite(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from not_finite(item, path)
    elif str(value).lower().lstrip("+-") in ("inf", "infinity", "nan"):
        yield path


def draw(seed: int) -> Metrics:
    return {"time.jct": 1000.0 + seed, "quality.test": 0.9 - seed / 30, "quality.validation": 0.9}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two results folders of the same runs; in the second nine of twelve failed."""
    place = tmp_path_factory.mktemp("results")

    def made(name: str, failed: range) -> Path:
        entries = [Entry("optuna", draw, status=dict.fromkeys(failed, "failed")), Entry("serial", draw)]
        return write_results(results(entries, seeds=range(12), folder=place / name))

    return made("old", range(0)), made("new", range(9))


def told(call: Call, *arguments: str | Path) -> Any:
    return json.loads(call(*arguments, "--json").out)


@pytest.mark.parametrize("command", TELLING)
def test_no_number_of_a_folder_with_failed_runs_is_a_text(call: Call, folders: tuple[Path, Path], command: str) -> None:
    assert not list(not_finite(told(call, *command.split(), folders[1])))


def test_infinite_changes_are_null_beside_their_reason(call: Call, folders: tuple[Path, Path]) -> None:
    found = told(call, "diff", *folders)
    assert not list(not_finite(found))
    (time,) = [one for one in found["changes"] if (one["adapter"], one["question"]) == ("optuna", "time")]
    first = time["differences"][0]
    assert (first["difference"], first["difference_reason_if_null"], first["reason"]) == (None, BEYOND, "one failed")
    assert (time["interval"]["high"], time["interval"]["high_reason_if_null"]) == (None, BEYOND)


def test_what_any_command_writes_has_null_for_what_json_has_not(capsys: pytest.CaptureFixture[str]) -> None:
    interval = Interval(estimate=0.0, low=0.0, high=math.inf, confidence=0.9, n=2, method="")
    write_json({"of": interval, "ratios": [math.nan, -math.inf], "folder": Path("a"), "names": frozenset("ba")})
    found = json.loads(capsys.readouterr().out)
    assert (found["of"]["high"], found["of"]["high_reason_if_null"]) == (None, BEYOND)
    assert (found["ratios"], found["folder"], found["names"]) == ([None, None], "a", ["a", "b"])
    write_json(Interval(estimate=0.0, low=0.0, high=1.0, confidence=math.nan, n=2, method=""))
    assert json.loads(capsys.readouterr().out)["confidence_reason_if_null"] == UNDEFINED


@pytest.mark.parametrize("planted", ['"inf"', '"-Infinity"', '"nan"', "NaN", "-Infinity"])
def test_the_check_finds_a_planted_number(planted: str) -> None:
    assert list(not_finite(json.loads(f'{{"a": [{{"b": {planted}}}], "information": "infinite: 1"}}'))) == [".a.b"]
