"""`tuneoff check`: what it answers before anything runs, and a check that needs no run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from command_line import Call
from tuneoff.base.findings import CONFORMS, FAILS, Finding, Report, failed, not_tested, passed
from tuneoff.base.processes import is_alive, kill
from tuneoff.cli.check import _option
from tuneoff.errors import NOT_KNOWN
from tuneoff.trust.check import make
from tuneoff.trust.check.checks import CHECKS
from waiting import until


def test_the_checks_are_listed_with_their_reasons_and_ways_out(call: Call) -> None:
    answer = call("check", "--list", "--json")
    assert answer.code == 0
    listed = json.loads(answer.out)
    assert [item["id"] for item in listed] == [check.id for check in CHECKS]
    assert all(item["reason"] and item["way_out"] for item in listed)
    text = call("check", "--list", "--only", "best").out
    assert "best.ties" in text
    assert "budget.trials" not in text


def test_the_checks_of_a_workload_are_listed_and_explained_too(call: Call) -> None:
    listed = json.loads(call("check", "--workload", "own.yaml", "--list", "--json", "--only", "left", "metric.given").out)
    assert [item["id"] for item in listed] == ["metric.given", "left.processes", "left.files"]
    for item in listed:
        explained = json.loads(call("explain", item["id"], "--json").out)
        assert {
            "topic": "checks",
            "name": item["id"],
            "detail": item["way_out"],
            "text": f"of a workload: {item['reason']}",
        } in explained


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--workload", "own.yaml", "--only", "left.fils"), 2, "did you mean 'left.files'?"),
        (("--workload", "own.yaml", "--only", "best.ties"), 2, "see: tuneoff check --list --workload"),
        (("--workload", "own.yaml", "--keep", "kept", "--option", "depth=3"), 2, "leave out --option, --keep"),
        (("plain", "--workload", "own.yaml"), 2, "--workload must be without adapters; leave out adapters"),
        (("plain", "--seed", "0"), 2, "adapters must be without --seed"),
        (("plain", "--controls"), 2, "--controls must be without adapters"),
        (("--space", "own.yaml", "--only", "best"), 2, "--space must be without --only"),
        (("--space", "own.yaml", "--workload", "own.yaml"), 2, "not allowed with argument --space"),
        ((), 2, "at least one adapter must be named"),
        (("plian",), 2, "'plain'"),
        (("plain", "--only", "best.tie"), 2, "best.ties"),
        (("plain@moon",), 2, "does not offer platform 'moon'"),
        (("plain", "--option", "depth"), 2, "--option: must be NAME=VALUE"),
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


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ((passed(), passed()), CONFORMS),
        ((passed(), not_tested("x")), NOT_KNOWN),
        ((not_tested("x"), passed()), NOT_KNOWN),
        ((failed("x"), not_tested("x")), FAILS),
    ],
)
def test_of_several_adapters_a_failure_counts_most_and_then_what_is_not_known(
    call: Call, fakes: None, monkeypatch: pytest.MonkeyPatch, findings: tuple[Finding, ...], code: int
) -> None:
    left = iter(findings)
    report = partial(Report, label="x", check_count=1)
    monkeypatch.setattr("tuneoff.trust.check.make.check_adapter", lambda *_, **__: report(findings=[next(left)]))
    answer = call("check", "plain", "rich", "--json")
    assert (answer.code, json.loads(answer.out)["exit_code"]) == (code, code)


def test_every_folder_is_looked_at_before_the_first_run_and_an_adapter_named_twice_is_checked_once(
    call: Call, tmp_path: Path
) -> None:
    (tmp_path / "kept" / "optuna").mkdir(parents=True)
    (tmp_path / "kept" / "optuna" / "letter.txt").touch()
    answer = call("check", "serial", "optuna", "--only", "refusal", "--keep", "kept")
    assert (answer.code, "must be a new or empty folder" in answer.line) == (5, True)
    assert list((tmp_path / "kept").rglob("*.json")) == []
    answer = call("check", "serial", "serial@local", "--only", "refusal.adapter-options", "--keep", "kept", "--json")
    assert (answer.code, len(json.loads(answer.out)["adapters"])) == (0, 1)


def test_an_option_is_json_or_else_a_text() -> None:
    assert [_option(text) for text in ("a=3", 'b=["x"]', "c=d=e")] == [("a", 3), ("b", ["x"]), ("c", "d=e")]


def test_a_wrong_type_in_the_capabilities_is_a_broken_adapter(call: Call, tmp_path: Path) -> None:
    (tmp_path / "badly_declared.py").write_text(NOWHERE.replace("platforms=()", "retry=True"))
    for command in (("check",), ("list", "adapters")):
        answer = call(*command, "badly_declared:Nowhere")
        assert answer.code == 6
        assert "capabilities.retry must be a Support (e.g. Support.YES), but got True" in answer.out + answer.err


def test_an_adapter_that_hangs_when_it_is_asked_is_not_waited_for(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "REFUSAL_SECONDS", 0.01)
    answer = call("check", "serial", "--only", "refusal.adapter-options")
    assert answer.code == 7
    assert "nothing could be asked: it took longer than 0.01 s" in answer.out
    assert (
        "serial: NOT KNOWN, nothing failed, but not all was tested (not: refusal.adapter-options): 1 not tested; " in answer.out
    )


@pytest.mark.slow
def test_the_process_that_asks_does_not_outlive_a_killed_check(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text(HANGING)
    command = [sys.executable, "-m", "tuneoff", "check", "hanging:Hanging", "--only", "refusal.adapter-options"]
    pid_file = tmp_path / "pid"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PID_FILE": str(pid_file), "TMPDIR": str(tmp_path)}
    check = subprocess.Popen(command, env=environment)
    try:
        until(pid_file.exists, 60)
    finally:
        check.kill()
        check.wait()
    pid = int(pid_file.read_text())
    try:
        until(lambda: not is_alive(pid), 10)
    finally:
        kill(pid)


def test_refusals_are_checked_without_a_run(call: Call) -> None:
    answer = call("check", "serial", "--only", "refusal", "--json")
    assert (answer.code, answer.err) == (0, "")
    (adapter,) = json.loads(answer.out)["adapters"]
    assert (adapter["conforms"], adapter["runs"]) == (True, 0)
    assert {item["id"].partition(".")[0] for item in adapter["checks"]} == {"refusal"}
    line = call("check", "serial", "--only", "refusal.adapter-options").out.splitlines()[-1]
    assert f"serial: PASSED: 1 of the {len(CHECKS)} checks were asked for: 1 passed" in line  # which is not that it conforms


def test_an_adapter_that_accepts_everything_does_not_conform(call: Call, tmp_path: Path) -> None:
    (tmp_path / "eager.py").write_text(EAGER)
    answer = call("check", "eager:Eager", "--only", "refusal")
    assert answer.code == 1
    failed = [line.split()[0] for line in answer.out.splitlines() if "FAILED" in line]
    assert failed == ["refusal.starts-nothing", "refusal.adapter-options", "refusal.sampler-options"]
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


NOWHERE = """
from dataclasses import replace
from tuneoff_adapters.serial import SerialAdapter


class Nowhere(SerialAdapter):
    capabilities = replace(SerialAdapter.capabilities, platforms=())
"""

HANGING = """
import os
import time
from pathlib import Path
from tuneoff_adapters.serial import SerialAdapter


class Hanging(SerialAdapter):
    @classmethod
    def refuse(cls, spec):
        if spec.options:
            partial = Path(os.environ["PID_FILE"] + ".partial")
            partial.write_text(str(os.getpid()))
            partial.rename(os.environ["PID_FILE"])
            time.sleep(60)
        return super().refuse(spec)
"""


BROKEN = """
from tuneoff_adapters.serial import SerialAdapter
class Broken(SerialAdapter):
    def setup(self): raise AttributeError("no estimator")
"""


@pytest.mark.slow
def test_a_step_that_fails_is_named_with_the_line_of_the_adapter(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    command = [sys.executable, "-m", "tuneoff", "check", "broken:Broken", "--only", "steps", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    results = json.loads(done.stdout)["adapters"][0]["checks"]
    assert any("no estimator (broken.py:4)" in result["text"] for result in results)
