"""However a log is cut and read again: each event once, in order; and a log that is whole has all its lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
import urllib3.exceptions
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.katib.pod_lines import EXECUTION, whole_log
from tuneoff.record.events.reader import EventLog
from tuneoff_adapters.kubernetes.connection import Limits
from tuneoff_adapters.kubernetes.followed_pod import PodLog
from tuneoff_adapters.kubernetes.stream import LogStream

TRIAL = "x7k2m9qp"
LINES = whole_log(TRIAL, [0.5, 0.25, 0.5])
TEXT = b"".join(line + b"\n" for line in LINES)


class Reply:
    """An HTTP answer's body that comes in pieces of a size, and at a position ends or is cut."""

    def __init__(self, text: bytes, size: int, is_cut: bool) -> None:
        self._text, self._size, self._is_cut = text, size, is_cut

    def stream(self, amount: int) -> Iterator[bytes]:
        for start in range(0, len(self._text), self._size):
            yield self._text[start : start + self._size]
        if self._is_cut:
            raise urllib3.exceptions.ProtocolError("cut")

    def close(self) -> None:
        """Nothing is open."""


class Server:
    """Stands in for a Connection: each request is answered by the next reply, the last one after the container's end."""

    limits = Limits(pause=0.0, settle=0.0)

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = [*replies, Reply(TEXT, len(TEXT), is_cut=False)]

    def is_over(self) -> bool:
        return len(self._replies) == 1

    def open_stream(self, path: str, query: list[tuple[str, str]], silence: float) -> Reply:
        return self._replies.pop(0)


def read(server: Server) -> tuple[list[bytes], LogStream]:
    stream = LogStream(server, "n", "p", "c", server.is_over)  # type: ignore[arg-type]
    return list(stream), stream


replies = st.builds(Reply, st.integers(0, len(TEXT)).map(lambda end: TEXT[:end]), st.integers(1, 4000), st.booleans())


@settings(max_examples=40, deadline=None)
@given(first=st.lists(replies, max_size=6))
def test_any_sequence_of_cuts_gives_each_line_and_each_event_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, first: list[Reply]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    lines, stream = read(Server(first))
    assert lines == LINES
    assert (stream.is_complete, stream.was_rotated) == (True, False)
    log = PodLog(folder, folder / "framework", EXECUTION, f"t-{TRIAL}", TRIAL)
    for line in lines:
        log.take(line)
    log.end()
    assert [event.seq for _, event in EventLog(folder / "events")] == list(range(len(LINES) - 1))  # one line is not an event


@settings(max_examples=40, deadline=None)
@given(repeats=st.lists(st.integers(0, len(LINES)), max_size=6))
def test_lines_that_are_given_again_make_no_second_event(tmp_path_factory: pytest.TempPathFactory, repeats: list[int]) -> None:
    folder = tmp_path_factory.mktemp("run")
    log = PodLog(folder, folder / "framework", EXECUTION, f"t-{TRIAL}", TRIAL)
    taken = [log.take(line) for count in (*repeats, len(LINES)) for line in LINES[:count]]
    assert [event.seq for event in taken if event is not None] == list(range(len(LINES) - 1))
    assert [event.seq for _, event in EventLog(folder / "events")] == list(range(len(LINES) - 1))
