"""What a trial really gets of processors, under the limits that the record names; of memory: test_memory_limits."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest

import burning_workload
from contract.runs import Made, make
from tuneoff.base.space import Float, SearchSpace
from tuneoff.errors import UnsupportedError
from tuneoff.experiment.spec import Budget, CpuLimit, ExperimentSpec, Objective, Strategy, Workers, WorkloadSpec
from tuneoff.run.supervisor.cgroups import group_sites
from tuneoff.run.supervisor.limits import usable_processors

pytestmark = pytest.mark.slow

SECONDS, TOLERANCE = 1.5, 0.08


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(burning_workload.__file__).parent))


def burn(
    results: Path, *, cpus: float, workers: int, trials: int, seconds: float = SECONDS, cpu_limit: CpuLimit = "none"
) -> Made:
    experiment = ExperimentSpec(
        workload=WorkloadSpec(name="burning", target="burning_workload:Burning", options={"epoch_seconds": seconds}),
        search_space=SearchSpace({"x": Float(low=0.0, high=1.0)}),
        objective=Objective(metric="validation_loss", mode="min"),
        sampler=Strategy(name="random"),
        pruner=Strategy(name="none"),
        budget=Budget(trials=trials, epochs_per_trial=1),
        workers=Workers(count=workers, cpus=cpus, cpu_limit=cpu_limit),
    )
    made = make("serial", experiment, results)
    assert made.record.status == "done"
    return made


def processors_used(made: Made) -> float:
    """Return the CPU seconds of the run's trials per second in which they trained."""
    epochs = [epoch for trial in made.record.trials for attempt in trial.attempts for epoch in attempt.epochs]
    return sum(epoch.cpu_ns or 0 for epoch in epochs) / sum(epoch.train_ns for epoch in epochs)


@pytest.mark.skipif(group_sites(("cpu",))["cpu"].parent is None, reason="no CPU quota can be given here")
def test_a_trial_with_a_quota_of_half_a_cpu_gets_half_a_cpu_and_one_without_a_limit_more(tmp_path: Path) -> None:
    if os.getloadavg()[0] > len(usable_processors()) + 1:
        pytest.skip("the machine is busy: no trial gets a whole processor")
    half = burn(tmp_path / "half", cpus=0.5, workers=1, trials=1, cpu_limit="quota")
    limits = half.record.environment["limits"]
    assert limits["cpus"].startswith("cgroup v")
    assert (limits["cpu_quota"], limits["threads"]) == (0.5, 1)
    assert processors_used(half) == pytest.approx(0.5, abs=TOLERANCE)
    assert half.left == ()
    unlimited = burn(tmp_path / "unlimited", cpus=0.5, workers=1, trials=1)
    assert processors_used(unlimited) > 0.5 + TOLERANCE  # negative control
    (cpus,) = [variable for variable in unlimited.record.declared if variable.symbol == "wcpu"]
    assert cpus.agrees is False  # and Table 1 says that it took more


@pytest.mark.skipif(len(usable_processors()) < 2, reason="needs two processors")
def test_trials_of_different_slots_never_run_on_the_same_processor(tmp_path: Path) -> None:
    try:
        made = burn(tmp_path, cpus=1, workers=2, trials=6, seconds=0.2, cpu_limit="affinity")
    except UnsupportedError:
        pytest.skip("another run holds the processors")
    seen: dict[int | None, set[float | None]] = defaultdict(set)
    for trial in made.record.trials:
        for attempt in trial.attempts:
            seen[attempt.slot].update(epoch.metrics["processor"] for epoch in attempt.epochs)
    assert set(seen) == {0, 1}
    expected = made.record.environment["limits"]["processors"]
    assert [seen[slot] for slot in (0, 1)] == [set(map(float, expected[slot])) for slot in (0, 1)]
    assert seen[0].isdisjoint(seen[1])
