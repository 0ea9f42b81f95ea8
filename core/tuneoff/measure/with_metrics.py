"""All metrics of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tuneoff.measure.attribution.account import EnergyAccount, energy_account
from tuneoff.measure.budget import budget_metrics
from tuneoff.measure.carbon import carbon_metrics
from tuneoff.measure.cost import cost_metrics, waste_cost_metrics
from tuneoff.measure.disturbance import DISTURBED, disturbance_flags, disturbance_metrics
from tuneoff.measure.energy import RESIDUAL_FLAG, energy_metrics, residual_flags
from tuneoff.measure.evidence import NO_EVIDENCE, Evidence
from tuneoff.measure.incumbent import quality_metrics
from tuneoff.measure.memory_metrics import memory_metrics
from tuneoff.measure.nodes import node_metrics
from tuneoff.measure.overhead import overhead_metrics, stop_metrics
from tuneoff.measure.presence import CROWDED_FLAG, DOUBLED_FLAG, Presence, presence_flags, presence_of
from tuneoff.measure.resumed import without_times
from tuneoff.measure.slots import slot_metrics
from tuneoff.measure.spans import span_metrics
from tuneoff.measure.waste import (
    LOWER_BOUND_FLAG,
    as_lower_bounds,
    lower_bound_flags,
    pruning_metrics,
    waste_energy_metrics,
    waste_metrics,
)
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.run_record import RunRecord

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
    disturbance_metrics,
)


def compute_metrics(run: RunRecord, evidence: Evidence = NO_EVIDENCE) -> dict[str, MetricValue]:
    """Return every metric of a run by its dotted name."""
    return _compute(run, presence_of(run), evidence, energy_account(run, evidence))


def with_metrics(run: RunRecord, evidence: Evidence = NO_EVIDENCE, account: EnergyAccount | None = None) -> RunRecord:
    """Return the same record with its metrics and the flags that follow: disturbed, residual, bounds of waste, doubled slots.

    `account`: the run's `energy_account`, where the caller has it already.
    """
    account = account or energy_account(run, evidence)
    of_metrics = (RESIDUAL_FLAG, LOWER_BOUND_FLAG, DISTURBED, CROWDED_FLAG, DOUBLED_FLAG)
    flags = tuple(flag for flag in run.flags if flag.name not in of_metrics)
    flags += (*disturbance_flags(run, evidence, account), *residual_flags(account))
    presence = presence_of(run)
    flags += (*lower_bound_flags(run), *presence_flags(run, presence))
    return replace(run, metrics=_compute(run, presence, evidence, account), flags=flags)


def _compute(run: RunRecord, presence: Presence, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    values = {
        **span_metrics(run),
        **quality_metrics(run),
        **budget_metrics(run),
        **slot_metrics(run, presence),
        **overhead_metrics(run, presence),
        **stop_metrics(run),
        **waste_metrics(run),
    }
    for measured in MEASURED_FAMILIES:
        values.update(measured(run, evidence, account))
    values.update(as_lower_bounds(run, values))
    return values if run.continues is None else without_times(values)
