"""The `replay` meter: recorded samples, put on the time of each run; for tests, and for meters that write files.

It reads a run's `power.jsonl`, or a CSV file that a person or another program wrote. That has the columns
`seconds,domain,watts` (mean power since the sample before of that domain) or `seconds,domain,joules` (a counter); seconds count
from the run's start. Lines above it that begin with `#` may say `# kind: measured` (without it, the samples are an estimate),
`# source: ...` and `# idle DOMAIN: WATTS`.
"""

from __future__ import annotations

import csv
import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from tuneoff.base.clock import NANOSECONDS
from tuneoff.base.files import read_regular
from tuneoff.errors import ResultsError
from tuneoff.meter import Coefficients, MeterDescription, MeterError, MeterKind, PowerMeter, PowerSample
from tuneoff.record.samples.reader import DomainEnergy, read_samples
from tuneoff.record.samples.schema import EnergySeries

RULE = "seconds that grow, a domain, and watts >= 0 or a counter of joules that does not fall"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """What the experiment file gives."""

    path: Annotated[str, Meta(min_length=1)]  # a `power.jsonl`, or a CSV file (see above)


class ReplayMeter(PowerMeter):
    """Asked after the run, for the samples of its time: the recording's start is each run's start.

    Kind, source and idle power are what the file says.
    """

    options_type = ReplayOptions
    is_inert = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._path = Path(self.check_options(options).path)
        about = read_recording(self._path)
        self._power, self.idle_watts, self.problems = about.power, about.idle_watts, about.problems
        gaps = [after - before for series in about.power.values() for before, after in itertools.pairwise(series.times)]
        self.description = MeterDescription(
            kind=about.kind,
            source=f"replay of {self._path.name}: {about.source}",
            domains=tuple(about.power),
            coefficients=about.coefficients,
            longest_gap_seconds=max(10.0, 2.5 * statistics.median(gaps or [0]) / NANOSECONDS),
        )

    def collect(self, start_wall_ns: int, end_wall_ns: int) -> list[PowerSample]:
        """Return the recorded samples of the first `end - start` ns, and the next of each domain, which the end lies before.

        Raises:
            MeterError: the recording has nothing of that time.
        """
        lasts = end_wall_ns - start_wall_ns
        first = min((series.times[0] for series in self._power.values()), default=0)
        if first > lasts:
            raise MeterError(f"{self._path} begins {first / 1e9:g} s after the run's start, but the run took {lasts / 1e9:.3g} s")
        return [
            PowerSample(t=start_wall_ns + t, domain=name, joules=joules)
            for name, series in self._power.items()
            for before, (t, joules) in zip((0, *series.times), zip(series.times, series.joules, strict=True), strict=False)
            if before <= lasts
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a file holds: the energy of each domain over the time since the run's start."""

    kind: MeterKind
    source: str
    power: Mapping[str, EnergySeries]
    idle_watts: Mapping[str, float]
    coefficients: Coefficients | None = None
    problems: Sequence[str] = field(default=())


def read_recording(path: Path) -> Recording:
    """Read and check a file.

    Raises:
        MeterError: it cannot be read, its last line has no end, or it holds nothing; a line of a table is none of the format, a
            time does not grow, a value is negative.
    """
    try:
        content = read_regular(path, follow=True).decode("utf-8-sig")
        recording = _from_jsonl(path) if content.lstrip().startswith("{") else _from_csv(path, content)
    except ResultsError as error:
        raise MeterError(f"meter replay: {str(error).partition(';')[0]}; take a whole power.jsonl") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise MeterError(f"meter replay: {path} cannot be read: {reason}; correct `path`") from error
    if not recording.power and recording.coefficients is None:
        raise MeterError(f"meter replay: {path} holds no power samples; record some, or take another file")
    return recording


def _from_jsonl(path: Path) -> Recording:
    samples = read_samples(path.resolve())
    if samples is None:
        raise ResultsError(f"{path} holds no whole line")
    if samples.torn_lines:
        raise ResultsError(f"{path}: its last line has no end")
    header = samples.header
    return Recording(
        kind=header.kind,
        source=header.source,
        power=samples.shifted(-header.anchor_monotonic_ns).power,
        idle_watts=header.idle_watts,
        coefficients=header.coefficients,
        problems=samples.notes,
    )


def _from_csv(path: Path, content: str) -> Recording:
    lines = [(number, line) for number, line in enumerate(content.splitlines(), 1) if line.strip()]
    comments = [line[1:].partition(":") for _, line in lines if line.startswith("#")]
    about = {" ".join(name.split()): value.strip() for name, _, value in comments}
    kind = about.pop("kind", "estimated")
    if kind not in ("measured", "estimated"):
        raise MeterError(f"meter replay: {path}: `# kind:` must be measured or estimated, but is {kind!r}; correct the file")
    rows = [(number, next(csv.reader([line]))) for number, line in lines if not line.startswith("#")]
    header = [name.strip() for name in rows[0][1]] if rows else []
    if header not in (["seconds", "domain", "watts"], ["seconds", "domain", "joules"]):
        raise MeterError(
            f"meter replay: {path} must be a power.jsonl, or a CSV file whose first row is seconds,domain,watts or "
            f"seconds,domain,joules, but that is {','.join(header)[:80]!r}"
        )
    is_counter = header[2] == "joules"
    power: dict[str, DomainEnergy] = defaultdict(DomainEnergy)
    for number, row in rows[1:]:
        try:
            domain, (t, amount) = row[1].strip(), (float(cell) for cell in (row[0], row[2]))
            joules, watts = (amount, None) if is_counter else (None, amount)
            energy = power[domain]
            energy.take(PowerSample(t=round(t * NANOSECONDS), domain=domain, joules=joules, watts=watts))
            is_sound = len(row) == 3 and bool(domain) and not energy.left_out
        except (ValueError, IndexError, OverflowError):
            is_sound = False
        if not is_sound:
            raise MeterError(f"meter replay: {path} line {number} must hold {RULE}, but is {','.join(row)!r}; correct the file")
    idle = {name.removeprefix("idle "): _watts(path, value) for name, value in about.items() if name.startswith("idle ")}
    return Recording(
        kind="measured" if kind == "measured" else "estimated",
        source=about.get("source", "a CSV file that names no source"),
        power={name: energy.series() for name, energy in power.items()},
        idle_watts=idle,
    )


def _watts(path: Path, text: str) -> float:
    try:
        watts = float(text)
    except ValueError:
        watts = math.nan
    if not math.isfinite(watts):
        raise MeterError(f"meter replay: {path}: `# idle` must be finite watts, but is {text!r}; correct the file")
    return watts
