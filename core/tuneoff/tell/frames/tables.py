"""The long tables: what each column holds, in which unit and type, whether it is in every row; and the rows of an execution.

Times are seconds since the run's start. What a trial is charged and is not known is None, never 0.
`is_selected`: this execution stands for its run, and the run counts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tuneoff.base.capabilities import LOCAL
from tuneoff.base.identity import canonical_json
from tuneoff.experiment.names import entry_label
from tuneoff.experiment.spec import Objective
from tuneoff.judge.groups import cpu_limit
from tuneoff.measure.attribution.account import EnergyAccount, energy_account
from tuneoff.measure.attribution.pieces import JOULES_PER_KWH, EnergyPiece
from tuneoff.measure.carbon import emission, uncovered
from tuneoff.measure.cost import NANOSECONDS_PER_HOUR, rent
from tuneoff.measure.incumbent import goal_reached
from tuneoff.measure.inside import item_rate, phase_shares
from tuneoff.measure.progress import has_progress
from tuneoff.measure.spans import PARTS, busy_ns
from tuneoff.measure.waste import POLICIES, Policy, wasted_attempts
from tuneoff.record.flag_meanings import EXCLUDING
from tuneoff.record.metric_value import weakest
from tuneoff.record.run_record import RunRecord, TrialRecord
from tuneoff.record.samples.reader import Evidence

Row = dict[str, Any]
AMOUNTS = {"energy": "energy_joules", "carbon": "co2e_g", "cost": "cost_usd"}  # metrics of steps, by their column
ColumnType = Literal["key", "text", "number", "integer", "truth"]  # key: one of a few texts, by which readers group


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `always`: no row lacks it."""

    type: ColumnType
    text: str
    unit: str = ""
    always: bool = False

    @property
    def dtype(self) -> str:
        """Its type in a data frame."""
        if self.type == "integer":
            return "int64" if self.always else "Int64"
        if self.type == "truth":
            return "bool" if self.always else "boolean"
        return {"key": "category", "text": "str", "number": "float64"}[self.type]


always = functools.partial(Column, always=True)
Columns = Mapping[str, Column]

RUN_KEYS: Columns = {  # in every table, for most readers group by them
    "run_id": always("key", "the run: hash of what defines it"),
    "execution_id": always("key", "one try at the run"),
    "adapter": always("key", "the adapter"),
    "label": always("key", "the adapter, with its platform where that is not local: group by this"),
    "sampler": always("key", "the sampler"),
    "pruner": always("key", "the pruner"),
    "seed": always("integer", "the run's seed"),
    "warm_up": always("truth", "a warm-up, never counted"),
    "excluded": always("truth", "a flag keeps it out of every ranking"),
    "is_selected": always("truth", "this execution stands for its run, and the run counts"),
}
RUN_COLUMNS: Columns = {
    **RUN_KEYS,
    "platform": always("key", "where the framework was put"),
    "workload": always("key", "what was trained"),
    "replicate": always("integer", "number of the adapter's entry in the file, from 0"),
    "copy": always("integer", "number among the jobs of the entry that ran at the same time, from 0"),
    "variant": always("key", "what `matrix:` and `tasks:` set in this run, as JSON"),
    "metric": always("key", "the objective"),
    "mode": always("key", "`max` or `min`"),
    "status": always("key", "status of the execution"),
    "reason": Column("text", "why it is not done"),
    "charged": Column("key", "who is charged for that"),
    "cpu_limit": Column("key", "what limited the processors of its slots"),
    "flags": Column("text", "names of its flags, with commas"),
    "started_at": Column("text", "wall clock, UTC, ISO 8601"),
    "best_trial": Column("text", "the framework's best trial"),
}
_USED = {
    "energy_joules": Column("number", "energy", "J"),
    "energy_kind": Column("key", "kind of that value: measured, derived, estimated"),
    "co2e_g": Column("number", "CO2e", "g"),
    "co2e_kind": Column("key", "what that rests on"),
    "cost_usd": Column("number", "cost", "USD"),
    "cost_kind": Column("key", "what that rests on"),
}
CHARGED = (*_USED, "busy_seconds", "waste_default_seconds", "waste_post_goal_seconds")
TRIAL_COLUMNS: Columns = {
    **RUN_KEYS,
    "trial": always("text", "the trial, unique in its execution"),
    "framework_id": Column("text", "the framework's own name of it"),
    "state": always("key", "how it ended"),
    "cause": Column("text", "why it failed"),
    "charged": Column("key", "who is charged for that"),
    "attempts": always("integer", "number of its attempts", "count"),
    "slot": Column("integer", "slot of its last attempt; missing: no process took it up"),
    "configuration": always("text", "its configuration, as JSON"),
    "digest": always("text", "hash of the configuration, equal in every framework"),
    "value": Column("number", "best validation value of its last attempt", "the metric's"),
    "value_epoch": Column("integer", "the epoch of that value"),
    "stop_epoch": Column("integer", "the epoch on whose report the decision to stop fell"),
    "epochs_trained": always("integer", "epochs of all attempts", "count"),
    "ended_early": always("truth", "its training ended by itself before its planned epochs"),
    "submitted_seconds": Column("number", "submission of its first attempt, since the run's start", "s"),
    "started_seconds": Column("number", "start of its first attempt, since the run's start", "s"),
    "ended_seconds": Column("number", "end of its last attempt, since the run's start", "s"),
    "cpu_seconds": Column("number", "CPU time of all attempts", "s"),
    "peak_rss_bytes": Column("integer", "maximum resident memory of an attempt", "byte"),
    "busy_seconds": Column("number", "time in which it loaded, trained, validated or saved", "s"),
    "items_per_second": Column("number", "items trained on per second of its epochs, each attempt's first left out", "1/s"),
    "items_per_second_sd": Column("number", "standard deviation of its items per second over these epochs", "1/s"),
    "items_per_second_min": Column("number", "items per second of the slowest of them", "1/s"),
    "items_per_second_max": Column("number", "items per second of the fastest of them", "1/s"),
    "items_repetitions": Column("integer", "epochs that its items per second rest on", "count"),
    "items_dropped": Column("integer", "first epochs that its items per second leave out", "count"),
    "phases": Column("text", "share of its busy time in each phase that it timed, as JSON", "0 to 1"),
    "no_progress": Column("truth", "its metric did not get better beyond its noise; missing: too few epochs to tell"),
    **_USED,
    "waste_default_seconds": Column("number", "wasted time: the default policy", "s"),
    "waste_post_goal_seconds": Column("number", "wasted time: after the goal was met", "s"),
}
EPOCH_COLUMNS: Columns = {
    **RUN_KEYS,
    "trial": always("text", "the trial"),
    "attempt": always("integer", "the attempt, from 1"),
    "epoch": always("integer", "the epoch, from 1"),
    "ended_seconds": always("number", "trained, validated and saved, since the run's start", "s"),
    "reported_seconds": Column("number", "its report returned, since the run's start", "s"),
    "train_seconds": always("number", "training", "s"),
    "validate_seconds": always("number", "validation", "s"),
    "checkpoint_seconds": always("number", "saving", "s"),
    "restored": always("truth", "trained by an earlier attempt, from whose checkpoint this one went on"),
    "items": Column("integer", "items that it was trained on, as the training counted them", "count"),
    "metric": always("key", "which metric of the epoch"),
    "value": Column("number", "its value; missing: not finite", "the metric's"),
    "non_finite": Column("key", "what a value that is not finite was"),
}
METRIC_COLUMNS: Columns = {
    **RUN_KEYS,
    "name": always("key", "the metric"),
    "value": Column("number", "its value", "see `unit`"),
    "unit": always("key", "its unit"),
    "kind": always("key", "measured, derived, estimated or declared"),
    "source": always("key", "what it was computed from"),
    "n_samples": Column("integer", "how many observations it rests on", "count"),
    "coverage": Column("number", "share of the window that they cover", "0 to 1"),
    "reason_if_null": Column("text", "why there is no value"),
}
STEP_COLUMNS: Columns = {
    **RUN_KEYS,
    "step": always("key", "part of the job completion time"),
    "milliseconds": Column("number", "how long it took", "ms"),
    **_USED,
}
DECLARED_COLUMNS: Columns = {
    **RUN_KEYS,
    "symbol": always("key", "the declared variable's symbol"),
    "variable": always("key", "its name"),
    "declared": always("text", "what was declared, as JSON"),
    "found": always("text", "what was found, as JSON"),
    "unit": always("key", "its unit"),
    "agrees": Column("truth", "whether they agree; missing: nothing can tell"),
    "how": always("text", "by what it was found, or why it was not"),
}
TABLES: dict[str, Columns] = {
    "runs": RUN_COLUMNS,
    "trials": TRIAL_COLUMNS,
    "epochs": EPOCH_COLUMNS,
    "metrics": METRIC_COLUMNS,
    "steps": STEP_COLUMNS,
    "declared": DECLARED_COLUMNS,
}


def trial_charges(run: RunRecord, evidence: Evidence) -> dict[str, Row]:
    """Return what each trial's own work used, as its columns, by its id.

    Cost: busy hours times the slot's price, or on own premises energy times the tariff.
    """
    account = energy_account(run, evidence)
    has_carbon = account.reason is None and uncovered(run, account, evidence.accounting) is None
    wasted: dict[Policy, dict[str, int] | None] = {}  # busy time by trial; None: no goal, or not met
    for policy in POLICIES:
        by_trial: dict[str, int] | None = None
        if policy != "post_goal" or goal_reached(run) is not None:
            by_trial = {}
            for (name, _), attempt, after in wasted_attempts(run, policy):
                by_trial[name] = by_trial.get(name, 0) + busy_ns(attempt, after)
        wasted[policy] = by_trial
    intensity, prices = evidence.accounting.intensity, evidence.accounting.prices
    is_tariff = prices is not None and prices.premises == "own"  # energy is paid, not the slots
    rented = rent(run, evidence.accounting, prices) if prices is not None and not is_tariff else None
    charges = {}
    for trial in run.trials:
        pieces = _pieces(trial, account)
        energy = None if pieces is None else _finite(sum(piece.joules for piece in pieces))
        grams = None
        if has_carbon and pieces is not None and intensity is not None:
            grams = _finite(emission(pieces, intensity, run.clock.start_wall_ns if run.clock is not None else 0).grams)
        usd: float | None = None
        if rented is not None and rented.slot.usd is not None:  # no time at an unknown price is unknown too
            usd = 0.0
            for attempt in trial.attempts:
                price = rented.of_slot(attempt.slot).usd if attempt.slot is not None else 0.0
                usd = None if price is None or usd is None else usd + price * busy_ns(attempt) / NANOSECONDS_PER_HOUR
        elif is_tariff and energy is not None and prices is not None and prices.usd_per_kwh is not None:
            usd = energy / JOULES_PER_KWH * prices.usd_per_kwh
        usd = _finite(usd)
        charges[trial.trial] = {
            "busy_seconds": sum(busy_ns(attempt) for attempt in trial.attempts) / 1e9,
            "energy_joules": energy,
            "energy_kind": None if energy is None else account.kind,
            "co2e_g": grams,
            "co2e_kind": None if grams is None else weakest(account.kind, "declared"),
            "cost_usd": usd,
            "cost_kind": None if usd is None else "declared" if rented is not None else weakest(account.kind, "declared"),
            **{
                f"waste_{policy}_seconds": None if wasted_ns is None else wasted_ns.get(trial.trial, 0) / 1e9
                for policy, wasted_ns in wasted.items()
            },
        }
    return charges


def _pieces(trial: TrialRecord, account: EnergyAccount) -> list[EnergyPiece] | None:
    """Return the energy of a trial's busy segments over all its attempts; None where that of one is not known."""
    if account.reason is not None or "trials" in account.reasons:
        return None
    all_pieces: list[EnergyPiece] = []
    for position, attempt in enumerate(trial.attempts):
        pieces = account.attempts.get((trial.trial, position))
        if pieces is None and attempt.started_ns is not None:
            return None
        all_pieces += pieces or ()
    return all_pieces


def _finite(value: float | None) -> float | None:
    """Return a figure, or None where it overflowed; the run's metrics say why."""
    return value if value is not None and math.isfinite(value) else None


def trial_rows(run: RunRecord, is_selected: bool, charges: Mapping[str, Row]) -> Iterator[Row]:
    """Yield one row per trial; `charges`: what each used, by its id; null in a trial that has none."""
    keys = _keys(run, is_selected)
    experiment = run.run_spec().experiment
    planned, objective = experiment.budget.epochs_per_trial, experiment.objective
    for trial in run.trials:
        first, last = (trial.attempts[0], trial.attempts[-1]) if trial.attempts else (None, None)
        peaks = [attempt.peak_rss_bytes for attempt in trial.attempts if attempt.peak_rss_bytes is not None]
        yield _row(
            TRIAL_COLUMNS,
            keys,
            trial,
            attempts=len(trial.attempts),
            slot=last.slot if last is not None else None,
            configuration=canonical_json(dict(trial.configuration)),
            ended_early=trial.ended_early(planned),
            submitted_seconds=_seconds(first.submitted_ns if first is not None else None),
            started_seconds=_seconds(first.started_ns if first is not None else None),
            ended_seconds=_seconds(last.ended_ns if last is not None else None),
            cpu_seconds=_seconds(_cpu_ns(trial)),
            peak_rss_bytes=max(peaks, default=None),
            **_inside(trial, objective),
            **charges.get(trial.trial, dict.fromkeys(CHARGED)),
        )


def _inside(trial: TrialRecord, objective: Objective) -> Row:
    rate, phases, has_progressed = item_rate(trial), phase_shares([trial]), has_progress([trial], objective)
    return {
        "items_per_second": rate and rate.mean,
        "items_per_second_sd": rate and rate.deviation,
        "items_per_second_min": rate and min(rate.rates),
        "items_per_second_max": rate and max(rate.rates),
        "items_repetitions": rate and len(rate.items),
        "items_dropped": rate and rate.dropped,
        "phases": canonical_json(dict(phases)) if phases else None,
        "no_progress": None if has_progressed is None else not has_progressed,
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
                    "restored": epoch.restored,
                    "items": epoch.items,
                }
                for name, value in epoch.metrics.items():
                    yield {**common, "metric": name, "value": value, "non_finite": (epoch.non_finite or {}).get(name)}


def metric_rows(run: RunRecord, is_selected: bool) -> Iterator[Row]:
    """Yield one row per metric of the run: a count is an integer, a missing value has its reason."""
    keys = _keys(run, is_selected)
    for name, metric in run.metrics.items():
        is_count = metric.unit == "count" and metric.value is not None and float(metric.value).is_integer()
        value = int(metric.value) if is_count and metric.value is not None else metric.value
        yield _row(METRIC_COLUMNS, keys, metric, name=name, value=value)


def step_rows(run: RunRecord, is_selected: bool) -> Iterator[Row]:
    """Yield one row per part of the job completion time: the parts' milliseconds sum to it."""
    keys = _keys(run, is_selected)
    for part in PARTS:
        yield {
            **keys,
            "step": part,
            "milliseconds": _value(run, f"time.{part}"),
            **{
                name: of(run, f"{kind}.step.{part}")
                for kind, column in AMOUNTS.items()
                for name, of in ((column, _value), (f"{column.rpartition('_')[0]}_kind", _kind))
            },
        }


def declared_rows(run: RunRecord, is_selected: bool) -> Iterator[Row]:
    """Yield one row per declared variable: what was declared and found as JSON, `agrees` is null where nothing can tell."""
    keys = _keys(run, is_selected)
    for variable in run.declared:
        declared, found = canonical_json(variable.declared), canonical_json(variable.found)
        yield _row(DECLARED_COLUMNS, keys, variable, variable=variable.name, declared=declared, found=found)


def run_row(run: RunRecord, is_selected: bool) -> Row:
    """Return the row of an execution."""
    spec = run.run_spec()
    experiment = spec.experiment
    return _row(
        RUN_COLUMNS,
        _keys(run, is_selected),
        run,
        platform=spec.platform,
        workload=experiment.workload.name,
        replicate=spec.replicate,
        copy=spec.copy,
        variant=canonical_json(dict(experiment.variant)),
        metric=experiment.objective.metric,
        mode=experiment.objective.mode,
        cpu_limit=cpu_limit(run),
        flags=",".join(dict.fromkeys(flag.name for flag in run.flags)) or None,
        best_trial=run.best.trial if run.best is not None else None,
    )


def _row(columns: Columns, keys: Row, record: object, **values: Any) -> Row:
    """Return a row: of each column the run's key, one of `values`, else what the record has under that name."""
    values = keys | values
    return {name: values[name] if name in values else getattr(record, name) for name in columns}


def _keys(run: RunRecord, is_selected: bool) -> Row:
    spec = run.run_spec()
    return {
        "run_id": run.run_id,
        "execution_id": run.execution_id,
        "adapter": spec.adapter,
        "label": entry_label(spec.adapter, None if spec.platform == LOCAL else spec.platform, {}, 0, spec.environment),
        "sampler": spec.experiment.sampler.name,
        "pruner": spec.experiment.pruner.name,
        "seed": spec.seed,
        "warm_up": spec.warm_up,
        "excluded": any(flag.name in EXCLUDING for flag in run.flags),
        "is_selected": is_selected,
    }


def _value(run: RunRecord, name: str) -> float | None:
    return run.metrics[name].value if name in run.metrics else None


def _kind(run: RunRecord, name: str) -> str | None:
    """Return the kind of a value that is there."""
    return run.metrics[name].kind if _value(run, name) is not None else None


def _cpu_ns(trial: TrialRecord) -> int | None:
    """Return the CPU time of all attempts that started; None where one of them could not say its own."""
    times = [attempt.cpu_ns for attempt in trial.attempts if attempt.started_ns is not None]
    return sum(time for time in times if time is not None) if times and None not in times else None


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9
