"""Energy of trials, job, steps and parts; the CPU and core seconds it rests on; the residual against the node's energy."""

from __future__ import annotations

from tuneoff.measure.attribution.account import JOB_PARTS, EnergyAccount, job_pieces
from tuneoff.measure.attribution.slots import JOULES_PER_KWH, joules, split
from tuneoff.measure.power.cpu_table import RATIO_HIGH, RATIO_LOW
from tuneoff.measure.slots import slot_window
from tuneoff.measure.spans import NO_BEST, NO_END, busy_ns, part_reasons, partition
from tuneoff.record.metric_value import Kind, MetricValue, known_or
from tuneoff.record.run_record import FlagRecord, RunRecord

ROUNDING = 1e-6  # of the job's energy: sums in another order differ by less
LARGEST_RESIDUAL = 2.0  # % of the node's energy; more is flagged
RESIDUAL_FLAG = "energy_residual"
NO_TRIAL = "no trial started"
NO_COMPLETED = "no trial completed"
NO_MODEL = "the meter is no model"
NO_NODE_METER = "a model meters no node: other programs are charged what the run has not used, so nothing can be left over"
NO_RATIO = "the samples do not name a range of the model's weights"
NO_CPU_TIME = "the CPU time of a part of the job is not known"


def energy_metrics(run: RunRecord, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return every `energy.*` metric of a run. A pure function."""
    return {
        **_of_trials(run, account),
        **_of_job(run, account),
        **_of_parts(run, account),
        **_of_node(account),
        **_of_window(run, account),
        **_of_steps(run, account),
        **_of_model(run, account),
    }


def trial_joules(run: RunRecord, account: EnergyAccount) -> dict[str, float]:
    """Return the energy of each trial that took a ticket, all its attempts together; one whose energy is unknown is left out."""
    found = {}
    for trial in run.trials:
        if not trial.used_ticket:
            continue
        keys = [(trial.trial, index) for index, attempt in enumerate(trial.attempts) if attempt.started_ns is not None]
        if all(key in account.attempts for key in keys):
            found[trial.trial] = sum(joules(account.attempts[key]) for key in keys)
    return found


def residual(account: EnergyAccount) -> tuple[float, float] | None:
    """Return (the node's energy, what of it no part has used) in J; None where a part or the node is unknown, or modelled.

    Negative: the parts add up to more than the node. Each was computed on its own path; a model has one path for all.
    """
    if account.node is None or account.model is not None or any(name not in ("node", "test") for name in account.reasons):
        return None
    parts = sum(map(joules, account.parts.values())) + sum(map(joules, account.attempts.values()))
    node = joules(account.node)
    return node, node - parts


def residual_flags(account: EnergyAccount) -> tuple[FlagRecord, ...]:
    """Return the flag of a residual above 2 % of the node's energy."""
    found = residual(account)
    if found is None or found[0] <= 0 or abs(100 * found[1] / found[0]) <= LARGEST_RESIDUAL:
        return ()
    share = 100 * found[1] / found[0]
    limit = f"more than {LARGEST_RESIDUAL:g} %"
    why = "the run's processes used more CPU time than the kernel's ticks count for the host, or slots reserve more cores"
    text = f"the parts' energy is {-share:.1f} % more than the node's ({limit}): {why}"
    if share > 0:
        text = f"{share:.1f} % of the node's energy is in no part ({limit}): nothing was seen at work then"
    return (FlagRecord(name=RESIDUAL_FLAG, text=text),)


def _of_trials(run: RunRecord, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return the mean energy and the mean power of a trial, over the trials that took a ticket, and their sum."""
    trials = [trial for trial in run.trials if trial.used_ticket]
    reason = account.reason or (NO_TRIAL if not trials else account.reasons.get("trials"))
    found = trial_joules(run, account) if reason is None else {}
    total = sum(found.values())
    powers = []
    for trial in trials if reason is None else ():
        length = sum(busy_ns(attempt) for attempt in trial.attempts)
        if length and trial.trial in found:
            powers.append(found[trial.trial] / (length / 1e9))
    count = len(trials)
    mean = sum(powers) / len(powers) if powers else None
    of_all = None if reason == NO_TRIAL else reason
    return {
        "energy.trial": account.value(total / JOULES_PER_KWH / count if count else None, "kWh", reason, n_samples=count),
        "energy.trial_power": account.value(
            mean, "W", reason or (None if powers else "no trial was busy"), n_samples=len(powers)
        ),
        "energy.trials": account.value(total, "J", of_all, n_samples=count),
    }


def _of_job(run: RunRecord, account: EnergyAccount) -> dict[str, MetricValue]:
    reason = account.reason or account.job_reason
    total = sum(piece.joules for piece in job_pieces(account))
    completed = sum(trial.state == "completed" for trial in run.trials)
    epochs = sum(trial.epochs_trained for trial in run.trials)
    values = {
        "energy.job": account.value(total, "J", reason),
        "energy.per_completed_trial": account.value(
            total / completed if completed else None, "J", reason or (None if completed else NO_COMPLETED), n_samples=completed
        ),
        "energy.per_trained_epoch": account.value(
            total / epochs if epochs else None, "J", reason or (None if epochs else "no epoch was trained"), n_samples=epochs
        ),
    }
    model = account.model
    for name, bound in (("low", model.low if model else None), ("high", model.high if model else None)):
        value = None
        if model is not None and bound is not None and account.cpu_seconds is not None and account.core_seconds is not None:
            modelled = model.joules_per_cpu_second * account.cpu_seconds + model.watts_per_core * account.core_seconds
            beside = total - modelled  # of accelerators, which have a meter of their own
            value = bound[0] * account.cpu_seconds + bound[1] * account.core_seconds
            value += beside if beside > ROUNDING * total else 0.0
        why = reason or (NO_MODEL if bound is None else None if value is not None else NO_CPU_TIME)
        values[f"energy.job_{name}"] = account.value(value, "J", why)
    return values


def _of_parts(run: RunRecord, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return each part by itself. Without a slot window nothing is known to be idle: then all of that is `outside`."""
    values = {}
    for name in (*JOB_PARTS, "suite", "other", "unreserved"):
        pieces = account.parts.get(name)
        reason = account.reasons.get(name, "it is not told apart") if pieces is None else None
        values[f"energy.{name}"] = account.value(joules(pieces) if pieces is not None else None, "J", reason)
    if slot_window(run) is None:
        values["energy.idle"] = account.value(None, "J", NO_BEST)
    return values


def _of_node(account: EnergyAccount) -> dict[str, MetricValue]:
    """Return the node's energy, and what of it the parts do not explain."""
    reason = account.reason or (account.reasons.get("node", "the node is not metered") if account.node is None else None)
    node = known_or(
        joules(account.node) if account.node is not None and reason is None else None,
        "J",
        reason or "",
        kind=account.node_kind,
        source=account.node_source or "samples",
        n_samples=account.n_samples,
        coverage=account.coverage,
    )
    found = residual(account) if reason is None else None
    if found is None:
        unknown = next((text for name, text in account.reasons.items() if name not in ("node", "test")), NO_NODE_METER)
        why = reason or unknown
        none, no_share = account.value(None, "J", why), account.value(None, "%", why)
        return {"energy.node": node, "energy.residual": none, "energy.residual_share": no_share}
    total, rest = found
    is_positive = total > 0
    share = account.value(100 * rest / total if is_positive else None, "%", None if is_positive else "the node used no energy")
    return {"energy.node": node, "energy.residual": account.value(rest, "J"), "energy.residual_share": share}


def _of_window(run: RunRecord, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return the slots' energy within the slot window by what they did, and WR: the idle share of it, in %."""
    window = slot_window(run)
    reasons = (account.reasons[name] for name in ("trials", "overhead", "idle") if name in account.reasons)
    reason = account.reason or next(reasons, None) or (NO_BEST if window is None else None)
    if reason is not None:
        energies = {f"energy.window.{name}": account.value(None, "J", reason) for name in ("busy", "overhead", "idle")}
        return {**energies, "energy.idle_share": account.value(None, "%", reason)}
    found = {
        "busy": sum(joules(pieces, window) for pieces in account.attempts.values()),
        "overhead": joules(account.parts.get("overhead", ()), window),
        "idle": joules(account.parts.get("idle", ()), window),
    }
    total = found["idle"] + found["overhead"] + found["busy"]
    share = account.value(
        100 * found["idle"] / total if total > 0 else None, "%", None if total > 0 else "the slots used no energy"
    )
    energies = {f"energy.window.{name}": account.value(value, "J") for name, value in found.items()}
    return {**energies, "energy.idle_share": share}


def _of_steps(run: RunRecord, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return the job's energy in each part of its time, and what is left of it without the test."""
    parts, reasons = partition(run), part_reasons(run)
    unknown = account.reason or account.job_reason
    spans = [span for span in parts.values() if span is not None]
    inside = zip(spans, split(job_pieces(account), spans), strict=True) if unknown is None else ()
    found = {span: joules(pieces) for span, pieces in inside}
    values = {}
    for name, span in parts.items():
        reason = unknown or (reasons[name] if span is None else None)
        values[f"energy.step.{name}"] = account.value(found.get(span) if span is not None else None, "J", reason)
    test, completed = parts["test"], sum(trial.state == "completed" for trial in run.trials)
    reason = unknown or (reasons["test"] if test is None else None)
    rest = joules([*job_pieces(account)]) - found.get(test, 0.0) if test is not None and reason is None else None
    values["energy.job_without_test"] = account.value(rest, "J", reason)
    values["energy.per_completed_trial_without_test"] = account.value(
        rest / completed if rest is not None and completed else None,
        "J",
        reason or (None if completed else NO_COMPLETED),
        n_samples=completed,
    )
    return values


def _of_model(run: RunRecord, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return the two uses that modelled energy rests on, which are known with any meter, and the model's two weights."""
    clocks, reserved = "CPU clocks of trials and samples", "workers.cpus times the slots' time"
    no_cpu = account.reasons.get("trials", NO_CPU_TIME)
    no_trial = None if any(trial.used_ticket for trial in run.trials) else NO_TRIAL
    no_test = part_reasons(run)["test"] if partition(run)["test"] is None else None
    values = {
        "energy.cpu_seconds": _use(account.cpu_seconds, account.use_kind, clocks, NO_CPU_TIME),
        "energy.cpu_seconds_without_test": _use(
            _less(account.cpu_seconds, account.test_cpu_seconds), account.use_kind, clocks, NO_CPU_TIME, no_test
        ),
        "energy.trial_cpu_seconds": _use(account.trial_cpu_seconds, account.use_kind, "CPU clocks of trials", no_cpu, no_trial),
        "energy.reserved_core_seconds": _use(account.core_seconds, "declared", reserved, NO_END),
        "energy.reserved_core_seconds_without_test": _use(
            _less(account.core_seconds, account.test_core_seconds), "declared", reserved, NO_END, no_test
        ),
        "energy.trial_core_seconds": _use(account.trial_core_seconds, "declared", reserved, NO_END, no_trial),
    }
    model = account.model
    for name, unit in (("joules_per_cpu_second", "J/s"), ("watts_per_core", "W")):
        weight, source = (getattr(model, name), model.source) if model is not None else (None, "samples")
        values[f"energy.{name}"] = known_or(weight, unit, account.reason or NO_MODEL, kind="declared", source=source)
    reason = account.reason or (NO_MODEL if model is None else NO_RATIO)
    ratio, source = (model.ratio, model.servers) if model is not None and model.ratio is not None else (None, "samples")
    for name, end in zip((RATIO_LOW, RATIO_HIGH), ratio or (None, None), strict=True):
        values[name] = known_or(end, "ratio", reason, kind="declared", source=source)
    return values


def _less(value: float | None, part: float | None) -> float | None:
    return value - part if value is not None and part is not None else None


def _use(value: float | None, kind: Kind, source: str, reason: str, none: str | None = None) -> MetricValue:
    return known_or(None if none is not None else value, "s", none or reason, kind=kind, source=source)
