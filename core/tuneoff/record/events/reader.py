"""Read event files, streaming, tolerant only of what a SIGKILL leaves (a torn last line); align several processes' clocks."""

from __future__ import annotations

import errno
import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tuneoff.base.files import PLAIN_NAME, open_regular
from tuneoff.errors import ResultsError
from tuneoff.record.events.schema import SCHEMA_VERSION, AnyEvent, Epoch, Event, Process, TrialEnded, TrialStarted

SUFFIX = ".jsonl"
CHUNK_BYTES = 1 << 20
LONGEST_LINE = 1 << 26  # bytes

_PLAIN_NAME = re.compile(PLAIN_NAME)
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(AnyEvent)


class _EventsVersion(msgspec.Struct):
    """What every schema version keeps: the type of the first line, and the version."""

    type: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceGap:
    """Lines of a file are missing: the sequence number jumped from the expected to the found one before `line`."""

    file: str
    line: int
    expected: int
    actual: int


@dataclass(slots=True)
class Statistics:
    """What reading met: events, torn last lines (a killed writer), missing lines."""

    events: int = 0
    torn_lines: int = 0
    gaps: list[SequenceGap] = field(default_factory=list)


class Alignment:
    """Offsets that turn each process's monotonic readings into those of the reference's host, in nanoseconds.

    Readings with the same boot id are comparable directly (offset 0). Other hosts are aligned through their wall-clock
    anchors; `uncertainty_ns` then bounds the error of the pairings. It cannot know by how much the wall clocks of two
    hosts differ: what events that must follow each other prove about that is added to it.
    """

    def __init__(self, processes: Iterable[Process]) -> None:
        everyone = list(processes)
        coordinators = [process for process in everyone if process.role == "coordinator"]
        self.reference = min(coordinators or everyone, key=lambda process: (process.anchor_wall_ns, process.pid), default=None)
        self.uncertainty_ns = 0
        for process in everyone:
            if self.is_foreign(process):
                assert self.reference is not None
                width = (process.anchor_width_ns + self.reference.anchor_width_ns + 1) // 2
                self.uncertainty_ns = max(self.uncertainty_ns, width)

    def is_foreign(self, process: Process) -> bool:
        """Tell whether the process ran under another boot than the reference."""
        return self.reference is not None and _clock_of(process) != _clock_of(self.reference)

    def offset_ns(self, process: Process) -> int:
        """Return what to add to the process's readings."""
        if self.reference is None or not self.is_foreign(process):
            return 0
        return _wall_offset(process) - _wall_offset(self.reference)


class EventLog:
    """The event files of one execution of a run. Each iteration reads the files anew and counts into `statistics`.

    Raises (while reading):
        ResultsError: a file cannot be read, has another schema version, or has an undecodable line that is not its torn last.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.statistics = Statistics()

    def paths(self) -> list[Path]:
        """Return the event files in the order of their names.

        Raises:
            ResultsError: the folder cannot be read.
        """
        try:
            return sorted(path for path in self.folder.iterdir() if path.suffix == SUFFIX)
        except OSError as error:
            raise ResultsError(f"the events folder {self.folder} cannot be read: {error.strerror}") from error

    def __iter__(self) -> Iterator[tuple[Process, Event]]:
        """Yield all events, file after file: the fast order, for derivations that do not depend on it."""
        self.statistics = Statistics()
        for path in self.paths():
            yield from read_file(path, self.statistics)

    def merged(self) -> Iterator[tuple[Process, Event]]:
        """Yield all events in order of time on the coordinator's scale; open files only while their process writes."""
        heads = []
        for path in self.paths():
            process = next(read_file(path, Statistics()), None)
            if process is not None:
                heads.append((process[0], path))
        self.statistics = Statistics()
        alignment = Alignment(process for process, _ in heads)
        waiting = sorted(
            (process.t + alignment.offset_ns(process), path, alignment.offset_ns(process)) for process, path in heads
        )
        waiting.reverse()
        # (time, file number, event): the running maximum of `t`, as a writer may backdate an event within its file
        heap: list[tuple[int, int, tuple[Process, Event], Iterator[tuple[Process, Event]], int]] = []
        opened = 0
        while heap or waiting:
            while waiting and (not heap or waiting[-1][0] <= heap[0][0]):
                time, path, offset = waiting.pop()
                events = read_file(path, self.statistics)
                heapq.heappush(heap, (time, opened, next(events), events, offset))
                opened += 1
            time, number, pair, events, offset = heap[0]
            yield pair
            following = next(events, None)
            if following is None:
                heapq.heappop(heap)
            else:
                heapq.heapreplace(heap, (max(time, following[1].t + offset), number, following, events, offset))


def read_file(path: Path, statistics: Statistics) -> Iterator[tuple[Process, Event]]:
    """Yield (the file's process, event) per line, the `process` event itself first; never holds more than about 1 MB.

    Raises:
        ResultsError: see EventLog.
    """
    process: Process | None = None
    expected = 0
    line = 1
    for chunk in _chunks(path, statistics):
        if process is None:
            process = read_header(chunk[: chunk.index(b"\n")], str(path))
        for event in decode_lines(chunk, str(path), line):
            if event.seq != expected:
                statistics.gaps.append(SequenceGap(file=path.name, line=line, expected=expected, actual=event.seq))
                expected = event.seq
            expected += 1
            line += 1
            statistics.events += 1
            yield process, event


def of_worker(folder: Path, pid: int, epochs: int) -> Iterator[Event]:
    """Yield what a worker that has died wrote; a torn last line does not count. `folder`: of the run's events.

    Where it died between the last of the `epochs` of a trial and its end, the trial has completed, as its supervisor says too:
    that end is yielded last.

    Raises:
        ResultsError: see EventLog.
    """
    last: Event | None = None
    for path in folder.glob(f"worker-{pid}-*{SUFFIX}"):
        for _, event in read_file(path, Statistics()):
            yield event
            last = event if isinstance(event, Epoch | TrialStarted | TrialEnded) else last
    if isinstance(last, Epoch) and last.epoch >= epochs and not last.non_finite:
        yield TrialEnded(t=last.t, seq=last.seq, trial=last.trial, attempt=last.attempt, state="completed", epochs=last.epoch)


def begun_attempt(folder: Path, pid: int, boot_id: str) -> tuple[str, int] | None:
    """Return the trial and attempt that a worker of a host is at, by what it wrote; None between two, or of no such worker.

    Raises:
        ResultsError: see EventLog.
    """
    at: tuple[str, int] | None = None
    for path in folder.glob(f"worker-{pid}-*{SUFFIX}"):
        for process, event in read_file(path, Statistics()):
            if process.boot_id == boot_id and isinstance(event, TrialStarted | TrialEnded):
                at = (event.trial, event.attempt) if isinstance(event, TrialStarted) else None
    return at


def read_header(line: bytes, name: str) -> Process:
    """Decode a file's first line.

    Raises:
        ResultsError: it is not a `process` event, or of a schema version that this tuneoff does not read.
    """
    try:
        header = msgspec.json.decode(line, type=_EventsVersion)
    except msgspec.MsgspecError as error:
        raise ResultsError(f"{name}: line 1 must be a process event, but it is {line[:80]!r}: {error}") from error
    if header.version != SCHEMA_VERSION:
        raise ResultsError(
            f"{name}: event schema version {header.version} is not readable, this tuneoff reads version {SCHEMA_VERSION}; "
            "use the tuneoff that wrote it"
        )
    event = decode_lines(line + b"\n", name, 1)[0]
    if not isinstance(event, Process):
        raise ResultsError(f"{name}: line 1 must be a process event, but its type is {header.type!r}")
    return event


def decode_lines(chunk: bytes, name: str, first_line: int) -> list[Event]:
    """Decode whole lines; on an error, find the line and name it.

    Each trial's name is checked here once per chunk, and not by the events' types, which would check it in every event.
    """
    try:
        events = _decoder.decode_lines(chunk)
        _check_trials(events)
        return events
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        for number, text in enumerate(chunk.splitlines(), first_line):
            try:
                _check_trials([_decoder.decode(text)])
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise ResultsError(f"{name}: line {number} is not an event: {error}; got {text[:80]!r}") from error
        raise


def _check_trials(events: Sequence[Event]) -> None:
    for name in {getattr(event, "trial", None) for event in events}:
        if name is not None and _PLAIN_NAME.match(name) is None:
            raise msgspec.ValidationError(f"`trial` must match {PLAIN_NAME}, but got {name[:120]!r}")


def _chunks(path: Path, statistics: Statistics) -> Iterator[bytes]:
    """Yield byte strings of whole lines; a last line without its end is torn: left out and counted."""
    rest = b""
    try:
        with open_regular(path) as file:
            while data := file.read(CHUNK_BYTES):
                end = data.rfind(b"\n") + 1
                if end == 0:
                    rest += data
                    if len(rest) > LONGEST_LINE:
                        raise OSError(errno.EFBIG, f"a line has more than {LONGEST_LINE} bytes")
                    continue
                yield rest + data[:end]
                rest = data[end:]
    except OSError as error:
        raise ResultsError(f"the event file {path} cannot be read: {error.strerror}") from error
    if rest:
        statistics.torn_lines += 1


def _wall_offset(process: Process) -> int:
    return process.anchor_wall_ns - process.anchor_monotonic_ns


def _clock_of(process: Process) -> str:
    return process.host if process.boot_id == "unknown" else process.boot_id
