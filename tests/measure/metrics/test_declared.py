"""Table 1: what differs from what was declared is flagged, and what cannot be told claims nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from builders.event_logs import example_a, example_b
from builders.worked_examples import header
from tuneoff.experiment.spec import Strategy, Workers, run_spec_to_json
from tuneoff.measure.declared_variables import with_declared
from tuneoff.measure.derived import with_metrics
from tuneoff.record.derive import derive
from tuneoff.record.run_record import AttemptRecord, DeclaredVariable, FlagRecord, RunRecord
from tuneoff.record.samples.reader import Evidence, Samples
from tuneoff.record.samples.schema import ProcessUsage, UsageSample

ENVIRONMENT = {
    "limits": {"memory": "cgroup v2 and watchdog", "cpus": "affinity", "threads": 1},
    "data": {"name": "digits", "version": "1", "sha256": {"a": "aa", "b": "bb"}, "size_bytes": 2_000_000, "paths": {"a": "x"}},
    "workload": {
        "package": "own",
        "version": "1",
        "training_algorithm": "SGD",
        "sha256": "cc",
        "git": {"url": "https://example.com/x.git", "commit": "1"},
    },
    "after": {"data": {"a": "aa", "b": "bb"}, "data_bytes": 2_000_000, "code": "cc"},
}
VERSIONS = {"framework": "F", "framework_version": "1.2", "sampler": "f.Random", "pruner": "f.Nop"}
Change = Callable[[RunRecord], RunRecord]


def busy(attempt: AttemptRecord) -> int:
    assert attempt.ended_ns is not None
    assert attempt.started_ns is not None
    return attempt.ended_ns - attempt.started_ns


def attempts(change: Callable[[AttemptRecord], dict[str, Any]], first_only: bool = False) -> Change:
    """Return what changes fields of a run's attempts, or of its first trial's alone."""

    def changed(run: RunRecord) -> RunRecord:
        trials = [
            replace(trial, attempts=tuple(msgspec.structs.replace(one, **change(one)) for one in trial.attempts))
            for trial in run.trials
        ]
        return replace(run, trials=(*trials[:1], *run.trials[1:]) if first_only else tuple(trials))

    return changed


def busy_for(share: float) -> Change:
    """Return what gives attempts CPU time for this share of their busy time."""
    return attempts(lambda one: {"cpu_ns": int(share * busy(one)), "epochs": ()})


def environment(**parts: Mapping[str, Any]) -> Change:
    """Return what changes parts of a run's environment."""
    return lambda run: replace(
        run, environment={**run.environment, **{name: {**run.environment[name], **part} for name, part in parts.items()}}
    )


def declaring(*flags: str, **parts: Mapping[str, Any]) -> Change:
    """Return what changes parts of the experiment of a run's specification, and raises flags."""

    def changed(run: RunRecord) -> RunRecord:
        specification = run_spec_to_json(run.run_spec())
        for name, part in parts.items():
            specification["experiment"][name].update(part)
        return replace(run, specification=specification, flags=tuple(FlagRecord(name=flag, text="x") for flag in flags))

    return changed


def choices(count: int) -> Change:
    """Return what declares as many choices, which are the first configurations that were tried."""

    def changed(run: RunRecord) -> RunRecord:
        tried = [trial.configuration["x"] for trial in run.trials][:count]
        return declaring(search_space={"dimensions": [{"name": "x", "type": "categorical", "choices": tried, "ordered": False}]})(
            run
        )

    return changed


@pytest.fixture(scope="module")
def honest() -> RunRecord:
    """Example B's run with memory declared, one thread per trial that uses 90 % of a processor."""
    log, spec = example_b()
    workers = Workers(count=2, cpus=1, memory_mb=2000)
    spec = replace(spec, experiment=replace(spec.experiment, workers=workers, pruner=Strategy(name="median")))
    run = derive(log.pairs(), spec, versions=VERSIONS, environment=ENVIRONMENT)
    return attempts(
        lambda one: {"cpu_ns": 9 * busy(one) // 10, "cpus_allowed": 1, "peak_rss_bytes": 400_000_000, "device": "cpu"}
    )(run)


def variables(run: RunRecord, evidence: Evidence | None = None) -> dict[str, DeclaredVariable]:
    return {one.symbol: one for one in with_declared(with_metrics(run, evidence or Evidence())).declared}


def differing(run: RunRecord, evidence: Evidence | None = None) -> list[str]:
    return [symbol for symbol, variable in variables(run, evidence).items() if variable.agrees is False]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(attempts(lambda _: {"slot": 0, "process": "h:1:1"}), {"wn": "1 of the processes"}, id="an unused worker"),
        # Which slot a short trial of a process got says nothing of the framework, which kept two processes alive.
        pytest.param(attempts(lambda _: {"slot": 0}), {}, id="one slot, but two processes present"),
        pytest.param(declaring(workers={"count": 1}), {"wn": "2 trials overlapped or slots were used, 1"}, id="more workers"),
        pytest.param(attempts(lambda _: {"threads": 2}), {"wcpu": "2 threads"}, id="two threads"),
        pytest.param(busy_for(1.04), {}, id="CPU time within 5 % of the threads"),
        pytest.param(
            attempts(lambda one: {"cpu_ns": 2 * busy(one)}, first_only=True),
            {"wcpu": "CPU seconds per busy second, but 1 are declared"},
            id="a second thread's CPU time in one trial of many",
        ),
        pytest.param(declaring(workers={"cpus": 2.0}), {"wcpu": "1 processors were allowed"}, id="fewer processors"),
        pytest.param(declaring(workers={"cpus": 0.5}), {"wcpu": "but 0.5 are declared"}, id="a processor, not half of one"),
        pytest.param(environment(limits={"cpus": "cgroup v2", "cpu_quota": 1.0}), {}, id="the declared quota"),
        pytest.param(environment(limits={"cpus": "cgroup v2", "cpu_quota": 0.5}), {"wcpu": "quota"}, id="a lower quota"),
        pytest.param(environment(limits={"memory": "none (no permission)"}), {"wmem": "no limit"}, id="no limit of memory"),
        pytest.param(environment(after={"data": {"a": "aa", "b": "xx"}}), {"t": "unreadable: b"}, id="other data"),
        pytest.param(environment(after={"data": {"a": "aa"}}), {"t": "unreadable: b"}, id="a file of data is gone"),
        pytest.param(environment(after={"data_bytes": 1}), {"ts": "the size changed"}, id="another size"),
        pytest.param(environment(after={"code": "xx"}), {"m": "code was changed"}, id="other code"),
        pytest.param(attempts(lambda _: {"device": "cuda:Some GPU"}), {"at": "but CPU was declared"}, id="another device"),
        pytest.param(declaring(pruner={"name": "none"}), {"pa": "1 trials were pruned"}, id="pruned without a pruner"),
        pytest.param(declaring(objective={"metric": "another"}), {"tg": "lack the metric"}, id="epochs without the metric"),
        pytest.param(declaring(sampler={"name": "fixed"}), {}, id="the given list"),
        pytest.param(declaring("foreign_configurations", sampler={"name": "fixed"}), {"sa": "beyond"}, id="not the given list"),
        pytest.param(declaring(pruner={"name": "scripted"}), {}, id="scripted stops"),
        pytest.param(declaring("scripted_stop_missed", pruner={"name": "scripted"}), {"pa": "ran to their end"}, id="missed"),
        pytest.param(declaring("best_differs"), {"tg": "not the best one"}, id="another best"),
        pytest.param(choices(3), {}, id="all configurations of the space"),
        pytest.param(choices(2), {"Φ": "outside", "pS": "3 distinct configurations are more"}, id="more than there are"),
    ],
)
def test_what_differs_from_what_was_declared_is_flagged(honest: RunRecord, change: Change, expected: dict[str, str]) -> None:
    run = with_declared(with_metrics(change(honest)))
    found = {variable.symbol: variable.how for variable in run.declared if variable.agrees is False}
    assert found.keys() == expected.keys()
    assert all(text in found[symbol] for symbol, text in expected.items()), found
    flags = [(flag.text, flag.count) for flag in run.flags if flag.name == "declared_mismatch"]
    assert flags == ([("; ".join(f"{symbol}: {how}" for symbol, how in found.items()), len(found))] if found else [])


def test_part_of_a_processor_that_nothing_enforced_cannot_be_told_to_have_been_kept(honest: RunRecord) -> None:
    modest = busy_for(0.1)(declaring(workers={"cpus": 0.5})(honest))
    free = variables(environment(limits={"cpus": "none (emulated container)"})(modest))["wcpu"]
    assert (free.agrees, free.how) == (None, "no trial used more than 0.5 processors, but no limit was in force")
    assert variables(environment(limits={"cpus": "cgroup v2", "cpu_quota": 0.5})(modest))["wcpu"].agrees is True
    whole = busy_for(0.1)(honest)
    one = variables(environment(limits={"cpus": "none (no free processors)"})(whole))["wcpu"]
    assert one.agrees is True, "one thread, one processor"


def evidence(run: RunRecord, pss: int, child: int = 0) -> Evidence:
    """Return two looks at the process of the run's first attempt, and at a child of it, with so many MB."""
    name = run.trials[0].attempts[0].process
    assert name is not None
    host, pid, started = name.rsplit(":", 2)
    usages = [ProcessUsage(int(pid), int(started), 1, 0, 0, pss * 10**6, pss * 10**6)]
    usages += [ProcessUsage(77, 7, int(pid), 0, 0, child * 10**6, child * 10**6)] if child else []
    looks = tuple(UsageSample(t=t, busy_ns=0, processes=tuple(usages)) for t in (1, 2))
    return Evidence(samples=Samples(header=header("none", "estimated", host=host), usage=looks))


@pytest.mark.parametrize(
    ("rss", "limit", "pss", "child", "agrees"),
    [
        (3000, "cgroup v2", None, 0, None),  # RSS counts pages that are shared
        (3000, "cgroup v2", 2500, 0, False),
        (3000, "cgroup v2", 1000, 0, True),
        (3000, "watchdog (why)", 1000, 0, None),  # it may miss a short peak, as samples may
        (400, "cgroup v2", 400, 0, True),
        (400, "cgroup v2", 400, 1800, False),  # with what it started
    ],
)
def test_more_memory_than_declared_is_flagged_by_the_pss_of_all_that_a_trial_started(
    honest: RunRecord, rss: int, limit: str, pss: int | None, child: int, agrees: bool | None
) -> None:
    run = environment(limits={"memory": limit})(attempts(lambda _: {"peak_rss_bytes": rss * 10**6})(honest))
    variable = variables(run, evidence(honest, pss, child) if pss else None)["wmem"]
    assert variable.agrees is agrees
    assert variable.found["tree_peak_pss_mb"] == (pss + child if pss else None)


def test_the_memory_of_an_accelerator_is_what_nvml_told(honest: RunRecord) -> None:
    run = attempts(lambda _: {"device": "cuda:Some GPU"})(honest)
    assert variables(run)["amem"].found == {"Some GPU": None}
    with_gpu = replace(run, environment={**run.environment, "accelerators": [{"name": "Some GPU", "memory_mb": 1000.0}]})
    assert variables(with_gpu)["amem"].found == {"Some GPU": 1000.0}


def test_data_of_another_host_are_not_looked_at(honest: RunRecord) -> None:
    specification = {**honest.specification, "platform": "kubernetes"}
    data = variables(replace(environment(after={"data": {}})(honest), specification=specification))["t"]
    assert (data.agrees, data.found) == (None, None)


def test_a_run_without_trials_or_environment_claims_nothing() -> None:
    run = replace(derive([], example_a()[1]), trials=())
    declared = with_declared(run)
    assert {variable.agrees for variable in declared.declared} == {None}
    assert declared.flags == run.flags
