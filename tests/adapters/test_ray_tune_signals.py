"""SIGTERM is let through where it is safe, and is never lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from tuneoff_adapters.ray_tune.session import DeferredTermination, kept_handler


class Interrupted(BaseException):
    """Stands for the lifecycle's."""


def interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, interrupt)
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_signal_waits_for_the_next_check() -> None:
    termination = DeferredTermination()
    with termination.in_force():
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Interrupted):
            termination.check()
        termination.check()  # once


def test_a_signal_that_nobody_checked_for_comes_at_the_end_whatever_was_raised() -> None:
    def fit() -> None:
        with DeferredTermination().in_force():
            os.kill(os.getpid(), signal.SIGTERM)
            raise SystemError("a result with an exception set")

    with pytest.raises(Interrupted):
        fit()
    assert signal.getsignal(signal.SIGTERM) is interrupt


def test_the_exit_of_a_foreign_handler_becomes_an_interruption() -> None:
    with pytest.raises(Interrupted), kept_handler():
        raise SystemExit(15)
    assert signal.getsignal(signal.SIGTERM) is interrupt


def test_the_handler_that_a_block_replaced_is_put_back() -> None:
    with kept_handler():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert signal.getsignal(signal.SIGTERM) is interrupt
