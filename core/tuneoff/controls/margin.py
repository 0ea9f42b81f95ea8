"""The smallest difference of the selected quality that matters: as the file says, else as the workload does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tuneoff.experiment.spec import WorkloadSpec
from tuneoff.trial.context import load_target

KEY = "quality_margin"  # of `analysis`, in the file and in matrix.json


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """A margin in units of `quality.test`, and where it is from; None with the reason."""

    value: float | None
    source: str


def quality_margin(analysis: Mapping[str, Any], workload: WorkloadSpec) -> Margin:
    """Return the margin of a matrix for one workload."""
    frozen = analysis.get(KEY)
    if isinstance(frozen, int | float) and not isinstance(frozen, bool) and frozen > 0:
        return Margin(value=float(frozen), source=f"analysis.{KEY} of the file, frozen in the plan")
    way_out = f"set analysis.{KEY}"
    try:
        own = load_target(workload.target)(workload.options).quality_margin()
    except Exception as error:  # a plugin's own code may fail in any way, and this is only its default
        return Margin(
            value=None, source=f"workload {workload.name!r} cannot be asked ({type(error).__name__}: {error}); {way_out}"
        )
    if own is None:
        return Margin(value=None, source=f"workload {workload.name!r} has no margin of its own; {way_out}")
    return Margin(value=own, source=f"of workload {workload.name!r} with these options")
