"""Whether the cost per trial stays flat: the serial adapter at 10 000 null trials against 100, in time and in memory."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.speed.child import MeasurementError
from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.settings import Settings
from benchmarks.speed.sides import Side, run_tuneoff
from benchmarks.speed.specs import WORKERS
from benchmarks.speed.statistics import estimate, ratios, side_by_side, slope

FEW, MANY = 100, 10_000
PAIRS = 8
TIME_TARGET, COST_TARGET, MEMORY_TARGET = SpeedTarget("<=", 1.2), SpeedTarget("<=", 5.0), SpeedTarget("<", 2000.0)
A, B = f"overhead per trial of serial at {MANY:,} null trials", f"the same at {FEW} null trials"
WINDOW = 1000  # trials at each end of a long run whose cost is compared
SETTLED = 0.2  # the part of the trials after which memory is looked at: buffers have their size by then


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield rows for the ratio, the cost itself, and the memory of the coordinator and of the supervising parent."""
    makers = {
        "many": lambda: run_tuneoff("serial", "null", MANY, settings),
        "few": lambda: run_tuneoff("serial", "null", FEW, settings),
    }
    pairs = settings.repeats(PAIRS)
    try:
        runs = side_by_side(
            makers,
            pairs,
            lambda number, side, run: settings.say(
                f"  flat_cost: pair {number + 1}/{pairs}, {side} {_overhead_ms(run):.3f} ms per trial"
            ),
        )
    except MeasurementError as error:
        yield skipped("flat_cost.ratio", A, str(error), B, TIME_TARGET)
        return
    many, few = ([_overhead_ms(run) for run in runs[side]] for side in ("many", "few"))
    yield SpeedRow(
        name="flat_cost.ratio",
        a=A,
        b=B,
        result=estimate(ratios(many, few)),
        target=TIME_TARGET,
        figures={
            "A ms": estimate(many).value,
            "B ms": estimate(few).value,
            f"last {WINDOW:,} trials over first {WINDOW:,}": estimate([_late_over_early(run) for run in runs["many"]]).value,
        },
        samples={"many_ms_per_trial": many, "few_ms_per_trial": few},
    )
    yield SpeedRow(
        name="flat_cost.per_trial",
        a=f"{A}: slot time of the whole trial span, as a null trial itself takes none",
        unit="ms",
        result=estimate(many),
        target=COST_TARGET,
        figures={"span of 2 workers ms per trial": estimate([run.span_seconds / MANY * 1e3 for run in runs["many"]]).value},
        samples={"many_ms_per_trial": many},
    )
    for column, process in ((1, "coordinator"), (2, "supervising parent")):
        yield _memory_row(process, column, runs["many"])


def _overhead_ms(run: Side) -> float:
    return run.span_seconds * WORKERS / len(run.details["trials"]) * 1e3


def _late_over_early(run: Side) -> float:
    """Return how long the last trials of a run took over the first ones (the very first left out: the workers' start)."""
    ends: list[int] = [trial[4] for trial in run.details["trials"]]
    return (ends[-1] - ends[-1 - WINDOW]) / (ends[FEW + WINDOW] - ends[FEW])


def _memory_row(process: str, column: int, runs: list[Side]) -> SpeedRow:
    name = f"flat_cost.memory.{process.replace(' ', '_')}"
    a = f"growth of the resident memory of the {process} per null trial, {MANY:,} trials"
    growths, highest = [], []
    for run in runs:
        samples = [sample for sample in run.details["memory"] if sample[0] >= SETTLED * MANY]
        growth = slope([sample[0] for sample in samples], [sample[column] for sample in samples])
        if growth is not None:
            growths.append(growth)
            highest.append(max(sample[column] for sample in samples) / 1e6)
    if not growths:
        return skipped(name, a, "the runs were too short for two samples of memory", target=MEMORY_TARGET)
    return SpeedRow(
        name=name,
        a=a,
        unit="B",
        result=estimate(growths),
        target=MEMORY_TARGET,
        figures={"largest seen MB": estimate(highest).value},
        samples={"bytes_per_trial": growths},
    )
