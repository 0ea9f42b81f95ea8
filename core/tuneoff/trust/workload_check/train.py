"""`python -m tuneoff.trust.workload_check.train REQUEST.json`: train as trials of a process do, one after another."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneoff.base.clock import NANOSECONDS
from tuneoff.base.identity import own_copy
from tuneoff.base.numbers import described_value
from tuneoff.base.process_state import TrainingState
from tuneoff.base.processes import become_subreaper
from tuneoff.base.tracebacks import described
from tuneoff.errors import TrialFailedError
from tuneoff.run.child import answer_request
from tuneoff.run.trial.checkpoint import read_checkpoint, state_of, write_checkpoint
from tuneoff.run.trial.trial_process import CpuClock
from tuneoff.workload import NO_EPOCH, TrainingEnded, TrialSeeds, Workload, workload_at


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what each training of a request gave, and the error that ended them.

    `request`: `target`, `options`, `threads`, `objective` and `planned_epochs` of the workload, `seeds` as [split, trial], and
    `trainings`: each a configuration that is trained up to its `epochs`, or to where it ends by itself, from the state in the
    file `load` where it has one; its state goes to the file `save`.
    """
    become_subreaper()  # what a training starts and forgets is found here
    state = TrainingState(request["target"], None, None)
    trainings: list[dict[str, Any]] = []
    try:
        with state.entered():
            workload_type = workload_at(request["target"], is_training=True)
            workload_type(own_copy(request["options"])).prepare()
            for module in workload_type.preload:
                importlib.import_module(module)
        for training in request["trainings"]:
            with state.entered():
                trainings.append(_trained(workload_type, request, training))
    except BaseException as error:  # a user's own code may fail in any way
        return {"error": described(error), "trainings": trainings}
    return {"trainings": trainings}


def _trained(workload_type: type[Workload], request: Mapping[str, Any], training: Mapping[str, Any]) -> dict[str, Any]:
    workload = workload_type(own_copy(request["options"]))
    workload.objective, workload.planned_epochs = request["objective"], request["planned_epochs"]
    workload.limit_threads(request["threads"])
    split, trial = request["seeds"]
    try:
        workload.load(own_copy(training["configuration"]), TrialSeeds(split=split, trial=trial))
        clock, started, idle = CpuClock(), time.monotonic(), _idle_seconds()
        metrics: list[Mapping[str, float]] = []
        loaded = 0
        if "load" in training:  # the state that it begins with
            checkpoint = read_checkpoint(Path(training["load"]))
            workload.load_state_dict(checkpoint.tensors, checkpoint.texts)
            loaded = checkpoint.epoch
        for epoch in range(loaded + 1, training["epochs"] + 1):
            try:
                trained = dict(workload.train_epoch(epoch))
            except TrainingEnded:
                if epoch == 1:
                    raise TrialFailedError(NO_EPOCH) from None
                break
            metrics.append({**trained, **workload.validate()})
        used = {"cpu_seconds": clock.used_ns() / NANOSECONDS, "seconds": time.monotonic() - started}
        used["idle_seconds"] = _idle_seconds() - idle
        if "save" in training:
            tensors, texts = state_of(workload)
            write_checkpoint(
                Path(training["save"]), tensors, texts, epoch=loaded + len(metrics), configuration=training["configuration"]
            )
        scores = dict(workload.test().values) if workload.has_test else {}
        cases = {name: sorted(map(str, members)) for name, members in workload.cases().items()}
    finally:
        closing = time.monotonic()
        workload.close()
    used["ending_seconds"] = time.monotonic() - closing
    as_texts = [_texts(values) for values in metrics]
    cost = workload.cost(training["configuration"], len(metrics))
    costs = {} if cost is None else {"cost": described_value(cost)}
    return {"metrics": as_texts, "scores": _texts(scores), "cases": cases, **costs, **used}


def _idle_seconds() -> float:
    """Return how long this machine's processors have been idle since its start, their sum."""
    with open("/proc/stat") as file:
        return sum(map(int, file.readline().split()[4:6])) / os.sysconf("SC_CLK_TCK")


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Return values as a record describes them: JSON has no NaN, and what is not a number must not look like one."""
    return {name: described_value(value) for name, value in values.items()}


if __name__ == "__main__":
    answer_request(answer)
