"""All metrics of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tuneoff.metrics.attribution import EnergyAccount, energy_account
from tuneoff.metrics.budget import budget_metrics
from tuneoff.metrics.carbon import carbon_metrics
from tuneoff.metrics.cost import cost_metrics, waste_cost_metrics
from tuneoff.metrics.evidence import NO_EVIDENCE, Evidence
from tuneoff.metrics.incumbent import quality_metrics
from tuneoff.metrics.memory import memory_metrics
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
)
Measured = Callable[[RunRecord, Evidence, EnergyAccount], dict[str, MetricValue]]
MEASURED_FAMILIES: tuple[Measured, ...] = (  # they read samples and prices too
    carbon_metrics,
    cost_metrics,
    waste_cost_metrics,
    memory_metrics,
)


def compute_metrics(run: RunRecord, evidence: Evidence = NO_EVIDENCE) -> dict[str, MetricValue]:
    """Return every metric of a run by its dotted name."""
    values = {name: value for family in FAMILIES for name, value in family(run).items()}
    account = energy_account(run, evidence)
    for measured in MEASURED_FAMILIES:
        values.update(measured(run, evidence, account))
    return values


def with_metrics(run: RunRecord, evidence: Evidence = NO_EVIDENCE) -> RunRecord:
    """Return the same record with its metrics."""
    return replace(run, metrics=compute_metrics(run, evidence))
