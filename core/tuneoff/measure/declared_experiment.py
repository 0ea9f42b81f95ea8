"""Table 1: declared parts of an experiment beside those that were found: data, code, strategies, goal, search space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tuneoff.base.identity import digest
from tuneoff.base.space import SearchSpace
from tuneoff.errors import ExperimentError
from tuneoff.experiment.spec import RunSpec, Strategy
from tuneoff.experiment.strategies import LISTED
from tuneoff.measure.declared_resources import resource_variables, variable
from tuneoff.measure.presence import Presence, presence_of
from tuneoff.measure.spans import started_attempts
from tuneoff.record.endings import FOREIGN, NOT_STOPPED
from tuneoff.record.run_record import DeclaredVariable, FlagRecord, RunRecord, TrialRecord
from tuneoff.record.samples.reader import NO_EVIDENCE, Evidence

MEGABYTE = 1e6
NOT_RECORDED = "not recorded: the run was ended by a kill, or is older"
ELSEWHERE = "the data of another host were not looked at"


def experiment_variables(run: RunRecord) -> Iterator[DeclaredVariable]:
    """Yield t, ts, m, ta, sa, pa, tg, Φ and pS."""
    spec = run.run_spec()
    yield from _data(run, spec)
    yield _code(run)
    yield _algorithm(run)
    yield _sampler(run, spec)
    yield _pruner(run, spec)
    yield _goal(run, spec)
    yield from _space(run, spec)


def _data(run: RunRecord, spec: RunSpec) -> Iterator[DeclaredVariable]:
    data: Mapping[str, Any] = run.environment.get("data") or {}
    after: Mapping[str, Any] = run.environment.get("after") or {}
    declared = {name: data[name] for name in ("name", "version", "sha256") if name in data} or None
    data_after = after.get("data")
    is_remote = spec.platform != "local" and not run.emulated
    agrees: bool | None = None
    if not data:
        how = NOT_RECORDED
    elif is_remote:
        how = ELSEWHERE
    elif not data_after:
        how = "the workload names no files" if not data.get("sha256") else "the files were not looked at again after the run"
    else:
        changed = [name for name, value in data.get("sha256", {}).items() if data_after.get(name) != value]
        agrees = not changed
        how = "SHA-256 of the files that were used, after the run" if agrees else f"changed or unreadable: {', '.join(changed)}"
    yield variable("t", declared=declared, observed=None if is_remote else data_after, agrees=agrees, how=how)
    size = data.get("size_bytes") if data.get("sha256") else None  # without files it is not told: 0 is only the default
    size_after = None if is_remote else after.get("data_bytes")
    has_sizes = size is not None and size_after is not None
    yield variable(
        "ts",
        declared=None if size is None else size / MEGABYTE,
        observed=None if size_after is None else size_after / MEGABYTE,
        agrees=size == size_after if has_sizes else None,
        how="size of the files after the run"
        if has_sizes and size == size_after
        else how
        if not has_sizes
        else "the size changed",
    )


def _code(run: RunRecord) -> DeclaredVariable:
    workload: Mapping[str, Any] = run.environment.get("workload") or {}
    before, after = workload.get("sha256"), (run.environment.get("after") or {}).get("code")
    git = workload.get("git") or {}
    declared = {"package": workload.get("package"), "url": git.get("url"), "commit": git.get("commit"), "sha256": before}
    agrees: bool | None = None
    how = "SHA-256 over the Python files of the workload's package, before the matrix and after the run"
    if before is None or after is None:
        how = NOT_RECORDED if not workload else "the workload's Python files could not be read"
    else:
        agrees = before == after
        how = how if agrees else "the workload's code was changed between the start of the matrix and the end of the run"
    return variable(
        "m",
        declared=declared if workload else None,
        observed={"sha256": after} if after is not None else None,
        agrees=agrees,
        how=how,
    )


def _algorithm(run: RunRecord) -> DeclaredVariable:
    text = (run.environment.get("workload") or {}).get("training_algorithm") or None
    return variable(
        "ta",
        declared=text,
        observed=text,
        agrees=None,
        how="what the workload's class says of itself" if text else "the workload does not say",
    )


def _sampler(run: RunRecord, spec: RunSpec) -> DeclaredVariable:
    strategy, flags = spec.experiment.sampler, {flag.name for flag in run.flags}
    agrees: bool | None = None
    how = "the framework's class and version, as its adapter names them"
    if FOREIGN in flags:
        agrees, how = False, "trials trained configurations beyond the given list"
    elif strategy.name in LISTED and any(trial.used_ticket for trial in run.trials):
        agrees, how = True, "every configuration trained is of the given list"
    elif "sampler_without_model" in flags:
        how += "; the budget ends before its model is first used (flag sampler_without_model)"
    return _strategy(run, "sa", "sampler", strategy, agrees, how)


def _pruner(run: RunRecord, spec: RunSpec) -> DeclaredVariable:
    strategy, flags = spec.experiment.pruner, {flag.name for flag in run.flags}
    stopped = sum(trial.state == "pruned" for trial in run.trials)
    agrees: bool | None = None
    how = "the framework's class and version, as its adapter names them"
    if strategy.name == "none" and run.trials:
        agrees = stopped == 0
        how = "no trial was pruned" if agrees else f"{stopped} trials were pruned, but no pruner was declared"
    elif strategy.name == "scripted" and run.trials:
        agrees = NOT_STOPPED not in flags
        how = "every trial stopped where it had to" if agrees else "trials that had to stop ran to their end"
    return _strategy(run, "pa", "pruner", strategy, agrees, how)


def _strategy(run: RunRecord, symbol: str, role: str, strategy: Strategy, agrees: bool | None, how: str) -> DeclaredVariable:
    framework = " ".join(str(run.versions[key]) for key in ("framework", "framework_version") if run.versions.get(key))
    observed = {"class": run.versions.get(role), "framework": framework or None}
    return variable(
        symbol,
        declared={"name": strategy.name, "options": dict(strategy.options)},
        observed=observed if run.versions.get(role) else None,
        agrees=agrees,
        how=how if run.versions.get(role) or agrees is not None else NOT_RECORDED,
    )


def _goal(run: RunRecord, spec: RunSpec) -> DeclaredVariable:
    objective = spec.experiment.objective
    epochs = [epoch for _, attempt in started_attempts(run) for epoch in attempt.epochs]
    with_metric = sum(objective.metric in epoch.metrics for epoch in epochs)
    agrees: bool | None = None
    how = "no epoch was trained"
    if epochs and with_metric < len(epochs):
        agrees, how = False, f"{len(epochs) - with_metric} of {len(epochs)} epochs lack the metric {objective.metric!r}"
    elif epochs and any(flag.name == "best_differs" for flag in run.flags):
        agrees, how = False, "the framework's best trial is not the best one by this metric and mode"
    elif epochs:
        agrees, how = True, "epochs that report the metric; the framework's best trial is the best one by it"
    return variable(
        "tg",
        declared={"metric": objective.metric, "mode": objective.mode, "threshold": objective.threshold},
        observed={"epochs_with_metric": with_metric, "epochs": len(epochs)} if epochs else None,
        agrees=agrees,
        how=how,
    )


def _space(run: RunRecord, spec: RunSpec) -> Iterator[DeclaredVariable]:
    space = spec.experiment.search_space
    evaluated = {trial.digest: trial for trial in run.trials if trial.used_ticket}
    outside = _outside(space, evaluated.values())
    agrees = not outside if evaluated else None
    how = "every configuration that was evaluated lies in the space" if agrees else "no trial started"
    yield variable(
        "Φ",
        declared={"dimensions": [name for name, _ in space], "digest": digest(space.to_json())},
        observed={"configurations_outside": len(outside)} if evaluated else None,
        agrees=agrees,
        how=f"outside of the space: {outside[0]}" if outside else how,
    )
    size = space.cardinality
    is_too_many = size is not None and len(evaluated) > size
    yield variable(
        "pS",
        declared=size,
        observed={"distinct_configurations": len(evaluated)},
        agrees=None if size is None or not evaluated else not is_too_many,
        how=f"{len(evaluated)} distinct configurations are more than the space has"
        if is_too_many
        else "a dimension is continuous, so there is no number; distinct configurations that were evaluated"
        if size is None
        else "distinct configurations that were evaluated",
    )


def _outside(space: SearchSpace, trials: Iterable[TrialRecord]) -> list[str]:
    """Return one text per trial whose configuration lies outside of the space; a value is looked at once, not per trial."""
    dimensions = dict(space)
    inside: set[tuple[str, str]] = set()
    outside = []
    for trial in trials:
        values = {(name, repr(value)): value for name, value in trial.configuration.items()}
        new = values.keys() - inside
        if set(trial.configuration) == set(dimensions) and all(dimensions[key[0]].contains(values[key]) for key in new):
            inside |= new
            continue
        try:
            space.check(trial.configuration)
        except ExperimentError as error:
            outside.append(f"{trial.trial}: {error}")
    return outside


def declared_variables(run: RunRecord, evidence: Evidence, presence: Presence) -> tuple[DeclaredVariable, ...]:
    """Return wn, at, wcpu, wmem, amem, t, ts, m, ta, sa, pa, tg, Φ and pS, from the record and its samples alone."""
    return (*resource_variables(run, evidence, presence), *experiment_variables(run))


def with_declared(run: RunRecord, evidence: Evidence = NO_EVIDENCE, presence: Presence | None = None) -> RunRecord:
    """Return the same record with its declared variables, and the flag `declared_mismatch` where one of them differs.

    `presence`: the run's `presence_of`, where the caller has it already.
    """
    variables = declared_variables(run, evidence, presence or presence_of(run))
    differing = [variable for variable in variables if variable.agrees is False]
    if not differing:
        return replace(run, declared=variables)
    text = "; ".join(f"{variable.symbol}: {variable.how}" for variable in differing)
    flag = FlagRecord(name="declared_mismatch", text=text, count=len(differing))
    return replace(run, declared=variables, flags=(*run.flags, flag))
