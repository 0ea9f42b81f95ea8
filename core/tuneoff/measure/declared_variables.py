"""Table 1: what an experiment declares beside what was observed: resources, data, code, strategies, goal, search space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tuneoff.base.identity import digest
from tuneoff.base.space import SearchSpace
from tuneoff.errors import ExperimentError
from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.strategies import LISTED
from tuneoff.measure.presence import START_GRAIN_NS, Presence, presence_of
from tuneoff.measure.slots import greatest_overlap, trial_window
from tuneoff.measure.spans import most_at_once, started_attempts
from tuneoff.measure.use import MEGABYTE, busy_cpu
from tuneoff.record.endings import FOREIGN, NOT_STOPPED
from tuneoff.record.run_record import DeclaredVariable, FlagRecord, RunRecord, TrialRecord

TOLERANCE = 0.05  # of the threads: clocks are read a little before and after the work
GRAIN_NS = 50_000_000  # CPU time of loading a library may lie beside the busy time of a short trial
SHORT_NS = 1_000_000_000  # within a second one worker may take all trials before another is up
TABLE_1: Mapping[str, tuple[str, str]] = {  # symbol: name, unit
    "wn": ("number of workers", "count"),
    "at": ("accelerator type", "CPU, GPU, TPU"),
    "wcpu": ("vCPU per worker", "vCPU"),
    "wmem": ("memory per worker", "MB"),
    "amem": ("accelerator memory", "MB"),
    "t": ("data set", "name, version, SHA-256"),
    "ts": ("data set size", "MB"),
    "m": ("model implementation", "URL, commit, SHA-256"),
    "ta": ("training algorithm", "text"),
    "sa": ("sampling strategy", "text"),
    "pa": ("pruning strategy", "text"),
    "tg": ("optimization goal", "metric, mode, goal"),
    "Φ": ("hyperparameter space", "set"),
    "pS": ("size of the space", "count"),
}
CPU, NO_ACCELERATOR = "CPU", "no accelerator"
NO_TRIAL = "no trial started"
NOT_RECORDED = "not recorded: the run was ended by a kill, or is older"
ELSEWHERE = "the data of another host were not looked at"
Comparison = tuple[Any, Any, bool | None, str]  # what was declared and observed, whether they agree, how that is known


def with_declared(run: RunRecord, presence: Presence | None = None) -> RunRecord:
    """Return the same record with the variables of `TABLE_1`, and the flag `declared_mismatch` where one of them differs.

    From the record with its metrics alone. `presence`: the run's `presence_of`, where the caller has it already.
    """
    spec, limits = run.run_spec(), run.environment.get("limits") or {}
    comparisons = (
        _workers(run, spec, presence or presence_of(run)),
        _accelerator(run, spec),
        _cpus(run, spec, limits),
        _memory(run, spec, limits),
        _accelerator_memory(run),
        *_data(run, spec),
        _code(run),
        _algorithm(run),
        *_strategies(run, spec),
        _goal(run, spec),
        *_space(run, spec),
    )
    variables = tuple(
        DeclaredVariable(symbol=symbol, name=name, declared=declared, found=observed, unit=unit, agrees=agrees, how=how)
        for (symbol, (name, unit)), (declared, observed, agrees, how) in zip(TABLE_1.items(), comparisons, strict=True)
    )
    differing = [variable for variable in variables if variable.agrees is False]
    if not differing:
        return replace(run, declared=variables)
    text = "; ".join(f"{variable.symbol}: {variable.how}" for variable in differing)
    flag = FlagRecord(name="declared_mismatch", text=text, count=len(differing))
    return replace(run, declared=variables, flags=(*run.flags, flag))


def _workers(run: RunRecord, spec: RunSpec, presence: Presence) -> Comparison:
    declared = spec.experiment.workers.count
    attempts = [attempt for _, attempt in started_attempts(run)]
    slots = {attempt.slot for attempt in attempts if attempt.slot is not None}
    overlap = greatest_overlap(presence.slots)
    present = most_at_once(
        (min(process.start_ns + START_GRAIN_NS, process.end_ns), process.end_ns) for process in presence.processes
    )
    trials = sum(trial.used_ticket for trial in run.trials)
    observed = {
        "slots": len(slots),
        "greatest_overlap": overlap,
        "present": present,
        "processes": len({attempt.process for attempt in attempts if attempt.process is not None}),
    }
    span = trial_window(run)
    agrees: bool | None = True
    how = "slots used, maximum overlap of trials, maximum of processes present at once, distinct processes that trained"
    if not attempts:
        agrees, how = None, NO_TRIAL
    elif max(overlap, len(slots)) > declared or any(not 0 <= slot < declared for slot in slots):
        agrees, how = False, f"{max(overlap, len(slots))} trials overlapped or slots were used, {declared} workers were declared"
    elif max(len(slots), present) < min(declared, trials):
        how = f"at most {present} of the processes that ran trials were present at once, {declared} workers were declared"
        agrees = False if span is not None and span[1] - span[0] > SHORT_NS else None
    return declared, observed, agrees, how


def _accelerator(run: RunRecord, spec: RunSpec) -> Comparison:
    """`device` of the workload's options is the convention; workers declare no accelerator, so without it CPU is declared."""
    device = str(spec.experiment.workload.options.get("device", "cpu"))
    declared = device if device == "auto" else _kind(device)
    devices = sorted({attempt.device for _, attempt in started_attempts(run) if attempt.device is not None})
    kinds = sorted({_kind(device) for device in devices})
    agrees: bool | None = None
    how = "the device that each trial reported"
    if not devices:
        how = "no trial reported its device"
    elif declared != "auto":
        agrees = kinds == [declared]
        how = how if agrees else f"trials trained on {', '.join(devices)}, but {declared} was declared"
    return declared, devices or None, agrees, how


def _kind(device: str) -> str:
    name = device.partition(":")[0].lower()
    return {"cpu": CPU, "cuda": "GPU", "mps": "GPU", "xla": "TPU", "tpu": "TPU"}.get(name, device)


def _cpus(run: RunRecord, spec: RunSpec, limits: Mapping[str, Any]) -> Comparison:
    workers = spec.experiment.workers
    attempts = [attempt for _, attempt in started_attempts(run)]
    allowed = [attempt.cpus_allowed for attempt in attempts if attempt.cpus_allowed is not None]
    threads = sorted({attempt.threads for attempt in attempts if attempt.threads is not None})
    used = [use for use in map(busy_cpu, attempts) if use is not None]
    cpu, busy = sum(use[0] for use in used), sum(use[1] for use in used)
    quota = _number(limits.get("cpu_quota"))
    observed = {
        "cpus_allowed": min(allowed, default=None),
        "limit": limits.get("cpus"),
        "quota": quota,
        "threads": threads,
        "cpu_per_busy_second": round(cpu / busy, 4) if busy else None,
    }
    agrees: bool | None = None
    how = NO_TRIAL
    if attempts:
        agrees = True
        how = "processors allowed, limit in force, threads, CPU seconds per busy second of the trials"
        if str(limits.get("cpus")).startswith("none"):
            how = f"declared, not enforced; {how}"
        most = threads[-1] if threads else workers.threads
        most_cpus = min(workers.threads, workers.cpus)  # below 1 the one thread may not have a whole processor
        excess = max(  # CPU seconds per busy second, where they are more than so many processors can give
            (
                cpu_ns / busy_ns
                for cpu_ns, busy_ns in (*used, (cpu, busy))
                if busy_ns and cpu_ns - most_cpus * busy_ns > max(TOLERANCE * most_cpus * busy_ns, GRAIN_NS)
            ),
            default=0.0,
        )
        if most > workers.threads:
            agrees, how = False, f"{most} threads, but {workers.threads} are declared by workers.cpus={workers.cpus:g}"
        elif excess > 0:
            agrees, how = False, f"a trial used {excess:.2f} CPU seconds per busy second, but {most_cpus:g} are declared"
        elif allowed and min(allowed) < workers.cpus:
            agrees, how = False, f"{min(allowed)} processors were allowed, but {workers.cpus:g} declared"
        elif quota is not None and quota < workers.cpus * (1 - TOLERANCE):
            agrees, how = False, f"the quota in force was {quota:g} processors, but {workers.cpus:g} were declared"
        elif not used:
            agrees, how = None, "no trial reported its CPU time"
        elif most > workers.cpus and str(limits.get("cpus")).startswith("none"):  # below 1: threads alone do not keep to it
            agrees, how = None, f"no trial used more than {workers.cpus:g} processors, but no limit was in force"
    return workers.cpus, observed, agrees, how


def _memory(run: RunRecord, spec: RunSpec, limits: Mapping[str, Any]) -> Comparison:
    """Of a trial's process with all that it started. PSS decides: RSS counts pages that processes share in each of them."""
    declared = spec.experiment.workers.memory_mb
    read = [attempt.peak_rss_bytes for _, attempt in started_attempts(run) if attempt.peak_rss_bytes is not None]
    rss = max(read, default=0) / MEGABYTE or None
    metrics = [run.metrics.get(f"memory.{name}") for name in ("peak_pss", "trial_tree_peak_rss", "trial_tree_peak_pss")]
    pss, tree_rss, tree_pss = (metric.value if metric is not None else None for metric in metrics)
    limit = limits.get("memory")
    peaks = {"peak_rss_mb": rss, "peak_pss_mb": pss, "tree_peak_rss_mb": tree_rss, "tree_peak_pss_mb": tree_pss}
    observed = {"limit": limit} | {name: None if peak is None else round(peak, 1) for name, peak in peaks.items()}
    rss, pss = (max(filter(None, pair), default=None) for pair in ((rss, tree_rss), (pss, tree_pss)))
    agrees: bool | None = None
    how = "limit in force, peak RSS and PSS of the trials' processes, and of their trees: with all that they started"
    if declared is None:
        how = f"no limit was declared; {how.partition(', ')[2]}"
    elif limit is None:
        how = "the record does not state the limit in force"
    elif str(limit).startswith("none"):
        agrees, how = False, f"{declared:g} MB were declared, but no limit was in force: {limit}"
    elif pss is not None and pss > declared:
        agrees, how = False, f"a trial's processes used {pss:.0f} MB (PSS), but {declared:g} MB were declared"
    elif rss is not None and (rss <= declared or (pss is not None and not str(limit).startswith("watchdog"))):
        agrees = True
    elif rss is not None and pss is not None:
        how = f"peak RSS is {rss:.0f} MB, of which pages may be shared; samples saw {pss:.0f} MB (PSS), but may miss a short peak"
    elif rss is not None:
        how = f"peak RSS is {rss:.0f} MB, but RSS counts shared pages, and no sample has the PSS"
    return declared, observed, agrees, how


def _accelerator_memory(run: RunRecord) -> Comparison:
    devices = {attempt.device for _, attempt in started_attempts(run) if attempt.device is not None}
    memory_mb = {item.get("name"): item.get("memory_mb") for item in run.environment.get("accelerators") or ()}
    names = sorted(device.partition(":")[2] for device in devices if _kind(device) != CPU)
    observed = {name: memory_mb.get(name) for name in names}
    if not names:
        how = NO_ACCELERATOR
    elif None in observed.values():
        how = "NVML did not report the accelerator's memory"
    else:
        how = "NVML's total memory of the device that the trials trained on"
    return None, observed or None, None, how


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _data(run: RunRecord, spec: RunSpec) -> Iterator[Comparison]:
    data: Mapping[str, Any] = run.environment.get("data") or {}
    after: Mapping[str, Any] = run.environment.get("after") or {}
    declared = {name: data[name] for name in ("name", "version", "sha256") if name in data} or None
    data_after = after.get("data")
    is_remote = spec.platform != "local"
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
    yield declared, None if is_remote else data_after, agrees, how
    size = data.get("size_bytes") if data.get("sha256") else None  # without files it is not told: 0 is only the default
    size_after = None if is_remote else after.get("data_bytes")
    has_sizes = size is not None and size_after is not None
    yield (
        None if size is None else size / MEGABYTE,
        None if size_after is None else size_after / MEGABYTE,
        size == size_after if has_sizes else None,
        "size of the files after the run" if has_sizes and size == size_after else how if not has_sizes else "the size changed",
    )


def _code(run: RunRecord) -> Comparison:
    workload: Mapping[str, Any] = run.environment.get("workload") or {}
    before, after = workload.get("sha256"), (run.environment.get("after") or {}).get("code")
    git = workload.get("git") or {}
    declared = {"package": workload.get("package"), "url": git.get("url"), "commit": git.get("commit"), "sha256": before}
    agrees: bool | None = None
    how = "the workload's Python files could not be read" if workload else NOT_RECORDED
    if not (before is None or after is None):
        agrees, how = True, "SHA-256 over the Python files of the workload's package, before the matrix and after the run"
        if before != after:
            agrees, how = False, "the workload's code was changed between the start of the matrix and the end of the run"
    return declared if workload else None, {"sha256": after} if after is not None else None, agrees, how


def _algorithm(run: RunRecord) -> Comparison:
    text = (run.environment.get("workload") or {}).get("training_algorithm") or None
    return text, text, None, "as the workload's class declares it" if text else "the workload declares none"


def _strategies(run: RunRecord, spec: RunSpec) -> Iterator[Comparison]:
    sampler, pruner, flags = spec.experiment.sampler, spec.experiment.pruner, {flag.name for flag in run.flags}
    named = "the framework's class and version, as its adapter names them"
    stopped = sum(trial.state == "pruned" for trial in run.trials)
    of_sampler: tuple[bool | None, str] = (None, named)
    if FOREIGN in flags:
        of_sampler = False, "trials trained configurations beyond the given list"
    elif sampler.name in LISTED and any(trial.used_ticket for trial in run.trials):
        of_sampler = True, "every configuration trained is of the given list"
    elif "sampler_without_model" in flags:
        of_sampler = None, f"{named}; the budget ends before its model is first used (flag sampler_without_model)"
    of_pruner: tuple[bool | None, str] = (None, named)
    if pruner.name == "none" and run.trials:
        text = f"{stopped} trials were pruned, but no pruner was declared" if stopped else "no trial was pruned"
        of_pruner = not stopped, text
    elif pruner.name == "scripted" and run.trials:
        is_missed = NOT_STOPPED in flags
        of_pruner = (
            not is_missed,
            "trials that had to stop ran to their end" if is_missed else "every trial stopped where it had to",
        )
    framework = " ".join(str(run.versions[key]) for key in ("framework", "framework_version") if run.versions.get(key))
    for role, strategy, (agrees, how) in (("sampler", sampler, of_sampler), ("pruner", pruner, of_pruner)):
        used = run.versions.get(role)
        yield (
            {"name": strategy.name, "options": dict(strategy.options)},
            {"class": used, "framework": framework or None} if used else None,
            agrees,
            how if used or agrees is not None else NOT_RECORDED,
        )


def _goal(run: RunRecord, spec: RunSpec) -> Comparison:
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
    return (
        {"metric": objective.metric, "mode": objective.mode, "goal": objective.goal},
        {"epochs_with_metric": with_metric, "epochs": len(epochs)} if epochs else None,
        agrees,
        how,
    )


def _space(run: RunRecord, spec: RunSpec) -> Iterator[Comparison]:
    space = spec.experiment.search_space
    evaluated = {trial.digest: trial for trial in run.trials if trial.used_ticket}
    outside = _outside(space, evaluated.values())
    agrees = not outside if evaluated else None
    how = "every configuration that was evaluated lies in the space" if agrees else "no trial started"
    yield (
        {"dimensions": [name for name, _ in space], "digest": digest(space.to_json())},
        {"configurations_outside": len(outside)} if evaluated else None,
        agrees,
        f"outside of the space: {outside[0]}" if outside else how,
    )
    size = space.cardinality
    is_too_many = size is not None and len(evaluated) > size
    yield (
        size,
        {"distinct_configurations": len(evaluated)},
        None if size is None or not evaluated else not is_too_many,
        f"{len(evaluated)} distinct configurations are more than the space has"
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
