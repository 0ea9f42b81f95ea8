"""What the controls say, as JSON values: each null has its reason beside it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tuneoff.judge.controls.compute import Controls, Effect
from tuneoff.judge.controls.same_algorithm import QUALITY, EntryPair
from tuneoff.judge.controls.same_configuration import SameConfiguration


def to_json(found: Controls) -> dict[str, Any]:
    """Return all controls as JSON values."""
    return {
        "contradicts": found.contradicts,
        "same_configurations": [_same_configuration(one) for one in found.same_configurations],
        "same_algorithm": {
            "alpha": round(found.alpha, 12),
            "correction": "holm, over the pairs that are not A/A",
            "metric": QUALITY,
            "reason_if_null": found.lacking,
            "pairs": [_pair(pair) for pair in found.pairs],
        },
        "effects": [_effect(one) for one in found.effects],
    }


def _same_configuration(one: SameConfiguration) -> dict[str, Any]:
    return {
        "setting": one.setting,
        "answer": one.answer.value,
        "reference": one.reference,
        "adapters": [
            {**asdict(item), "not_done": {str(seed): why for seed, why in item.not_done.items()}} for item in one.adapters
        ],
        "differences": [
            {**asdict(item), "values": [{"value": value, "adapters": list(labels)} for value, labels in item.values.items()]}
            for item in one.differences
        ],
    }


def _pair(pair: EntryPair) -> dict[str, Any]:
    scores: dict[str, Any] = {"value": None, "reason_if_null": pair.no_scores}
    if pair.scores is not None:
        test = pair.scores.test
        scores = {
            "distance": test.distance,
            "p": test.p,
            "p_adjusted": pair.scores.adjusted,  # null: A/A, in no family
            "n": test.n,
            "m": test.m,
            "differs": None if pair.is_noise else pair.scores.differs,
        }
    quality: dict[str, Any] = {"value": None, "reason_if_null": pair.no_quality}
    if pair.quality is not None:
        quality = {
            **asdict(pair.quality.interval),
            "margin": pair.quality.margin,
            "p": pair.quality.p,
            "verdict": pair.quality.verdict.value,
            "seeds_needed": pair.quality.seeds_needed,
        }
    return {
        "setting": pair.setting,
        "one": pair.one,
        "other": pair.other,
        "is_noise_floor": pair.is_noise,
        "seeds": pair.seeds,
        "margin": {"value": pair.margin.value, "source": pair.margin.source},
        "scores": scores,
        "quality": quality,
    }


def _effect(one: Effect) -> dict[str, Any]:
    about = {"kind": one.kind, "one": one.one, "other": one.other, "metric": one.metric, "unit": one.unit}
    values = {"mean": None, "low": None, "high": None, "deviation": None, "n": 0, "confidence": None}
    if one.interval is not None:
        values = asdict(one.interval)
    return {**about, **values, "reason_if_null": one.reason}
