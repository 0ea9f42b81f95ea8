"""tuneoff's adapters with one thing each left as the framework has it. docs/findings.md shows what comes of it."""

from __future__ import annotations

import os
from typing import Any

from tuneoff.adapter import import_framework
from tuneoff.run.trial.pool import Worker, WorkerPool
from tuneoff.workload import workload_at
from tuneoff_adapters.optuna.adapter import OptunaAdapter
from tuneoff_adapters.optuna.options import study_plan
from tuneoff_adapters.optuna.plan import Finished, Order, StudyPlan
from tuneoff_adapters.ray_tune.adapter import RayTuneAdapter
from tuneoff_adapters.syne_tune.adapter import SyneTuneAdapter


class RayPorts(RayTuneAdapter):
    """Without the variable that keeps Ray's ports on loopback."""

    def _import(self) -> Any:
        del os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"]
        return super()._import()


class RayToken(RayTuneAdapter):
    """Without a token of the run's own."""

    def _import(self) -> Any:
        del os.environ["RAY_AUTH_MODE"], os.environ["RAY_AUTH_TOKEN"]
        return super()._import()


class RayFreshActors(RayTuneAdapter):
    """A new process for each trial: `reuse_actors` of TuneConfig is False by default."""

    def setup(self) -> None:
        super().setup()
        self._tuner._local_tuner._tune_config.reuse_actors = False


class RayLeft(RayTuneAdapter):
    """Ends Ray by `ray.shutdown()` alone, which a killed program never calls."""

    def undeploy(self) -> None:
        import sys

        if "ray" in sys.modules:
            sys.modules["ray"].shutdown()


class SyneLeft(SyneTuneAdapter):
    """Leaves ending the trials to the tuner, which a killed program no longer has."""

    def undeploy(self) -> None:
        pass


class SyneBudget(SyneTuneAdapter):
    """Stops by `StoppingCriterion(max_num_trials_finished=...)`, which asks for half of the file's trials."""

    def setup(self) -> None:
        from syne_tune import StoppingCriterion

        super().setup()
        self._tuner.stop_criterion = StoppingCriterion(max_num_trials_finished=self.context.spec.experiment.budget.trials // 2)


class OptunaBudget(OptunaAdapter):
    """Stops by `MaxTrialsCallback` in each worker, which asks for half of the file's trials."""

    def deploy(self) -> None:
        import_framework(self.context.spec.adapter, self.capabilities)
        experiment = self.context.spec.experiment
        self._plan = study_plan(self.context.spec, self.context.work_dir)
        preload = workload_at(experiment.workload.target).preload
        target = f"{__name__}:work_with_callback"
        self._pool = WorkerPool(self.context.trial_context, experiment.workers.count, target, (self._plan,), preload)
        self._pool.start()


def work_with_callback(worker: Worker, plan: StudyPlan) -> None:
    """Do the work of Optuna's adapter, but leave it to Optuna when to end."""
    from optuna.study import MaxTrialsCallback
    from optuna.trial import TrialState

    from tuneoff.base import clock
    from tuneoff.errors import TrialFailedError
    from tuneoff_adapters.optuna import worker as parts

    class Asker(parts._Asker):
        def obey(self, order: Order) -> Finished:
            def ask_next(study: Any, trial: Any) -> None:
                self._asking_ns = clock.monotonic_ns()

            self._asking_ns = clock.monotonic_ns()
            enough = MaxTrialsCallback(plan.trials // 2, states=(TrialState.COMPLETE,))
            self._study.optimize(self._objective, callbacks=[enough, ask_next], catch=(TrialFailedError,))
            return Finished(budget_over=True)

    parts._Asker = Asker  # type: ignore[misc]
    parts.work(worker, plan)
