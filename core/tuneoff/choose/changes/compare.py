"""Compare two results folders: match, judge each question by pairs of seeds, and say what else is otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tuneoff.answers.cells import Matrix
from tuneoff.answers.frozen import frozen
from tuneoff.answers.grid import grid_step
from tuneoff.answers.groups import TABLE
from tuneoff.answers.judging import Rules, verdict
from tuneoff.answers.model import Question
from tuneoff.answers.pairing import noise_pairs
from tuneoff.answers.questions import Questions
from tuneoff.answers.results import Results, read_results
from tuneoff.answers.run_values import units
from tuneoff.choose.changes import environment
from tuneoff.choose.changes.ends import ended, flags
from tuneoff.choose.changes.exact import exact
from tuneoff.choose.changes.match import check_some, left_out, matched
from tuneoff.choose.changes.model import Change, Comparison, Matched, Noise
from tuneoff.controls.cells import EMULATED
from tuneoff.controls.same_algorithm import OF_TRIALS
from tuneoff.packages import need_scipy

OTHER_MACHINE = "another machine: only counts of trials and how good they are can be compared"


def compare(old_folder: Path, new_folder: Path) -> Comparison:
    """Return what changed from the old folder to the new one.

    Raises:
        ResultsError: one is no results folder, or a file in it is damaged.
        ExperimentError: they have no run in common.
        MissingPackageError: scipy is not installed.
    """
    need_scipy("the comparison of two results folders")
    return compared(read_results(old_folder), read_results(new_folder))


def compared(old: Results, new: Results) -> Comparison:
    """Return what changed between two folders that were read."""
    matrices = Matrix(old), Matrix(new)
    found = matched(*matrices)
    check_some(found, old, new)
    sides = tuple(
        [run.record for group in found for run in (group.old, group.new)[side].runs if run.record is not None] for side in (0, 1)
    )
    same_machine = environment.is_same_machine(*sides)
    return Comparison(
        folders=(old.folder, new.folder),
        names=(old.plan.name, new.plan.name),
        runs=sum(len(group.old.runs) for group in found),
        same_machine=same_machine,
        environment=environment.differing(*sides),
        analysis=environment.frozen_differences(old.plan.analysis, new.plan.analysis),
        sentinel=environment.sentinel_ratio(*sides) if same_machine else None,
        changes=tuple(_changes(found, matrices, old, same_machine)),
        exact=tuple(exact(found, same_machine=same_machine)),
        ended=tuple(ended(found)),
        flags=flags(found),
        left_out=tuple(left_out(*matrices)),
    )


def _changes(found: Sequence[Matched], matrices: tuple[Matrix, Matrix], old: Results, same_machine: bool) -> Iterator[Change]:
    """Yield each question of each entry, judged by what the old folder froze, at its family's size."""
    plan = frozen(old.plan.analysis)
    runs = [run for group in found for run in group.old.runs]
    questions = Questions(plan, old.plan.analysis, units(runs, {*plan.questions.values(), *TABLE}))
    firsts = [group for group in found if group.old.spec.replicate == 0]  # an equal entry again is for the noise
    in_scope = Counter(group.old.scope for group in firsts)
    for group in firsts:
        rules = Rules(
            alpha=plan.alpha(in_scope[group.old.scope]),
            confidence=plan.confidence,
            looks=(),
            grid_step=grid_step(old, [group.old]),
        )
        for question in questions.of(group.old.spec.experiment):
            blocked = _blocked(group, question, same_machine)
            made = verdict(group.new, group.old, question, rules) if blocked is None else None
            yield Change(
                name=group.name,
                adapter=group.old.spec.adapter,
                scope=group.old.scope,
                question=question,
                verdict=made,
                reason=made.reason if made is not None else blocked or "",
                noise=tuple(_noise(group, matrices, question, rules, plan.confidence)) if blocked is None else (),
            )


def _blocked(group: Matched, question: Question, same_machine: bool) -> str | None:
    """Say why a question of an entry is not compared."""
    if group.old.emulated or group.new.emulated:
        return EMULATED
    if not any(run.will_run for run in group.old.runs) or not any(run.will_run for run in group.new.runs):
        return "skipped"
    return None if same_machine or question.metric.startswith(OF_TRIALS) else OTHER_MACHINE


def _noise(
    group: Matched, matrices: tuple[Matrix, Matrix], question: Question, rules: Rules, confidence: float
) -> Iterator[Noise]:
    """Yield what equal entries differ by in the scope, within each folder."""
    of_noise = Rules(alpha=1 - confidence, confidence=confidence, looks=(), grid_step=rules.grid_step)
    for side, matrix, cell in zip("AB", matrices, (group.old, group.new), strict=True):
        for again, first in noise_pairs(matrix.by_scope[cell.scope]):
            interval = verdict(again, first, question, of_noise, is_noise=True).interval
            if interval is not None:
                yield Noise(side=side, pair=f"{again.label} against {first.label}", interval=interval)
