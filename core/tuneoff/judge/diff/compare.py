"""Compare two results folders: match, judge each question by pairs of seeds, bit by bit, and say what else is otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuneoff.base.format import counted
from tuneoff.errors import ExperimentError
from tuneoff.experiment.metric_catalogue import metric
from tuneoff.experiment.spec import RunSpec, run_spec_to_json
from tuneoff.judge.answers.analysis_plan import frozen
from tuneoff.judge.answers.answer import Question
from tuneoff.judge.answers.judging import Rules, verdict
from tuneoff.judge.answers.run_values import grid_step, units
from tuneoff.judge.controls.same_configuration import same_configuration
from tuneoff.judge.diff.comparison import (
    Change,
    Comparison,
    Ended,
    Exact,
    Matched,
    Noise,
    differing,
    frozen_differences,
    is_same_machine,
    sentinel_ratio,
)
from tuneoff.judge.results import Results, read_results
from tuneoff.judge.runs import EMULATED, Group, Run, by_scope, grouped, noise_pairs

MOST = 3  # differences of a specification that are named
_NO_PART = ("seed", "adapter_target", "local_options", "experiment.timeouts", "experiment.variant", "experiment.workload.target")
OLD, NEW = "A", "B"
_TOLD = ("done", "failed", "timeout", "skipped")  # interrupted or not run yet: that folder is unfinished, nothing changed
OTHER_MACHINE = "another machine: only counts of trials and how good they are can be compared"


def compare(old_folder: Path, new_folder: Path) -> Comparison:
    """Return what changed from the old folder to the new one.

    Raises:
        ResultsError: one is no results folder, or a file in it is damaged.
        ExperimentError: they have no run in common.
    """
    return compared(read_results(old_folder), read_results(new_folder))


def compared(old: Results, new: Results) -> Comparison:
    """Return what changed between two folders that were read."""
    both = grouped(old), grouped(new)
    found = matched(*both)
    check_some(found, old, new)
    sides = tuple(
        [run.record for group in found for run in (group.old, group.new)[side].runs if run.record is not None] for side in (0, 1)
    )
    same_machine = is_same_machine(*sides)
    return Comparison(
        folders=(old.folder, new.folder),
        names=(old.plan.name, new.plan.name),
        runs=sum(len(group.old.runs) for group in found),
        same_machine=same_machine,
        environment=differing(*sides),
        analysis=frozen_differences(old.plan.analysis, new.plan.analysis),
        sentinel=sentinel_ratio(*sides) if same_machine else None,
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
    known = units(runs, plan.questions.values())
    firsts = [group for group in found if group.old.spec.replicate == 0]  # an equal entry again is for the noise
    in_scope = Counter(group.old.scope for group in firsts)
    for group in firsts:
        rules = Rules(
            alpha=plan.alpha(in_scope[group.old.scope]),
            confidence=plan.confidence,
            grid_step=grid_step(old, [group.old]),
            prices=old.plan.accounting.prices,
        )
        for question in plan.questions_of(group.old.spec.experiment, known):
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
    return None if same_machine or metric(question.metric).is_counted else OTHER_MACHINE


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


def ended(found: Sequence[Matched]) -> list[Ended]:
    """Return the runs whose status is another one, failures first."""
    changes = []
    for group in found:
        for old, new in _pairs(group):
            if old.status != new.status and {old.status, new.status} <= set(_TOLD):
                reason = new.reason or old.reason or ""
                changes.append(Ended(name=group.name, seed=old.seed, old=old.status, new=new.status, reason=reason))
    return sorted(changes, key=lambda one: (not one.is_failure, one.is_recovery))


def flags(found: Sequence[Matched]) -> dict[str, tuple[int, int]]:
    """Return, by flag, how many of the shared runs have it in A and in B, where that differs."""
    counts = Counter[str](), Counter[str]()
    for group in found:
        for pair in _pairs(group):
            for run, count in zip(pair, counts, strict=True):
                count.update(run.flags)
    old, new = counts
    return {name: (old[name], new[name]) for name in sorted({*old, *new}) if old[name] != new[name]}


def _pairs(group: Matched) -> list[tuple[Run, Run]]:
    news = {run.run_id: run for run in group.new.runs}
    return [(run, news[run.run_id]) for run in group.old.runs]


def exact(found: Sequence[Matched], *, same_machine: bool) -> list[Exact]:
    """Return the comparison of each matched entry that has runs to compare."""
    return [one for group in found if (one := _of_group(group, same_machine)) is not None]


def _of_group(group: Matched, same_machine: bool) -> Exact | None:
    shared = set(group.old.done) & set(group.new.done)
    if not shared:
        return None
    sides = [_labelled(one, label, shared) for one, label in ((group.old, OLD), (group.new, NEW))]
    # the sampler is not asked: whatever proposed a configuration, its numbers depend on it, the seed and the machine alone
    control = same_configuration("", sides)
    compared = next(one for one in control.adapters if not one.is_reference)
    first = next(iter(control.differences), None)
    example = ""
    if first is not None:
        values = " and ".join(f"{' '.join(labels)} {value}" for value, labels in first.values.items())
        example = f"seed {first.seed}, configuration {first.configuration}, epoch {first.epoch}, {first.metric}: {values}"
    return Exact(
        name=group.name,
        configurations=compared.configurations,
        tried=(_tried(sides[0]), _tried(sides[1])),
        values=compared.values,
        unequal=compared.unequal,
        example=example,
        is_due=same_machine,
    )


def _labelled(group: Group, label: str, seeds: Set[int]) -> Group:
    """Return the runs of these seeds as an entry of that name, which is compared whatever its platform is."""
    return replace(group, label=label, emulated=False, runs=tuple(run for run in group.own if run.seed in seeds))


def _tried(group: Group) -> str:
    return str(sum(len({trial.digest for trial in run.trials}) for run in group.done.values()))


def matched(old: Sequence[Group], new: Sequence[Group]) -> list[Matched]:
    """Return the entries that share runs, with these runs alone, in the order of the old folder."""
    by_run = {run.run_id: cell for cell in new for run in cell.runs}
    found = []
    for cell in old:
        shared = {run.run_id for run in cell.runs if run.run_id in by_run}
        if shared:
            other = by_run[next(run.run_id for run in cell.runs if run.run_id in shared)]
            found.append(Matched(old=_restricted(cell, shared), new=_restricted(other, shared)))
    return found


def check_some(found: Sequence[Matched], old: Results, new: Results) -> None:
    """Refuse folders that have no run in common.

    Raises:
        ExperimentError: they hold other experiments; the first differences are named.
    """
    if found:
        return
    why = next((f": {', '.join(text)}" for text in _of_same_adapter(old, new) if text), "")
    raise ExperimentError(
        f"two folders with the same experiments are needed, but {old.folder} ({old.plan.name}) and {new.folder} "
        f"({new.plan.name}) have no run in common{why}; run the same file twice, with the same options"
    )


def left_out(old: Sequence[Group], new: Sequence[Group]) -> list[str]:
    """Return the entries that are in one folder alone, or of which each folder has another experiment, and seeds left out."""
    ids = {run.run_id for cell in old for run in cell.runs} & {run.run_id for cell in new for run in cell.runs}
    texts = []
    for side, own, others in (("A", old, new), ("B", new, old)):
        for cell in own:
            name = f"{cell.label} {cell.scope.text}"
            alone = [run for run in cell.runs if run.run_id not in ids]
            if 0 < len(alone) < len(cell.runs):
                texts.append(f"{name}: {counted(len(alone), 'seed')} only in {side}")
            if len(alone) < len(cell.runs):
                continue
            twin = next((one for one in others if (one.label, one.scope) == (cell.label, cell.scope)), None)
            if twin is None:
                texts.append(f"{name}: only in {side}")
            elif side == "A":
                texts.append(f"{name}: another experiment: {', '.join(differences(cell.spec, twin.spec)) or 'other seeds'}")
    return texts


def differences(old: RunSpec, new: RunSpec) -> list[str]:
    """Return the first things by which two specifications differ, seeds and what no run id holds aside."""
    ours, theirs = (dict(_flat(run_spec_to_json(spec))) for spec in (old, new))
    names = [name for name in dict.fromkeys([*ours, *theirs]) if not name.startswith(_NO_PART)]
    unequal = [name for name in names if ours.get(name) != theirs.get(name)]
    texts = [f"{name.removeprefix('experiment.')} {ours.get(name)!r} became {theirs.get(name)!r}" for name in unequal[:MOST]]
    return [*texts, *([f"{len(unequal) - MOST} more"] if len(unequal) > MOST else [])]


def _of_same_adapter(old: Results, new: Results) -> Iterator[list[str]]:
    """Yield how the first runs of the same adapter differ."""
    others = {run.spec.adapter: run.spec for run in reversed(new.planned)}
    for run in old.planned:
        if run.spec.adapter in others:
            yield differences(run.spec, others[run.spec.adapter]) or ["other seeds"]


def _restricted(cell: Group, run_ids: Set[str]) -> Group:
    return replace(cell, runs=tuple(run for run in cell.runs if run.run_id in run_ids))


def _flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        if isinstance(item, Mapping) and item:
            yield from _flat(item, f"{above}{name}.")
        else:
            yield f"{above}{name}", item
