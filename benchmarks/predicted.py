"""What trials of few epochs predict for those of many, beside what these measured.

`python -m benchmarks.predicted FILE ... --epochs 200`, each FILE what `tuneoff report DIR --json` printed. Columns with so many
epochs are what was measured, all others give the parts; without the former it predicts beforehand. In % of a trial, with the
intervals of the report: of a prediction the sum of those of its parts.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from tuneoff.base.format import two_digits
from tuneoff.base.output import columns
from tuneoff.judge.choice.curve import MORE_REPORTS

MISSING = "–"


class Share(NamedTuple):
    """A share in %, with its interval."""

    estimate: float
    low: float
    high: float

    @property
    def text(self) -> str:
        has_ends = math.isfinite(self.low) and math.isfinite(self.high)
        return two_digits(self.estimate) + (f" [{two_digits(self.low)}, {two_digits(self.high)}]" if has_ends else "")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    parser.add_argument("--epochs", type=int, required=True, help="of the trials that are predicted")
    options = parser.parse_args(arguments)
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for path in options.files:
        for setting in json.loads(path.read_text())["choice"]["settings"]:
            for row in setting["rows"]:
                by_name.setdefault(row["name"], []).extend(row["columns"].values())
    heads = (
        "framework",
        "s/trial",
        "ms/report",
        f"predicted for {options.epochs} epochs, %",
        "measured, %",
        "measured/predicted",
    )
    sys.stdout.write(columns(heads, [_row(name, of, options.epochs) for name, of in by_name.items()]) + "\n")
    return 0


def _row(name: str, rows: Sequence[Mapping[str, Any]], epochs: int) -> tuple[str, ...]:
    parts = [row for row in rows if round(row["added"]["epochs"]) != epochs]
    guess = predicted(parts, epochs)
    texts = (
        name,
        " ".join(two_digits(row["added"]["per_trial"]["estimate"]) for row in parts),
        " ".join(two_digits(1000 * each["estimate"]) if (each := row["added"]["per_report"]) else MISSING for row in parts),
        guess.text,
    )
    for row in rows:
        if row not in parts:
            whole = measured(row)
            return *texts, whole.text, two_digits(whole.estimate / guess.estimate)
    return *texts, MISSING, MISSING


def predicted(parts: Sequence[Mapping[str, Any]], epochs: int) -> Share:
    """Return the share added to a trial of so many epochs: what a trial adds, the mean over columns, and what its reports add,
    the mean over all their reports, in trials whose epochs train as long as those of the longest known ones."""
    most = max(parts, key=lambda part: part["added"]["epochs"])
    longer = epochs / most["added"]["epochs"]
    each = [part["added"]["reports"] for part in parts]
    reports = each[parts.index(most)] * (longer if max(each) > MORE_REPORTS else 1)  # told once, if at all: no more than that
    shares = []
    for end in Share._fields:
        seconds = fmean(_seconds(part["added"]["per_trial"], end) for part in parts)
        if reports:
            seconds += reports * fmean((_seconds(part["added"]["per_report"], end) for part in parts), weights=each)
        shares.append(100 * seconds / (most["trial_seconds"] * longer))
    return Share(*shares)


def measured(column: Mapping[str, Any]) -> Share:
    """Return the share added to the trials of a column."""
    whole = column["added"]["per_whole_trial"]
    return Share(*(100 * _seconds(whole, end) / column["trial_seconds"] for end in Share._fields))


def _seconds(interval: Mapping[str, float | None], end: str) -> float:
    """Return an end of an interval, not below 0; NaN where one run has none."""
    seconds = interval[end]
    return max(0.0, seconds) if seconds is not None else math.nan


if __name__ == "__main__":
    sys.exit(main())
