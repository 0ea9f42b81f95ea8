"""`tuneoff check`: what it answers before anything runs, and a check that needs no run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Call
from tuneoff.check.checks import IDS


def test_the_checks_are_listed_with_their_reasons_and_ways_out(call: Call) -> None:
    answer = call("check", "--list", "--json")
    assert answer.code == 0
    listed = json.loads(answer.out)
    assert [item["id"] for item in listed] == list(IDS)
    assert all(item["reason"] and item["way_out"] for item in listed)
    text = call("check", "--list", "--only", "best").out
    assert "best.ties" in text
    assert "budget.trials" not in text


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "at least one adapter must be named"),
        (("plian",), 2, "'plain'"),
        (("plain", "--only", "best.tie"), 2, "best.ties"),
        (("plain@moon",), 2, "does not offer platform 'moon'"),
        (("plain", "--platform", "moon"), 2, "does not offer platform 'moon'"),
        (("plain", "--option", "depth"), 2, "--option must be NAME=VALUE"),
        (("plain", "--option", "depth=3"), 2, "has no options, but got depth"),
        (("outdated",), 3, "PyYAML"),
        (("no_such_module:Adapter",), 2, "no_such_module"),
    ],
)
def test_what_cannot_be_checked_is_one_line(call: Call, fakes: None, arguments: tuple[str, ...], code: int, words: str) -> None:
    answer = call("check", *arguments)
    assert answer.code == code
    assert words in answer.line
    assert not list(Path.cwd().iterdir())


def test_a_folder_with_files_is_not_used(call: Call, tmp_path: Path) -> None:
    (tmp_path / "kept" / "serial").mkdir(parents=True)
    (tmp_path / "kept" / "serial" / "letter.txt").touch()
    answer = call("check", "serial", "--only", "refusal", "--keep", "kept")
    assert answer.code == 5
    assert "must be a new or empty folder" in answer.line


def test_refusals_are_checked_without_a_run(call: Call) -> None:
    answer = call("check", "serial", "--only", "refusal", "resume.as-declared", "--json")
    assert (answer.code, answer.err) == (0, "")
    (adapter,) = json.loads(answer.out)["adapters"]
    assert (adapter["conforms"], adapter["runs"]) == (True, 0)
    assert {item["id"].partition(".")[0] for item in adapter["checks"]} == {"refusal", "resume"}


def test_an_adapter_that_accepts_everything_does_not_conform(call: Call, tmp_path: Path) -> None:
    (tmp_path / "eager.py").write_text(EAGER)
    answer = call("check", "eager:Eager", "--only", "refusal")
    assert answer.code == 1
    failed = [line.split()[0] for line in answer.out.splitlines() if "FAILED" in line]
    assert failed == ["refusal.adapter-options", "refusal.sampler-options", "refusal.starts-nothing"]
    assert "DOES NOT CONFORM" in answer.out


EAGER = """
from dataclasses import replace
from tuneoff_adapters.serial import SerialAdapter
import colorsys


class Eager(SerialAdapter):
    capabilities = replace(SerialAdapter.capabilities, package="pip", module="colorsys")

    @classmethod
    def refuse(cls, spec):
        return None
"""
