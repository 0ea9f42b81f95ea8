"""`python -m tuneoff_adapters.kubernetes.worker INDEX [TASK]`: the program of a worker's pod.

It does what a worker process of core's pool does. Its tasks come through standard input, a line each, until that ends; or it
has the one TASK. Events, best checkpoints and answers go to standard output, all else to standard error.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tuneoff.base.layout import POD, POD_WORKER
from tuneoff.base.process_limits import end_with
from tuneoff.base.targets import load_target
from tuneoff.platform import Ready
from tuneoff.record.events.stream import framed
from tuneoff.run.trial.children import hold_children
from tuneoff.run.trial.pool import Worker
from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff_adapters.kubernetes import in_pod, layout
from tuneoff_adapters.kubernetes.messages import answer_line, unpacked


class _WorkerPipe:
    """The way to the coordinator."""

    def __init__(self, tasks: Iterator[str | bytes], output: int, execution_id: str) -> None:
        self._tasks, self.output, self._execution_id = tasks, output, execution_id

    def send(self, content: Any, /) -> None:
        os.write(self.output, framed(answer_line(content), self._execution_id))

    def recv(self) -> Any:
        for line in self._tasks:
            if line.strip():  # an empty one only shows that the coordinator is there
                return unpacked(line)
        raise EOFError


class PodWorker(Worker):
    """Passes the best checkpoint of a completed trial out after its events."""

    most_bytes: int  # that a checkpoint may have

    def run(self, trial_id: str, *arguments: Any, **identity: Any) -> TrialOutcome:
        outcome = super().run(trial_id, *arguments, **identity)
        if outcome.state == "completed":
            assert isinstance(self.pipe, _WorkerPipe)
            in_pod.pass_checkpoint_out(self.context, trial_id, self.pipe.output, PodWorker.most_bytes)
        return outcome


def main(arguments: Sequence[str]) -> int:
    """Work until there is nothing left to do, and return the exit code."""
    index, tasks = int(arguments[0]), arguments[1:]
    context = in_pod.own_context()
    hold_children(context.execution_id, in_container=True)
    pipe = _WorkerPipe(iter(tasks or sys.stdin.buffer), os.dup(1), context.execution_id)
    worker = PodWorker(index, context, pipe, POD if tasks else POD_WORKER)
    events = worker.process.events  # before anything else: from here on the process is seen
    work = unpacked((in_pod.config_dir() / layout.WORKER_KEY).read_text())
    target, target_arguments, preload, PodWorker.most_bytes, code = work
    in_pod.compare_code(code, events)
    for module in preload:
        importlib.import_module(module)
    pipe.send(Ready(index))
    with contextlib.suppress(EOFError):
        load_target(target)(worker, *target_arguments)
    return 0


if __name__ == "__main__":
    end_with(main)
