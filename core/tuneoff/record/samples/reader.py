"""Read a run's `power.jsonl`, checked line by line, on the run's time scale; and what a reader of its energy must know of it.

With what the run is charged, it is the evidence that metrics rest on beyond the run's events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from tuneoff.base.files import open_regular
from tuneoff.base.json_values import values
from tuneoff.base.layout import SAMPLES
from tuneoff.errors import ResultsError
from tuneoff.experiment.accounting.declared import NO_ACCOUNTING, Accounting
from tuneoff.record.run_record import FlagRecord, RunRecord
from tuneoff.record.samples.schema import SCHEMA_VERSION, EnergySeries, Header, Line, NodeLine, PowerSample, UsageSample

MOST_NOTES = 3  # in the text of a flag
STEAL_LIMIT = 0.02  # of the host's processor time: with more of it, the host itself shares its processors with others
MOST_BYTES = 1 << 30  # of a file: a week of five looks a second at four domains
MOST_LINE_BYTES = 1 << 24

_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What was sampled in one execution; times in ns on the sampling host's monotonic clock, until `shifted`."""

    header: Header
    power: Mapping[str, EnergySeries] = field(default_factory=dict)  # by domain
    usage: tuple[UsageSample, ...] = ()
    notes: tuple[str, ...] = ()
    power_samples: int = 0
    torn_lines: int = 0

    def shifted(self, by_ns: int) -> Samples:
        """Return the same samples with `by_ns` added to every time of a sample."""
        power = {name: EnergySeries([t + by_ns for t in series.times], series.joules) for name, series in self.power.items()}
        usage = tuple(msgspec.structs.replace(sample, t=sample.t + by_ns) for sample in self.usage)
        return replace(self, power=power, usage=usage)


def read_samples(path: Path) -> Samples | None:
    """Read the samples of an execution's folder, or of a file; None where there is no such file, or not one whole line in it.

    A last line that is not whole is what a kill leaves: it is counted. Samples of a domain whose time or counter falls are
    left out and noted: they would make negative energy.

    Raises:
        ResultsError: the file cannot be read, has no header or another version, or it or a line is larger than any that a run
            writes, or a line is not a sample.
    """
    path = path / SAMPLES if path.is_dir() else path
    header: Header | None = None
    power: dict[str, DomainEnergy] = {}
    usage: list[UsageSample] = []
    notes: list[str] = []
    number, size, torn, count = 0, 0, 0, 0
    try:
        with open_regular(path) as file:
            while text := file.readline(MOST_LINE_BYTES + 1):
                size += len(text)
                if size > MOST_BYTES or len(text) > MOST_LINE_BYTES:
                    what, most = ("it", MOST_BYTES) if size > MOST_BYTES else ("a line of it", MOST_LINE_BYTES)
                    problem = f"{path} is too large: {what} must have at most {most} bytes"
                    raise ResultsError(f"{problem}; remove it, and the run has no energy")
                if not text.endswith(b"\n"):
                    torn = 1
                    break
                number += 1
                line = _decoder.decode(text)
                if isinstance(line, PowerSample):
                    count += 1
                    power.setdefault(line.domain, DomainEnergy()).take(line)
                elif isinstance(line, UsageSample):
                    if usage and line.t <= usage[-1].t:
                        notes.append("a usage sample is not later than the one before it; it was left out")
                    else:
                        usage.append(line)
                elif isinstance(line, Header):
                    if line.version != SCHEMA_VERSION:
                        problem = f"has version {line.version}, but this tuneoff reads version {SCHEMA_VERSION}"
                        raise ResultsError(f"{path} {problem}; use the tuneoff that wrote it")
                    header = line
                elif not isinstance(line, NodeLine):
                    notes.append(line.text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ResultsError(f"{path} line {number} is not a sample: {error}; remove it: the run has no energy then") from error
    if number == 0:  # killed as it began
        return None
    if header is None:
        raise ResultsError(f"{path} has no header line; remove it, and the run has no energy")
    notes += [
        f"{domain.left_out} samples of {name} were left out: their time or counter fell, or was no finite number"
        for name, domain in power.items()
        if domain.left_out
    ]
    return Samples(
        header=header,
        power={name: domain.series() for name, domain in power.items()},
        usage=tuple(usage),
        notes=tuple(dict.fromkeys(notes)),
        power_samples=count,
        torn_lines=torn,
    )


def header_of(folder: Path) -> Header | None:
    """Return the first line of an execution's samples; None where there is none, or none that can be read."""
    try:
        with open_regular(folder / SAMPLES) as file:
            header = _decoder.decode(file.readline(MOST_LINE_BYTES))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return header if isinstance(header, Header) else None


def power_of(folder: Path) -> dict[str, Any] | None:
    """Return which meter an execution's samples are of, as JSON values for its environment; None where it has none."""
    header = header_of(folder)
    if header is None:
        return None
    return values(header, ("meter", "kind", "source", "reason", "detail", "idle_problem"))


class DomainEnergy:
    """One domain's samples as cumulative energy."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.joules: list[float] = []
        self.left_out = 0
        self._counter: float | None = None

    def take(self, sample: PowerSample) -> None:
        value = sample.watts if sample.joules is None else sample.joules
        before = self._counter if sample.joules is not None else None
        is_later = not self.times or sample.t > self.times[-1]
        if not is_later or value is None or not (before or 0) <= value < float("inf"):
            self.left_out += 1
            return
        added = 0.0
        if sample.joules is None and self.times:
            added = value * (sample.t - self.times[-1]) / 1e9
        elif sample.joules is not None:
            added, self._counter = value - (value if before is None else before), value
        self.times.append(sample.t)
        self.joules.append((self.joules[-1] if self.joules else 0.0) + added)

    def series(self) -> EnergySeries:
        return EnergySeries(self.times, self.joules)


def sample_flags(samples: Samples | None) -> tuple[FlagRecord, ...]:
    """Return the flags `power_problem` (something went wrong while sampling) and `steal` (a hypervisor took processor time)."""
    if samples is None:
        return ()
    flags = []
    if samples.notes:
        more = len(samples.notes) - MOST_NOTES
        text = "; ".join(samples.notes[:MOST_NOTES]) + (f"; {more} more in power.jsonl" if more > 0 else "")
        flags.append(FlagRecord(name="power_problem", text=text, count=len(samples.notes)))
    usage = samples.usage
    available_ns = (usage[-1].t - usage[0].t) * max(1, samples.header.cpus) if usage else 0
    share = (usage[-1].steal_ns - usage[0].steal_ns) / available_ns if available_ns > 0 else 0.0
    if share > STEAL_LIMIT:
        text = f"the hypervisor took {100 * share:.1f} % of the processors' time during the run"
        flags.append(FlagRecord(name="steal", text=f"{text}: others share them, times are longer"))
    return tuple(flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Samples on the run's time scale (ns since its start), and what the run is charged."""

    samples: Samples | None = None
    accounting: Accounting = NO_ACCOUNTING


NO_EVIDENCE = Evidence()


def on_run_clock(samples: Samples | None, run: RunRecord) -> Samples | None:
    """Return the samples on the run's time scale: by the monotonic clock of one boot, else through the wall-clock anchors."""
    clock = run.clock
    if samples is None or clock is None:
        return None
    header = samples.header
    is_same = header.boot_id == clock.boot_id and (header.boot_id != "unknown" or header.host == clock.host)
    if is_same:
        return samples.shifted(-clock.start_monotonic_ns)
    return samples.shifted(header.anchor_wall_ns - header.anchor_monotonic_ns - clock.start_wall_ns)
