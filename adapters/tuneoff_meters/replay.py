"""The `replay` meter: recorded samples, put on the time of each run; for tests, and for meters that write files.

It reads a run's `power.jsonl`, or a CSV file that a person or another program wrote. That has the columns
`seconds,domain,watts` (mean power since the sample before of that domain) or `seconds,domain,joules` (a counter); seconds count
from the run's start. Lines above it that begin with `#` may say `# kind: measured` (without it, the samples are an estimate),
`# source: ...` and `# idle DOMAIN: WATTS`.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tuneoff.base.clock import NANOSECONDS
from tuneoff.base.files import read_regular
from tuneoff.meter import Coefficients, MeterDescription, MeterError, MeterKind, PowerMeter, PowerSample, check_names, text
from tuneoff.record.samples.schema import SCHEMA_VERSION, Header, Line

Sample = tuple[int, str, float | None, float | None]  # ns since the run's start, domain, joules, watts


class ReplayMeter(PowerMeter):
    """Asked after the run, for the samples of its time: the recording's start is each run's start.

    Option `path`: a `power.jsonl`, or a CSV file (see above). Kind, source and idle power are what the file says.
    """

    is_inert = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        check_names("replay", options, ("path",))
        self._path = Path(text("replay", options, "path"))
        self._recording = read_recording(self._path)
        about = self._recording
        self.idle_watts = about.idle_watts
        self.description = MeterDescription(
            kind=about.kind,
            source=f"replay of {self._path.name}: {about.source}",
            domains=about.domains,
            coefficients=about.coefficients,
            longest_gap_seconds=max(10.0, 2.5 * about.interval_seconds),
        )

    def collect(self, start_wall_ns: int, end_wall_ns: int) -> list[PowerSample]:
        """Return the recorded samples of the first `end - start` ns, and the next of each domain, which the end lies before.

        Raises:
            MeterError: the recording has nothing of that time.
        """
        lasts = end_wall_ns - start_wall_ns
        collected: list[PowerSample] = []
        beyond: set[str] = set()
        for t, domain, joules, watts in self._recording.samples:
            if domain in beyond:
                continue
            if t > lasts:
                beyond.add(domain)
            collected.append(PowerSample(t=start_wall_ns + t, domain=domain, joules=joules, watts=watts))
        if not any(sample.t <= end_wall_ns for sample in collected) and self.description.domains:
            first = min(t for t, *_ in self._recording.samples) / 1e9
            raise MeterError(f"{self._path} begins {first:g} s after the run's start, but the run took {lasts / 1e9:.3g} s")
        return collected


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a file holds, in order of time per domain."""

    kind: MeterKind
    source: str
    samples: tuple[Sample, ...]
    idle_watts: Mapping[str, float] = field(default_factory=dict)
    coefficients: Coefficients | None = None

    @property
    def domains(self) -> tuple[str, ...]:
        """Every domain once, in order of appearance."""
        return tuple(dict.fromkeys(domain for _, domain, _, _ in self.samples))

    @property
    def interval_seconds(self) -> float:
        """The median time between samples of a domain; 0 where no domain has two."""
        last: dict[str, int] = {}
        gaps = []
        for t, domain, _, _ in self.samples:
            if domain in last:
                gaps.append(t - last[domain])
            last[domain] = t
        return statistics.median(gaps) / NANOSECONDS if gaps else 0.0


def read_recording(path: Path) -> Recording:
    """Read and check a file.

    Raises:
        MeterError: it cannot be read, a line is none of the format, a time does not grow, a value is negative, a counter falls,
            or it holds nothing.
    """
    try:
        content = read_regular(path, follow=True).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise MeterError(f"meter replay: {path} cannot be read: {reason}; correct `path`") from error
    is_jsonl = content.lstrip().startswith("{")
    recording = _from_jsonl(path, content) if is_jsonl else _from_csv(path, content)
    if not recording.samples and recording.coefficients is None:
        raise MeterError(f"meter replay: {path} holds no power samples; record some, or take another file")
    return recording


def _from_jsonl(path: Path, content: str) -> Recording:
    decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
    header: Header | None = None
    checked = _Checked(path)
    for number, written in enumerate(content.splitlines(), 1):
        try:
            line = decoder.decode(written)
        except msgspec.MsgspecError as error:
            raise MeterError(f"meter replay: {path} line {number} is not a sample: {error}; correct the file") from error
        if isinstance(line, Header):
            header = line
            if line.version != SCHEMA_VERSION:
                raise MeterError(f"meter replay: {path} has version {line.version}, not {SCHEMA_VERSION}; record it anew")
        elif header is None:
            raise MeterError(f"meter replay: {path} must begin with a header line; take a whole power.jsonl")
        elif isinstance(line, PowerSample):
            checked.take(number, line.t - header.anchor_monotonic_ns, line.domain, line.joules, line.watts)
    assert header is not None  # the first line was a header, or an error
    return Recording(
        kind=header.kind,
        source=header.source,
        samples=tuple(checked.samples),
        idle_watts=dict(header.idle_watts),
        coefficients=header.coefficients,
    )


def _from_csv(path: Path, content: str) -> Recording:
    lines = content.splitlines()
    comments = [line[1:].partition(":") for line in lines if line.startswith("#") and ":" in line]
    about = {" ".join(name.split()): value.strip() for name, _, value in comments}
    kind = about.pop("kind", "estimated")
    if kind not in ("measured", "estimated"):
        raise MeterError(f"meter replay: {path}: `# kind:` must be measured or estimated, but is {kind!r}; correct the file")
    idle = {name.removeprefix("idle "): value for name, value in about.items() if name.startswith("idle ")}
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    header = [name.strip() for name in rows[0][1].split(",")] if rows else []
    if header not in (["seconds", "domain", "watts"], ["seconds", "domain", "joules"]):
        raise MeterError(
            f"meter replay: {path} must be a power.jsonl, or a CSV file whose first row is seconds,domain,watts or "
            f"seconds,domain,joules, but that is {','.join(header)[:80]!r}"
        )
    checked = _Checked(path)
    for number, line in rows[1:]:
        row = next(csv.reader([line]))
        if len(row) != 3:
            raise MeterError(f"meter replay: {path} line {number} must have 3 values, but has {len(row)}; correct the file")
        seconds, value = (_number(path, number, cell) for cell in (row[0], row[2]))
        joules, watts = (value, None) if header[2] == "joules" else (None, value)
        checked.take(number, round(seconds * NANOSECONDS), row[1].strip(), joules, watts)
    return Recording(
        kind="measured" if kind == "measured" else "estimated",
        source=about.get("source", "a CSV file that names no source"),
        samples=tuple(checked.samples),
        idle_watts={name: _number(path, 0, value) for name, value in idle.items()},
    )


def _number(path: Path, number: int, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        where = f"line {number}" if number else "comment"
        raise MeterError(f"meter replay: {path} {where} must hold finite numbers, but has {cell!r}; correct the file")
    return value


class _Checked:
    """Takes samples one by one and refuses what no meter measures."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: dict[str, Sample] = {}
        self.samples: list[Sample] = []

    def take(self, number: int, t: int, domain: str, joules: float | None, watts: float | None) -> None:
        before = self._last.get(domain)
        value = joules if joules is not None else watts
        if not domain:
            self._refuse(number, "needs a domain")
        if value is None or (joules is not None and watts is not None):
            self._refuse(number, f"of {domain} must have either joules or watts")
        elif not (math.isfinite(value) and value >= 0):
            self._refuse(number, f"of {domain} must be >= 0, but is {value:g}")
        if before is not None and t <= before[0]:
            self._refuse(number, f"of {domain} at {t / 1e9:g} s must be later than the one before it, at {before[0] / 1e9:g} s")
        if before is not None and (before[2] is None) != (joules is None):
            self._refuse(number, f"of {domain} must be in the unit of those before it")
        if before is not None and before[2] is not None and joules is not None and joules < before[2]:
            self._refuse(number, f"of {domain} must not fall from {before[2]:g} to {joules:g} J: a counter only grows")
        self._last[domain] = (t, domain, joules, watts)
        self.samples.append(self._last[domain])

    def _refuse(self, number: int, problem: str) -> None:
        raise MeterError(f"meter replay: {self._path} line {number}: a sample {problem}; correct the file")
