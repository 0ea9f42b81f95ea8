"""The Syne Tune adapter. Importing it does not import Syne Tune: each step does, when its turn comes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from tuneoff.adapter import Adapter, Best, import_framework
from tuneoff.base.processes import end_all, with_mark
from tuneoff.experiment.translation import translation_of
from tuneoff_adapters.optuna_samplers import flag_unused_model
from tuneoff_adapters.syne_tune import offers
from tuneoff_adapters.syne_tune.reporter import OBJECTIVE
from tuneoff_adapters.syne_tune.schedulers import make_scheduler

if TYPE_CHECKING:
    from tuneoff.adapter import Capabilities
    from tuneoff.experiment.spec import RunSpec
    from tuneoff.experiment.translation import FrameworkSpace

FOLDER_VARIABLE = "SYNETUNE_FOLDER"
TRIAL_MARK = "TUNEOFF_SYNE_TUNE_RUN"  # environment variable with the execution id in every trial's process


class SyneTuneAdapter(Adapter):
    """Drives Syne Tune through its Tuner and local backend: one tuner (the coordinator), one process per trial."""

    capabilities: ClassVar[Capabilities] = offers.CAPABILITIES
    fault_tools: ClassVar[str] = "tuneoff_faults.frameworks:SYNE_TUNE"
    logs: ClassVar[tuple[str, ...]] = ("tuner/*/std.err",)  # not std.out, in which Syne Tune reads the reports
    foreign_options: ClassVar[frozenset[str]] = frozenset({offers.POLL_OPTION})

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        return offers.refusal(spec)

    @classmethod
    def requirements(cls, spec: RunSpec) -> tuple[str, ...]:
        return offers.requirements(spec)

    @classmethod
    def strategies(cls, spec: RunSpec) -> dict[str, str]:
        settings = f"sleep_time={offers.poll_seconds(spec):g}, save_tuner=False, asynchronous_scheduling=True, no callbacks"
        return {**offers.implementations(spec), "tuner": f"syne_tune.Tuner({settings})"}

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        self.deploy()
        from tuneoff_adapters.syne_tune.budgeted import draw

        return draw(self.context, count)

    def framework_space(self) -> FrameworkSpace:
        from tuneoff_adapters.syne_tune.budgeted import framework_space

        return framework_space(self.context)

    def deploy(self) -> None:
        """Import Syne Tune: it has no service to start, and could take a job from here on."""
        os.environ[FOLDER_VARIABLE] = str(self.context.work_dir)  # else it writes to the home folder
        import_framework(self.context.spec.adapter, self.capabilities)
        import syne_tune.optimizer.baselines  # noqa: F401

        import tuneoff_adapters.syne_tune.tuner  # noqa: F401

    def setup(self) -> None:
        from tuneoff_adapters.syne_tune.budgeted import BudgetedScheduler
        from tuneoff_adapters.syne_tune.dispatch import Dispatch
        from tuneoff_adapters.syne_tune.tuner import TrialProcesses, goal_criterion, make_tuner

        context, spec = self.context, self.context.spec
        name, options = spec.experiment.sampler.name, spec.experiment.sampler.options
        if offers.CLASSES[name] != "RandomSearch":
            needed = offers.first_modelled_trial(name, options, len(spec.experiment.search_space.searched))
            flag_unused_model(context, {name: needed})
        translation = translation_of(spec)
        self._dispatch = Dispatch(context)
        self._backend = TrialProcesses(context, self._dispatch, {TRIAL_MARK: context.execution_id})
        scheduler = BudgetedScheduler(context, self._dispatch, make_scheduler(spec, translation), translation)
        objective = spec.experiment.objective
        criterion = {"criterion": goal_criterion(objective, self._dispatch)} if objective.stop else {}
        self._tuner = make_tuner(self._backend, scheduler, spec.experiment.workers, offers.poll_seconds(spec), **criterion)

    def run_trials(self) -> None:
        try:
            self._tuner.run()
        except Exception as error:
            interruption = error.__context__
            if interruption is not None and not isinstance(interruption, Exception):
                raise interruption from None  # what Syne Tune's clean-up raises must not hide an interruption
            raise

    def collect_results(self) -> Best | None:
        """Return Syne Tune's best over all epochs of the trials that completed: by itself it would name failed ones too."""
        objective = self.context.spec.experiment.objective
        best: Best | None = None
        for number, statistics in self._tuner.tuning_status.trial_metric_statistics.items():
            value = (statistics.min_metrics if objective.mode == "min" else statistics.max_metrics).get(OBJECTIVE)
            if number not in self._dispatch.completed or value is None:
                continue
            if objective.is_better(value, than=None if best is None else best.value):
                task = self._dispatch.tasks[number]
                best = Best(trial_id=task.trial_id, configuration=task.configuration, value=value)
        return best

    def undeploy(self) -> None:
        """End the trials' processes that still live, found by their mark: a fresh process knows no more of them."""
        end_all(lambda: with_mark(TRIAL_MARK, self.context.execution_id))
        backend: Any = getattr(self, "_backend", None)
        if backend is not None:
            backend.wait_all()
