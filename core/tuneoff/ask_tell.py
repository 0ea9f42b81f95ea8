"""The base class of adapters for libraries with ask and tell: the library chooses, core runs the trials.

A subclass declares the library's samplers and says how to `open` its optimizer, `ask`, `tell` and name the `best` trial.
Everything else is core's: worker processes, budget, retries, scripted stops, and the draws of `tuneoff check --space`.
"""

from __future__ import annotations

import math
import pkgutil
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from tuneoff.adapter import Best
from tuneoff.base import clock
from tuneoff.base.capabilities import Capabilities, Offer, Option, Support, import_framework, offered
from tuneoff.base.identity import trial_name
from tuneoff.errors import StepError
from tuneoff.experiment.strategies import LISTED, search_refusal
from tuneoff.experiment.translation import (
    FrameworkSpace,
    ListTranslation,
    Native,
    NativeFloat,
    NativeIndex,
    NativeLogInteger,
    NumberedTranslation,
    Translation,
    given_values,
    native_space,
    translation_of,
)
from tuneoff.run.pool_adapter import WORK, PoolAdapter
from tuneoff.run.trial.run_trial import Decision

if TYPE_CHECKING:
    from tuneoff.experiment.spec import ExperimentSpec, RunSpec
    from tuneoff.run.pool_adapter import Proposal, Task
    from tuneoff.run.trial.run_trial import TrialOutcome

__all__ = [
    "AskTellAdapter",
    "Capabilities",
    "Native",
    "NativeFloat",
    "NativeIndex",
    "NativeLogInteger",
    "Offer",
    "Option",
    "Support",
    "Translation",
    "TrialResult",
]

_STOPPED_BY_CORE = ("none", "scripted")
_SUPPLIED = "asked and told in one process; a pool of long-lived processes, which tuneoff supplies, runs the trials"
_ROUNDED = 1e-9  # relative: a library may give an enqueued value back in another rounding
_CORES_BEST = "the best trial is the completed one with the best value that the library was told: it is not asked for it"
_CORES = {  # a subclass that gave one of these to something else would be called in core's place
    *("collect_results", "context", "decide", "draw", "ended", "experiment", "framework_id", "is_deciding", "minimize"),
    *("propose", "run_trials", "seed", "_answered", "_budget", "_bury", "_dispatch", "_is_over", "_is_told_all", "_platform"),
    *("_on", "_pool", "_proposals", "_retries", "answers", "capabilities_on", "forget", "observe", "platforms", "start_pool"),
    "implementation",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """How a trial ended.

    `value` is the best one of its epochs, in the metric's own direction; `loss` is the same number, but lower is always better.
    Both are None for a failed trial.
    """

    state: Literal["completed", "pruned", "failed"]
    value: float | None
    loss: float | None


class AskTellAdapter(PoolAdapter):
    """An adapter of a library with ask and tell, which is called in the coordinator alone, one call at a time.

    A *handle* is anything hashable but None by which the library, or the subclass, knows a trial. *Native values* are one
    number (NumPy's too) for each name of `space.native`: a float within `bounds`, or of a `NativeIndex` an integer in
    0 .. size - 1. A space has at least one; its names are core's, not those of the file.

    Of the capabilities a subclass declares what is the library's own; this class adds retries, the pruners `none` and
    `scripted`, with `enqueue` the samplers `fixed` and `grid` and `first_configurations`, the `module` if it is named as the
    `package`, and the rest of an `Offer(same_as=...)`. It may define whatever this class documents; the other names of this class
    and its bases are core's.

    Raises:
        TypeError: a subclass defines one of core's names, or offers a pruner of its own and has no `report`.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        taken = sorted(name for name in vars(cls) if name in _CORES)
        if taken:
            raise TypeError(f"{cls.__name__} must not define {taken[0]!r}, which core calls; give it another name")
        if hasattr(cls, "capabilities"):
            cls.capabilities = _completed(cls)

    @abstractmethod
    def open(self, space: Translation) -> None:
        """Make the library's optimizer for `space.native`, `self.seed`, `self.minimize`, `self.implementation` and
        what `self.experiment` says.

        Import the library here, not in the module: `tuneoff plan` imports that.
        """

    @abstractmethod
    def ask(self) -> tuple[Hashable, Mapping[str, Any]]:
        """Return the handle and the native values of the library's next trial.

        Other trials may be running: a library that proposes the same point until it is told of one needs a constant liar.
        """

    @abstractmethod
    def tell(self, handle: Any, result: TrialResult) -> None:
        """Tell the library how a trial that it was asked for has ended.

        Told nothing of one that failed, a deterministic library proposes the same point again.
        """

    def best(self) -> Hashable:
        """Return the handle of the completed trial that the library itself calls the best; only called if one has completed.

        For a library that names none, or may name one that did not complete: the first told with the best value.
        """
        return min(self.__losses, key=self.__losses.__getitem__)

    def enqueue(self, values: Mapping[str, Any]) -> tuple[Hashable, Mapping[str, Any]]:
        """Have the library evaluate these native values, and return them with the trial's handle, as `ask` does."""
        raise NotImplementedError

    def report(self, handle: Any, epoch: int, value: float) -> bool:
        """Tell the library a running trial's value after an epoch (from 1), and return whether its pruner stops the trial."""
        raise NotImplementedError

    @property
    def experiment(self) -> ExperimentSpec:
        """The experiment: `sampler.name`, `sampler.options`, `pruner`, `budget.trials`, `workers.count` and so on."""
        return self.context.spec.experiment

    @property
    def minimize(self) -> bool:
        """Whether lower values of the metric are better."""
        return self.experiment.objective.mode == "min"

    @property
    def seed(self) -> int:
        """The sampler's seed, at least 0 and below 2**31."""
        return self.context.spec.sampler_seed

    @property
    def implementation(self) -> Any:
        """What the sampler's `Offer` names, imported; for a list of configurations what that of `random` names."""
        name = self.experiment.sampler.name
        return pkgutil.resolve_name(self.capabilities.samplers["random" if name in LISTED else name].implementation)

    # what core does with it

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        if cls._is_told_all(spec) and not cls.capabilities_on(spec.platform).long_lived_workers:
            return (
                f"a process per trial receives no decisions, so platform {spec.platform!r} cannot serve a pruner; use pruner none"
            )
        return search_refusal(spec) or super().refuse(spec)

    @property
    def is_deciding(self) -> bool:
        return self._is_told_all(self.context.spec)

    @classmethod
    def _is_told_all(cls, spec: RunSpec) -> bool:
        return spec.reports == "every_epoch" and _overrides(cls, "report") and spec.experiment.pruner.name != "scripted"

    def framework_id(self, trial_id: str) -> str:
        return str(self.__handles[trial_id])

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        self.__import()
        space = NumberedTranslation(translation_of(self.context.spec))
        self.open(space)
        for _ in range(count):
            yield space.decode(self.ask()[1])

    def framework_space(self) -> FrameworkSpace:
        """Return the space as the subclass is given it; override it where the library tells its own bounds."""
        return native_space(self.context.spec)

    def deploy(self) -> None:
        self.__import()
        super().deploy()

    def setup(self) -> None:
        """Open the optimizer."""
        super().setup()
        translation = translation_of(self.context.spec)
        self.__space = NumberedTranslation(translation)
        self.__given = [self.__space.named(values) for values in given_values(self.context.spec)]
        self.__is_listed = isinstance(translation, ListTranslation)
        self.__handles: dict[str, Hashable] = {}
        self.__completed: dict[Hashable, Best] = {}
        self.__losses: dict[Hashable, float] = {}
        self.context.flag_unused_model(self.capabilities.samplers[self.experiment.sampler.name].startup_trials)
        self.open(self.__space)

    def propose(self) -> Iterator[Proposal]:
        """Yield what the library is asked for, or given where there is a list."""
        for number in range(len(self.__given) if self.__is_listed else self.experiment.budget.trials):
            trial_id = trial_name(number)
            yield trial_id, self.__ask(trial_id, self.__given[number] if number < len(self.__given) else None)

    def ended(self, task: Task, outcome: TrialOutcome) -> None:
        started = clock.monotonic_ns()
        result, handle = self.__result(outcome), self.__handles[task.trial_id]
        self.tell(handle, result)
        if result.state == "completed" and result.loss is not None:
            self.__losses[handle] = result.loss
            self.__completed[handle] = Best(trial_id=task.trial_id, configuration=task.configuration, value=outcome.value)
        self.context.events.write("stage", name="tell", duration_ns=clock.monotonic_ns() - started, trial=task.trial_id)

    def decide(self, task: Task, epoch: int, value: float) -> Decision:
        is_stop = self.report(self.__handles[task.trial_id], epoch, value)
        if not is_stop or self.experiment.pruner.name in _STOPPED_BY_CORE:
            return Decision.CONTINUE
        if epoch < self.experiment.budget.epochs_per_trial:
            self.context.events.write("stop_decided", trial=task.trial_id, epoch=epoch)
        return Decision.STOP

    def collect_results(self) -> Best | None:
        """Return the library's best trial, with the configuration and the value of what it names.

        Raises:
            StepError: what it names is not a trial that completed.
        """
        if not self.__completed:
            return None
        handle = self.best()
        if handle not in self.__completed:
            raise StepError(f"`best` must return the handle of a trial that completed, but returned {handle!r}")
        return self.__completed[handle]

    def __import(self) -> None:
        if self.capabilities.module:
            import_framework(self.context.spec.adapter, self.capabilities)

    def __ask(self, trial_id: str, enqueued: Mapping[str, Any] | None) -> Mapping[str, Any]:
        started = clock.monotonic_ns()
        self.__handles[trial_id], values = self.ask() if enqueued is None else self.enqueue(enqueued)
        if enqueued is not None and all(math.isclose(values[name], value, rel_tol=_ROUNDED) for name, value in enqueued.items()):
            values = enqueued
        configuration = self.__space.decode(values)
        self.context.events.write("stage", name="ask", duration_ns=clock.monotonic_ns() - started, trial=trial_id)
        return configuration

    def __result(self, outcome: TrialOutcome) -> TrialResult:
        value = outcome.value
        if value is None or outcome.state not in ("completed", "pruned"):  # refused and cancelled by the budget too
            return TrialResult(state="failed", value=None, loss=None)
        loss = value if self.minimize else -value
        return TrialResult(state="completed" if outcome.state == "completed" else "pruned", value=value, loss=loss)


def _overrides(cls: type[AskTellAdapter], name: str) -> bool:
    return getattr(cls, name) is not getattr(AskTellAdapter, name)


def _completed(cls: type[AskTellAdapter]) -> Capabilities:
    """Return the capabilities that a subclass declares, and those that follow from its methods."""
    declared = cls.capabilities
    named = {name: declared.samplers.get(offer.same_as or "", offer) for name, offer in declared.samplers.items()}
    samplers = {
        name: replace(named[name], same_as=offer.same_as, note=offer.note or named[name].note)
        for name, offer in declared.samplers.items()
    }
    pruners = [name for name in offered(declared.pruners) if name not in _STOPPED_BY_CORE]
    if pruners and not _overrides(cls, "report"):
        raise TypeError(f"{cls.__name__} must have `report` to offer pruner {pruners[0]!r}; write it, or remove the pruner")
    offer_of_list = Offer(implementation=f"{cls.__module__}.{cls.__qualname__}.enqueue")
    listed = {"fixed": offer_of_list, "grid": offer_of_list} if _overrides(cls, "enqueue") else {}
    stopped = {"none": Offer(implementation="none"), "scripted": Offer(implementation=WORK.replace(":", "."))}
    return replace(
        declared,
        module=declared.module or declared.package,
        samplers={**listed, **samplers},
        pruners={**stopped, **declared.pruners},
        reports="none",
        changed_defaults=(_SUPPLIED, *([] if _overrides(cls, "best") else [_CORES_BEST]), *declared.changed_defaults),
        retry=Support.YES,
        first_configurations=offer_of_list.implementation if listed else "",
    )
