"""An axis: where a value stands on it, and its ticks; and step functions over several runs. Nothing is interpolated.

Colours and line styles: colour is never the only sign, and a framework keeps its own everywhere.

The seeds of a framework are dots on an axis that all frameworks share, each with the run behind it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tuneoff.base.format import figure, score
from tuneoff.judge.answers.answer import Question
from tuneoff.judge.answers.phrases import display_unit
from tuneoff.judge.groups import Group
from tuneoff.judge.stats.location import middle

# Those of frameworks, c1 to c8, were found by a search for the largest difference between any two, also as seen with each kind of
# colour blindness; at least 3:1 against the paper. The parts of a job are greys, and one colour that no framework has.
LIGHT: Mapping[str, str] = {
    "ink": "#1b1f24",
    "paper": "#ffffff",
    "grid": "#dde1e6",
    "muted": "#737a83",
    "c1": "#2e32e1",
    "c2": "#b08d00",
    "c3": "#d769ae",
    "c4": "#176242",
    "c5": "#5b8afb",
    "c6": "#3a1257",
    "c7": "#590b00",
    "c8": "#7f7332",
    "part-start": "#8f98a3",
    "part-training": "#333b44",
    "part-waiting": "#c2410c",
    "part-test": "#ccd2d8",
    "part-stop": "#646d77",
}
DARK: Mapping[str, str] = {
    "ink": "#e8eaed",
    "paper": "#16191d",
    "grid": "#343a42",
    "muted": "#8b929b",
    "c1": "#5162ff",
    "c2": "#e3b505",
    "c3": "#c86c99",
    "c4": "#49f4a7",
    "c5": "#bcf5ff",
    "c6": "#ab99f5",
    "c7": "#da252f",
    "c8": "#e5f27a",
    "part-start": "#77818c",
    "part-training": "#e4e8ec",
    "part-waiting": "#ff7f50",
    "part-test": "#454d57",
    "part-stop": "#a3acb6",
}
SERIES = tuple(name for name in LIGHT if name.startswith("c"))
DASHES = ("", "6 3", "2 2", "8 3 2 3", "4 2 1 2 1 2")  # "": solid
FAR = 20.0  # values that differ by more than this factor need a logarithmic axis
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MOST_TICKS = 5
Steps = Sequence[tuple[float, float]]  # (from here on, value), in order
MOST_DOTS = 100  # of a row


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How one framework is drawn. `colour`: the name of one of the page's colours."""

    colour: str
    dashes: str


def styles(labels: Iterable[tuple[str, int, bool]]) -> dict[str, Style]:
    """Return a style per label, given (label, replicate, excluded) in the order of the file.

    An entry that is there again has the colour of the first one. What a flag keeps out is grey.
    """
    by_label: dict[str, Style] = {}
    places: dict[str, int] = {}
    for label, replicate, excluded in labels:
        if label in by_label:
            continue
        entry = label.rpartition("#")[0] if replicate and "#" in label else label
        position = places.setdefault(entry, len(places))
        by_label[label] = Style(
            colour="muted" if excluded else SERIES[position % len(SERIES)],
            dashes=DASHES[(position // len(SERIES) + replicate) % len(DASHES)],
        )
    return by_label


def css(theme: Literal["light", "dark"]) -> str:
    """Return the variables of a theme as CSS declarations."""
    return " ".join(f"--{name}: {colour};" for name, colour in (LIGHT if theme == "light" else DARK).items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From `low` to `high`, both in the unit of the values."""

    low: float
    high: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """Return where a value stands, from 0 to 1; what lies beyond an end is put on it."""
        inside = min(max(value, self.low), self.high)
        low, high, moved = (math.log(number) if self.is_log else number for number in (self.low, self.high, inside))
        return (moved - low) / (high - low)

    @property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Some round values: (where, text)."""
        if self.is_log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            candidates = [number * 10.0**power for power in range(first, last + 1) for number in (1, 2, 5)]
            values = [value for value in candidates if self.low <= value <= self.high]
            if len(values) > MOST_TICKS:
                logarithms = {value: math.log10(value) for value in values}
                powers = [value for value, log in logarithms.items() if math.isclose(log, round(log), abs_tol=1e-9)]
                values = powers or values[:1]
        else:
            size = 10.0 ** math.floor(math.log10((self.high - self.low) / MOST_TICKS))
            step = next(size * number for number in STEPS if (self.high - self.low) / (size * number) <= MOST_TICKS)
            ends = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            values = [number * step for number in range(ends[0], ends[1] + 1)]
        texts = [figure(value) for value in values]
        if len(set(texts)) < len(texts):  # neighbours in a narrow range
            texts = [f"{value:.7g}" for value in values]
        places = zip(map(self.at, values), texts, strict=True)  # without the zeros at the end of decimals
        return tuple((at, text.rstrip("0").rstrip(".") if "." in text else text) for at, text in places)


def scale(values: Iterable[float], far: float = FAR) -> Scale | None:
    """Return an axis on which all finite values stand, logarithmic from a factor of `far` on; None without one."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    low, high = min(finite), max(finite)
    if low > 0 and high / low > far:
        return Scale(low=low / 1.1, high=high * 1.1, is_log=True)
    margin = (high - low) * 0.05 or abs(high) * 0.05 or 0.5
    return Scale(low=low - margin, high=high + margin)


def order_statistic(values: Sequence[float], share: float) -> float:
    """Return the value that at least `share` of the values do not exceed: one of them, so an infinite one mixes with none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]


def combined(runs: Sequence[Steps], worst: float, most: int = 400) -> list[tuple[float, float, float, float]]:
    """Return (x, median, lower quartile, upper quartile) at each point where a run improves, at most at so many of them.

    A run has `worst`, ±inf, before its first improvement; one that failed has no step at all.
    """
    points = sorted({x for steps in runs for x, _ in steps})
    points = [points[index] for index in spread_out(len(points), most)]
    places = [0] * len(runs)
    values = [worst] * len(runs)
    rows: list[tuple[float, float, float, float]] = []
    for x in points:
        for index, steps in enumerate(runs):
            while places[index] < len(steps) and steps[places[index]][0] <= x:
                values[index] = steps[places[index]][1]
                places[index] += 1
        rows.append((x, middle(values), order_statistic(values, 0.25), order_statistic(values, 0.75)))
    return rows


def spread_out(count: int, most: int) -> list[int]:
    """Return at most `most` places among `count`, evenly, with the first and the last."""
    if count <= most:
        return list(range(count))
    if most == 1:
        return [0]
    return sorted({round(position * (count - 1) / (most - 1)) for position in range(most)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A run. `at`: from 0 to 1; `text`: its seed and value."""

    at: float
    text: str
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """A row of dots. `median`: where it stands, None where most runs failed; `failed`: seeds without a value as they failed."""

    dots: tuple[Dot, ...]
    median: float | None
    failed: tuple[int, ...]
    more: int  # dots that are not drawn


def strip(group: Group, question: Question, axis: Scale) -> Strip:
    """Return the dots of a group."""
    estimate = group.estimate(question.metric)
    ordered = sorted(estimate.by_seed.items(), key=lambda item: item[1])
    unit, factor = display_unit(question.metric, question.unit)
    runs = {run.seed: run.run_id for run in group.runs}
    drawn = [ordered[index] for index in spread_out(len(ordered), MOST_DOTS)]
    failed = tuple(run.seed for run in group.runs if run.is_failure)
    dots = []
    for seed, value in drawn:
        amount = (figure(value * factor) if unit else score(value)).replace("-", "−")
        text = f"seed {seed}: {amount} {unit if unit != 'count' else ''}".rstrip()
        dots.append(Dot(at=axis.at(factor * value), text=text, run_id=runs[seed]))
    return Strip(
        dots=tuple(dots),
        median=axis.at(factor * estimate.middle) if estimate.middle is not None and math.isfinite(estimate.middle) else None,
        failed=failed,
        more=len(ordered) - len(drawn),
    )
