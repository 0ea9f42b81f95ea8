"""Inside trials: how many items per second they trained on, and the share that each phase had of their time.

A repetition is an epoch. The first of an attempt is dropped where another one follows, as Mila's benchmark drops its first
observations: what happens once (memory, caches, compilation) is in it. Epochs that were restored are none.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tuneoff.base.phases import PHASES
from tuneoff.measure.spans import busy_ns
from tuneoff.record.metric_value import MetricValue, metric_value, metric_value_or
from tuneoff.record.run_record import RunRecord, TrialRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRate:
    """What a trial trained on in its repetitions: items and seconds of each, and how many epochs were dropped before them."""

    items: tuple[int, ...]
    seconds: tuple[float, ...]
    dropped: int

    @property
    def rates(self) -> list[float]:
        """Items per second of each repetition."""
        return [items / seconds for items, seconds in zip(self.items, self.seconds, strict=True)]

    @property
    def mean(self) -> float:
        """All items over all seconds, so that each second counts alike."""
        return sum(self.items) / sum(self.seconds)

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the rates; None of a single one."""
        return statistics.stdev(self.rates) if len(self.items) > 1 else None


def item_rate(trial: TrialRecord) -> ItemRate | None:
    """Return how fast a trial trained; None: it counted no items."""
    kept, dropped = [], 0
    for attempt in trial.attempts:
        counted = [epoch for epoch in attempt.epochs if epoch.items is not None and epoch.train_ns > 0]
        first = int(len(counted) > 1)
        kept += counted[first:]
        dropped += first
    if not kept:
        return None
    seconds = tuple(epoch.train_ns / 1e9 for epoch in kept)
    return ItemRate(items=tuple(epoch.items or 0 for epoch in kept), seconds=seconds, dropped=dropped)


def phase_shares(trials: Iterable[TrialRecord]) -> Mapping[str, float]:
    """Return the share of each phase of the busy time of those trials that timed any, from 0 to 1; the usual phases first."""
    total, busy = Counter[str](), 0
    for trial in trials:
        phases = [epoch.phases for attempt in trial.attempts for epoch in attempt.epochs if epoch.phases]
        busy += sum(map(busy_ns, trial.attempts)) if phases else 0
        for of_epoch in phases:
            total.update(of_epoch)
    names = sorted(total, key=lambda name: (PHASES.index(name) if name in PHASES else len(PHASES), name))
    return {name: total[name] / busy for name in names} if busy else {}


def inside_metrics(run: RunRecord) -> dict[str, MetricValue]:
    """Return items per second, how much repetitions differ, and phases in % of busy time; nothing where nobody told any."""
    rates = [rate for trial in run.trials if (rate := item_rate(trial)) is not None]
    values: dict[str, MetricValue] = {}
    if rates:
        count, seconds = sum(len(rate.items) for rate in rates), sum(sum(rate.seconds) for rate in rates)
        values["items.per_second"] = metric_value(sum(sum(rate.items) for rate in rates) / seconds, "1/s", n_samples=count)
        spread = [100 * rate.deviation / rate.mean for rate in rates if rate.deviation is not None and rate.mean > 0]
        median = statistics.median(spread) if spread else None
        values["items.variation"] = metric_value_or(median, "%", "no trial has two repetitions", n_samples=len(spread))
    return values | {f"phase.{name}": metric_value(100 * share, "%") for name, share in phase_shares(run.trials).items()}
