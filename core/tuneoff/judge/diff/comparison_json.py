"""What changed between two folders as JSON values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tuneoff.judge.diff.comparison import Change, Comparison
from tuneoff.judge.diff.comparison_text import headline
from tuneoff.judge.stats.location import Interval


def to_json(found: Comparison) -> dict[str, Any]:
    """Return everything that the text says, and each pair of seeds."""
    return {
        "has_changed": found.has_changed,
        "answer": list(headline(found)),
        "a": str(found.folders[0].resolve()),
        "b": str(found.folders[1].resolve()),
        "runs": found.runs,
        "same_machine": found.same_machine,
        "environment": {name: list(sides) for name, sides in found.environment.items()},
        "analysis": {name: list(sides) for name, sides in found.analysis.items()},
        "sentinel_ratio": found.sentinel,
        "changes": [_change(change) for change in found.changes],
        "exact": [asdict(one) for one in found.exact],
        "ended": [{**asdict(one), "is_failure": one.is_failure, "is_recovery": one.is_recovery} for one in found.ended],
        "flags": {name: list(counts) for name, counts in found.flags.items()},
        "not_compared": list(found.left_out),
    }


def _change(change: Change) -> dict[str, Any]:
    verdict = change.verdict
    return {
        "of": change.name,
        "adapter": change.adapter,
        "question": change.question.name,
        "metric": change.question.metric,
        "unit": change.question.unit,
        "scale": change.question.scale,
        "margin": change.question.margin,
        "outcome": None if verdict is None else verdict.outcome.value,
        "is_beyond_noise": change.is_beyond_noise,
        "reason": change.reason,
        "interval": None if verdict is None else _interval(verdict.interval),
        "is_robust": None if verdict is None else verdict.is_robust,
        "robustness": None if verdict is None else verdict.robustness,
        "disturbance": None if verdict is None else verdict.disturbance.to_json(),
        "differences": [] if verdict is None else [asdict(pair) for pair in verdict.differences],
        "noise": [asdict(one) for one in change.noise],
    }


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    return None if interval is None else asdict(interval)
