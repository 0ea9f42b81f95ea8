"""What the signals that ask a command to end become: KeyboardInterrupt, so that what it made is removed, or an event."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")


@contextmanager
def interrupting() -> Iterator[None]:
    """Let SIGINT (ignored where a script used `&`), SIGTERM and SIGHUP end the block; only the main thread may set handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), interrupt):
        yield


@contextmanager
def asked_to_end() -> Iterator[threading.Event]:
    """Give an event that SIGINT, SIGTERM and SIGHUP set while the block runs; only the main thread may set handlers.

    Under `nohup`, which has SIGHUP ignored, the terminal's end is none of the block.
    """
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested
        return
    hang_up = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    with _handled((signal.SIGINT, signal.SIGTERM, *hang_up), lambda signum, frame: requested.set()):
        yield requested


def as_ended(futures: Iterable[Future[T]]) -> Iterator[Future[T]]:
    """Yield futures as they end. A signal that comes just before the wait for them is acted on within a second.

    `concurrent.futures.as_completed` waits until one ends, in C code, which such a signal does not interrupt.
    """
    from concurrent.futures import FIRST_COMPLETED, wait  # most commands have no futures

    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, 1.0, FIRST_COMPLETED)
        yield from done


@contextmanager
def _handled(numbers: Sequence[int], handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
