"""What frameworks add to a trial as a share of it, over the trial lengths or the numbers of workers that a matrix varies."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tuneoff.base.format import counted, duration_text
from tuneoff.experiment.spec import RunSpec
from tuneoff.judge.choice.choice import Column, Curve, Over, Point, Row, Setting, share_text
from tuneoff.judge.runs import Scope

LONGER = 2.0  # times the shortest trial: below, trials count as equally long
SHORTEST = 0.001  # s: trials that take no time have no share


def curves(rows: Sequence[Row], specs: Mapping[Scope, RunSpec]) -> tuple[Curve, ...]:
    """Return a curve over trial length per number of workers, else one over workers; none where neither varies.

    `specs`: a run of each scope, in the order of the file. Tasks differ in more than in the length of their trials.
    """
    alike = _together(specs, lambda scope: specs[scope].experiment.workers.count)
    by_length = [_curve("trial_seconds", rows, specs, scopes) for scopes in alike]
    found = tuple(one for one in by_length if any(of[-1].x >= LONGER * of[0].x for of in one.lines.values()))
    if found and not any(scope.task for scope in specs):
        return found
    apart = _together(specs, lambda scope: specs[scope].scope_key("workers.count"))
    if len(alike) == len(specs):  # what else differs goes along with the workers
        apart = [list(specs)]
    by_workers = [_curve("workers", rows, specs, scopes) for scopes in apart]
    return tuple(one for one in by_workers if any(len(of) > 1 for of in one.lines.values()))


def curve_lines(setting: Setting) -> Iterator[str]:
    """Yield the curves in words, a line per framework."""
    names = {row.label: row.name for row in setting.rows}
    for curve in setting.curves:
        yield f"Added to a trial, as a share of it ({', '.join(filter(None, ('sampler ' + setting.name, curve.beside)))}):"
        for label, points in curve.lines.items():
            yield f"  {names[label]}: {'; '.join(f'{place_text(curve, point.x)} {_told(point)}' for point in points)}"


def place_text(curve: Curve, x: float) -> str:
    """Return where a point stands: `1 s`, `4 workers`."""
    return duration_text(x) if curve.over == "trial_seconds" else counted(round(x), "worker")


def _told(point: Point) -> str:
    predicted = f", {share_text(point.predicted)} predicted" if point.predicted is not None else ""
    return share_text(point.share.estimate) + predicted


def _together(scopes: Iterable[Scope], key: Callable[[Scope], Hashable]) -> list[list[Scope]]:
    found: dict[Hashable, list[Scope]] = {}
    for scope in scopes:
        found.setdefault(key(scope), []).append(scope)
    return list(found.values())


def _curve(over: Over, rows: Sequence[Row], specs: Mapping[Scope, RunSpec], scopes: Sequence[Scope]) -> Curve:
    lines: dict[str, tuple[Point, ...]] = {}
    for row in rows:
        columns = [row.columns[scope.text] for scope in scopes if scope.text in row.columns]
        points = [point for column in columns if (point := _point(over, column, specs)) is not None]
        if points:
            ordered = sorted(points, key=lambda point: point.x)
            lines[row.label] = _predicted(ordered) if over == "trial_seconds" else tuple(ordered)
    first = scopes[0]
    beside = counted(specs[first].experiment.workers.count, "worker") if over == "trial_seconds" else first.task
    return Curve(over=over, beside=beside, lines=lines)


def _point(over: Over, column: Column, specs: Mapping[Scope, RunSpec]) -> Point | None:
    added, seconds = column.added.per_trial, column.trial_seconds
    if added is None or seconds is None or seconds < SHORTEST:
        return None
    x = seconds if over == "trial_seconds" else float(specs[column.scope].experiment.workers.count)
    return Point(scope=column.scope.text, x=x, share=added.over(seconds), predicted=None)


def _predicted(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the points with what the first one predicts: that longer trials have as many seconds added."""
    first, *longer = points
    seconds = first.share.estimate * first.x
    return first, *(replace(point, predicted=seconds / point.x) for point in longer)
