"""An adapter whose trials are proposed one by one in the coordinator and run in a pool of worker processes."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from tuneoff.adapter import Adapter, Best
from tuneoff.base.capabilities import LOCAL
from tuneoff.base.layout import EVENTS
from tuneoff.errors import StepError
from tuneoff.experiment.strategies import sampler_refusal
from tuneoff.platform import Death, Platform, Pool, PoolWork
from tuneoff.run.trial.faults import Retries
from tuneoff.run.trial.run_trial import Decision, TrialOutcome
from tuneoff.run.trial.trial_process import TrialBudget
from tuneoff.workload import workload_at

if TYPE_CHECKING:
    from tuneoff.base.capabilities import Capabilities
    from tuneoff.experiment.spec import RunSpec
    from tuneoff.record.events.schema import Event

START, FORKSERVER = "start", "forkserver"  # an option of platform `local`, and its only value
WORK = "tuneoff.run.trial.pool_worker:work"
_FORKED = "workers are forked from one process with the framework and the workload's `preload` (default: fresh interpreters)"
_ENDS = "worker processes end without the interpreter's teardown, which takes long where torch is imported (default: with it)"
Proposal = tuple[str, Mapping[str, Any]]  # trial id, configuration


class Task(NamedTuple):
    """What a worker is given: a trial, and which attempt at it this is, from 1."""

    trial_id: str
    configuration: Mapping[str, Any]
    attempt: int


class Local(Platform):
    """Processes on this machine."""

    options: ClassVar[frozenset[str]] = frozenset({START})
    run_folder: ClassVar[Literal["here", "shared", "none"]] = "here"

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        if (start := spec.options.get(START, FORKSERVER)) != FORKSERVER:
            return f"option `{START}` must be {FORKSERVER}, or left out (a worker is a fresh interpreter then), but got {start!r}"
        if START in spec.options and spec.experiment.workers.devices:
            return f"option `{START}`: the process that forks workers has no device of its own, but workers have; remove one"
        others = sorted(set(spec.options) - cls.options)
        return f"adapter {spec.adapter!r} has no options, but got {', '.join(others)}; remove them" if others else None

    def make_pool(self, work: PoolWork) -> Pool:
        from tuneoff.run.trial.pool import WorkerPool

        spec = self.context.spec
        count, is_forked = spec.experiment.workers.count, START in spec.options
        return WorkerPool(self.context.trial_context, count, work.target, work.arguments, work.preload, is_forked=is_forked)


def platform_of(name: str) -> type[Platform]:
    """Return the platform of that name; raises as `registry.platform_class`."""
    if name == LOCAL:
        return Local
    from tuneoff.registry import platform_class  # no run here needs it

    return platform_class(name)


class WithPool(Adapter):
    """Has `workers.count` workers in a pool, from `start_pool` until `undeploy`, on any platform that is installed."""

    foreign_options: ClassVar[frozenset[str]] = frozenset({START})
    logs: ClassVar[tuple[str, ...]] = ("workers/*", "pods/*.log")
    answers: ClassVar[tuple[type, ...]] = (TrialOutcome,)
    """The dataclasses, of plain values, that its workers answer with."""

    _platform: Platform
    _pool: Pool

    @classmethod
    def platforms(cls) -> tuple[str, ...]:
        from tuneoff.registry import scan

        return tuple(dict.fromkeys((*super().platforms(), *(plugin.name for plugin in scan("platform")))))

    @classmethod
    def capabilities_on(cls, platform: str) -> Capabilities:
        return replace(cls.capabilities, platforms=cls.platforms(), **cls._on(platform).changes)

    @classmethod
    def local_options_on(cls, platform: str) -> frozenset[str]:
        return cls.local_options | cls._on(platform).local_options

    @classmethod
    def _on(cls, platform: str) -> type[Platform]:
        return platform_of(platform) if platform in cls.platforms() else Local  # another name is refused by core

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        """Check the platform's options; the others are those of the classes that inherit this."""
        platform = platform_of(spec.platform)
        return platform.refuse(spec) or platform.missing() or sampler_refusal(spec, cls.capabilities)

    @classmethod
    def placement(cls, spec: RunSpec) -> str | None:
        return cls._on(spec.platform).placement(spec)

    @classmethod
    def changed_defaults(cls, spec: RunSpec) -> tuple[str, ...]:
        return (*super().changed_defaults(spec), _ENDS, *([_FORKED] if START in spec.options else ()))

    def start_pool(self, target: str, arguments: tuple[Any, ...], preload: Sequence[str]) -> None:
        """Start the workers, which run `target`: at the return each could take a trial."""
        self._platform = platform_of(self.context.spec.platform)(self.context)
        self._pool = self._platform.make_pool(
            PoolWork(
                target=target,
                arguments=arguments,
                preload=tuple(preload),
                package=self.capabilities.package,
                answers=self.answers,
                observe=self.observe,
            )
        )
        self._pool.start()

    def observe(self, worker: int, event: Event) -> None:
        """Take in an event of a worker that shares no folder with the run; all of them come here, as soon as they are known."""

    def test(self, best: Best) -> None:
        if (problem := self._pool.checkpoint_problem(best.trial_id)) is not None:
            raise StepError(f"the best trial {best.trial_id} cannot be tested: {problem}")
        super().test(best)

    def forget(self) -> bool:
        """Remove what the run has in a service of the user's, and return whether it can have anything there; idempotent.

        Its workers have ended, or are ending.
        """
        return False

    def undeploy(self) -> None:
        """End the workers, and remove what the run has outside this machine."""
        pool = getattr(self, "_pool", None)  # a fresh process has none: the killed coordinator's workers died with it
        if pool is not None:
            pool.close()
        if self.context.outside.exists():
            platform = getattr(self, "_platform", None) or platform_of(self.context.spec.platform)(self.context)
            try:
                platform.remove(self.undeploy_seconds)
            finally:
                has_service = self.forget()
            if has_service or not isinstance(platform, Local):  # else the note speaks of what nobody here can remove
                self.context.outside.unlink()


class PoolAdapter(WithPool):
    """Runs what `propose` yields, in `workers.count` long-lived processes, first come, first served.

    Dead workers are started again, their trials tried again as `failures.retries` allows, given configurations stopped as the
    pruner `scripted` says, and nothing more is proposed once the budget is used up.
    """

    @abstractmethod
    def propose(self) -> Iterator[Proposal]:
        """Yield trials, each when a worker is free for it."""

    @abstractmethod
    def ended(self, task: Task, outcome: TrialOutcome) -> None:
        """Take the end of a trial; a death after which it is tried again is none. `outcome`: of its last attempt."""

    def framework_id(self, trial_id: str) -> str | None:
        """Return the framework's own name of a trial, for the record, or None."""
        return None

    @property
    def is_deciding(self) -> bool:
        """Whether the coordinator is asked after each epoch what becomes of its trial."""
        return False

    def decide(self, task: Task, epoch: int, value: float) -> Decision:
        """Return what becomes of a trial after an epoch, if the coordinator is deciding."""
        return Decision.CONTINUE

    def deploy(self) -> None:
        """Start the workers: at the return each could take a trial."""
        experiment = self.context.spec.experiment
        arguments = (dict(experiment.stops), self.is_deciding)
        preload = workload_at(experiment.workload.target).preload
        self.start_pool(WORK, arguments, preload)

    def setup(self) -> None:
        context = self.context
        self._budget = TrialBudget(context.trial_context)
        self._retries = Retries(context.trial_context, context.spec.experiment.failures.retries)
        self._proposals = self.propose()

    def run_trials(self) -> None:
        self._pool.run(self._dispatch, self._answered, self._bury, self._is_over)

    def _is_over(self) -> bool:
        if self._budget.is_used_up() or (first := next(self._proposals, None)) is None:
            return True
        self._proposals = itertools.chain([first], self._proposals)
        return False

    def _dispatch(self, worker: int, again: Task | None = None) -> Task | None:
        """Send the worker its next task and return it, or None: nothing is left to do, or the budget is used up.

        One that is tried again is sent in any case: if the budget was used up meanwhile, `run_trial` refuses it, which ends it.
        """
        task = again
        if task is None:
            proposal = None if self._budget.is_used_up() else next(self._proposals, None)
            if proposal is None:
                return None
            task = Task(*proposal, attempt=1)
        self.context.submitted(task.trial_id, task.configuration, self.framework_id(task.trial_id), task.attempt)
        self._pool.send(worker, tuple(task))  # plain: a worker imports no adapter
        return task

    def _answered(self, task: Task, content: Any) -> Decision | None:
        if not isinstance(content, TrialOutcome):
            return self.decide(task, *content)
        if content.state == "completed":  # of a worker without this folder
            self._budget.note_goal(self.context.events, task.trial_id, content.value)
        self.ended(task, content)
        return None

    def _bury(self, death: Death, task: Task | None) -> Task | None:
        """Record the death of a trial's process and return the task if it is to be tried again.

        One that had trained to its end, and died before its answer, ended as it logged.
        """
        if task is None:
            return None
        from tuneoff.record.events.reader import of_worker
        from tuneoff.record.events.schema import Epoch, TrialEnded
        from tuneoff.record.trials import best_epoch

        trial_id, _, attempt = task
        objective, outcome, epochs = self.context.spec.experiment.objective, None, list[Epoch]()
        for event in of_worker(self.context.run_dir / EVENTS, death.pid, self.context.spec.experiment.budget.epochs_per_trial):
            if isinstance(event, Epoch | TrialEnded) and (event.trial, event.attempt) == (trial_id, attempt):
                if isinstance(event, Epoch):
                    epochs.append(event)
                    continue
                best = best_epoch(objective, epochs)
                value = best.metrics[objective.metric] if best is not None else None
                outcome = TrialOutcome(state=event.state, epochs=event.epochs, value=value, cause=event.cause)
        of_trial = {"trial": trial_id, "attempt": attempt} if outcome is None else {"trial": None}
        self.context.events.write("worker_died", cause=death.cause, exit_code=death.exit_code, **of_trial)
        may_retry = self._retries.may_retry(trial_id, attempt, death.exit_code, death.worker)
        if outcome is None and may_retry and not self._budget.is_used_up():
            return task._replace(attempt=attempt + 1)
        self._answered(task, outcome or TrialOutcome(state="failed", cause=death.cause))
        return None
