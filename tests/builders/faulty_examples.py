"""Configurations that meet a fault of the workload `faulty`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuneoff_faults.faulty import Kind, fault_of


def example_of(kind: Kind | None, options: Mapping[str, Any] | None = None, skip: int = 0) -> dict[str, float]:
    """Return a configuration {"learning_rate": ...} that meets that fault (None: no fault), the one after `skip` others."""
    configurations = ({"learning_rate": index / 20_000} for index in range(1, 20_000))
    return [one for one in configurations if fault_of(one, options) == kind][skip]
