"""The rows of the long tables, as `tuneoff.tell.frames.columns` describes them. Times are seconds since the run's start.

`is_selected`: this execution stands for its run, and the run counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tuneoff.base.identity import canonical_json
from tuneoff.experiment.names import emulated_label
from tuneoff.judge.conditions import cpu_limit
from tuneoff.measure.spans import PARTS
from tuneoff.measure.waste import POLICIES
from tuneoff.record.run_record import RunRecord, TrialRecord
from tuneoff.tell.report.trial_charges import TrialCharge

Row = dict[str, Any]

NO_CHARGES: Mapping[str, TrialCharge] = {}


def trial_rows(run: RunRecord, is_selected: bool, charges: Mapping[str, TrialCharge] = NO_CHARGES) -> Iterator[Row]:
    """Yield one row per trial; `charges`: what each used, by its id; without them these columns are null."""
    keys = _keys(run, is_selected)
    for trial in run.trials:
        last = trial.attempts[-1] if trial.attempts else None
        first = trial.attempts[0] if trial.attempts else None
        yield {
            **keys,
            "trial": trial.trial,
            "framework_id": trial.framework_id,
            "state": trial.state,
            "cause": trial.cause,
            "charged": trial.charged,
            "attempts": len(trial.attempts),
            "slot": last.slot if last is not None else None,
            "configuration": canonical_json(dict(trial.configuration)),
            "digest": trial.digest,
            "value": trial.value,
            "value_epoch": trial.value_epoch,
            "stop_epoch": trial.stop_epoch,
            "epochs_trained": trial.epochs_trained,
            "submitted_seconds": _seconds(first.submitted_ns if first is not None else None),
            "started_seconds": _seconds(first.started_ns if first is not None else None),
            "ended_seconds": _seconds(last.ended_ns if last is not None else None),
            "cpu_seconds": _seconds(_cpu_ns(trial)),
            "peak_rss_bytes": max((one.peak_rss_bytes for one in trial.attempts if one.peak_rss_bytes is not None), default=None),
            **_charge(charges.get(trial.trial)),
        }


def epoch_rows(run: RunRecord, is_selected: bool) -> Iterator[Row]:
    """Yield one row per epoch and metric."""
    keys = _keys(run, is_selected)
    for trial in run.trials:
        for attempt in trial.attempts:
            for epoch in attempt.epochs:
                common = {
                    **keys,
                    "trial": trial.trial,
                    "attempt": attempt.attempt,
                    "epoch": epoch.epoch,
                    "ended_seconds": _seconds(epoch.ended_ns),
                    "reported_seconds": _seconds(epoch.reported_ns),
                    "train_seconds": _seconds(epoch.train_ns),
                    "validate_seconds": _seconds(epoch.validate_ns),
                    "checkpoint_seconds": _seconds(epoch.checkpoint_ns),
                }
                for name, value in epoch.metrics.items():
                    text = (epoch.non_finite or {}).get(name)
                    yield {**common, "metric": name, "value": value, "non_finite": text}


def metric_rows(run: RunRecord, is_selected: bool) -> Iterator[Row]:
    """Yield one row per metric of the run: a count is an integer, a missing value has its reason."""
    keys = _keys(run, is_selected)
    for name, metric in run.metrics.items():
        yield {
            **keys,
            "name": name,
            "value": _count(metric.value) if metric.unit == "count" else metric.value,
            "unit": metric.unit,
            "kind": metric.kind,
            "source": metric.source,
            "n_samples": metric.n_samples,
            "coverage": metric.coverage,
            "reason_if_null": metric.reason_if_null,
        }


def step_rows(run: RunRecord, is_selected: bool) -> Iterator[Row]:
    """Yield one row per part of the job completion time: the parts' milliseconds sum to it."""
    keys = _keys(run, is_selected)
    for part in PARTS:
        yield {
            **keys,
            "step": part,
            "milliseconds": _value(run, f"time.{part}"),
            "energy_joules": _value(run, f"energy.step.{part}"),
            "energy_kind": _kind(run, f"energy.step.{part}"),
            "co2e_g": _value(run, f"carbon.step.{part}"),
            "co2e_kind": _kind(run, f"carbon.step.{part}"),
            "cost_usd": _value(run, f"cost.step.{part}"),
            "cost_kind": _kind(run, f"cost.step.{part}"),
        }


def declared_rows(run: RunRecord, is_selected: bool) -> Iterator[Row]:
    """Yield one row per declared variable: what was declared and found as JSON, `agrees` is null where nothing can tell."""
    keys = _keys(run, is_selected)
    for variable in run.declared:
        yield {
            **keys,
            "symbol": variable.symbol,
            "variable": variable.name,
            "declared": canonical_json(variable.declared),
            "found": canonical_json(variable.found),
            "unit": variable.unit,
            "agrees": variable.agrees,
            "how": variable.how,
        }


def run_row(run: RunRecord, is_selected: bool) -> Row:
    """Return the row of an execution."""
    spec = run.run_spec()
    experiment = spec.experiment
    return {
        **_keys(run, is_selected),
        "platform": spec.platform,
        "workload": experiment.workload.name,
        "replicate": spec.replicate,
        "variant": canonical_json(dict(experiment.variant)),
        "metric": experiment.objective.metric,
        "mode": experiment.objective.mode,
        "status": run.status,
        "reason": run.reason,
        "charged": run.charged,
        "cpu_limit": cpu_limit(run),
        "flags": ",".join(dict.fromkeys(flag.name for flag in run.flags)) or None,
        "started_at": run.started_at,
        "best_trial": run.best.trial if run.best is not None else None,
    }


def _keys(run: RunRecord, is_selected: bool) -> Row:
    spec = run.run_spec()
    return {
        "run_id": run.run_id,
        "execution_id": run.execution_id,
        "adapter": spec.adapter,
        "label": emulated_label(spec.adapter, spec) if run.emulated else spec.adapter,
        "sampler": spec.experiment.sampler.name,
        "pruner": spec.experiment.pruner.name,
        "seed": spec.seed,
        "warm_up": spec.warm_up,
        "emulated": run.emulated,
        "is_selected": is_selected,
    }


def _charge(charge: TrialCharge | None) -> Row:
    names = ("busy_seconds", "energy_joules", "energy_kind", "co2e_g", "co2e_kind", "cost_usd", "cost_kind")
    return {
        **{name: getattr(charge, name, None) for name in names},
        **{f"waste_{policy}_seconds": charge.wasted_seconds[policy] if charge is not None else None for policy in POLICIES},
    }


def _value(run: RunRecord, name: str) -> float | None:
    return run.metrics[name].value if name in run.metrics else None


def _kind(run: RunRecord, name: str) -> str | None:
    """Return the kind of a value that is there."""
    return run.metrics[name].kind if _value(run, name) is not None else None


def _cpu_ns(trial: TrialRecord) -> int | None:
    """Return the CPU time of all attempts that started; None where one of them could not say its own."""
    times = [attempt.cpu_ns for attempt in trial.attempts if attempt.started_ns is not None]
    known = [time for time in times if time is not None]
    return sum(known) if known and len(known) == len(times) else None


def _count(value: float | None) -> float | None:
    return int(value) if value is not None and float(value).is_integer() else value


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9
