"""Ask several things at once: a slow server is then waited for only once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any


def at_once(calls: Mapping[str, Callable[[], Any]], within_seconds: float) -> dict[str, Any]:
    """Make all calls, each in a thread of its own, and return their results by name, or the exception that one raised.

    What is not there in time counts as TimeoutError; its thread never holds the process up.
    """
    answers: dict[str, Any] = {}

    def run(name: str, call: Callable[[], Any]) -> None:
        try:
            answers[name] = call()
        except Exception as error:  # handed to the caller's thread
            answers[name] = error

    deadline = time.monotonic() + within_seconds
    threads = [threading.Thread(target=run, args=entry, name="at-once", daemon=True) for entry in calls.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    late = TimeoutError(f"no answer within {within_seconds:g} s")
    return {name: answers.get(name, late) for name in calls}


def value(answer: Any) -> Any:
    """Return one of the answers, or raise it."""
    if isinstance(answer, Exception):
        raise answer
    return answer
