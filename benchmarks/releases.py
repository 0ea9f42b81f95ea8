"""How often is a step between releases marked where nothing changed, with the spread of measured runs?

`python -m benchmarks.releases DIR [--histories N] [--releases N] [--seeds N]`: take the runs of the first framework over its
releases in a results folder, leave out what its releases and its seeds have in common, and draw histories from the rest: releases
that are equal, with all figures of a run drawn together. Each history is judged by the very functions of the report. Then the
smallest step that the report states is added to one release, figure by figure, to count how often it is found.

Exit code 1 where more than 5 % of the histories have a mark, or a stated step is found in less than 85 %.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tuneoff.base.format import counted
from tuneoff.experiment.metric_catalogue import metric as definition
from tuneoff.experiment.spec import EnvironmentSpec
from tuneoff.judge.answers.analysis_plan import Frozen, frozen
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choice import ScalingCurve
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.choice.releases import Figure, figures, frameworks, history, residuals, shown_steps, smallest_step_text
from tuneoff.judge.groups import Group
from tuneoff.judge.results import Run, read_results
from tuneoff.judge.stats.sign_flip import generator
from tuneoff.judge.stats.signed_rank import least_n
from tuneoff.measure.use import SHARE
from tuneoff.record.metric_value import metric_value

MOST_MARKED = 0.05
LEAST_FOUND = 0.85  # of the 90 % that are stated: the spread is an estimate, and no normal one
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spread:
    """What is left of a figure's runs: `rest` (releases, seeds) around `centre`, of logarithms where ratios are compared."""

    metric: str
    first: Group  # the oldest release
    centre: float
    rest: Floats

    def group(self, position: int, rest: Floats) -> Group:
        """Return a release with these differences (seeds) from the centre."""
        values = np.exp(self.centre + rest) if definition(self.metric).scale == "ratio" else self.centre + rest
        run = next(run for run in self.first.runs if run.is_done)
        return replace(
            self.first,
            label=f"release {position}",
            spec=replace(self.first.spec, environment=EnvironmentSpec(version=f"1.{position}")),
            runs=tuple(self._run(run, seed, float(value)) for seed, value in enumerate(values)),
        )

    def _run(self, run: Run, seed: int, value: float) -> Run:
        """Return a run with nothing but this value: a verdict on energy is then not taken back for the weights of a model."""
        assert run.record is not None
        metrics = {self.metric: replace(run.record.metrics[self.metric], value=value), SHARE: metric_value(0.0, "%")}
        return replace(run, spec=replace(run.spec, seed=seed), record=replace(run.record, metrics=metrics, trials=(), flags=()))


def spreads(measured: Sequence[Figure]) -> Iterator[Spread]:
    """Yield the spread of each figure.

    Raises:
        ValueError: it has none.
    """
    for metric, groups in measured:
        yield Spread(metric, groups[0], *residuals(metric, groups))


def simulated(measured: Sequence[Spread], releases: int, seeds: int, *key: str, step: float = 0.0, of: int = -1) -> list[Figure]:
    """Return a history of equal releases; `step`: what the last one of figure `of` has more."""
    draw = generator("releases", *key)
    rows, columns = (draw.integers(0, size, (releases, seeds)) for size in measured[0].rest.shape)
    steps = np.zeros((len(measured), releases))
    steps[of, -1] = step
    return [
        (
            spread.metric,
            [spread.group(position, rest) for position, rest in enumerate(spread.rest[rows, columns] + more[:, None])],
        )
        for spread, more in zip(measured, steps, strict=True)
    ]


def marked(measured: Sequence[Spread], plan: Frozen, histories: int, releases: int, seeds: int) -> int:
    """Return how many histories without a change have any mark."""
    return sum(
        any(shown_steps(curve) for curve in history("equal", simulated(measured, releases, seeds, "null", str(number)), plan))
        for number in range(histories)
    )


def found(
    measured: Sequence[Spread], curves: Sequence[ScalingCurve], plan: Frozen, histories: int, seeds: int
) -> Iterator[tuple[str, float]]:
    """Yield of each figure with a smallest step how large it is, and in which share of histories the report marks it."""
    for number, curve in enumerate(curves):
        if curve.smallest_step is None:
            continue
        releases, count = len(curve.steps) + 1, 0
        for repetition in range(histories):
            drawn = simulated(measured, releases, seeds, "step", str(repetition), step=curve.smallest_step, of=number)
            first = next(history("stepped", [drawn[number], *drawn[:number], *drawn[number + 1 :]], plan))
            count += f"1.{releases - 1}" in shown_steps(first)
        yield f"{curve.metric} {curve.beside}: {smallest_step_text(curve)}", count / histories


def main() -> int:
    options = _parse()
    result = answers(read_results(options.folder))
    plan, setting = frozen(result.analysis), choose(result).settings[0]
    name, rows = next(iter(frameworks(setting.rows)), ("", []))
    if not rows:
        print(f"releases: {options.folder} must hold several releases of a framework, but does not", file=sys.stderr)
        return 2
    real = figures(rows)
    try:
        measured, curves = list(spreads(real)), list(history(name, real, plan))
    except ValueError as error:
        print(f"releases: {error}; go on: tuneoff compare FILE --resume", file=sys.stderr)
        return 2
    seeds = len(rows[0].first.group.by_seed)
    comparisons = len(measured) * (options.releases - 1)
    needed = least_n(plan.alpha(comparisons))
    drawn = options.seeds or max(seeds, needed)
    print(f"{name}: {counted(len(measured), 'figure')}, {counted(len(rows), 'release')}, {counted(seeds, 'seed')}")
    if seeds < needed:
        print(f"{comparisons} comparisons of {options.releases} releases need {needed} seeds; so many are drawn")
    count = marked(measured, plan, options.histories, options.releases, drawn)
    print(f"null: {count} of {options.histories} histories of {options.releases} releases and {drawn} seeds have a mark")
    as_measured = marked(measured, plan, options.histories, len(rows), seeds)
    print(
        f"null: {as_measured} of {options.histories} histories as measured, {len(rows)} releases and {seeds} seeds, have a mark"
    )
    shares = []
    for text, share in found(measured, curves, plan, options.histories // 10, seeds):
        print(f"smallest step {text}: found in {100 * share:.0f} % of {options.histories // 10}")
        shares.append(share)
    is_right = max(count, as_measured) <= MOST_MARKED * options.histories and all(share >= LEAST_FOUND for share in shares)
    return 0 if is_right else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.releases", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", metavar="DIR", type=Path, help="results folder of several releases")
    parser.add_argument("--histories", type=int, default=1000, help="default: %(default)s; a tenth of it for each step")
    parser.add_argument("--releases", type=int, default=10, help="of a history; default: %(default)s")
    parser.add_argument("--seeds", type=int, help="of a history; default: as measured, or as many as can show anything")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
