"""What trials are charged, held against what they say of themselves: real processes, the real sampler, the real account."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import duty_workload
from measure.power.meters import Counter, plan_of
from tuneoff.base.space import SearchSpace
from tuneoff.experiment.spec import Budget, ExperimentSpec, Objective, RunSpec, Strategy, Workers, WorkloadSpec
from tuneoff.measure.attribution.account import EnergyAccount, energy_account
from tuneoff.measure.attribution.pieces import joules
from tuneoff.measure.power.metering import Baseline, PowerPlan
from tuneoff.measure.power.model_meter import ModelMeter
from tuneoff.record.run_record import RunRecord, TrialRecord
from tuneoff.record.samples.reader import Evidence, Samples, on_run_clock, read_samples
from tuneoff.registry import adapter_class
from tuneoff.run.finish import finish
from tuneoff.run.supervisor.run import RunRequest, supervise

pytestmark = pytest.mark.slow

POINTS = 0.03  # of one processor
MODEL = ModelMeter({"joules_per_cpu_second": 1.0, "watts_per_core": 0.0})  # so that energy in J is CPU time in s
BY_MODEL = PowerPlan(name="model", meter=MODEL, reason="")
NODE_WATTS = 100.0


@dataclass(frozen=True)
class Ran:
    record: RunRecord
    samples: Samples
    account: EnergyAccount

    def charged(self, trial: TrialRecord) -> float:
        """Return the trial's energy in J."""
        return sum(joules(pieces) for (name, _), pieces in self.account.attempts.items() if name == trial.trial)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(duty_workload.__file__).parent))


def ran(folder: Path, power: PowerPlan, configurations: Sequence[Mapping[str, Any]], adapter: str = "serial") -> Ran:
    """Run the configurations one after the other."""
    space: SearchSpace = duty_workload.Duty.default_space()
    experiment = ExperimentSpec(
        workload=WorkloadSpec(name="duty", target="duty_workload:Duty"),
        search_space=space,
        objective=Objective(metric="loss", mode="min"),
        sampler=Strategy(name="fixed"),
        pruner=Strategy(name="none"),
        configurations=tuple(configurations),
        budget=Budget(trials=len(configurations), epochs_per_trial=2),
        workers=Workers(count=1),
    )
    cls = adapter_class(adapter)
    run = RunSpec(experiment=experiment, adapter=adapter, adapter_target=f"{cls.__module__}:{cls.__qualname__}")
    ended = supervise(RunRequest(spec=run, results=folder, power=power))
    record = finish(ended.execution.folder, run, ended.ruling, cls)
    assert record.status == "done", record.reason
    samples = on_run_clock(read_samples(ended.execution.folder), record)
    assert samples is not None
    return Ran(record, samples, energy_account(record, Evidence(samples=samples)))


def told(trial: TrialRecord) -> float:
    """Return the CPU seconds of which the trial knows."""
    value = trial.attempts[-1].epochs[-1].metrics["cpu_seconds"]
    assert value is not None
    return value


def busy_seconds(trial: TrialRecord) -> float:
    attempt = trial.attempts[-1]
    assert attempt.started_ns is not None
    assert attempt.ended_ns is not None
    return (attempt.ended_ns - attempt.started_ns) / 1e9


@pytest.fixture(scope="module", params=["serial", "syne-tune"])
def of_every_kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Return a run by an adapter whose trials use processors in every way."""
    alone = [{"duty": duty, "way": "alone"} for duty in (0.0, 0.5, 1.0)]
    others = [{"duty": 0.5, "way": "threads"}, {"duty": 0.1, "way": "child"}, {"duty": 0.1, "way": "child left"}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(duty_workload.__file__).parent))
        return ran(tmp_path_factory.mktemp("kinds"), BY_MODEL, [*alone, *others], request.param)


def test_trials_are_charged_the_cpu_time_that_they_used_within_3_points(of_every_kind: Ran) -> None:
    result = of_every_kind
    assert len(result.record.trials) == 6
    for trial in result.record.trials:
        points = (result.charged(trial) - told(trial)) / busy_seconds(trial)
        assert abs(points) < POINTS, f"{dict(trial.configuration)}: {points:+.3f} of {told(trial):.2f} s"
    idle, *_, busiest = sorted(result.record.trials, key=told)
    assert (told(busiest) - result.charged(idle)) / busy_seconds(idle) > 5 * POINTS, "a wrong charge would go unseen"


def by_counter() -> PowerPlan:
    """Return the plan of a host with a counter and no idle power: all of its energy is shared out by CPU time."""
    baseline = Baseline(idle_watts={"package-0": 0.0}, seconds=3.0)
    return replace(plan_of(Counter(watts=NODE_WATTS), interval_seconds=0.2), baseline=baseline)


@pytest.fixture
def busy_stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process of somebody else that keeps a processor busy."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield process
    process.kill()
    process.wait()


def test_a_stranger_s_energy_is_not_charged_to_trials(tmp_path: Path, busy_stranger: subprocess.Popen[bytes]) -> None:
    result = ran(tmp_path, by_counter(), [{"duty": 0.0, "way": "alone"}, {"duty": 0.001, "way": "alone"}])
    assert result.account.kind == "derived"
    assert result.account.node is not None
    node = joules(result.account.node)
    trials = sum(result.charged(trial) for trial in result.record.trials)
    assert 0 < trials < POINTS * node
    others = joules(result.account.parts["others"])
    assert others > 0.5 * node
    seen = {usage.pid for sample in result.samples.usage for usage in sample.processes}
    assert busy_stranger.pid not in seen


def test_a_trial_that_has_the_host_for_itself_is_charged_nearly_all_of_the_dynamic_energy(tmp_path: Path) -> None:
    """The control of the test before: the same meter does charge a trial that works."""
    result = ran(tmp_path, by_counter(), [{"duty": 1.0, "way": "alone"}])
    (trial,) = result.record.trials
    attempt = trial.attempts[-1]
    assert attempt.started_ns is not None
    assert attempt.ended_ns is not None
    assert result.account.node is not None
    within = joules(result.account.node, (attempt.started_ns, attempt.ended_ns))
    usage = [sample for sample in result.samples.usage if attempt.started_ns <= sample.t <= attempt.ended_ns]
    host = (usage[-1].busy_ns - usage[0].busy_ns) / (usage[-1].t - usage[0].t)  # mean number of busy processors
    share = told(trial) / busy_seconds(trial) / host
    assert result.charged(trial) == pytest.approx(min(1.0, share) * within, rel=0.15)
