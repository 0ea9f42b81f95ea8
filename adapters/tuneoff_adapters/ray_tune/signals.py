"""SIGTERM beside Ray. What a handler raises inside Ray's C code comes out as a SystemError, or is lost in Tune."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


class DeferredTermination:
    """Keeps a SIGTERM until `check` is called, which then runs the handler that was there before."""

    def __init__(self) -> None:
        self._before = signal.getsignal(signal.SIGTERM)
        self._came = False

    def check(self) -> None:
        """Call the former handler if a SIGTERM came since; in the lifecycle it raises."""
        if self._came and callable(self._before):
            self._came = False
            self._before(signal.SIGTERM, None)

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """Defer for a block; main thread only. At its end, whatever it raised, the former handler is back and is called."""
        self._before = signal.signal(signal.SIGTERM, lambda number, frame: setattr(self, "_came", True))
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, self._before)
            self.check()


@contextlib.contextmanager
def kept_handler() -> Iterator[None]:
    """Put the handler of SIGTERM back after a block in which Ray replaces it by its own, which exits."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:
        if callable(before):
            before(signal.SIGTERM, None)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
