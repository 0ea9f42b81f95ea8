"""A trial whose process the kernel killed for its memory, in a job of SLURM."""

from __future__ import annotations

from tuneoff.record.events.reader import SUFFIX, Statistics, read_file
from tuneoff.record.events.schema import TrialEnded, TrialStarted
from tuneoff.record.events.writer import FOLDER
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.faults import announce_kill, out_of_memory_cause


def announce_out_of_memory(context: RunContext, host: str, pid: int) -> None:
    """Note that a trial of the worker that had this process on a host ends for its memory, so that it is not tried again."""
    open_attempt: tuple[str, int] | None = None
    for path in sorted((context.run_dir / FOLDER).glob(f"worker-{pid}-*{SUFFIX}")):
        for process, event in read_file(path, Statistics()):
            if process.host != host:
                break
            if isinstance(event, TrialStarted):
                open_attempt = event.trial, event.attempt
            elif isinstance(event, TrialEnded):
                open_attempt = None
    if open_attempt is None:
        return
    cause = out_of_memory_cause(context.trial_context.memory_bytes, "SLURM")
    announce_kill(context.run_dir, context.events, *open_attempt, cause, charged="workload", limit="memory")
