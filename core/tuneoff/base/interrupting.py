"""What the signals that ask a command to end become: KeyboardInterrupt, so that what it made is removed, or an event."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType


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


@contextmanager
def _handled(numbers: Sequence[int], handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
