"""What moves a framework's figures beside itself: the limit of its processors, what its adapter changed, what it was told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuneoff.record.run_record import RunRecord

REPORTS = {"none": "none", "at_end": "its best one, when a trial ends", "every_epoch": "every one"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How an adapter's runs ran, as their records have it; of each more than one only if runs differ."""

    cpu_limits: tuple[str, ...] = ()  # of each slot
    changed_defaults: tuple[str, ...] = ()
    process_per_trial: bool = False
    reports: tuple[str, ...] = ()  # of which epochs it is told


def conditions(records: Iterable[RunRecord]) -> Conditions:
    """Return the conditions of the executions of one adapter."""
    limits: dict[str, None] = {}
    changed: dict[str, None] = {}
    reports: dict[str, None] = {}
    process_per_trial = False
    for record in records:
        if (limit := cpu_limit(record)) is not None:
            limits[limit] = None
        adapter = _part(record, "adapter")
        texts = adapter.get("changed_defaults")
        changed.update(dict.fromkeys(map(str, texts if isinstance(texts, list) else ())))
        process_per_trial |= adapter.get("long_lived_workers") is False
        if isinstance(level := adapter.get("reports"), str):
            reports[level] = None
    return Conditions(
        cpu_limits=tuple(limits), changed_defaults=tuple(changed), process_per_trial=process_per_trial, reports=tuple(reports)
    )


def cpu_limit(record: RunRecord) -> str | None:
    """Return what limited the processors of a run's slots; None: its command was killed before it could be noted."""
    limits = _part(record, "limits")
    text, quota = limits.get("cpus"), limits.get("cpu_quota")
    if text is None:
        return None
    return f"quota of {quota:g} processors ({text})" if isinstance(quota, int | float) else str(text)


def condition_lines(labelled: Iterable[tuple[str, Conditions]]) -> list[str]:
    """Return the lines that stand below figures; `labelled`: labels, each as often as it has groups, with their conditions."""
    by_label: dict[str, list[Conditions]] = {}
    for label, conditions in labelled:
        by_label.setdefault(label, []).append(conditions)
    lines = [f"Limit of a slot's processors: {text}." for text in _shared(by_label, lambda conditions: conditions.cpu_limits)]
    reports = _shared(by_label, lambda conditions: tuple(REPORTS.get(report, report) for report in conditions.reports))
    lines += [f"Epochs of which a framework is told: {text}." for text in reports]
    for label, of_label in by_label.items():
        if changed := dict.fromkeys(text for conditions in of_label for text in conditions.changed_defaults):
            lines.append(f"{label} is changed against its defaults: {'; '.join(changed)}.")
        if any(conditions.process_per_trial for conditions in of_label):
            lines.append(f"{label} starts a process per trial, which imports what the workload needs: that is in its overhead.")
    return lines


def _shared(by_label: Mapping[str, Sequence[Conditions]], texts: Callable[[Conditions], tuple[str, ...]]) -> list[str]:
    """Return one text: the one that all have, or each one with those who have it; none where nobody has one."""
    labels: dict[str, list[str]] = {}
    for label, of_label in by_label.items():
        for text in dict.fromkeys(text for conditions in of_label for text in texts(conditions)):
            labels.setdefault(text, []).append(label)
    if len(labels) < 2:
        return list(labels)
    return ["; ".join(f"{', '.join(names)}: {text}" for text, names in labels.items())]


def _part(record: RunRecord, name: str) -> Mapping[str, Any]:
    part = record.environment.get(name)
    return part if isinstance(part, Mapping) else {}
