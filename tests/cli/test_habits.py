"""What people type by habit: a nearest name, the right help page, lists by comma or blank, and nothing that is lost silently."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from command_line import LEAST, Call, write_file

PORT = "must be a whole number from 0 to 65535, but got "


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("compare", "own.yaml", "--adapters", "serial"), "did you mean '--adapter'?; see: tuneoff compare --help"),
        (("compare", "own.yaml", "--n-trials", "5"), "did you mean '--trials'?"),
        (("compere", "own.yaml"), "did you mean 'compare'?"),
        (("run", "own.yaml", "--adapter", "plain", "--adapter", "rich"), "--adapter may be given once, but is given twice"),
        (("compare", "own.yaml", "--trials", "5", "--trials=6"), "--trials may be given once, but is given twice"),
        (("compare", "own.yaml", "--seeds", "0,x"), "invalid int value: '0,x'"),
        (("compare", "own.yml"), "did you mean 'own.yaml'?"),
        (("run", "own.yaml", "--adapter", "plain", "--sampler", "RANDOM"), "did you mean 'random'?"),
        (("compare",), "required: FILE; see: tuneoff compare --help"),
        (("plan", "x", "--trials", "many"), "--trials: invalid int value: 'many'"),
        (("plan", "x", "--trial", "1"), "unrecognized arguments: --trial 1"),
        ((), "required: COMMAND"),
        (("export", "--format", "xml"), "invalid choice: 'xml'"),
        *((("compare", "own.yaml", f"--metrics-port={port}"), f"{PORT}'{port}'") for port in ("-1", "65536", "http", "80.5")),
    ],
)
def test_what_is_mistyped_is_one_line_with_the_way_out(call: Call, fakes: None, arguments: Sequence[str], words: str) -> None:
    write_file(Path("own.yaml"), LEAST)
    answer = call(*arguments)
    assert answer.code == 2
    assert words in answer.line


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "own.yaml", "--adapter", "plain", "rich", "--seeds", "0,1"),
        ("plan", "own.yaml", "--adapter", "plain,", "rich", "--seeds", "0, 1"),
        ("plan", "--adapter", "plain", "rich", "own.yaml", "--seeds", "0", "1"),
        ("plan", "--adapter", "plain,rich", "--seeds", "0,1", "own.yaml"),
        ("plan", "--adapter", "plain", "--adapter", "rich", "--seeds", "0", "--seeds=1", "--", "own.yaml"),
    ],
)
def test_lists_are_by_comma_or_blank_and_swallow_no_file(call: Call, fakes: None, arguments: Sequence[str]) -> None:
    write_file(Path("own.yaml"), LEAST)
    answer = call(*arguments)
    assert answer.code == 0, answer.err
    assert "4 runs" in answer.out


def test_workers_are_overridden(call: Call, fakes: None) -> None:
    write_file(Path("own.yaml"), {**LEAST, "workers": {"count": 1}})
    plans = [call("plan", "own.yaml", *more).out for more in ((), ("--workers", "1"), ("--workers", "2"))]
    assert plans[0] == plans[1] != plans[2]


def test_help_is_a_command_too(call: Call) -> None:
    assert call("help", "compare").out == call("compare", "--help").out
    assert call("help").out == call("--help").out
