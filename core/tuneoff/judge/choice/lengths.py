"""The table of the answer that says from which length of a trial, an epoch and a job on each framework adds little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from tuneoff.base.format import counted, duration_range, listed
from tuneoff.judge.choice.added import FURTHEST, Length, covering
from tuneoff.judge.choice.choice import LengthTable, Row
from tuneoff.judge.results import FEWEST_UNDISTURBED

EXTRAPOLATED, FEW = "extrapolated", "few undisturbed runs"
NO_BASELINE = "no baseline (serial) ran on its platform with its kind of start"
MARKS = {"is_extrapolated": "*", "are_few": "+"}  # of a length
NONE = ""


class Lengths(NamedTuple):
    """From which lengths on a framework adds less than the first share, over all its columns."""

    trial: Length | None
    epoch: Length | None  # None too where trials have one epoch
    job: Length | None


def lengths_of(row: Row) -> Lengths:
    """Return what all columns of a row together tell."""
    all_added = [column.added for column in row.columns.values()]
    trials, epochs, jobs = (
        covering(lengths[0] for added in all_added if (lengths := get(added)))
        for get in (attrgetter("lengths"), attrgetter("epoch_lengths"), attrgetter("job_lengths"))
    )
    return Lengths(trials, epochs if any(round(added.epochs or 0) > 1 for added in all_added) else None, jobs)


def range_text(length: Length) -> str:
    """Return a length as its range: `0.5 to 0.8 s`."""
    return duration_range((length.low, length.high))


def epochs_text(rows: Iterable[Row]) -> str:
    """Return how many epochs the trials of some rows had: `10 epochs`, `10 to 50 epochs`; "" where that is unknown."""
    numbers = sorted({round(column.added.epochs or 0) for row in rows for column in row.columns.values()})
    first = "" if len(numbers) == 1 else f"{numbers[0]} to "
    return f"{first}{counted(numbers[-1], 'epoch')}" if numbers[-1] else ""


def length_table(rows: Sequence[Row]) -> LengthTable | None:
    """Return the table of the frameworks whose lengths are known, and below them what was measured; None without any.

    `rows`: those of a setting that are compared, the baseline included, which has no line.
    """
    named = [(row, lengths) for row in rows if not row.is_floor and (lengths := lengths_of(row)).trial is not None]
    if not named:
        return None
    columns = [column for row in rows for column in row.columns.values()]
    has_epochs = any(lengths.epoch is not None for _, lengths in named)
    epochs = epochs_text(row for row, _ in named)
    heads = ("framework", f"trial of {epochs}" if epochs else "trial", *(("epoch",) if has_epochs else ()), "job")
    lines = []
    for row, lengths in named:
        assert lengths.trial is not None
        epoch = (range_text(lengths.epoch) if lengths.epoch is not None else NONE,) if has_epochs else ()
        job = "unknown" if lengths.job is None else _marked(lengths.job) if lengths.job.high > 0 else "any"
        lines.append((row.name, _marked(lengths.trial), *epoch, job))
    trained = ((column.trial_seconds, column.added.epochs) for column in columns)
    of_epoch = (
        (_measured(seconds / number for seconds, number in trained if seconds is not None and number),) if has_epochs else ()
    )
    trial, job = (_measured(getattr(column, name) for column in columns) for name in ("trial_seconds", "job_seconds"))
    lines.append(("measured", trial, *of_epoch, job))
    return LengthTable(
        caption="Less than 5 % (half by trials, half by the job) is added here where both exceed:",
        heads=heads,
        rows=tuple(lines),
        notes=tuple(_notes(named)),
    )


def _notes(named: Sequence[tuple[Row, Lengths]]) -> Iterator[str]:
    lengths = [length for _, row_lengths in named for length in (row_lengths.trial, row_lengths.job) if length is not None]
    if any(length.is_extrapolated for length in lengths):
        yield f"{MARKS['is_extrapolated']} over {FURTHEST:g} times the longest measured of this framework ({EXTRAPOLATED})."
    if any(length.are_few for length in lengths):
        yield (
            f"{MARKS['are_few']} from the lowest to the highest of all runs: fewer than {FEWEST_UNDISTURBED} were undisturbed."
        )
    if unknown := [row.name for row, row_lengths in named if row_lengths.job is None]:
        yield f"What {listed(unknown)} {'adds' if len(unknown) == 1 else 'add'} to a job is unknown: {NO_BASELINE}."


def _marked(length: Length) -> str:
    marks = "".join(mark for name, mark in MARKS.items() if getattr(length, name))
    return f"{range_text(length)}{marks and ' '}{marks}"


def _measured(values: Iterable[float | None]) -> str:
    durations = [seconds for seconds in values if seconds is not None]
    return duration_range(durations) if durations else NONE
