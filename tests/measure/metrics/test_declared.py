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


@pytest.fixture(scope="module")
def honest() -> RunRecord:
    """Example B's run with memory declared, one thread per trial that uses 90 % of a processor."""
    log, spec = example_b()
    workers = Workers(count=2, cpus=1, memory_mb=2000)
    spec = replace(spec, experiment=replace(spec.experiment, workers=workers, pruner=Strategy(name="median")))
    run = derive(log.pairs(), spec, versions=VERSIONS, environment=ENVIRONMENT)
    return changed_attempts(
        run, lambda one: {"cpu_ns": 9 * busy(one) // 10, "cpus_allowed": 1, "peak_rss_bytes": 400_000_000, "device": "cpu"}
    )


def busy(attempt: AttemptRecord) -> int:
    assert attempt.ended_ns is not None
    assert attempt.started_ns is not None
    return attempt.ended_ns - attempt.started_ns


def busy_for(share: float) -> Callable[[AttemptRecord], dict[str, Any]]:
    """Return the change that gives an attempt CPU time for this share of its busy time."""
    return lambda one: {"cpu_ns": int(share * busy(one)), "epochs": ()}


def changed_attempts(run: RunRecord, change: Callable[[AttemptRecord], dict[str, Any]]) -> RunRecord:
    """Return the run with fields of its attempts changed."""
    trials = tuple(
        replace(trial, attempts=tuple(msgspec.structs.replace(one, **change(one)) for one in trial.attempts))
        for trial in run.trials
    )
    return replace(run, trials=trials)


def environment(run: RunRecord, **parts: Mapping[str, Any]) -> RunRecord:
    """Return the run with parts of its environment changed."""
    return replace(
        run, environment={**run.environment, **{name: {**run.environment[name], **part} for name, part in parts.items()}}
    )


def declaring(run: RunRecord, **parts: Mapping[str, Any]) -> RunRecord:
    """Return the run with parts of its specification's experiment changed."""
    specification = run_spec_to_json(run.run_spec())
    for name, part in parts.items():
        specification["experiment"][name].update(part)
    return replace(run, specification=specification)


def one(run: RunRecord, symbol: str, evidence: Evidence | None = None) -> DeclaredVariable:
    measured = with_metrics(run, evidence or Evidence())
    (variable,) = (variable for variable in with_declared(measured).declared if variable.symbol == symbol)
    return variable


def differing(run: RunRecord, evidence: Evidence | None = None) -> list[str]:
    measured = with_metrics(run, evidence or Evidence())
    return [variable.symbol for variable in with_declared(measured).declared if variable.agrees is False]


def test_more_overlap_than_workers_is_flagged(honest: RunRecord) -> None:
    run = with_declared(declaring(honest, workers={"count": 1}))
    (flag,) = (flag for flag in run.flags if flag.name == "declared_mismatch")
    assert flag.text.startswith("wn: 2 trials overlapped or slots were used, 1 workers were declared")
    assert flag.count == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda run: changed_attempts(run, lambda _: {"slot": 0, "process": "h:1:1"}), ["wn"], id="an unused worker"),
        # Which slot a short trial of a process got says nothing of the framework, which kept two processes alive.
        pytest.param(lambda run: changed_attempts(run, lambda _: {"slot": 0}), [], id="one slot, but two processes present"),
        pytest.param(lambda run: changed_attempts(run, lambda _: {"threads": 2}), ["wcpu"], id="two threads"),
        pytest.param(lambda run: changed_attempts(run, busy_for(1.04)), [], id="CPU time within 5 % of the threads"),
        pytest.param(lambda run: declaring(run, workers={"cpus": 2.0}), ["wcpu"], id="fewer processors"),
        pytest.param(lambda run: declaring(run, workers={"cpus": 0.5}), ["wcpu"], id="a whole processor instead of half of one"),
        pytest.param(lambda run: environment(run, limits={"cpus": "cgroup v2", "cpu_quota": 1.0}), [], id="the declared quota"),
        pytest.param(lambda run: environment(run, limits={"cpus": "cgroup v2", "cpu_quota": 0.5}), ["wcpu"], id="a lower quota"),
        pytest.param(lambda run: environment(run, limits={"memory": "none (no permission)"}), ["wmem"], id="no limit of memory"),
        pytest.param(lambda run: environment(run, after={"data": {"a": "aa", "b": "xx"}}), ["t"], id="other data"),
        pytest.param(lambda run: environment(run, after={"data": {"a": "aa"}}), ["t"], id="a file of data is gone"),
        pytest.param(lambda run: environment(run, after={"data_bytes": 1}), ["ts"], id="another size"),
        pytest.param(lambda run: environment(run, after={"code": "xx"}), ["m"], id="other code"),
        pytest.param(lambda run: declaring(run, pruner={"name": "none"}), ["pa"], id="a pruned trial without a pruner"),
        pytest.param(lambda run: declaring(run, objective={"metric": "another"}), ["tg"], id="epochs without the metric"),
    ],
)
def test_what_differs_from_what_was_declared_is_flagged(
    honest: RunRecord, change: Callable[[RunRecord], RunRecord], expected: list[str]
) -> None:
    assert differing(change(honest)) == expected


def test_the_cpu_time_of_a_second_thread_is_flagged_in_one_trial_of_many(honest: RunRecord) -> None:
    first = honest.trials[0]
    attempts = tuple(msgspec.structs.replace(one, cpu_ns=2 * busy(one)) for one in first.attempts)
    run = replace(honest, trials=(replace(first, attempts=attempts), *honest.trials[1:]))
    assert differing(run) == ["wcpu"]
    assert "CPU seconds per busy second, but 1 are declared" in one(run, "wcpu").how


def test_part_of_a_processor_that_nothing_enforced_cannot_be_told_to_have_been_kept(honest: RunRecord) -> None:
    modest = changed_attempts(declaring(honest, workers={"cpus": 0.5}), busy_for(0.1))
    free = one(environment(modest, limits={"cpus": "none (emulated container)"}), "wcpu")
    assert (free.agrees, free.how) == (None, "no trial used more than 0.5 processors, but no limit was in force")
    assert one(environment(modest, limits={"cpus": "cgroup v2", "cpu_quota": 0.5}), "wcpu").agrees is True
    whole = changed_attempts(honest, busy_for(0.1))
    assert one(environment(whole, limits={"cpus": "none (no free processors)"}), "wcpu").agrees is True, (
        "one thread, one processor"
    )


def test_more_memory_than_declared_is_flagged_by_pss_and_not_by_rss(honest: RunRecord) -> None:
    large = changed_attempts(honest, lambda one: {"peak_rss_bytes": 3_000_000_000})
    assert one(large, "wmem").agrees is None
    assert differing(large, evidence(honest, 2_500_000_000)) == ["wmem"]
    assert one(large, "wmem", evidence(honest, 1_000_000_000)).agrees is True
    watched = environment(large, limits={"memory": "watchdog (why)"})  # it may miss a short peak, as samples may
    assert one(watched, "wmem", evidence(honest, 1_000_000_000)).agrees is None


def test_the_memory_of_what_a_trial_started_counts(honest: RunRecord) -> None:
    """The trial's own process has 400 MB of its 2000, its child 1800 MB: with it there are more than declared."""
    alone = evidence(honest, 400_000_000)
    assert one(honest, "wmem", alone).agrees is True
    assert differing(honest, evidence(honest, 400_000_000, child=1_800_000_000)) == ["wmem"]
    assert one(honest, "wmem", evidence(honest, 400_000_000, child=300_000_000)).found["tree_peak_pss_mb"] == 700


def evidence(run: RunRecord, pss: int, child: int = 0) -> Evidence:
    """Return two looks at the process of the run's first attempt, and at a child of it."""
    name = run.trials[0].attempts[0].process
    assert name is not None
    host, pid, started = name.rsplit(":", 2)
    usages = [ProcessUsage(int(pid), int(started), 1, 0, 0, pss, pss)]
    usages += [ProcessUsage(77, 7, int(pid), 0, 0, child, child)] if child else []
    looks = tuple(UsageSample(t=t, busy_ns=0, processes=tuple(usages)) for t in (1, 2))
    return Evidence(samples=Samples(header=header("none", "estimated", host=host), usage=looks))


def test_another_device_than_declared_is_flagged(honest: RunRecord) -> None:
    run = changed_attempts(honest, lambda one: {"device": "cuda:Some GPU"})
    assert differing(run) == ["at"]
    assert one(run, "amem").found == {"Some GPU": None}
    with_gpu = replace(run, environment={**run.environment, "accelerators": [{"name": "Some GPU", "memory_mb": 1000.0}]})
    assert one(with_gpu, "amem").found == {"Some GPU": 1000.0}


def test_data_of_another_host_are_not_looked_at(honest: RunRecord) -> None:
    specification = {**honest.specification, "platform": "kubernetes"}
    run = replace(environment(honest, after={"data": {}}), specification=specification)
    assert (one(run, "t").agrees, one(run, "t").found) == (None, None)


@pytest.mark.parametrize(
    ("flag", "part", "strategy", "symbol"),
    [
        ("foreign_configurations", "sampler", "fixed", "sa"),
        ("scripted_stop_missed", "pruner", "scripted", "pa"),
        ("best_differs", "sampler", "random", "tg"),
    ],
)
def test_what_core_found_the_framework_to_do_otherwise_is_no_agreement(
    honest: RunRecord, flag: str, part: str, strategy: str, symbol: str
) -> None:
    run = declaring(honest, **{part: {"name": strategy}})
    assert differing(run) == []
    assert differing(replace(run, flags=(FlagRecord(name=flag, text="x"),))) == [symbol]


def test_a_configuration_outside_of_the_space_is_flagged(honest: RunRecord) -> None:
    run = replace(honest, trials=(replace(honest.trials[0], configuration={"x": 7.0}), *honest.trials[1:]))
    assert differing(run) == ["Φ"]
    assert "x=7.0 lies outside" in one(run, "Φ").how


def test_more_configurations_than_the_space_has_are_flagged(honest: RunRecord) -> None:
    choices = [trial.configuration["x"] for trial in honest.trials]
    for count, expected in ((3, []), (2, ["Φ", "pS"])):
        dimension = {"name": "x", "type": "categorical", "choices": choices[:count], "ordered": False}
        run = declaring(honest, search_space={"dimensions": [dimension]})
        assert one(run, "pS").declared == count
        assert differing(run) == expected


def test_a_run_without_trials_or_environment_claims_nothing() -> None:
    _, spec = example_a()
    run = replace(derive([], spec), trials=())
    declared = with_declared(run)
    assert {variable.agrees for variable in declared.declared} == {None}
    assert declared.flags == run.flags
