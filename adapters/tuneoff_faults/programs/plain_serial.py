"""A plain program without a framework, as Python's documentation of process pools has it."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor

from tuneoff_faults.plain import Claim, PlainTask


def objective(folder: str, index: int) -> float | None:
    """Return the last value that the training reports."""
    task, value = PlainTask.read(folder), None
    for _, metrics in task.train(index):
        value = metrics[task.metric]
    return value


def main(folder: str) -> None:
    task = PlainTask.read(folder)
    count = len(task.configurations)
    with ProcessPoolExecutor(task.workers) as pool:
        values = list(pool.map(objective, [folder] * count, range(count)))
    choose = max if task.mode == "max" else min
    best = choose(range(count), key=lambda index: values[index])  # type: ignore[arg-type,return-value] # fails where one is None
    claims = (Claim(index=index, state="completed", value=value) for index, value in enumerate(values))
    task.answer(claims, (best, values[best]))


if __name__ == "__main__":
    main(sys.argv[1])
