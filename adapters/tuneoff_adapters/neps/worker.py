"""What NePS searches, and a worker process: `neps.run` samples, trains and reports trial after trial. Imports NePS."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import neps
import numpy as np
import torch
from neps.runtime import register_notify_trial_end

from tuneoff.adapter_parts import Decision, Native, NativeIndex, RunSpec, Worker, listed_configurations, translation_of
from tuneoff.base import clock
from tuneoff.base.identity import trial_name
from tuneoff.base.tracebacks import origins
from tuneoff.errors import InfrastructureError, StepError, TrialFailedError
from tuneoff.experiment.strategies import LISTED
from tuneoff.experiment.translation import NumberedTranslation

_OPTIMIZERS = {
    "random": "random_search",
    **dict.fromkeys(LISTED, "grid_search"),
    "gp": "bayesian_optimization",
    "default": "auto",
}
ATTEMPT = "attempt"  # a file in a trial's folder: which attempt is to be made, if not the first
_LAST = {"cost": 1.0}  # of a trial after which its worker takes no other one: its whole budget; the others cost nothing
_TRIES = 10  # to begin: NePS reads what another worker may be writing without a lock then, and finds an empty file


def arguments(spec: RunSpec, folder: str, trials: int) -> dict[str, Any]:
    """Return the search space (of a list its index, as choices: NePS's grid keeps their order), the optimizer and so on."""
    name = spec.experiment.sampler.name
    native = NumberedTranslation(translation_of(spec)).native
    space = neps.PipelineSpace().from_attrs({key: _parameter(kind, name in LISTED) for key, kind in native.items()})
    search = {"pipeline_space": space, "optimizer": _OPTIMIZERS[name], "total_evaluations_to_spend": trials}
    return {**search, "root_directory": folder, "ignore_errors": True}


def seed_all(spec: RunSpec) -> None:
    """Seed the process's generators: NePS draws from them, and its folder keeps their state from one draw to the next."""
    np.random.seed(spec.sampler_seed)
    torch.manual_seed(spec.sampler_seed)


def sampled(spec: RunSpec, count: int) -> Iterator[dict[str, Any]]:
    """Yield core's configurations of the random search, in the order in which a run's workers would sample them."""
    seed_all(spec)
    translation = NumberedTranslation(translation_of(spec))
    search = neps.algorithms.random_search(arguments(spec, "", count)["pipeline_space"])
    for _ in range(count):
        yield translation.decode(search(trials={}, budget_info=None).config)


def loss_of(spec: RunSpec, value: float) -> float:
    """Return what NePS minimizes for a metric's value, and the value for that."""
    return value if spec.experiment.objective.mode == "min" else -value


def _parameter(kind: Native, is_listed: bool) -> neps.Float | neps.Integer | neps.Categorical:
    if not isinstance(kind, NativeIndex):
        return neps.Float(*kind.bounds, log=getattr(kind, "log", True))  # a log-uniform integer has no such field
    return neps.Integer(*kind.bounds) if kind.ordered and not is_listed else neps.Categorical(tuple(range(kind.size)))


def work(worker: Worker, spec: RunSpec, folder: str) -> None:
    """Run NePS when told to, once in a process; answer who ends, whether its process leaves, and what went wrong."""
    pipelines = _Pipelines(worker, spec, folder)
    while worker.pipe.recv() is not None:
        error = pipelines.run()
        worker.answer((worker.index, worker.is_leaving, error))


class _Pipelines:
    """What `neps.run` evaluates in one process."""

    def __init__(self, worker: Worker, spec: RunSpec, folder: str) -> None:
        self._worker, self._process, self._spec = worker, worker.process, spec
        self._space, listed = NumberedTranslation(translation_of(spec)), listed_configurations(spec)
        self._arguments = arguments(spec, folder, spec.experiment.budget.trials if listed is None else len(listed))
        self._trial_id: str | None = None  # of the last one that was submitted, until NePS is told
        self._ended_ns = self._told_ns = 0
        self._error: Exception | None = None

    def run(self) -> StepError | None:
        """Run NePS until the trials are used up or one was this worker's last; return what went wrong beside trials."""
        register_notify_trial_end("tuneoff", self._told)
        for tries_left in reversed(range(_TRIES)):
            self._told_ns = clock.monotonic_ns()
            worker_id = f"{os.getpid()}-{self._told_ns}"  # NePS takes each only once
            try:
                neps.run(self._evaluate, worker_id=worker_id, worker_cost_to_spend=_LAST["cost"], **self._arguments)
                break
            except Exception as error:  # whatever NePS raises ends the run, with its text
                if not (tries_left and isinstance(error, EOFError)):
                    self._error = error
                    break
        if self._error is None:
            return None
        traceback.print_exception(self._error)
        fault = next((cause for cause in origins(self._error) if isinstance(cause, InfrastructureError | OSError)), None)
        cause = fault or self._error.__cause__ or self._error
        text = " ".join(f"NePS must run its trials, but met {type(cause).__name__}: {cause}; see the run's log".split())
        return StepError(text) if fault is None else InfrastructureError(text)

    def _evaluate(self, pipeline_directory: Path, pipeline_id: str, **values: Any) -> dict[str, Any]:
        """Run a trial, and return what NePS is to know of it: of a completed one the best epoch's value, as core has it."""
        asked_ns = clock.monotonic_ns()
        if self._process.budget.is_used_up():
            return {"exception": TrialFailedError("sampled when the run's budget was used up"), **_LAST}
        self._trial_id, configuration = trial_name(int(pipeline_id) - 1), self._space.decode(values)
        file = pipeline_directory / ATTEMPT
        identity: dict[str, Any] = {"framework_id": pipeline_id, "attempt": int(file.read_text()) if file.exists() else 1}
        self._process.events.submitted(self._trial_id, configuration, **identity)
        self._write_stage("ask", self._told_ns, asked_ns)
        try:
            outcome = self._worker.run(self._trial_id, configuration, lambda *_: Decision.CONTINUE, **identity)
        except Exception as error:  # NePS would take it for the trial's
            self._error = error
            return {"exception": error, **_LAST}
        self._ended_ns = clock.monotonic_ns()
        cost = _LAST if self._process.budget.is_used_up() or self._worker.is_leaving else {"cost": 0.0}
        if outcome.state == "completed" and outcome.value is not None:
            return {"objective_to_minimize": loss_of(self._spec, outcome.value), **cost}
        return {"exception": TrialFailedError(outcome.cause or outcome.state), **cost}

    def _told(self, _: neps.Trial) -> None:
        """Take the time at which NePS has written how a trial ended."""
        self._told_ns = clock.monotonic_ns()
        self._write_stage("tell", self._ended_ns, self._told_ns)
        self._trial_id = None

    def _write_stage(self, name: str, began_ns: int, ended_ns: int) -> None:
        if self._trial_id is not None:
            span = {"t": ended_ns, "duration_ns": ended_ns - began_ns}
            self._process.events.write("stage", name=name, trial=self._trial_id, **span)
