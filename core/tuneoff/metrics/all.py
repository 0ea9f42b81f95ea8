"""All metrics of a run."""

from __future__ import annotations

from dataclasses import replace

from tuneoff.metrics.budget import budget_metrics
from tuneoff.metrics.incumbent import quality_metrics
from tuneoff.metrics.overhead import overhead_metrics, stop_metrics
from tuneoff.metrics.slots import slot_metrics
from tuneoff.metrics.spans import span_metrics
from tuneoff.metrics.values import MetricValue
from tuneoff.metrics.waste import waste_metrics
from tuneoff.records.model import RunRecord

FAMILIES = (
    span_metrics,
    quality_metrics,
    budget_metrics,
    slot_metrics,
    overhead_metrics,
    stop_metrics,
    waste_metrics,
)  # energy, carbon and cost append themselves here, and their names in names.py


def compute_metrics(run: RunRecord) -> dict[str, MetricValue]:
    """Return every metric of a run by its dotted name."""
    return {name: value for family in FAMILIES for name, value in family(run).items()}


def with_metrics(run: RunRecord) -> RunRecord:
    """Return the same record with its metrics."""
    return replace(run, metrics=compute_metrics(run))
