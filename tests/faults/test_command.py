"""The command on real runs: serial under some faults, and planted adapters that it must not call safe."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from command_line import Call, write_file
from trust.environments import processes_with
from tuneoff.experiment.yaml_reader import read_merged
from tuneoff.judge.fault_results import read_faults
from tuneoff.registry import list_adapters
from tuneoff_faults import matrix
from tuneoff_faults.faults import FAULTS
from tuneoff_faults.matrix import fault_tools

TESTS = Path(__file__).parents[1]
WITHOUT_PLAIN = {
    "rustuna",
    "nevergrad",
    "hyperopt",
    "flaml",
    "smac",
    "ax",
    "deephyper",
    "hydra",
    "neps",
}  # in `faults --by adapter` alone
PARTS = {fault.name for fault in FAULTS if fault.strike == "part"}


def outcomes(answer: dict[str, Any]) -> dict[tuple[str, str], str]:
    return {(run["fault"], run["setting"]): run["outcome"] for run in answer["runs"]}


@pytest.mark.parametrize("adapter", sorted({one.plugin.name for one in list_adapters()} - WITHOUT_PLAIN))
def test_every_built_in_adapter_has_a_plain_program_and_names_its_parts(adapter: str) -> None:
    tools = fault_tools(adapter)
    assert tools is not None
    assert importlib.util.find_spec(tools.plain) is not None
    assert {part.fault for part in tools.parts} <= PARTS
    assert all(sum(map(bool, (part.process, part.file, part.lock))) == 1 for part in tools.parts)


def test_an_unknown_fault_names_the_known_ones(call: Call) -> None:
    answer = call("faults", "--fault", "earthquake")
    assert answer.code == 2
    assert "no fault named 'earthquake'; known: disk_full, driver_killed, duplicate_report" in answer.err


@pytest.mark.slow(first=True)
def test_serial_meets_faults_by_both_settings(call: Call, tmp_path: Path) -> None:
    names = ["raise", "sigkill", "duplicate_report", "late_report"]
    answer = call("faults", "--adapter", "serial", "--fault", *names, "--at-once", "2", "--json", "--keep", tmp_path / "kept")
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    assert outcomes(found) == {
        ("none", "defaults"): "recovered",
        ("none", "adapter"): "recovered",
        ("raise", "defaults"): "run aborted",
        ("raise", "adapter"): "trial lost",
        ("sigkill", "defaults"): "run aborted",
        ("sigkill", "adapter"): "recovered",
        ("duplicate_report", "defaults"): "recovered",
        ("duplicate_report", "adapter"): "recovered",
        ("late_report", "defaults"): "silently wrong",
        ("late_report", "adapter"): "recovered",
    }
    for run in found["runs"]:
        assert run["reason"]
        assert run["wasted_seconds"] is None or 0 <= run["wasted_seconds"] <= run["seconds"]
    aborted = next(run for run in found["runs"] if run["outcome"] == "run aborted")
    assert aborted["wasted_seconds"] == aborted["seconds"]
    assert not processes_with(f"faults-{os.getpid()}-")  # nothing of a cell is left


@pytest.mark.slow(first=True)
def test_planted_adapters_are_found_to_be_wrong_and_to_hang(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]))
    timeouts = {"trial_seconds": 5, "silence_seconds": 4, "trials_seconds": 9, "undeploy_seconds": 5}
    adapters = ["faults.planted:CleansMetrics", "faults.planted:WaitsForEver"]
    path = write_file(tmp_path / "faults.yaml", {**read_merged(matrix.FILE), "adapters": adapters, "timeouts": timeouts})
    monkeypatch.setattr(matrix, "FILE", path)
    answer = call("faults", "--fault", "inf", "--by", "adapter", "--at-once", "2", "--json")
    assert answer.code == 1
    runs = {(run["adapter"].rpartition(":")[2], run["fault"]): run for run in json.loads(answer.out)["runs"]}
    assert {key: run["outcome"] for key, run in runs.items()} == {
        ("CleansMetrics", "none"): "recovered",
        ("WaitsForEver", "none"): "recovered",
        ("CleansMetrics", "inf"): "silently wrong",
        ("WaitsForEver", "inf"): "hung until the limit",
    }
    assert runs["CleansMetrics", "inf"]["reason"] == "the faulty trial counts as complete with 1, which it never reached"
    assert "step trial took longer than 9 s" in runs["WaitsForEver", "inf"]["reason"]


@pytest.mark.slow(first=True)
def test_faults_of_reports_that_never_come_to_the_framework_give_no_verdict(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the workload's way to its reports: after a rename in core both faults would be none."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]))
    names = ["duplicate_report", "late_report"]
    answer = call("faults", "--adapter", "faults.planted:AsksForNoReport", "--fault", *names, "--by", "adapter", "--json")
    assert answer.code == 1
    found = {run["fault"]: (run["outcome"], run["is_missed"]) for run in json.loads(answer.out)["runs"]}
    assert found == {"none": ("recovered", False), **dict.fromkeys(names, (None, True))}
    (tmp_path / "faults.json").write_text(answer.out)
    assert [one.is_missed for one in read_faults([tmp_path], ["late_report"])] == [False, True, True]
