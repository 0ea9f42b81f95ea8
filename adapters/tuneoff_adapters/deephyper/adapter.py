"""The DeepHyper adapter. Importing it does not import DeepHyper: each step does, when its turn comes."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from tuneoff.adapter import Adapter, Best, Capabilities, Offer, Support, import_framework
from tuneoff.base.process_limits import die_with_parent
from tuneoff.experiment.strategies import LISTED, search_refusal
from tuneoff.experiment.translation import FrameworkSpace, native_space, translation_of
from tuneoff_adapters.deephyper import STOPS_AT_GOAL

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec


class DeepHyperAdapter(Adapter):
    """Drives DeepHyper through a search and an evaluator in the coordinator, which forks the workers."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        framework="DeepHyper",
        package="deephyper",
        module="deephyper",
        minimum_version="0.13.2",
        below_version="0.14",
        install="tuneoff[deephyper]",
        stops_at_goal=STOPS_AT_GOAL,
        first_configurations="initial_points of CBO, and of ExperimentalDesignSearch, which stands in for RandomSearch",
        samplers={
            "random": Offer(implementation="deephyper.hpo.RandomSearch", least_width=1e-9, note="ConfigSpace keeps 13 decimals"),
            **dict.fromkeys(LISTED, Offer(implementation="deephyper.hpo.ExperimentalDesignSearch", note="as initial points")),
            "default": Offer(implementation="deephyper.hpo.CBO", note="extremely randomized trees, after 2d + 1 random trials"),
            "gp": Offer(implementation="deephyper.hpo.CBO", note="surrogate GP, acq_func UCB (its default raises TypeError)"),
        },
        pruners={
            "none": Offer(implementation="none"),
            "asha": Offer(implementation="deephyper.stopper.SuccessiveHalvingStopper", note="keeps what Optuna's keeps"),
            "median": Offer(
                implementation="deephyper.stopper.MedianStopper",
                note="a trial stays at its first rung until over `min_trials` are there: it compares values of different epochs",
            ),
            "scripted": Offer(implementation="tuneoff_adapters.deephyper.search.ScriptedStopper, a deephyper.stopper.Stopper"),
        },
        retry=Support.YES,
        reports="none",  # by its pages on multi-fidelity record() and stopped() turn that on; else the objective is returned
        changed_defaults=(
            "a process pool for each worker, replaced after a death (default: one for all; a death ends the search)",
            "workers are forked, and import the workload's `preload`, before the first trial (default: at its submission)",
            "the processes of workers and storage end without the interpreter's teardown",
        ),
        notes=(
            "it maximizes, so it is told the negative where lower is better: a completed trial's best value, a pruned one's last "
            "value (as in its documents), and F_... of a failed one; all samplers but `random` give up after 100 failures",
            "each report and each change of a job's status is a call to the process of its SharedMemoryStorage",
        ),
    )

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        return search_refusal(spec) or super().refuse(spec)

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        from tuneoff_adapters.deephyper.search import make_search

        translation = translation_of(self.context.spec)
        search = make_search(self.context, translation)
        return (translation.decode(search.ask()[0]) for _ in range(count))

    def framework_space(self) -> FrameworkSpace:
        return native_space(self.context.spec)

    def deploy(self) -> None:
        """Import DeepHyper, start its storage's process and the workers."""
        import_framework(self.context.spec.adapter, self.capabilities)
        from multiprocessing.managers import BaseManager

        import tuneoff_adapters.deephyper.search  # noqa: F401
        from tuneoff_adapters.deephyper.evaluator import TrialEvaluator

        logging.getLogger("deephyper").setLevel(logging.WARNING)  # as in a program that asks for no logs
        self._manager = BaseManager()  # as in SharedMemoryStorage(), whose process would outlive a killed coordinator
        self._manager.start(die_with_parent, (signal.SIGKILL, os.getpid()))
        storage = self._manager.MemoryStorage()  # type: ignore[attr-defined]  # DeepHyper has registered it
        self._evaluator = TrialEvaluator(self.context, translation_of(self.context.spec), storage)
        self._evaluator.start()

    def setup(self) -> None:
        from tuneoff_adapters.deephyper.search import BudgetedSearch, make_search, make_stopper

        experiment, translation = self.context.spec.experiment, translation_of(self.context.spec)
        if experiment.sampler.name in ("default", "gp"):
            self.context.flag_unused_model(2 * len(translation.native) + 1)
        self._search = BudgetedSearch(self.context, make_search(self.context, translation), make_stopper(experiment, translation))

    def run_trials(self) -> None:
        trials = self.context.spec.experiment.budget.trials
        self._results = self._search.search(self._evaluator, max_evals=trials, max_evals_strict=True)

    def collect_results(self) -> Best | None:
        """Return DeepHyper's best of the trials that completed: by itself it would name a stopped one too."""
        from deephyper.analysis.hpo import parameters_at_max

        results = self._results
        completed = () if results is None else results[results["m:state"] == "completed"].astype({"objective": float})
        if not len(completed):
            return None
        metadata, objective = parameters_at_max(completed, prefix="m:")
        trial_id = metadata["trial"]
        value = float(objective) if self.context.trial_context.mode == "max" else -float(objective)
        return Best(trial_id=trial_id, configuration=self._evaluator.configurations[trial_id], value=value)

    def undeploy(self) -> None:
        """End the workers and the storage's process; in a fresh process there is nothing: they died with the coordinator."""
        for name, end in (("_evaluator", "end"), ("_manager", "shutdown")):
            if (part := getattr(self, name, None)) is not None:
                getattr(part, end)()
