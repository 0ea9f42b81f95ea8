"""Runs that came to another end, and flags that more or fewer runs have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tuneoff.judge.diff.comparison import Ended, Matched
from tuneoff.judge.runs import RunRef

_TOLD = ("done", "failed", "timeout", "skipped")  # interrupted or not run yet: that folder is unfinished, nothing changed


def ended(found: Sequence[Matched]) -> list[Ended]:
    """Return the runs whose status is another one, failures first."""
    changes = []
    for group in found:
        for old, new in _pairs(group):
            if old.status != new.status and {old.status, new.status} <= set(_TOLD):
                reason = new.reason or old.reason or ""
                changes.append(Ended(name=group.name, seed=old.seed, old=old.status, new=new.status, reason=reason))
    return sorted(changes, key=lambda one: (not one.is_failure, one.is_recovery))


def flags(found: Sequence[Matched]) -> dict[str, tuple[int, int]]:
    """Return, by flag, how many of the shared runs have it in A and in B, where that differs."""
    counts = Counter[str](), Counter[str]()
    for group in found:
        for pair in _pairs(group):
            for run, count in zip(pair, counts, strict=True):
                count.update(run.flags)
    old, new = counts
    return {name: (old[name], new[name]) for name in sorted({*old, *new}) if old[name] != new[name]}


def _pairs(group: Matched) -> list[tuple[RunRef, RunRef]]:
    news = {run.ref.run_id: run.ref for run in group.new.runs}
    return [(run.ref, news[run.ref.run_id]) for run in group.old.runs]
