"""The Ray Tune adapter. Importing it does not import Ray: each step does, when its turn comes."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from tuneoff.adapter import Adapter, Best, Capabilities, import_framework
from tuneoff.experiment.strategies import LISTED, sampler_refusal
from tuneoff.experiment.translation import translation_of
from tuneoff_adapters.optuna_samplers import flag_unused_model
from tuneoff_adapters.ray_tune.cluster_options import ADDRESS, CLUSTER, OPTIONS, placement, refuse_cluster
from tuneoff_adapters.ray_tune.config_keys import EPOCH, OBJECTIVE, TASK, cancellation
from tuneoff_adapters.ray_tune.environment import prepare_environment
from tuneoff_adapters.ray_tune.offers import CAPABILITIES, ON_CLUSTER
from tuneoff_adapters.ray_tune.session import DeferredTermination, start_ray, stop_ray, write_record
from tuneoff_adapters.ray_tune.submission import Submission, Submissions
from tuneoff_platforms.time_limits import REMOVAL_SHARE

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec
    from tuneoff.experiment.translation import FrameworkSpace
    from tuneoff_adapters.ray_tune.cluster import RayAddress, RayHosts

EXPERIMENT = "tune"  # the folder of Tune's own files


class RayTuneAdapter(Adapter):
    """Drives Ray Tune through its Tuner: one driver (the coordinator), trials in reused actors."""

    capabilities: ClassVar[Capabilities] = CAPABILITIES
    fault_tools: ClassVar[str] = "tuneoff_faults.frameworks:RAY_TUNE"
    logs: ClassVar[tuple[str, ...]] = ("ray/session_*/logs/worker-*",)
    doctor: ClassVar[str | None] = "tuneoff_adapters.ray_tune.environment:doctor"
    local_options: ClassVar[frozenset[str]] = OPTIONS
    lost_codes: ClassVar[frozenset[int]] = frozenset({1})  # of the driver, 10 s after its GCS was lost

    @classmethod
    def capabilities_on(cls, platform: str) -> Capabilities:
        return ON_CLUSTER if platform == CLUSTER else cls.capabilities

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        if spec.platform != CLUSTER:
            return super().refuse(spec)
        return refuse_cluster(spec) or sampler_refusal(spec, cls.capabilities)

    @classmethod
    def placement(cls, spec: RunSpec) -> str | None:
        return placement(spec) if spec.platform == CLUSTER else None

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        prepare_environment()
        self._import()
        from tuneoff_adapters.ray_tune.drawing import draw

        return draw(self.context, count)

    def framework_space(self) -> FrameworkSpace:
        from tuneoff_adapters.ray_tune.drawing import framework_space

        return framework_space(self.context)

    def deploy(self) -> None:
        """Import Ray and Tune, start Ray: at the return a Tuner could run."""
        if self._cluster is None:
            start_ray(self.context, self._import)
        else:
            write_record(self.context, self._cluster.start(self._import))

    def setup(self) -> None:
        import numpy
        from ray import train, tune

        from tuneoff_adapters.ray_tune.observer import GoalStopper, Observer
        from tuneoff_adapters.ray_tune.schedulers import make_scheduler
        from tuneoff_adapters.ray_tune.searchers import make_search, param_space
        from tuneoff_adapters.ray_tune.trainable import TrialTrainable

        spec = self.context.spec
        experiment, workers = spec.experiment, spec.experiment.workers
        if experiment.sampler.name != "default":  # Ray's own default is random search
            flag_unused_model(self.context)
        numpy.random.seed(spec.sampler_seed)  # the brackets of Ray's ASHA are drawn from the global generator
        translation = translation_of(spec)
        self._submissions = Submissions(self.context, translation)
        self._termination = DeferredTermination()
        configs = tune if hasattr(tune, "RunConfig") else train  # there before 2.41
        listed = experiment.sampler.name in LISTED  # the grid over the list's index is itself the budget
        resources: dict[str, float] = {"cpu": 1}
        if workers.devices:  # Ray's resources have four decimals: rounded up, fewer trials would fit
            resources["gpu"] = 10_000 // workers.per_device / 10_000
        self._tuner = tune.Tuner(
            tune.with_resources(TrialTrainable, resources),
            param_space=param_space(translation, self._submissions.keys),
            tune_config=tune.TuneConfig(
                metric=OBJECTIVE,
                mode=experiment.objective.mode,
                search_alg=make_search(spec, self._submissions),
                scheduler=make_scheduler(experiment, self._submissions),
                num_samples=1 if listed else experiment.budget.trials,
                reuse_actors=True,
                trial_dirname_creator=_folder_of,
            ),
            run_config=configs.RunConfig(
                name=EXPERIMENT,
                storage_path=str(self.context.work_dir),
                verbose=0,
                checkpoint_config=configs.CheckpointConfig(checkpoint_at_end=False),
                failure_config=configs.FailureConfig(max_failures=experiment.failures.retries, fail_fast=False),
                stop=GoalStopper(self._submissions) if experiment.objective.stop else None,
                callbacks=[Observer(self._submissions, self._termination)],
            ),
        )

    def run_trials(self) -> None:
        with self._termination.in_force():
            self._tuner.fit()

    def collect_results(self) -> Best | None:
        """Return Ray's best over all epochs of the trials that completed: without that filter it would name failed ones."""
        from ray.tune import ExperimentAnalysis

        objective = self.context.spec.experiment.objective
        complete = [submission.ray_trial for submission in self._submissions.all() if self._is_complete(submission)]
        if not complete:
            return None
        folder = self.context.work_dir / EXPERIMENT
        analysis = ExperimentAnalysis(str(folder), trials=complete, default_metric=OBJECTIVE, default_mode=objective.mode)
        best = analysis.get_best_trial(scope="all")
        if best is None:
            return None
        task = best.config[TASK]
        value = best.metric_analysis[OBJECTIVE][objective.mode]
        return Best(trial_id=task["trial"], configuration=task["configuration"], value=value)

    def undeploy(self) -> None:
        if self._cluster is None:
            stop_ray(self.context)
        elif self.context.outside.exists() or ADDRESS in self.context.spec.options:
            self._cluster.stop(REMOVAL_SHARE * self.undeploy_seconds)

    @functools.cached_property
    def _cluster(self) -> RayHosts | RayAddress | None:
        spec = self.context.spec
        if spec.platform != CLUSTER:
            return None
        from tuneoff_adapters.ray_tune.cluster import RayAddress, RayHosts

        return RayAddress(self.context) if ADDRESS in spec.options else RayHosts(self.context)

    def _import(self) -> Any:
        module = import_framework(self.context.spec.adapter, self.capabilities)
        importlib.import_module("tuneoff_adapters.ray_tune.searchers")  # Tune too
        return module

    def _is_complete(self, submission: Submission) -> bool:
        """Tell whether a trial reported all its epochs, or ended by itself: neither Ray nor the budget ended it."""
        trial = submission.ray_trial
        if trial.status != trial.TERMINATED:
            return False
        epochs = trial.metric_analysis.get(EPOCH, {}).get("max", 0)  # its last report need not be of the last epoch
        if epochs >= self.context.spec.experiment.budget.epochs_per_trial:
            return True
        return (
            not submission.is_stopped and not cancellation(self.context.run_dir, submission.trial_id, submission.attempt).exists()
        )


def _folder_of(trial: Any) -> str:
    return str(trial.trial_id)
