"""docs/findings.md: its commands are ones, each finding says what it must, and what draws the same everywhere is drawn again."""

from __future__ import annotations

import argparse
import functools
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import Call, caller
from trust.space_test.forked import draw_in_forks
from tuneoff import registry
from tuneoff.base.packages import experiments, installed_version
from tuneoff.cli import main as command_line
from tuneoff.cli.command import build_parser
from tuneoff.trust.check.checks import CHECKS
from tuneoff_faults.faults import FAULTS

REPOSITORY = Path(__file__).parents[2]
FILES = sorted((REPOSITORY / "benchmarks" / "findings").glob("*.yaml"))
PAGE = (REPOSITORY / "docs" / "findings.md").read_text()
FINDINGS = re.split(r"^## (?=\d+\. )", PAGE, flags=re.MULTILINE)[1:]
DRAWING = ("ray.tune", "optuna", "syne_tune.optimizer.baselines")  # modules
VERSIONS = {"ray": r"Ray Tune ([\d.]+\d)", "optuna": r"Optuna ([\d.]+\d)", "syne-tune": r"Syne Tune ([\d.]+\d)"}


def commands() -> list[list[str]]:
    """Return the arguments of each `tuneoff` command of the page."""
    text = PAGE.replace("\\\n", " ")
    return [shlex.split(line.partition(" > ")[0])[1:] for line in re.findall(r"^    (tuneoff .*)$", text, flags=re.MULTILINE)]


def adapters(arguments: list[str]) -> Iterator[str]:
    """Yield the adapters that a command names."""
    yield from vars(parse(arguments)).get("adapters") or []


@functools.cache
def parser() -> argparse.ArgumentParser:
    return build_parser(command_line.all_commands(), "", "", "")


def parse(arguments: list[str]) -> object:
    return parser().parse_args(arguments)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Return a function that runs a command in the repository."""
    monkeypatch.chdir(REPOSITORY)
    return caller(capsys)


def test_there_are_ten_findings_and_more_numbered_and_listed() -> None:
    assert len(FINDINGS) >= 10
    assert [finding.split(".")[0] for finding in FINDINGS] == [str(number) for number in range(1, len(FINDINGS) + 1)]
    listed = re.findall(r"(\d+)(?: to (\d+))?[,;.]? ?", PAGE.partition("By framework:")[2].partition("\n")[0])
    numbers = {number for first, last in listed for number in range(int(first), int(last or first) + 1)}
    assert numbers == set(range(1, len(FINDINGS) + 1))


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.split(".")[0])
def test_each_finding_has_a_command_its_output_and_what_it_does_not_show(finding: str) -> None:
    of_benchmarks = re.findall(r"^    python -m (benchmarks\.\w+)$", finding, flags=re.MULTILINE)
    assert all((REPOSITORY / f"{name.replace('.', '/')}.py").is_file() for name in of_benchmarks)
    assert "    tuneoff " in finding or "The command of [finding " in finding or of_benchmarks
    assert "Output" in finding
    assert "ot shown" in finding


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_each_command_is_one_and_names_what_is_there(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    named = vars(parse(arguments))
    for name in adapters(arguments):
        assert registry.adapter_class(name.partition("@")[0])
    if "file" in named:
        assert Path(named["file"]).is_file() or str(named["file"]) in experiments()
    assert set(named.get("faults") or []) <= {fault.name for fault in FAULTS}
    assert set(named.get("only") or []) <= {check.id for check in CHECKS}
    with pytest.raises(SystemExit):  # control: a parser that takes everything proves nothing
        parse([*arguments, "--no-such-option"])
    capsys.readouterr()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_says_what_it_answers_and_can_be_planned(call: Call, path: Path) -> None:
    assert path.read_text().startswith("# ")
    answer = call("plan", path, "--json")
    assert (answer.code, answer.err) == (0, "")
    assert path.relative_to(REPOSITORY).as_posix() in PAGE


@pytest.mark.slow
def test_the_frameworks_own_types_still_draw_what_the_page_says(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for package, pattern in VERSIONS.items():
        found = re.search(pattern, PAGE)
        assert found is not None
        if installed_version(package) != found[1]:
            pytest.skip(f"the page is of {package} {found[1]}")
    for module in DRAWING:
        importlib.import_module(module)
    lines = re.findall(r"^ {6}(ends: .*)$", PAGE, flags=re.MULTILINE)
    arguments = next(arguments for arguments in commands() if "benchmarks.findings.own_types:RayTypes" in arguments)
    with monkeypatch.context() as patch:
        draw_in_forks(patch)
        answer = call(*arguments)
    assert lines
    assert [line for line in lines if line not in answer.out] == []
    assert "OptunaTypes: accepted" in answer.out
    file = "benchmarks/findings/space.yaml"  # with processes of its own: forks have one state of numpy's generator
    answer = call("check", "benchmarks.findings.own_types:SyneSeedAlone", "--space", file, "--draws", "400")
    assert "seeds: seed 0 was drawn twice, and 100 of 100 configurations differ" in answer.out
