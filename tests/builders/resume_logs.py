"""The events of a run that was killed after half of its trials, and of the execution that goes on with it."""

from __future__ import annotations

from builders.event_logs import BOOT, Log
from builders.specs import make_spec

SPEC = make_spec(trials=4, epochs=2)


def killed_log(execution: str = "run1-one") -> Log:
    """Two trials end, one by its own fault, one is lost in its second epoch, one was submitted only."""
    log = Log(execution)
    log.step("deploy", 0, 1)
    log.step("setup", 1, 2)
    log.step("trial", 2, None)
    worker = log.process("worker", 1)
    for number, at in enumerate((2.0, 4.0, 6.0, 6.5)):
        log.submit(f"t0000{number}", at, x=number / 10)
    worker.start("t00000", 2, slot=0, x=0.0)
    worker.epoch("t00000", 1, 3, 0.8, reported=3)
    worker.epoch("t00000", 2, 4, 0.7, reported=4)
    worker.end("t00000", 4, "completed", 2)
    worker.start("t00001", 4, slot=0, x=0.1)
    worker.end("t00001", 5, "failed", 0, cause="ValueError", charged="workload")
    worker.start("t00002", 6, slot=0, x=0.2)
    worker.epoch("t00002", 1, 7, 0.9, reported=7)
    return log


def continuing_log(*, repeats: str | None = None, x: float = 0.2, boot: str = BOOT) -> Log:
    """Begin the lost trial again, and the one that never started, 100 s later; `repeats`: a finished one that is trained too."""
    log = Log("run1-two")
    log.writers.clear()
    shift = 0.0 if boot == BOOT else -90.0
    log.coordinator = log.process("coordinator", 99.0, boot=boot, clock_shift=shift)
    log.step("deploy", 100, 101)
    log.step("setup", 101, 102)
    log.step("trial", 102, 106)
    worker = log.process("worker", 101, boot=boot, clock_shift=shift)
    for trial, value, at in (("t00002", x, 102.0), ("t00003", 0.3, 104.0)):
        log.submit(trial, at, attempt=2, x=value)
        worker.start(trial, at, slot=0, attempt=2, x=value)
        worker.epoch(trial, 1, at + 1, 0.1, reported=at + 1, attempt=2)
        worker.epoch(trial, 2, at + 2, 0.95, reported=at + 2, attempt=2)
        worker.end(trial, at + 2, "completed", 2, attempt=2)
    if repeats is not None:
        worker.start(repeats, 106, slot=0, x=0.0)
        worker.end(repeats, 106, "failed", 0, cause="again", charged="workload")
    return log
