"""What holds for all tests."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from command_line import Call

# A busy machine makes an example slow, and not wrong: no property is judged by time.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# What a script starts with `&` has SIGINT ignored, and its children too: those that tests send it to must not.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and what `nohup` starts has this one ignored


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what is imported and collected out of garbage collection: it all stays, and each pass would look at it again.

    Later passes are rare: looking at what tests make as often as the interpreter does takes a fifteenth of their time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 100)
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first: a worker that begins one at the end keeps all others waiting."""
    items.sort(key=lambda item: not any(mark.kwargs.get("first") for mark in item.iter_markers("slow")))


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """Return a function that runs a command in an empty folder and returns its answer."""
    from command_line import caller

    monkeypatch.chdir(tmp_path)
    return caller(capsys)
