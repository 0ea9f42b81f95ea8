"""Declared resources beside those that were used: workers, accelerator, vCPU, memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tuneoff.experiment.spec import RunSpec
from tuneoff.measure.presence import Presence, most_present
from tuneoff.measure.slots import greatest_overlap, trial_window
from tuneoff.measure.spans import started_attempts
from tuneoff.measure.use import MEGABYTE, TreePeaks, busy_cpu, process_keys, trial_tree_peaks, usages_of
from tuneoff.record.run_record import DeclaredVariable, RunRecord
from tuneoff.record.samples.reader import Evidence

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
    "tg": ("optimization goal", "metric, mode, threshold"),
    "Φ": ("hyperparameter space", "set"),
    "pS": ("size of the space", "count"),
}
CPU, NO_ACCELERATOR = "CPU", "no accelerator"
NO_TRIAL = "no trial started"


def variable(symbol: str, *, declared: Any, observed: Any, agrees: bool | None, how: str) -> DeclaredVariable:
    """Return one variable of Table 1; `agrees`, `how`: as in the record."""
    name, unit = TABLE_1[symbol]
    return DeclaredVariable(symbol=symbol, name=name, declared=declared, found=observed, unit=unit, agrees=agrees, how=how)


def resource_variables(run: RunRecord, evidence: Evidence, presence: Presence) -> Iterator[DeclaredVariable]:
    """Yield wn, at, wcpu, wmem and amem."""
    spec, limits = run.run_spec(), run.environment.get("limits") or {}
    yield _workers(run, spec, presence)
    yield _accelerator(run, spec)
    yield _cpus(run, spec, limits)
    yield _memory(run, spec, evidence, limits)
    yield _accelerator_memory(run)


def _workers(run: RunRecord, spec: RunSpec, presence: Presence) -> DeclaredVariable:
    declared = spec.experiment.workers.count
    attempts = [attempt for _, attempt in started_attempts(run)]
    slots = {attempt.slot for attempt in attempts if attempt.slot is not None}
    overlap, present = greatest_overlap(presence.slots), most_present(presence.processes)
    trials = sum(trial.used_ticket for trial in run.trials)
    observed = {
        "slots": len(slots),
        "greatest_overlap": overlap,
        "present": present,
        "processes": len({attempt.process for attempt in attempts if attempt.process is not None}),
    }
    span = trial_window(run)
    agrees: bool | None = True
    how = "slots used, greatest overlap of trials, most processes present at once, distinct processes that trained"
    if not attempts:
        agrees, how = None, NO_TRIAL
    elif max(overlap, len(slots)) > declared or any(not 0 <= slot < declared for slot in slots):
        agrees, how = False, f"{max(overlap, len(slots))} trials overlapped or slots were used, {declared} workers were declared"
    elif max(len(slots), present) < min(declared, trials):
        how = f"at most {present} of the processes that ran trials were present at once, {declared} workers were declared"
        agrees = False if span is not None and span[1] - span[0] > SHORT_NS else None
    return variable("wn", declared=declared, observed=observed, agrees=agrees, how=how)


def _accelerator(run: RunRecord, spec: RunSpec) -> DeclaredVariable:
    """`device` of the workload's options is the convention; workers declare no accelerator, so without it CPU is declared."""
    device = str(spec.experiment.workload.options.get("device", "cpu"))
    declared = device if device == "auto" else _kind(device)
    devices = sorted({attempt.device for _, attempt in started_attempts(run) if attempt.device is not None})
    kinds = sorted({_kind(device) for device in devices})
    agrees: bool | None = None
    how = "the device that each trial said it trained on"
    if not devices:
        how = "no trial came to say its device"
    elif declared != "auto":
        agrees = kinds == [declared]
        how = how if agrees else f"trials trained on {', '.join(devices)}, but {declared} was declared"
    return variable("at", declared=declared, observed=devices or None, agrees=agrees, how=how)


def _kind(device: str) -> str:
    name = device.partition(":")[0].lower()
    return {"cpu": CPU, "cuda": "GPU", "mps": "GPU", "xla": "TPU", "tpu": "TPU"}.get(name, device)


def _cpus(run: RunRecord, spec: RunSpec, limits: Mapping[str, Any]) -> DeclaredVariable:
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
        excess = max(_excess(most_cpus, *use) for use in (*used, (cpu, busy)))
        if most > workers.threads:
            agrees, how = False, f"{most} threads, but {workers.threads} are declared by workers.cpus={workers.cpus:g}"
        elif excess > 0:
            agrees, how = False, f"a trial used {excess:.2f} CPU seconds per busy second, but {most_cpus:g} are declared"
        elif allowed and min(allowed) < workers.cpus:
            agrees, how = False, f"{min(allowed)} processors were allowed, but {workers.cpus:g} declared"
        elif quota is not None and quota < workers.cpus * (1 - TOLERANCE):
            agrees, how = False, f"the quota in force was {quota:g} processors, but {workers.cpus:g} were declared"
        elif not used:
            agrees, how = None, "no trial said how much CPU time it used"
        elif most > workers.cpus and str(limits.get("cpus")).startswith("none"):  # below 1: threads alone do not keep to it
            agrees, how = None, f"no trial used more than {workers.cpus:g} processors, but no limit was in force"
    return variable("wcpu", declared=workers.cpus, observed=observed, agrees=agrees, how=how)


def _excess(cpus: float, cpu_ns: int, busy_ns: int) -> float:
    """Return the CPU seconds per busy second where they are more than so many processors can give, else 0."""
    more = cpu_ns - cpus * busy_ns
    return cpu_ns / busy_ns if busy_ns and more > max(TOLERANCE * cpus * busy_ns, GRAIN_NS) else 0.0


def _memory(run: RunRecord, spec: RunSpec, evidence: Evidence, limits: Mapping[str, Any]) -> DeclaredVariable:
    """Of a trial's process with all that it started. PSS decides: RSS counts pages that processes share in each of them."""
    declared = spec.experiment.workers.memory_mb
    read = [attempt.peak_rss_bytes for _, attempt in started_attempts(run) if attempt.peak_rss_bytes is not None]
    rss, pss = max(read, default=0) / MEGABYTE or None, _peak_pss(run, evidence)
    limit = limits.get("memory")
    tree = trial_tree_peaks(run, evidence.samples) if evidence.samples is not None else TreePeaks([], [])
    of_trees = [max(seen) / MEGABYTE if seen else None for seen in (tree.rss_bytes, tree.pss_bytes)]
    observed = {"limit": limit, "peak_rss_mb": _rounded(rss), "peak_pss_mb": _rounded(pss)}
    observed |= dict(zip(("tree_peak_rss_mb", "tree_peak_pss_mb"), map(_rounded, of_trees), strict=True))
    rss, pss = (max(filter(None, pair), default=None) for pair in zip((rss, pss), of_trees, strict=True))
    agrees: bool | None = None
    how = "limit in force, peak RSS and PSS of the trials' processes, and of their trees: with all that they started"
    if declared is None:
        how = f"no limit was declared; {how.partition(', ')[2]}"
    elif limit is None:
        how = "the record does not say which limit was in force"
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
    return variable("wmem", declared=declared, observed=observed, agrees=agrees, how=how)


def _peak_pss(run: RunRecord, evidence: Evidence) -> float | None:
    samples = evidence.samples
    if samples is None:
        return None
    usages = usages_of(samples, process_keys(run, samples.header.host))
    return max((usage.pss_bytes / MEGABYTE for usage in usages if usage.pss_bytes is not None), default=None)


def _accelerator_memory(run: RunRecord) -> DeclaredVariable:
    devices = {attempt.device for _, attempt in started_attempts(run) if attempt.device is not None}
    memory_mb = {item.get("name"): item.get("memory_mb") for item in run.environment.get("accelerators") or ()}
    names = sorted(device.partition(":")[2] for device in devices if _kind(device) != CPU)
    observed = {name: memory_mb.get(name) for name in names}
    if not names:
        how = NO_ACCELERATOR
    elif None in observed.values():
        how = "NVML did not say the accelerator's memory"
    else:
        how = "NVML's total memory of the device that the trials trained on"
    return variable("amem", declared=None, observed=observed or None, agrees=None, how=how)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
