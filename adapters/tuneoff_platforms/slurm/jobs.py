"""SLURM's own commands: what became of a job, and the end of all jobs of a run."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable
from typing import Literal

from tuneoff.base.processes import run_to_end
from tuneoff.errors import InfrastructureError
from tuneoff_platforms.remote.platform import LaunchState

CALL_SECONDS = 30.0
LOOK_SECONDS = 0.3
SETTLED_SECONDS = 5.0  # in which one is seen to have ended whose agent has
ALIVE = ("RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "RESIZING", "STOPPED")
QUEUED = ("PENDING", "REQUEUED", "REQUEUE_FED")
AWAY = "NOT TOLD"  # in place of a state: SLURM's controller did not answer
COMPLETING_SECONDS = 40.0  # for jobs that are cancelled; those on a node without power stay so until SLURM gives it up


def launch_state(state: str, reason: str) -> LaunchState:
    """Return what a job's state in SLURM's word, and its reason, mean for a launch."""
    text = state if reason in ("None", "") else f"{state} ({reason})"
    if state == AWAY:
        return LaunchState("unknown", text)
    if state in QUEUED:
        return LaunchState("held" if "held" in reason.lower() else "waiting", text)
    phase: Literal["running", "ended"] = "running" if state in ALIVE else "ended"
    return LaunchState(phase, text, is_out_of_memory=state == "OUT_OF_MEMORY")


def states(name: str, job_ids: Iterable[str]) -> dict[str, LaunchState]:
    """Return what SLURM says of jobs of a name, by id: it is asked once for its queue, and for each job that is not there."""
    try:
        lines = call("squeue", "--noheader", "--me", f"--name={name}", "--format=%i|%T|%r").splitlines()
    except InfrastructureError:
        return {job_id: launch_state(AWAY, "") for job_id in job_ids}
    rows = (line.split("|", 2) for line in lines if line.count("|") > 1)
    queue = {job_id: launch_state(state, reason) for job_id, state, reason in rows}
    return {job_id: queue.get(job_id) or state_of(job_id) for job_id in job_ids}


def state_of(job_id: str) -> LaunchState:
    """Return what SLURM says of a job; one that it has forgotten has ended."""
    try:
        output = call("scontrol", "--oneliner", "show", "job", job_id)
    except InfrastructureError as error:
        return launch_state("UNKNOWN" if "Invalid job id" in str(error) else AWAY, "")
    fields = dict(re.findall(r"(JobState|Reason)=(\S+)", output))
    return launch_state(fields.get("JobState", AWAY), fields.get("Reason", ""))


def settled(job_id: str) -> LaunchState:
    """Return a job's state once it runs no more, or after some time as it is."""
    deadline = time.monotonic() + SETTLED_SECONDS
    while (state := state_of(job_id)).phase == "running" and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    return state


def cancel(job_id: str) -> None:
    """Cancel a job; one that this cannot be told to ends by itself, as nobody answers it."""
    with contextlib.suppress(InfrastructureError):
        call("scancel", job_id)


def end_all(name: str, seconds: float) -> list[str]:
    """Cancel all jobs of a name, wait until they are gone, and return those that are still there.

    Raises:
        InfrastructureError: SLURM did not answer until the time was over.
    """
    began = time.monotonic()
    while True:
        waited = time.monotonic() - began
        try:
            call("scancel", f"--name={name}")
            still_queued = call("squeue", "--noheader", f"--name={name}", "--format=%i %T").splitlines()
        except InfrastructureError:
            if waited > seconds:
                raise
            still_queued = [name]
        living = [job for job in still_queued if not job.endswith("COMPLETING")]
        if not still_queued or waited > seconds or (not living and waited > COMPLETING_SECONDS):
            return living
        time.sleep(LOOK_SECONDS)


def call(*command: str) -> str:
    """Return what a command of SLURM prints.

    Raises:
        InfrastructureError: it failed, or did not answer.
    """
    try:
        ended = run_to_end(command, CALL_SECONDS)
    except OSError as error:  # also: in time
        raise InfrastructureError(f"SLURM must answer, but {command[0]}: {error}") from error
    if ended.code != 0:
        message = (ended.errors.strip() or f"exit code {ended.code}").splitlines()[-1]
        raise InfrastructureError(f"SLURM must answer, but {command[0]} says: {message}")
    return ended.output
