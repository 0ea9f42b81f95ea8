"""What the workload says that a configuration costs, as a cost model of Syne Tune 0.13; importing it imports Syne Tune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from syne_tune.optimizer.schedulers.searchers.bayesopt.datatypes.common import INTERNAL_COST_NAME
from syne_tune.optimizer.schedulers.searchers.bayesopt.models.cost.cost_model import CostModel

from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.translation import translation_of
from tuneoff.workload import new_workload

Candidates = Sequence[Mapping[str, Any]]  # native values by name; of asynchronous halving with the epoch too


class WorkloadCost(CostModel):  # type: ignore[misc]
    """Knows every cost from the start: it is fitted to no data, and nothing is drawn from it."""

    cost_metric_name = INTERNAL_COST_NAME

    def __init__(self, spec: RunSpec) -> None:
        workload = spec.experiment.workload
        self._workload = new_workload(workload.target, workload.options)
        self._translation = translation_of(spec)

    def update(self, state: Any) -> None:
        pass

    def sample_joint(self, candidates: Candidates) -> list[Any]:
        return []

    def predict_times(self, candidates: Candidates, resources: Sequence[int], cost_values: Any) -> list[float | None]:
        """Return the cost of each candidate through the epochs in `resources`; `cost_values`: what `sample_joint` returned."""
        configurations = map(self._translation.decode, candidates)
        return [self._workload.cost(*pair) for pair in zip(configurations, resources, strict=True)]
