"""`python -m tuneoff_adapters.slurm.worker HOST PORT INDEX`: a worker of core's pool in a job of SLURM; its input is the key."""

from __future__ import annotations

import importlib
import os
import sys

from tuneoff.run.trial.pool import run_worker
from tuneoff_adapters.slurm.job import WORKER, Endpoint


def main() -> None:
    host, port, index = sys.argv[1:]
    endpoint = Endpoint(host, int(port), sys.stdin.buffer.read())
    pipe = endpoint.connect(WORKER, int(index), os.getpid())
    context, target, arguments, preload = pipe.recv()
    for module in preload:
        importlib.import_module(module)
    run_worker(target, int(index), context, pipe, arguments)


if __name__ == "__main__":
    main()
