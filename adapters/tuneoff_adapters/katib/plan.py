"""Everything that one execution is for Katib: names, sampler, limits, image, paths. The same on both platforms; frozen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.translation import ListTranslation, translation_of
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.katib import offers
from tuneoff_adapters.katib.options import EMULATED, katib_options
from tuneoff_adapters.katib.platforms import EMULATED_IMAGE
from tuneoff_adapters.katib.space import KatibSpace
from tuneoff_adapters.kubernetes.checkpoint_lines import UNLIMITED_LOG_BYTES
from tuneoff_adapters.kubernetes.layout import METRICS_FILE, METRICS_FILE_VARIABLE
from tuneoff_adapters.kubernetes.plan import PodPlan, pod_plan

NAMESPACE_LABELS = {"katib.kubeflow.org/metrics-collector-injection": "enabled"}  # Katib's webhook asks for it


@dataclass(frozen=True, slots=True, kw_only=True)
class KatibAlgorithm:
    """A suggestion or early-stopping algorithm of Katib's, and its settings, which are texts."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KatibPlan(PodPlan):
    """One execution in Katib's terms."""

    experiment: str  # the Experiment's name, unique in the cluster: at most 40 characters, begins with a letter
    space: KatibSpace
    algorithm: KatibAlgorithm
    early_stopping: KatibAlgorithm | None
    direction: Literal["minimize", "maximize"]
    goal: float | None  # at which the Experiment ends
    trials: int  # maxTrialCount
    parallel: int  # parallelTrialCount
    pod_seconds: int  # activeDeadlineSeconds of a trial's Job: a backstop, it counts the time in the queue too
    stops: Mapping[str, int]  # configuration digest -> last epoch


def katib_plan(context: RunContext) -> KatibPlan:
    """Return the plan of an execution: equal in every process that has its context.

    Raises:
        ExperimentError: an option of the adapter is wrong.
    """
    spec = context.spec
    experiment = spec.experiment
    options = katib_options(spec)
    translation = translation_of(spec)
    algorithm = algorithm_of(spec)
    trials = experiment.budget.trials
    if isinstance(translation, ListTranslation):
        trials = min(trials, len(translation.configurations))
    common = pod_plan(context, options, NAMESPACE_LABELS)
    common["environment"][METRICS_FILE_VARIABLE] = METRICS_FILE
    if spec.platform == EMULATED:
        common |= {"image": EMULATED_IMAGE, "checkpoint_bytes": UNLIMITED_LOG_BYTES, "code": None}
    return KatibPlan(
        **common,
        experiment=common["config_map"],
        space=KatibSpace(translation, algorithm.name),
        algorithm=algorithm,
        early_stopping=early_stopping_of(spec),
        direction="minimize" if experiment.objective.mode == "min" else "maximize",
        goal=experiment.objective.goal if experiment.objective.stop else None,
        trials=trials,
        parallel=min(experiment.workers.count, trials),
        pod_seconds=math.ceil(experiment.timeouts.trial_seconds + options.pending_seconds),
        stops=dict(experiment.stops) if experiment.pruner.name == "scripted" else {},
    )


def algorithm_of(spec: RunSpec) -> KatibAlgorithm:
    """Return Katib's algorithm for the sampler, seeded where it takes a seed."""
    sampler = spec.experiment.sampler
    name = offers.ALGORITHMS[sampler.name]
    settings = {option: _text(value) for option, value in sampler.options.items()}
    if name not in offers.UNSEEDED:
        settings["random_state"] = str(spec.sampler_seed)
    return KatibAlgorithm(name=name, settings=settings)


def early_stopping_of(spec: RunSpec) -> KatibAlgorithm | None:
    """Return Katib's early stopping for the pruner; None also where its only decision would come after the last epoch."""
    pruner, budget = spec.experiment.pruner, spec.experiment.budget
    if pruner.name != "median":
        return None
    first_epoch = int(pruner.options.get("first_epoch", 1))
    if first_epoch >= budget.epochs_per_trial:
        return None
    settings = {"min_trials_required": str(pruner.options.get("min_trials", 5)), "start_step": str(first_epoch)}
    return KatibAlgorithm(name="medianstop", settings=settings)


def _text(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)
