"""`python -m tuneoff_platforms.remote.worker HOST PORT INDEX NUMBER`: a worker of core's pool in a job; its input is the key."""

from __future__ import annotations

import importlib
import os
import sys

from tuneoff.run.trial.pool import run_worker
from tuneoff_platforms.remote.job import WORKER, job_of


def main() -> None:
    job = job_of(sys.argv[1:], sys.stdin.buffer.read())
    pipe = job.endpoint.connect(WORKER, job.index, job.number, os.getpid())
    context, target, arguments, preload = pipe.recv()
    for module in preload:
        importlib.import_module(module)
    run_worker(target, job.index, context, pipe, arguments)


if __name__ == "__main__":
    main()
