"""The workload `faulty`: each fault is what its name says, decided by the configuration alone."""

from __future__ import annotations

import contextlib
import math
import resource
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from builders.faulty_examples import example_of
from trial_runs import events_of, trial_context
from tuneoff.errors import ExperimentError
from tuneoff.record.events import schema
from tuneoff.run.trial.run_trial import Decision, run_trial
from tuneoff.workload import TrialSeeds
from tuneoff_faults.faulty import KINDS, Faulty, Kind, PlantedFaultError, fault_of
from tuneoff_workloads.surrogate import Surrogate, surrogate_loss

SEEDS = TrialSeeds(split=1, trial=2)
CONFIGURATIONS = [{"learning_rate": index / 10_000} for index in range(1, 2001)]


def loaded(kind: Kind | None, **options: Any) -> Faulty:
    workload = Faulty(options)
    workload.load(example_of(kind, options), SEEDS)
    return workload


@pytest.mark.parametrize("workload", [Faulty({"rate": 0.0, "epoch_seconds": 0.5}), Surrogate({"epoch_seconds": 0.5})])
def test_an_epoch_lasts_once_as_long_as_asked(workload: Surrogate, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    workload.load(CONFIGURATIONS[0], SEEDS)
    workload.train_epoch(1)
    workload.validate()
    assert slept == [0.5]


def test_the_stated_fraction_is_faulty_and_all_kinds_occur() -> None:
    faults = Counter(fault_of(configuration) for configuration in CONFIGURATIONS)
    assert 1 - faults[None] / 2000 == pytest.approx(0.3, abs=0.04)
    assert set(faults) == {None, *KINDS}
    assert min(faults[kind] for kind in KINDS) > 40


def test_the_fault_depends_on_the_configuration_alone() -> None:
    configuration = {"learning_rate": 0.01, "dropout": 0.1}
    turned = dict(reversed(configuration.items()))
    for options in ({}, {"rate": 1.0}, {"rate": 1.0, "kinds": ["nan", "raise"]}):
        assert fault_of(configuration, options) == fault_of(turned, options)
    assert {fault_of(configuration, {"rate": 1.0, "kinds": ["nan"]}) for configuration in CONFIGURATIONS} == {"nan"}
    assert {fault_of(configuration, {"rate": 0.0}) for configuration in CONFIGURATIONS} == {None}


def test_a_sound_configuration_behaves_as_the_surrogate() -> None:
    workload = loaded(None)
    workload.train_epoch(1)
    assert workload.validate()["validation_loss"] == surrogate_loss(example_of(None), 1)
    assert workload.metrics == Surrogate.metrics


def test_raise_raises_at_its_epoch_and_not_before() -> None:
    workload = loaded("raise", at_epoch=2)
    workload.train_epoch(1)
    workload.validate()
    with pytest.raises(PlantedFaultError, match="epoch 2"):
        workload.train_epoch(2)


@pytest.mark.parametrize(("kind", "is_planted"), [("nan", math.isnan), ("inf", math.isinf)])
def test_metrics_become_nan_or_inf_from_the_epoch_on(kind: Kind, is_planted: Any) -> None:
    workload = loaded(kind, at_epoch=2)
    workload.train_epoch(1)
    assert all(math.isfinite(value) for value in workload.validate().values())
    for epoch in (2, 3):
        workload.train_epoch(epoch)
        assert all(is_planted(value) for value in workload.validate().values())
        assert set(workload.validate()) == set(Faulty.metrics)


def test_no_report_leaves_the_metrics_out() -> None:
    workload = loaded("no_report")
    workload.train_epoch(1)
    assert workload.validate() == {}


def reported(folder: Path, kind: Kind, mark: Path) -> list[int]:
    """Return the epochs that a framework is told of, in order, in a trial of that fault."""
    options = {"kinds": [kind], "rate": 1.0, "at_epoch": 2, "mark": str(mark)}
    context = trial_context(
        folder, workload="tuneoff_faults.faulty:Faulty", workload_options=options, metric="validation_loss", epochs=4
    )
    found = []

    def report(epoch: int, _: object) -> Decision:
        found.append(epoch)
        return Decision.CONTINUE

    assert run_trial(context, "t0", example_of(kind, options), report).state == "completed"
    assert [event.epoch for event in events_of(folder, schema.Epoch)] == [1, 2, 3, 4]
    return found


@pytest.mark.parametrize(("kind", "expected"), [("duplicate_report", [1, 2, 2, 3, 4]), ("late_report", [1, 3, 2, 4])])
def test_a_framework_is_told_other_reports_and_the_record_has_the_epochs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, expected: list[int]
) -> None:
    (tmp_path / "struck").mkdir()
    assert reported(tmp_path / "struck", kind, tmp_path / "mark") == expected
    (tmp_path / "mark").unlink()
    (tmp_path / "renamed").mkdir()
    monkeypatch.delattr(Faulty, "to_report")  # control: without the hook nothing goes wrong, and nothing says that it did
    assert reported(tmp_path / "renamed", kind, tmp_path / "mark") == [1, 2, 3, 4]
    assert not (tmp_path / "mark").exists()


def test_a_fault_that_strikes_makes_its_mark_and_one_of_once_strikes_once(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for once, strikes in ((False, [True, True]), (True, [True, False])):
        mark.unlink(missing_ok=True)
        for is_struck in strikes:
            workload = loaded("raise", rate=1.0, kinds=["raise"], at_epoch=2, mark=str(mark), once=once)
            workload.train_epoch(1)
            with pytest.raises(PlantedFaultError) if is_struck else contextlib.nullcontext():
                workload.train_epoch(2)
            assert mark.exists()


SCRIPT = """
import resource, sys
from tuneoff.workload import TrialSeeds
from tuneoff_faults.faulty import Faulty
if sys.argv[1] == "out_of_memory":
    resource.setrlimit(resource.RLIMIT_AS, (800_000_000, 800_000_000))
workload = Faulty({"kinds": [sys.argv[1]], "rate": 1.0})
workload.load({"learning_rate": 0.1}, TrialSeeds(split=1, trial=2))
print("ready", flush=True)
workload.train_epoch(1)
print("survived", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "exit_code", "message"),
    [("exit_code", 3, ""), ("sigkill", -signal.SIGKILL, ""), ("out_of_memory", 1, "MemoryError"), ("raise", 1, "planted fault")],
)
def test_a_process_ends_as_its_fault_says(kind: Kind, exit_code: int, message: str) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, kind], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (exit_code, "ready\n")
    assert message in done.stderr


def test_hang_hangs_until_it_is_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, "hang"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
    finally:
        process.terminate()
        assert process.wait(timeout=60) == -signal.SIGTERM
        process.communicate()


def test_memory_without_a_limit_is_touched_kept_and_then_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[float] = []
    monkeypatch.setattr("tuneoff_faults.faulty.time.sleep", held.append)
    workload = loaded("out_of_memory", allocate_mb=40, hold_seconds=2.5)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MemoryError, match="allocated 40 MB in 3 pieces"):
        workload.train_epoch(1)
    assert held == [2.5]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >= before


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "nan"},
        {"kinds": []},
        {"kinds": "nan"},
        {"kinds": ["explode"]},
        {"rate": 1.5},
        {"at_epoch": 0},
        {"allocate_mb": -1},
        {"noise": -1},
        {"mark": 3},
        {"once": True},
        {"once": "path", "mark": "path"},
    ],
    ids=str,
)
def test_wrong_options_are_refused_in_one_line(options: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError) as error:
        Faulty(options)
    assert "\n" not in str(error.value)
