"""No two trials see one device at once, whoever kills their processes: by the rules to which each history here is held."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import seeing_workload
from contract.runs import Made, experiment, make
from seeing_workload import Seeing
from tuneoff.experiment.spec import Budget, Failures, Workers
from tuneoff.run.progress import LiveRun

DEVICES = (7, 4)  # no numbers of slots


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(seeing_workload.__file__).parent))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


class Killer:
    """Kills a process that runs trials, now and then, by SIGKILL; `kills`: how many times at most."""

    def __init__(self, kills: int, every_looks: int = 1) -> None:
        self.kills, self.killed, self._every, self._looks = kills, 0, every_looks, 0
        self._random = random.Random(0)

    def __call__(self, live: LiveRun, folder: Path) -> bool:
        if not live.ended:  # a worker that does not come to start ends the run
            return False
        self._looks += 1
        names = [path.name.split("-") for path in folder.glob("*/events/*") if path.name.startswith(("worker-", "trial-"))]
        living = [int(name[1]) for name in names if Path(f"/proc/{name[1]}").exists()]
        if living and self._looks % self._every == 0:
            try:
                os.kill(self._random.choice(living), signal.SIGKILL)
                self.killed += 1
            except ProcessLookupError:
                pass  # it ended meanwhile
        return self.killed >= self.kills


def run(adapter: str, folder: Path, *, trials: int, per_device: int, act: Callable[[LiveRun, Path], bool]) -> Made:
    """Return a run of short trials on two devices in which processes are killed."""
    workers = Workers(count=2 * per_device, devices=DEVICES, per_device=per_device)
    target = f"{Seeing.__module__}:{Seeing.__qualname__}"
    budget, failures = Budget(trials=trials, epochs_per_trial=2), Failures(retries=1)
    spec = experiment("sleep", {"epoch_seconds": 0.1}, budget=budget, workers=workers, failures=failures)
    return make(adapter, replace(spec, workload=replace(spec.workload, name="seeing", target=target)), folder, act=act)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adapter", "per_device", "kills"),
    [("serial", 2, 3), ("ray-tune", 1, 1), *((name, 1, 2) for name in ("syne-tune", "deephyper", "neps"))],
)
def test_no_two_trials_see_a_device_at_once_though_processes_are_killed(
    adapter: str, per_device: int, kills: int, tmp_path: Path
) -> None:
    if adapter in ("deephyper", "neps"):
        pytest.importorskip(adapter)  # each has an environment of its own
    killer = Killer(kills)
    made = run(adapter, tmp_path, trials=20, per_device=per_device, act=killer)
    assert killer.killed > 0
    assert made.record.status == "done"
    limits = made.record.environment["limits"]["devices"]
    assert limits == [device for device in DEVICES for _ in range(per_device)]
    attempts = [attempt for trial in made.record.trials for attempt in trial.attempts if attempt.slot is not None]
    assert {attempt.visible == str(limits[attempt.slot or 0]) for attempt in attempts} == {True}
    imported = {(attempt.visible, epoch.metrics["device"]) for attempt in attempts for epoch in attempt.epochs}
    assert imported
    assert imported <= {(str(device), float(device)) for device in DEVICES}
    if adapter != "ray-tune":  # whose other actor may do all that is left once one is killed before its first epoch
        assert len(imported) == len(DEVICES)
