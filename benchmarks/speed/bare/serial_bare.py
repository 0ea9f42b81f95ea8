"""No framework: persistent worker processes with pipes, and one result line per trial.

`python -m benchmarks.speed.bare.serial_bare FOLDER TRIALS SECONDS`
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
import time
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import cast

from benchmarks.speed.bare.objective import K_HIGH, WORKERS, X_HIGH, X_LOW, loss, print_span


def draw(generator: random.Random) -> dict[str, float]:
    return {
        "x": X_LOW * (X_HIGH / X_LOW) ** generator.random(),
        "y": generator.random(),
        "k": generator.randint(0, K_HIGH),
    }


def work(pipe: Connection, seconds: float) -> None:
    """Answer each configuration with its loss and the time at which the trial ended, until there is none."""
    pipe.send(None)
    while (configuration := pipe.recv()) is not None:
        value = loss(configuration, seconds)
        pipe.send((value, time.monotonic_ns()))


def main(folder: Path, trials: int, seconds: float) -> None:
    context = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    processes = []
    for _ in range(WORKERS):
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, seconds))
        process.start()
        theirs.close()
        ours.recv()  # it is ready
        pipes.append(ours)
        processes.append(process)
    generator = random.Random(0)
    running: dict[Connection, dict[str, float]] = {}
    submitted, ended, last_ns = 0, 0, 0
    with (folder / "results.jsonl").open("a") as results:
        first_ns = time.monotonic_ns()
        for pipe in pipes[:trials]:
            running[pipe] = draw(generator)
            pipe.send(running[pipe])
            submitted += 1
        while running:
            for ready in wait(list(running)):
                pipe = cast(Connection, ready)
                value, ended_ns = pipe.recv()
                configuration = running.pop(pipe)
                if submitted < trials:
                    running[pipe] = draw(generator)
                    pipe.send(running[pipe])
                    submitted += 1
                ended, last_ns = ended + 1, max(last_ns, ended_ns)
                results.write(json.dumps({"configuration": configuration, "loss": value}) + "\n")
                results.flush()
    for pipe in pipes:
        pipe.send(None)
    for process in processes:
        process.join()
    print_span(first_ns, last_ns, ended, trials)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
