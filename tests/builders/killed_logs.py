"""The events of a run that was killed after half of its trials."""

from __future__ import annotations

from builders.event_logs import Log
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
