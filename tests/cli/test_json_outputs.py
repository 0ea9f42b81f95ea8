"""`--json` of commands: a number that is not finite is null, never a text, and has its reason beside it in every command."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corpus.conftest import Recorded, recorded
from corpus.figures import JSON_COMMANDS, call
from tuneoff.base.json_values import BEYOND, UNDEFINED
from tuneoff.base.output import write_json
from tuneoff.judge.stats.location import Interval

__all__ = ["recorded"]


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


@pytest.mark.parametrize("command", JSON_COMMANDS)
def test_no_number_of_a_folder_with_failed_runs_is_a_text(recorded: Recorded, command: str) -> None:
    assert not list(not_finite(json.loads(call(recorded("failed"), *command.split(), str(recorded("failed")), "--json").out)))


def test_what_any_command_writes_has_null_for_what_json_has_not(capsys: pytest.CaptureFixture[str]) -> None:
    interval = Interval(estimate=0.0, low=0.0, high=math.inf, confidence=0.9, n=2, method="")
    write_json({"of": interval, "ratios": [math.nan, -math.inf], "folder": Path("a"), "names": frozenset("ba")})
    found = json.loads(capsys.readouterr().out)
    assert (found["of"]["high"], found["of"]["high_reason_if_null"]) == (None, BEYOND)
    assert (found["ratios"], found["folder"], found["names"]) == ([None, None], "a", ["a", "b"])
    write_json(Interval(estimate=0.0, low=0.0, high=1.0, confidence=math.nan, n=2, method=""))
    assert json.loads(capsys.readouterr().out)["confidence_reason_if_null"] == UNDEFINED
    write_json({"\x7f": "\x9b\u202e"})
    assert capsys.readouterr().out == '{\n "\\u007f": "\\u009b\\u202e"\n}\n'


@pytest.mark.parametrize("planted", ['"inf"', '"-Infinity"', '"nan"', "NaN", "-Infinity"])
def test_the_check_finds_a_planted_number(planted: str) -> None:
    assert list(not_finite(json.loads(f'{{"a": [{{"b": {planted}}}], "information": "infinite: 1"}}'))) == [".a.b"]
