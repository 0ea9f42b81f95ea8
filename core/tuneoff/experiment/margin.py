"""The smallest difference of the selected quality that matters: as the file says, else as the workload does. Both are frozen.

A folder is read without a question to a workload: its target and its options may be anybody's.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tuneoff.base.identity import digest
from tuneoff.experiment.function_workload import workload_at
from tuneoff.experiment.spec import WorkloadSpec

log = logging.getLogger(__name__)

KEY = "quality_margin"  # of `analysis`, in the file and in matrix.json
WORKLOADS = "workload_margins"  # of `analysis` in matrix.json, where the file sets none: by `_identity`


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """A margin in units of `quality.test`, and where it is from; None with the reason."""

    value: float | None
    source: str


def workload_margins(workloads: Iterable[WorkloadSpec]) -> dict[str, float]:
    """Ask the workloads of a plan that is being made for their own margins; return those that have one, for `analysis`."""
    asked = {_identity(workload): workload for workload in workloads}
    found = {identity: _ask(workload) for identity, workload in asked.items()}
    return {identity: margin for identity, margin in found.items() if margin is not None}


def quality_margin(analysis: Mapping[str, Any], workload: WorkloadSpec) -> Margin:
    """Return the margin of a matrix for one workload, as its plan froze it."""
    value = _usable(analysis.get(KEY))
    if value is not None:
        return Margin(value=value, source=f"analysis.{KEY} of the file, frozen in the plan")
    known = analysis.get(WORKLOADS)
    value = _usable(known.get(_identity(workload))) if isinstance(known, Mapping) else None
    if value is not None:
        return Margin(value=value, source=f"of workload {workload.name!r} with these options")
    return Margin(value=None, source=f"workload {workload.name!r} has no margin of its own in the plan; set analysis.{KEY}")


def _ask(workload: WorkloadSpec) -> float | None:
    try:
        return _usable(workload_at(workload.target)(workload.options).quality_margin())
    except Exception as error:  # a plugin's own code may fail in any way, and this is only its default
        log.warning("workload %r cannot be asked for its margin: %s: %s", workload.name, type(error).__name__, error)
        return None


def _usable(margin: Any) -> float | None:
    is_number = isinstance(margin, int | float) and not isinstance(margin, bool)
    return float(margin) if is_number and 0 < margin <= sys.float_info.max else None


def _identity(workload: WorkloadSpec) -> str:
    return digest([workload.target, workload.name, dict(workload.options)])
