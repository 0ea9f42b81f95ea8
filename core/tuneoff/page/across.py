"""What holds over the tasks of a file, as tables; in the file's order, for a rank is no verdict."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.answers.model import AcrossTasks, Answers
from tuneoff.answers.phrases import scope_text
from tuneoff.page import view
from tuneoff.report.figures import MISSING, figure
from tuneoff.stats.interval import Interval
from tuneoff.words import counted


def task_tables(answers: Answers) -> list[view.TaskTable]:
    """Return one table per question, sampler and pruner; none for a file without tasks."""
    return [_table(one) for one in answers.across]


def _table(one: AcrossTasks) -> view.TaskTable:
    return view.TaskTable(
        title=one.question.name.capitalize(),
        scope=scope_text(one.scope),
        about=f"{one.question.metric} over {counted(len(one.tasks), 'task')}: {', '.join(one.tasks)}.",
        headings=(
            view.Heading(text="regret", unit="IQM", title="normalised: 0 is the best known value, 1 the median of random search"),
            view.Heading(text="mean rank", title="over the tasks; 1 is first"),
        ),
        rows=tuple((label, (_interval(one.iqm_regret.get(label)), _number(one.ranks.get(label), 2))) for label in one.labels),
        pairs=tuple(_pairs(one)),
        texts=one.texts,
    )


def _pairs(one: AcrossTasks) -> Iterator[tuple[str, tuple[view.Cell, ...]]]:
    for pair in dict.fromkeys((*one.improvement, *one.wilcoxon)):
        yield f"{pair[0]} better than {pair[1]}", (_interval(one.improvement.get(pair)), _number(one.wilcoxon.get(pair), 3))


def _interval(interval: Interval | None) -> view.Cell:
    if interval is None:
        return view.Cell(text=MISSING)
    return view.Cell(text=figure(interval.estimate), below=f"{figure(interval.low)}–{figure(interval.high)}")


def _number(value: float | None, decimals: int) -> view.Cell:
    return view.Cell(text=MISSING if value is None else f"{value:.{decimals}f}")
