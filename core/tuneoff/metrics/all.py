"""All metrics of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tuneoff.metrics.attribution import EnergyAccount, energy_account
from tuneoff.metrics.budget import budget_metrics
from tuneoff.metrics.carbon import carbon_metrics
from tuneoff.metrics.cost import cost_metrics, waste_cost_metrics
from tuneoff.metrics.energy import RESIDUAL_FLAG, energy_metrics, residual_flags
from tuneoff.metrics.evidence import NO_EVIDENCE, Evidence
from tuneoff.metrics.incumbent import quality_metrics
from tuneoff.metrics.memory import memory_metrics
from tuneoff.metrics.nodes import node_metrics
from tuneoff.metrics.overhead import overhead_metrics, stop_metrics
from tuneoff.metrics.pruning import pruning_metrics
from tuneoff.metrics.resumed import without_times
from tuneoff.metrics.slots import slot_metrics
from tuneoff.metrics.spans import span_metrics
from tuneoff.metrics.values import MetricValue
from tuneoff.metrics.waste import waste_energy_metrics, waste_metrics
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
    energy_metrics,
    waste_energy_metrics,
    pruning_metrics,
    carbon_metrics,
    cost_metrics,
    waste_cost_metrics,
    memory_metrics,
    node_metrics,
)


def compute_metrics(run: RunRecord, evidence: Evidence = NO_EVIDENCE) -> dict[str, MetricValue]:
    """Return every metric of a run by its dotted name."""
    return _compute(run, evidence, energy_account(run, evidence))


def with_metrics(run: RunRecord, evidence: Evidence = NO_EVIDENCE, account: EnergyAccount | None = None) -> RunRecord:
    """Return the same record with its metrics, and with a flag where the energy of its parts does not meet the node's.

    `account`: the run's `energy_account`, where the caller has it already.
    """
    account = account or energy_account(run, evidence)
    flags = tuple(flag for flag in run.flags if flag.name != RESIDUAL_FLAG)
    return replace(run, metrics=_compute(run, evidence, account), flags=(*flags, *residual_flags(account)))


def _compute(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    values = {name: value for family in FAMILIES for name, value in family(run).items()}
    for measured in MEASURED_FAMILIES:
        values.update(measured(run, evidence, account))
    return values if run.continues is None else without_times(values)
