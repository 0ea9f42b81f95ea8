"""An adapter in whose steps something is planted: a failure in one of them, or a second call of `undeploy`.

Its target names the plant and the adapter: `tuneoff.trust.check.fault_injection:collect|package.module:Class`.
"""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tuneoff.adapter import Adapter
from tuneoff.base.targets import load_target

METHODS = {  # by what is planted: the method in which it is
    "deploy": "deploy",
    "setup": "setup",
    "trial": "run_trials",
    "collect": "collect_results",
    "test": "test",
    "metrics": "collect_metrics",
    "undeploy": "undeploy",
    "twice": "undeploy",
}
RAISED = "planted_failure"  # a file in the folder of the execution: the failure was raised inside the adapter's own code
FIRST_SECONDS, AGAIN_SECONDS = 1.0, 0.7  # after the start of `run_trials`
TIMES = 3  # what is raised inside a callback may be lost without the adapter's doing


class PlantedFailure(RuntimeError):
    """What is raised in a step."""


def wrapped_target(plant: str, target: str) -> str:
    """Return the target of an adapter with something planted."""
    return f"{__name__}:{plant}|{target}"


def __getattr__(name: str) -> type[Adapter]:
    plant, bar, target = name.partition("|")
    if not bar or plant not in METHODS:
        raise AttributeError(f"no adapter can be made of {name!r}")
    return _wrapped(plant, load_target(target))


def _wrapped(plant: str, adapter: type[Adapter]) -> type[Adapter]:
    name = METHODS[plant]
    step: Callable[..., Any] = getattr(adapter, name)

    @functools.wraps(step)
    def planted(self: Adapter, *arguments: Any) -> Any:
        if plant == "trial":
            with _alarm(self):  # in the midst of the step, inside whatever the adapter is doing
                return step(self, *arguments)
        step(self, *arguments)
        if plant != "twice":
            raise PlantedFailure(f"planted in step {plant}")  # all that the step started is there
        return step(self, *arguments)

    wrapped = type(adapter.__name__, (adapter,), {"__module__": __name__})
    setattr(wrapped, name, planted)  # not defined in the class: `AskTellAdapter` refuses that of an author
    return wrapped


@contextmanager
def _alarm(adapter: Adapter) -> Iterator[None]:
    raised = 0

    def fail(signum: int, frame: FrameType | None) -> None:
        nonlocal raised
        raised += 1
        if raised >= TIMES:
            signal.setitimer(signal.ITIMER_REAL, 0)
        (adapter.context.run_dir / RAISED).touch()  # no event: this may interrupt the writing of one
        raise PlantedFailure("planted in step trial")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, FIRST_SECONDS, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
