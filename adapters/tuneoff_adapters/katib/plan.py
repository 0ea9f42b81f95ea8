"""Everything that one execution is for Katib: names, sampler, limits, image, paths. The same on both platforms; frozen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tuneoff.base.process_limits import thread_environment
from tuneoff.base.processes import MARK
from tuneoff.experiment.spec import RunSpec, Workers
from tuneoff.experiment.translation import ListTranslation, translation_of
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.katib import offers
from tuneoff_adapters.katib.platforms import EMULATED_IMAGE
from tuneoff_adapters.katib.space import KatibSpace
from tuneoff_adapters.kubernetes.checkpoint_lines import LOG_BYTES, UNLIMITED_LOG_BYTES
from tuneoff_adapters.kubernetes.layout import (
    CACHE_VARIABLE,
    CONFIG_DIR,
    CONFIG_DIR_VARIABLE,
    DATA_DIR,
    METRICS_FILE,
    METRICS_FILE_VARIABLE,
    RUN_DIR,
    RUN_DIR_VARIABLE,
)
from tuneoff_adapters.kubernetes.options import EMULATED, KatibOptions, katib_options

LABEL = "tuneoff.io/execution"  # on everything that is ours; its value is the execution id
INJECTION_LABEL = "katib.kubeflow.org/metrics-collector-injection"  # of a namespace, "enabled": Katib's webhook asks for it
GRACE_SECONDS = 1  # between SIGTERM and SIGKILL: a trial has nothing to put away


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """A suggestion or early-stopping algorithm of Katib's, and its settings, which are texts."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KatibPlan:
    """One execution in Katib's terms."""

    execution_id: str
    experiment: str  # the Experiment's name, unique in the cluster: at most 40 characters, begins with a letter
    namespace: str
    is_own_namespace: bool  # made and deleted by the execution; else it is there, and others may use it
    config_map: str  # its name
    labels: Mapping[str, str]
    space: KatibSpace
    algorithm: Algorithm
    early_stopping: Algorithm | None
    direction: Literal["minimize", "maximize"]
    trials: int  # maxTrialCount
    parallel: int  # parallelTrialCount
    workers: Workers
    pod_seconds: int  # activeDeadlineSeconds of a trial's Job: a backstop, it counts the time in the queue too
    trial_context: TrialContext  # as the pods read it
    stops: Mapping[str, int]  # configuration digest -> last epoch
    image: str
    image_pull_secret: str | None  # the name of a Secret in the namespace
    service_account: str | None
    node_selector: Mapping[str, str]
    data_claim: str | None  # of a PersistentVolumeClaim in the namespace with a prepared cache folder
    environment: Mapping[str, str]  # of the pod's process
    checkpoint_bytes: int  # the largest checkpoint that a pod passes through its log


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
    return KatibPlan(
        execution_id=context.execution_id,
        experiment=experiment_name(context.execution_id),
        namespace=options.namespace or namespace_name(context.execution_id),
        is_own_namespace=options.namespace is None,
        config_map=experiment_name(context.execution_id),
        labels={LABEL: context.execution_id},
        space=KatibSpace(translation, algorithm.name),
        algorithm=algorithm,
        early_stopping=early_stopping_of(spec),
        direction="minimize" if experiment.objective.mode == "min" else "maximize",
        trials=trials,
        parallel=min(experiment.workers.count, trials),
        workers=experiment.workers,
        pod_seconds=math.ceil(experiment.timeouts.trial_seconds + options.pending_seconds),
        trial_context=pod_context(context.trial_context),
        stops=dict(experiment.stops) if experiment.pruner.name == "scripted" else {},
        image=options.image or EMULATED_IMAGE,
        image_pull_secret=options.image_pull_secret,
        service_account=options.service_account,
        node_selector=dict(options.node_selector),
        data_claim=options.data_claim,
        environment={
            CONFIG_DIR_VARIABLE: CONFIG_DIR,
            RUN_DIR_VARIABLE: RUN_DIR,
            METRICS_FILE_VARIABLE: METRICS_FILE,
            MARK: context.execution_id,
            **thread_environment(experiment.workers.threads),
            **_data_environment(options),
        },
        checkpoint_bytes=UNLIMITED_LOG_BYTES if spec.platform == EMULATED else LOG_BYTES,
    )


def experiment_name(execution_id: str) -> str:
    """Return the Experiment's name: Katib mixes up the trials of two experiments of one name, whatever their namespaces."""
    return f"r{execution_id.lower()}"


def namespace_name(execution_id: str) -> str:
    """Return the name of the execution's own namespace."""
    return f"tuneoff-{execution_id.lower()}"


def algorithm_of(spec: RunSpec) -> Algorithm:
    """Return Katib's algorithm for the sampler, seeded where it takes a seed."""
    sampler = spec.experiment.sampler
    name = offers.ALGORITHMS[sampler.name]
    settings = {option: _text(value) for option, value in sampler.options.items()}
    if name not in offers.UNSEEDED:
        settings["random_state"] = str(spec.sampler_seed)
    return Algorithm(name=name, settings=settings)


def early_stopping_of(spec: RunSpec) -> Algorithm | None:
    """Return Katib's early stopping for the pruner; None also where its only decision would come after the last epoch."""
    pruner, budget = spec.experiment.pruner, spec.experiment.budget
    if pruner.name != "median":
        return None
    first_epoch = int(pruner.options.get("first_epoch", 1))
    if first_epoch >= budget.epochs_per_trial:
        return None
    settings = {"min_trials_required": str(pruner.options.get("min_trials", 5)), "start_step": str(first_epoch)}
    return Algorithm(name="medianstop", settings=settings)


def pod_context(context: TrialContext) -> TrialContext:
    """Return the trial's context as the pods read it: one trial in its own folder, whose budget and limits Katib keeps."""
    return replace(
        context,
        run_dir=RUN_DIR,
        trials=1,
        epochs_total=None,
        wall_clock_seconds=None,
        slots=1,
        memory_bytes=None,
        limits=(),
        events_to_stdout=True,
    )


def _data_environment(options: KatibOptions) -> dict[str, str]:
    return {} if options.data_claim is None else {CACHE_VARIABLE: DATA_DIR}


def _text(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)
