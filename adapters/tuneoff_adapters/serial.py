"""No framework: a plain pool of worker processes, first come, first served. The floor that frameworks are compared with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from tuneoff.adapter import Adapter, Best
from tuneoff.capabilities import Capabilities, Offer, Support
from tuneoff.experiment.framework_space import FrameworkSpace
from tuneoff.experiment.identity import configuration_digest
from tuneoff.experiment.sampling import draws, listed_configurations
from tuneoff.trial.budget import TrialBudget
from tuneoff.trial.context import load_target
from tuneoff.trial.faults import Retries
from tuneoff.trial.pool import Death, Message, Worker, WorkerPool
from tuneoff.trial.run_trial import Decision, TrialOutcome, run_trial


class SerialAdapter(Adapter):
    """A plain process pool: core's own random, grid or fixed order; no pruner but the scripted one."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        framework="none",
        samplers={
            "random": Offer(implementation="tuneoff.experiment.sampling.draws"),
            "grid": Offer(implementation="tuneoff.experiment.sampling.grid_order"),
            "fixed": Offer(implementation="tuneoff.experiment.sampling.listed_configurations"),
            "default": Offer(implementation="tuneoff.experiment.sampling.draws", same_as="random"),
        },
        pruners={
            "none": Offer(implementation="none"),
            "scripted": Offer(implementation="tuneoff_adapters.serial.work"),
        },
        resume=Support.YES,
        retry=Support.YES,
    )
    fault_tools: ClassVar[str | None] = "tuneoff_adapters.serial_breaking:TOOLS"

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        return (configuration for _, configuration in itertools.islice(self._propose(), count))

    def framework_space(self) -> FrameworkSpace:
        """Return core's own: one number in [0, 1) per dimension."""
        space = self.context.spec.experiment.search_space
        return FrameworkSpace(ends=dict.fromkeys(space.searched, (0.0, math.nextafter(1.0, 0.0))), decode=space.from_units)

    def deploy(self) -> None:
        """Start the workers: at the return each could take a trial."""
        context = self.context
        preload = load_target(context.spec.experiment.workload.target).preload
        self._pool = WorkerPool(
            context.trial_context,
            context.spec.experiment.workers.count,
            "tuneoff_adapters.serial:work",
            (dict(context.spec.experiment.stops),),
            preload,
        )
        self._pool.start()

    def setup(self) -> None:
        context = self.context
        self._budget = TrialBudget(context.trial_context)
        self._retries = Retries(context.trial_context, context.spec.experiment.failures.retries)
        self._proposals = self._propose()
        self._best: tuple[float, str, Mapping[str, Any]] | None = None
        best = context.history.best(context.spec.experiment.objective.mode)
        if best is not None and best.value is not None:
            self._best = (best.value, best.trial_id, best.configuration)

    def run_trials(self) -> None:
        running = {index: task for index in self._pool.alive() if (task := self._dispatch(index))}
        while running:
            for event in self._pool.wait():
                task = running.pop(event.worker, None)
                again: _Task | None = None
                if isinstance(event, Death):
                    again = self._bury(event, task) if task is not None else None
                    self._pool.start_worker(event.worker)
                elif task is not None:
                    self._note(task, event)
                following = self._dispatch(event.worker, again)
                if following is not None:
                    running[event.worker] = following

    def collect_results(self) -> Best | None:
        if self._best is None:
            return None
        value, trial_id, configuration = self._best
        return Best(trial_id=trial_id, configuration=configuration, value=value)

    def undeploy(self) -> None:
        pool = getattr(self, "_pool", None)  # a fresh process has none: the killed coordinator's workers died with it
        if pool is not None:
            pool.close()

    def _propose(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield trials in the order of the sampler; of a continued run those that are not finished."""
        spec = self.context.spec
        finished = {trial.trial_id for trial in self.context.finished}
        listed = listed_configurations(spec)
        configurations = iter(listed) if listed is not None else draws(spec.experiment.search_space, spec.sampler_seed)
        for number, configuration in enumerate(itertools.islice(configurations, spec.experiment.budget.trials)):
            trial_id = f"t{number:05d}"
            if trial_id not in finished:
                yield trial_id, configuration

    def _dispatch(self, worker: int, again: _Task | None = None) -> _Task | None:
        """Send the worker its next task and return it, or None: nothing is left to do, or the budget is used up."""
        if self._budget.is_used_up():
            return None
        if again is not None:
            task = again
        else:
            proposal = next(self._proposals, None)
            if proposal is None:
                return None
            task = (*proposal, self.context.trial_context.first_attempts.get(proposal[0], 1))
        trial_id, configuration, attempt = task
        self.context.submitted(trial_id, configuration, attempt=attempt)
        self._pool.send(worker, task)
        return task

    def _bury(self, death: Death, task: _Task) -> _Task | None:
        """Record the death and return the task if it is to be tried again."""
        trial_id, configuration, attempt = task
        self.context.events.write("worker_died", trial=trial_id, cause=death.cause, exit_code=death.exit_code, attempt=attempt)
        if not self._retries.may_retry(trial_id, attempt, death.exit_code, death.worker):
            return None
        return trial_id, configuration, attempt + 1

    def _note(self, task: _Task, message: Message) -> None:
        outcome: TrialOutcome = message.content
        if outcome.state != "completed" or outcome.value is None:
            return
        best, objective = self._best, self.context.spec.experiment.objective
        is_tied_and_earlier = best is not None and outcome.value == best[0] and task[0] < best[1]  # whichever ended first
        if best is None or objective.is_better(outcome.value, than=best[0]) or is_tied_and_earlier:
            self._best = (outcome.value, task[0], task[1])


_Task = tuple[str, Mapping[str, Any], int]  # trial id, configuration, attempt


def work(worker: Worker, stops: Mapping[str, int]) -> None:
    """Run in a worker process: take tasks from the pipe until it is closed."""
    while (task := worker.pipe.recv()) is not None:
        trial_id, configuration, attempt = task
        last_epoch = stops.get(configuration_digest(configuration)) if stops else None

        def report(epoch: int, metrics: Mapping[str, float], last_epoch: int | None = last_epoch) -> Decision:
            return Decision.STOP if last_epoch is not None and epoch >= last_epoch else Decision.CONTINUE

        worker.pipe.send(run_trial(worker.context, trial_id, configuration, report, attempt=attempt))
