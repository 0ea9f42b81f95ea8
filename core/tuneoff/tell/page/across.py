"""What holds over the tasks of a file, as tables; in the file's order, for a rank is no verdict."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.base.format import MISSING, figure
from tuneoff.base.words import counted
from tuneoff.judge.answers.answer import AcrossTasks, Answers, Question
from tuneoff.judge.answers.phrases import scope_text, signed
from tuneoff.judge.answers.words_across import compared_by
from tuneoff.judge.stats.interval import Interval
from tuneoff.tell.page import view

LEAST_P = 0.001  # that is shown


def task_tables(answers: Answers) -> list[view.TaskTable]:
    """Return one table per question, sampler and pruner; none for a file without tasks."""
    return [_table(one) for one in answers.across]


REGRET = view.Heading(text="regret", unit="IQM", title="normalised: 0 is the best known value, 1 the median of random search")
RANK = view.Heading(text="mean rank", title="over the tasks; 1 is first")


def _table(one: AcrossTasks) -> view.TaskTable:
    has_regret = bool(one.iqm_regret)  # only a question with anchors has one
    rows = []
    for label in one.labels:
        regret = [_interval(one.iqm_regret.get(label))] if has_regret else []
        rows.append((label, (*regret, _number(one.ranks.get(label), 2))))
    return view.TaskTable(
        title=one.question.name.capitalize(),
        scope=scope_text(one.scope),
        about=f"{one.question.metric} over {counted(len(one.tasks), 'task')}: {', '.join(one.tasks)}.",
        headings=(REGRET, RANK) if has_regret else (RANK,),
        rows=tuple(rows),
        pairs=tuple(_pairs(one)),
        texts=one.texts,
    )


def _pairs(one: AcrossTasks) -> Iterator[tuple[str, tuple[view.Cell, ...]]]:
    question = compared_by(one)
    known = {(pair.one, pair.other): pair for pair in one.compared}
    for names in dict.fromkeys((*one.improvement, *known)):
        pair = known.get(names)
        mean = pair.mean if pair is not None else None
        label = " against ".join(names) + (", control (A/A)" if pair is not None and pair.is_noise else "")
        yield (
            label,
            (_interval(one.improvement.get(names)), _difference(mean, question), _p(pair.p if pair is not None else None)),
        )


def _difference(mean: Interval | None, question: Question) -> view.Cell:
    """Return one − other; its bounds are those of the family."""
    if mean is None:
        return view.Cell(text=MISSING)
    return view.Cell(text=signed(mean.estimate, question), below=f"{signed(mean.low, question)} to {signed(mean.high, question)}")


def _interval(interval: Interval | None) -> view.Cell:
    if interval is None:
        return view.Cell(text=MISSING)
    return view.Cell(text=figure(interval.estimate), below=f"{figure(interval.low)}–{figure(interval.high)}")


def _p(value: float | None) -> view.Cell:
    """Return a p; one is never 0."""
    return view.Cell(text=f"<{LEAST_P}") if value is not None and value < LEAST_P else _number(value, 3)


def _number(value: float | None, decimals: int) -> view.Cell:
    return view.Cell(text=MISSING if value is None else f"{value:.{decimals}f}")
