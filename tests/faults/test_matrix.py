"""The matrix of runs that never run: what is refused, what cannot be planted, and what is left of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_line import Answer, Call
from tuneoff.cli.selection import overridden_plan
from tuneoff.run.child import ChildEnd
from tuneoff_faults import cell as cells
from tuneoff_faults import matrix, run_cells
from tuneoff_faults.cell import MatrixCell, NotStruck
from tuneoff_faults.classify import SeenRun, best_of, clean_values
from tuneoff_faults.faults import FAULTS, NO_FAULT
from tuneoff_faults.matrix import FILE
from tuneoff_faults.plain import Claim, FaultTools, Part

OF_SERIAL = [fault.name for fault in FAULTS if fault is not NO_FAULT and fault.strike != "part"]
Run = Callable[[MatrixCell], None]
Faults = Callable[..., Answer]


def right(cell: MatrixCell) -> SeenRun:
    """Return what a run says in which all goes well."""
    experiment = cell.spec.experiment
    options = {**experiment.workload.options, "configurations": [], "epoch_seconds": 0.0}
    values = {index: of[-1] for index, of in enumerate(clean_values(experiment, options))}
    best = best_of(values, experiment.objective)
    assert best is not None
    claims = tuple(Claim(index=index, state="completed", value=value) for index, value in values.items())
    return SeenRun(claims=claims, best=(best, values[best]))


@pytest.fixture
def faults(call: Call, monkeypatch: pytest.MonkeyPatch) -> Faults:
    """Return a function that asks for one fault of serial, and replaces all runs with it; the others go well."""
    monkeypatch.setattr(matrix, "can_mount", lambda folder: False)

    def faults(fault: str, run: Run, *words: str | Path) -> Answer:
        def fake(cell: MatrixCell, *_: object) -> SeenRun:
            if cell.fault is not NO_FAULT:
                run(cell)
            return right(cell)

        monkeypatch.setattr(matrix, "run_by_adapter", fake)
        monkeypatch.setattr(matrix, "run_by_defaults", fake)
        return call("faults", "--adapter", "serial", "--fault", fault, *words)

    return faults


def strike(cell: MatrixCell) -> None:
    cell.is_struck = True


def miss(cell: MatrixCell) -> None:
    """Come to an end before the fault."""


def find_nothing(cell: MatrixCell) -> None:
    strike(cell)
    raise NotStruck("no process of this run has 'gcs_server' in its command line")


def break_a_rule(cell: MatrixCell) -> None:
    raise KeyError("a fault of tuneoff's own")


def test_a_fault_that_was_planted_gives_a_verdict(faults: Faults) -> None:
    answer = faults("driver_killed", strike)
    assert answer.code == 0
    assert "SAFE: of 2 runs through adapters" in answer.out


@pytest.mark.parametrize(
    ("fault", "run", "reason"),
    [
        ("driver_killed", find_nothing, "no process of this run has 'gcs_server' in its command line"),
        *((name, miss, "its trial never came so far: the run ended well") for name in OF_SERIAL),
    ],
)
def test_a_fault_that_was_not_planted_gives_no_verdict(faults: Faults, fault: str, run: Run, reason: str) -> None:
    answer = faults(fault, run, "--by", "adapter")
    assert answer.code == 1
    assert answer.out.splitlines()[-1] == f"NO VERDICT: the fault could not be planted: serial by adapter under {fault}"
    assert f"could not be struck: {reason}" in answer.out


def test_an_error_of_tuneoff_s_own_is_none_of_the_fault(faults: Faults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # of the traceback that is kept
    answer = faults("raise", break_a_rule, "--by", "adapter")
    assert answer.code == 70
    assert "KeyError" in answer.err


def a_cell(tmp_path: Path, part: Part) -> MatrixCell:
    (run,) = overridden_plan(FILE, adapters=["serial"]).counted
    fault = next(fault for fault in FAULTS if fault.name == part.fault)
    tools = FaultTools(plain="none", defaults="none", parts=(part,))
    about = {"number": 0, "label": "serial", "setting": "adapter", "faulty": 1, "folder": tmp_path, "has_disk": False}
    return MatrixCell(**about, fault=fault, spec=run.spec, tools=tools, stopping=threading.Event())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (Part(fault="head_killed", text="", process="no-such-process-anywhere"), "no process of this run has 'no-such-process"),
        (Part(fault="storage_removed", text="", file="storage.db"), "no file of this run is named 'storage.db'"),
        (Part(fault="storage_locked", text="", lock="held.log"), "the lock held.log.lock was never free within 0.05 s"),
    ],
)
def test_a_part_that_cannot_be_taken_away_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: Part, text: str) -> None:
    monkeypatch.setattr(cells, "_LOCK_SECONDS", 0.05)
    (tmp_path / "held.log").touch()
    (tmp_path / "held.log.lock").touch()
    with pytest.raises(NotStruck, match=text):
        cells.break_part(a_cell(tmp_path, part))


def test_each_of_two_entries_of_one_adapter_has_its_own_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run,) = overridden_plan(FILE, adapters=["serial"]).counted
    entries = []

    def read(cell: MatrixCell, command: object, seconds: float) -> ChildEnd:
        content: Mapping[str, Any] = json.loads((cell.folder / run_cells.FILE).read_text())
        entries.extend(content["adapters"])
        return ChildEnd(code=2, seconds=0.0, words="")

    monkeypatch.setattr(run_cells, "run_cell", read)
    cell = a_cell(tmp_path, Part(fault="head_killed", text="", process="none"))
    specs = [replace(run.spec, platform=platform, options={"n": n}) for n, platform in enumerate(["local", "emulated"])]
    for spec in specs:
        run_cells.run_by_adapter(replace(cell, spec=spec), overridden_plan(FILE).content)
    assert entries == [{"name": spec.adapter, "platform": spec.platform, "options": spec.options} for spec in specs]


def test_a_folder_that_cannot_be_kept_in_is_refused_before_the_first_run(faults: Faults, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    answer = faults("raise", break_a_rule, "--keep", tmp_path / "file")
    assert answer.code == 5
    assert answer.line == f"tuneoff: {tmp_path / 'file'} cannot be written: File exists; choose another --keep"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), shutil.Error([("a", "b", "No space left")])])
def test_files_that_cannot_be_kept_cost_no_results(
    faults: Faults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(shutil, "copytree", fail)
    answer = faults("driver_killed", strike, "--keep", tmp_path / "kept", "--json")
    assert answer.code == 0
    assert len(json.loads(answer.out)["runs"]) == 4
    assert f"not all files of the runs are kept in {tmp_path / 'kept'}: " in answer.err
    assert "No space left" in answer.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_runs_and_removes_their_folder(faults: Faults, number: signal.Signals) -> None:
    roots = []

    def wait(cell: MatrixCell) -> None:
        roots.append(cell.folder.parent)
        os.kill(os.getpid(), number)
        assert cell.stopping.wait(30)

    answer = faults("raise", wait, "--by", "adapter")
    assert answer.code == 130
    assert [root.exists() for root in roots] == [False]
