"""What an adapter of the whole protocol is made of: core's search space, pool, trials, budget and retries."""

from tuneoff.base.capabilities import import_framework
from tuneoff.base.files import read_regular
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.spec import Budget, ExperimentSpec, Failures, Objective, RunSpec, Strategy, Workers, WorkloadSpec
from tuneoff.experiment.strategies import draws, listed_configurations, release_refusal, sampler_refusal
from tuneoff.experiment.translation import (
    FrameworkSpace,
    ListTranslation,
    Native,
    NativeFloat,
    NativeIndex,
    NativeLogInteger,
    SpaceTranslation,
    Translation,
    given_values,
    translation_of,
)
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.platform import Death, Message, Pool, Ready
from tuneoff.record.events.writer import EventWriter
from tuneoff.record.run_context import RunContext
from tuneoff.run.pool_adapter import PoolAdapter, Proposal, Task
from tuneoff.run.trial.children import hold_children
from tuneoff.run.trial.faults import Retries
from tuneoff.run.trial.pool import Worker, WorkerPool
from tuneoff.run.trial.run_trial import Decision, Report, TrialOutcome, run_trial
from tuneoff.run.trial.trial_process import TrialBudget, TrialProcess, trial_process

__all__ = [
    "Budget",
    "Death",
    "Decision",
    "EventWriter",
    "ExperimentSpec",
    "Failures",
    "FrameworkSpace",
    "ListTranslation",
    "Message",
    "Native",
    "NativeFloat",
    "NativeIndex",
    "NativeLogInteger",
    "Objective",
    "Pool",
    "PoolAdapter",
    "Proposal",
    "Ready",
    "Report",
    "Retries",
    "RunContext",
    "RunSpec",
    "SpaceTranslation",
    "Strategy",
    "Task",
    "Translation",
    "TrialBudget",
    "TrialContext",
    "TrialOutcome",
    "TrialProcess",
    "Worker",
    "WorkerPool",
    "Workers",
    "WorkloadSpec",
    "configuration_digest",
    "draws",
    "given_values",
    "hold_children",
    "import_framework",
    "listed_configurations",
    "read_regular",
    "release_refusal",
    "run_trial",
    "sampler_refusal",
    "translation_of",
    "trial_process",
]
