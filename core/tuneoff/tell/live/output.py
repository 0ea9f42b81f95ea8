"""What the runs of a folder print, as the page shows it: which logs there are, and parts of them, by trial and with search.

A log is one of those that were listed: no text of a request becomes a path. Of a log, however large, a block is read at a time.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tuneoff.base.files import open_regular
from tuneoff.base.layout import EVENTS, FRAMEWORK, LOG
from tuneoff.base.output import printable
from tuneoff.errors import ResultsError
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import TrialEnded, TrialStarted
from tuneoff.run.supervisor.logs import HEAD_BYTES, LEFT_OUT, LINE_BYTES

BLOCK = 262_144  # bytes that an answer is made of
SEARCHED = 32 * BLOCK  # bytes that an answer searches
MOST_LOGS, MOST_TRIALS = 500, 2_000  # that are listed of an execution
MOST_EVENT_BYTES = 50_000_000  # with more, trials are not listed
LONGEST_LINE = 2_000  # characters that are shown
SUFFIXES = (".log", ".out", ".err", ".txt")  # of a framework's logs


def listed(execution: Path) -> list[dict[str, Any]]:
    """Return the logs of an execution: `name`, the file below its folder, and of a trial `begin` and `end` in it.

    Frameworks keep those of their own workers and trials: one that is called as the framework calls a trial begins with the
    trial's name. What a trial printed is what was printed while it ran.
    """
    logs: list[dict[str, Any]] = [{"name": LOG, "file": LOG}] if os.path.lexists(execution / LOG) else []
    events = list(_of_trials(execution))
    trials = {event.framework_id: _name(event) for event in events if isinstance(event, TrialStarted)}
    for path in itertools.islice(_files(execution / FRAMEWORK), MOST_LOGS):
        relative = path.relative_to(execution)
        owner = next((trials[name] for name in (*relative.parts, relative.stem) if name in trials), None)
        name = relative.as_posix()
        logs.append({"name": printable(f"{owner}: {name}" if owner else name), "file": name})
    kept = _kept(execution)
    ends = [event for event in events if isinstance(event, TrialEnded) and event.printed and event.printed[1] <= kept]
    for end in sorted(ends, key=lambda end: (end.trial, end.attempt))[-MOST_TRIALS:]:
        begin, until = end.printed or (0, 0)
        logs.append({"name": printable(_name(end)), "file": LOG, "begin": begin, "end": until})
    return logs


def _name(event: TrialStarted | TrialEnded) -> str:
    return f"trial {event.trial}" + (f", attempt {event.attempt}" if event.attempt > 1 else "")


def _of_trials(execution: Path) -> Iterator[TrialStarted | TrialEnded]:
    log = EventLog(execution / EVENTS)
    with contextlib.suppress(ResultsError, OSError):  # the live state says what is damaged
        if sum(os.lstat(path).st_size for path in log.paths()) <= MOST_EVENT_BYTES:
            yield from (event for _, event in log if isinstance(event, TrialStarted | TrialEnded))


def _kept(execution: Path) -> int:
    """Return up to which byte the log has what was printed: of one that was too large the middle is left out in the end."""
    with contextlib.suppress(OSError), open_regular(execution / LOG) as file:
        file.seek(HEAD_BYTES - LINE_BYTES)
        return HEAD_BYTES - LINE_BYTES if LEFT_OUT in file.read(2 * LINE_BYTES) else sys.maxsize
    return 0


def _files(folder: Path) -> Iterator[Path]:
    for path, folders, names in os.walk(folder):  # follows no link
        folders.sort()
        yield from (Path(path, name) for name in sorted(names) if name.endswith(SUFFIXES))


def part(execution: Path, log: Mapping[str, Any], begin: int | None, wanted: str, *, has_ended: bool) -> dict[str, Any]:
    """Return `lines` of a log from a byte on, None: its last ones, and `next`, the byte to go on from.

    `wanted`: only lines that have this text, in any case. A line that may go on, as the run has not ended, is given later.

    Raises:
        OSError: it cannot be read, or is no regular file any more.
    """
    with open_regular(execution / log["file"]) as file:
        size = min(os.fstat(file.fileno()).st_size, log.get("end", sys.maxsize))
        first = log.get("begin", 0)
        is_tail = begin is None and not wanted
        start = at = max(first, size - BLOCK if is_tail else begin or 0)
        lines, most = list[str](), SEARCHED if wanted else BLOCK
        while at < size and at - start < most and sum(map(len, lines)) < BLOCK:
            with contextlib.suppress(OSError):  # of a log that has become too large the middle is a hole
                at = min(os.lseek(file.fileno(), at, os.SEEK_DATA), size)
            file.seek(at)
            data = file.read(min(BLOCK, size - at))
            is_last = at + len(data) >= size and (has_ended or "end" in log)
            whole = data if is_last else data[: data.rfind(b"\n") + 1] or (data if len(data) == BLOCK else b"")
            if not whole:
                break
            at += len(whole)
            cut = whole.find(b"\n") + 1 if is_tail and start > first else 0  # it begins within a line
            lines += _shown(whole[cut:].split(b"\n"), wanted.casefold())
        return {"lines": lines, "next": at, "size": size}


def _shown(lines: Sequence[bytes], wanted: str) -> Iterator[str]:
    for line in lines[: -1 if not lines[-1] else None]:
        text = line.replace(b"\0", b"").rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace").expandtabs()
        if wanted in text.casefold():
            yield printable(text[:LONGEST_LINE]) + ("…" if len(text) > LONGEST_LINE else "")
