"""Energy of trials, job and steps, and of idling; its range by the model; the residual of the parts against the node's energy."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.measure.attribution.account import EnergyAccount, job_parts
from tuneoff.measure.attribution.pieces import JOULES_PER_KWH, joules
from tuneoff.measure.power.cpu_table import RATIO_HIGH, RATIO_LOW, default_ratio
from tuneoff.measure.slots import slot_window
from tuneoff.measure.spans import NO_BEST, NO_END, PARTS, part_reasons, partition
from tuneoff.record.metric_value import MetricValue, metric_value_or
from tuneoff.record.run_record import FlagRecord, RunRecord

ROUNDING = 1e-6  # of the job's energy: sums in another order differ by less
LARGEST_RESIDUAL = 2.0  # % of the node's energy; more is flagged
RESIDUAL_FLAG = "energy_residual"
NO_TRIAL = "no trial started"
NO_COMPLETED = "no trial completed"
NO_MODEL = "the meter does not model energy"
NO_NODE_METER = "a model meters no node"
NO_CPU_TIME = "the CPU time of a part of the job is not known"


def energy_metrics(run: RunRecord, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return every `energy.*` metric of a run. A pure function."""
    return {
        **_of_trials(run, account),
        **_of_job(run, account),
        **_of_idling(run, account),
        **_of_model(run, account),
    }


def trial_joules(run: RunRecord, account: EnergyAccount) -> dict[str, float]:
    """Return the energy of each trial that took a ticket, all its attempts together; one whose energy is unknown is left out."""
    by_trial = {}
    for trial in run.trials:
        if not trial.used_ticket:
            continue
        keys = [(trial.trial, index) for index, attempt in enumerate(trial.attempts) if attempt.started_ns is not None]
        if all(key in account.attempts for key in keys):
            by_trial[trial.trial] = sum(joules(account.attempts[key]) for key in keys)
    return by_trial


def residual(account: EnergyAccount) -> tuple[float, float] | None:
    """Return (the node's energy, what of it no part has used) in J; None where a part or the node is unknown.

    Negative: the parts add up to more than the node. Each was computed on its own path.
    """
    if account.node is None or account.reasons:
        return None
    parts = sum(map(joules, account.parts.values())) + sum(map(joules, account.attempts.values()))
    node = joules(account.node)
    return node, node - parts


def residual_flags(account: EnergyAccount) -> tuple[FlagRecord, ...]:
    """Return the flag of a residual above 2 % of the node's energy."""
    node, missing_joules = residual(account) or (0.0, 0.0)
    share = 100 * missing_joules / node if node > 0 else 0.0
    if abs(share) <= LARGEST_RESIDUAL:
        return ()
    limit = f"more than {LARGEST_RESIDUAL:g} %"
    why = "the run's processes used more CPU time than the kernel's ticks count for the host, or slots reserve more cores"
    text = f"the parts' energy is {-share:.1f} % more than the node's ({limit}): {why}"
    if share > 0:
        text = f"{share:.1f} % of the node's energy is in no part ({limit}): nothing was seen at work then"
    return (FlagRecord(name=RESIDUAL_FLAG, text=text),)


def _of_trials(run: RunRecord, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return TWH: the mean energy of a trial, over the trials that took a ticket."""
    count = sum(trial.used_ticket for trial in run.trials)
    reason = account.reason or (account.reasons.get("trials") if count else NO_TRIAL)
    mean = sum(trial_joules(run, account).values()) / JOULES_PER_KWH / count if reason is None else None
    return {"energy.trial": account.value(mean, "kWh", reason, n_samples=count)}


def _of_job(run: RunRecord, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return the job's energy, with and without its test, per completed trial and epoch, and in each part of its time."""
    pieces, inside, reasons = job_parts(run, account)
    unknown = account.reason or account.job_reason
    completed = sum(trial.state == "completed" for trial in run.trials)
    epochs = sum(trial.epochs_trained for trial in run.trials)
    total = joules(pieces)
    values = {}
    for suffix, used, reason in (
        ("", total, unknown),
        ("_without_test", total - joules(inside.get("test", ())), reasons["test"]),
    ):
        values[f"energy.job{suffix}"] = account.value(used, "J", reason)
        values[f"energy.per_completed_trial{suffix}"] = account.value(
            used / completed if completed else None, "J", reason or (None if completed else NO_COMPLETED), n_samples=completed
        )
    values["energy.per_trained_epoch"] = account.value(
        total / epochs if epochs else None, "J", unknown or (None if epochs else "no epoch was trained"), n_samples=epochs
    )
    for part in PARTS:
        values[f"energy.step.{part}"] = account.value(joules(inside.get(part, ())), "J", reasons[part])
    return values | {f"energy.job_{end}": value for end, value in _range(account, total, unknown)}


def _range(account: EnergyAccount, total: float, reason: str | None) -> Iterator[tuple[str, MetricValue]]:
    """Yield the job's energy with the lower and the upper bounds of the model's weights."""
    model = account.model
    for end, bound in (("low", model.low if model else None), ("high", model.high if model else None)):
        value = None
        if model is not None and bound is not None and account.cpu_seconds is not None and account.core_seconds is not None:
            modelled = model.joules_per_cpu_second * account.cpu_seconds + model.watts_per_core * account.core_seconds
            beside = total - modelled  # of accelerators, which have a meter of their own
            value = bound[0] * account.cpu_seconds + bound[1] * account.core_seconds
            value += beside if beside > ROUNDING * total else 0.0
        yield (
            end,
            account.value(value, "J", reason or (NO_MODEL if bound is None else None if value is not None else NO_CPU_TIME)),
        )


def _of_idling(run: RunRecord, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return the energy of idle slots in the slot window, and WR: its share of all that the slots used there, in %.

    With it the node's own energy, which alone is measured.
    """
    window = slot_window(run)
    no_window = NO_BEST if window is None else None
    no_idle = account.reason or account.reasons.get("idle") or no_window
    reasons = (account.reasons[name] for name in ("trials", "overhead", "idle") if name in account.reasons)
    no_share = account.reason or next(reasons, None) or no_window
    idle = joules(account.parts["idle"]) if no_idle is None else 0.0
    total = idle + joules(account.parts.get("overhead", ()), window) if no_share is None else 0.0
    if no_share is None:
        total += sum(joules(pieces, window) for pieces in account.attempts.values())
    node = metric_value_or(
        joules(account.node) if account.node is not None and account.reason is None else None,
        "J",
        account.reason or NO_NODE_METER,
        kind=account.node_kind,
        source=account.node_source or "samples",
        n_samples=account.n_samples,
        coverage=account.coverage,
    )
    share = 100 * idle / total if total > 0 else None
    return {
        "energy.idle": account.value(idle, "J", no_idle),
        "energy.idle_share": account.value(share, "%", no_share or (None if total > 0 else "the slots used no energy")),
        "energy.node": node,
    }


def _of_model(run: RunRecord, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return the two uses that modelled energy rests on, which are known with any meter, and how its two weights may relate."""
    clocks = "CPU clocks of trials and samples"
    cpu, test = account.cpu_seconds, account.test_cpu_seconds
    no_test = part_reasons(run)["test"] if partition(run)["test"] is None else NO_CPU_TIME
    without_test = cpu - test if cpu is not None and test is not None else None
    values = {
        "energy.cpu_seconds": metric_value_or(cpu, "s", NO_CPU_TIME, kind=account.use_kind, source=clocks),
        "energy.cpu_seconds_without_test": metric_value_or(without_test, "s", no_test, kind=account.use_kind, source=clocks),
        "energy.reserved_core_seconds": metric_value_or(
            account.core_seconds, "s", NO_END, kind="declared", source="workers.cpus times the slots' time"
        ),
    }
    model = account.model
    ratio, servers = (model.ratio, model.servers) if model is not None and model.ratio is not None else default_ratio()
    for name, end in zip((RATIO_LOW, RATIO_HIGH), ratio, strict=True):
        values[name] = metric_value_or(
            end if model is not None else None,
            "ratio",
            account.reason or NO_MODEL,
            kind="declared",
            source=servers if model is not None else "samples",
        )
    return values
