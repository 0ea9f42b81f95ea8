"""No framework: a plain pool of worker processes, first come, first served. The floor that frameworks are compared with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from tuneoff.adapter import Best, Capabilities, Offer, Support
from tuneoff.base.identity import trial_name
from tuneoff.experiment.strategies import draws, listed_configurations
from tuneoff.experiment.translation import FrameworkSpace
from tuneoff.run.pool_adapter import PoolAdapter, Proposal, Task
from tuneoff.run.trial.run_trial import TrialOutcome


class SerialAdapter(PoolAdapter):
    """A plain pool of workers on any platform: core's own random, grid or fixed order."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        framework="none",
        samplers={
            "random": Offer(implementation="tuneoff.experiment.strategies.draws"),
            "grid": Offer(implementation="tuneoff.experiment.strategies.grid_order"),
            "fixed": Offer(implementation="tuneoff.experiment.strategies.listed_configurations"),
            "default": Offer(implementation="tuneoff.experiment.strategies.draws", same_as="random"),
        },
        pruners={
            "none": Offer(implementation="none"),
            "scripted": Offer(implementation="tuneoff.run.trial.pool_worker.work"),
        },
        retry=Support.YES,
        first_configurations="submitted first",
        reports="none",
        changed_defaults=(
            "a pool of tuneoff: processes that live as long as the run, have the workload's `preload` imported before their "
            "first trial and are sent one trial after another over a pipe (a plain pool in Python: "
            "concurrent.futures.ProcessPoolExecutor)",
        ),
    )
    fault_tools: ClassVar[str] = "tuneoff_faults.frameworks:SERIAL"

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        return (configuration for _, configuration in itertools.islice(self.propose(), count))

    def framework_space(self) -> FrameworkSpace:
        """Return core's own: one number in [0, 1) per dimension."""
        space = self.context.spec.experiment.search_space
        return FrameworkSpace(ends=dict.fromkeys(space.searched, (0.0, math.nextafter(1.0, 0.0))), decode=space.from_units)

    def setup(self) -> None:
        super().setup()
        self._best: tuple[float, str, Mapping[str, Any]] | None = None

    def propose(self) -> Iterator[Proposal]:
        """Yield trials in the order of the sampler."""
        spec = self.context.spec
        listed = listed_configurations(spec)
        drawn = draws(spec.experiment.search_space, spec.sampler_seed)
        configurations = listed if listed is not None else itertools.chain(spec.experiment.configurations, drawn)
        for number, configuration in enumerate(itertools.islice(configurations, spec.experiment.budget.trials)):
            yield trial_name(number), configuration

    def ended(self, task: Task, outcome: TrialOutcome) -> None:
        if outcome.state != "completed" or outcome.value is None:
            return
        best, objective = self._best, self.context.spec.experiment.objective
        is_tied_and_earlier = best is not None and outcome.value == best[0] and task.trial_id < best[1]  # whichever ended first
        if best is None or objective.is_better(outcome.value, than=best[0]) or is_tied_and_earlier:
            self._best = (outcome.value, task.trial_id, task.configuration)

    def collect_results(self) -> Best | None:
        if self._best is None:
            return None
        value, trial_id, configuration = self._best
        return Best(trial_id=trial_id, configuration=configuration, value=value)
