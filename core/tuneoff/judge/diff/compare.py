"""Compare two results folders: match, judge each question by pairs of seeds, and say what else is otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tuneoff.base.packages import need_scipy
from tuneoff.judge.answers.analysis_plan import frozen
from tuneoff.judge.answers.answer import Question
from tuneoff.judge.answers.groups import TABLE
from tuneoff.judge.answers.judging import Rules, verdict
from tuneoff.judge.answers.questions import Questions
from tuneoff.judge.answers.resolution import grid_step
from tuneoff.judge.answers.run_values import units
from tuneoff.judge.diff import environment
from tuneoff.judge.diff.comparison import Change, Comparison, Matched, Noise
from tuneoff.judge.diff.ends import ended, flags
from tuneoff.judge.diff.exact import exact
from tuneoff.judge.diff.match import check_some, left_out, matched
from tuneoff.judge.results import Results, read_results
from tuneoff.judge.runs import EMULATED, Group, by_scope, grouped, noise_pairs
from tuneoff.measure.resumed import is_counted

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
    both = grouped(old), grouped(new)
    found = matched(*both)
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
        changes=tuple(_changes(found, both, old, same_machine)),
        exact=tuple(exact(found, same_machine=same_machine)),
        ended=tuple(ended(found)),
        flags=flags(found),
        left_out=tuple(left_out(*both)),
    )


def _changes(
    found: Sequence[Matched], both: tuple[Sequence[Group], Sequence[Group]], old: Results, same_machine: bool
) -> Iterator[Change]:
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
            prices=old.plan.accounting.prices,
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
                noise=tuple(_noise(group, both, question, rules, plan.confidence)) if blocked is None else (),
            )


def _blocked(group: Matched, question: Question, same_machine: bool) -> str | None:
    """Say why a question of an entry is not compared."""
    if group.old.emulated or group.new.emulated:
        return EMULATED
    if not any(run.will_run for run in group.old.runs) or not any(run.will_run for run in group.new.runs):
        return "skipped"
    return None if same_machine or is_counted(question.metric) else OTHER_MACHINE


def _noise(
    group: Matched, both: tuple[Sequence[Group], Sequence[Group]], question: Question, rules: Rules, confidence: float
) -> Iterator[Noise]:
    """Yield what equal entries differ by in the scope, within each folder."""
    of_noise = replace(rules, alpha=1 - confidence)
    for side, groups, own in zip("AB", both, (group.old, group.new), strict=True):
        for again, first in noise_pairs(by_scope(groups)[own.scope]):
            interval = verdict(again, first, question, of_noise, is_noise=True).interval
            if interval is not None:
                yield Noise(side=side, pair=f"{again.label} against {first.label}", interval=interval)
