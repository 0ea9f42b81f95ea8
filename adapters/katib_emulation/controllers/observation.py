"""From a trial's metric lines to its observation: min, max and latest of each metric, as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from katib_emulation.controllers.reconciling import ReconcileError
from katib_emulation.observations import UNAVAILABLE, Observation, moment

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE | re.ASCII)


def number(text: str) -> float | None:
    """Return the number in a text, None if it has none (stricter than float(): no blanks, no underscores)."""
    return float(text) if _NUMBER.fullmatch(text) else None


def observe(lines: Iterable[Observation], strategies: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return the observation over the metrics that have a strategy; `unavailable` where there is no value.

    Raises:
        ReconcileError: a line has no readable time.
    """
    metrics = {s["name"]: {"name": s["name"], "min": UNAVAILABLE, "max": UNAVAILABLE, "latest": UNAVAILABLE} for s in strategies}
    times: dict[str, Any] = {}
    for line in lines:
        metric = metrics.get(line.name)
        if metric is None:
            continue
        value = number(line.value)
        if value is not None:
            if metric["min"] == UNAVAILABLE:
                metric["min"] = metric["max"] = line.value
            elif value < float(metric["min"]):
                metric["min"] = line.value
            elif value > float(metric["max"]):
                metric["max"] = line.value
        time = moment(line.time)
        if time is None:
            raise ReconcileError(f"failed to parse timestamps {line.time}")
        if line.name not in times or times[line.name] <= time:
            times[line.name] = time
            metric["latest"] = line.value
    return {"metrics": [{name: value for name, value in metric.items() if value} for metric in metrics.values()]}


def is_available(trial: Mapping[str, Any]) -> bool:
    """Whether the objective has a latest value (an empty one counts)."""
    objective = trial["spec"]["objective"]["objectiveMetricName"]
    metrics = ((trial.get("status") or {}).get("observation") or {}).get("metrics", ())
    return any(metric["name"] == objective and metric.get("latest", "") != UNAVAILABLE for metric in metrics)
