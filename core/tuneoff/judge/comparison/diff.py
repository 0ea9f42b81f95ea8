"""What changed between two results folders of the same experiments: A is the old one, B the new one, every difference B − A.

Runs are matched by their ids, each question is judged by pairs of seeds, values are held to each other bit by bit, and what else
is otherwise is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tuneoff.base.format import counted
from tuneoff.errors import ExperimentError
from tuneoff.experiment.metric_catalogue import metric
from tuneoff.experiment.spec import RunSpec, run_spec_to_json
from tuneoff.judge.answers.analysis_plan import frozen
from tuneoff.judge.answers.answer import Outcome, Question, Verdict
from tuneoff.judge.answers.judging import PairComparison
from tuneoff.judge.comparison.environments import (
    Environment,
    EnvironmentRow,
    compare_environments,
    is_same_machine,
    sentinel_ratio,
)
from tuneoff.judge.comparison.values import ABSENT, compare_values, values_of
from tuneoff.judge.groups import Group, by_scope, grouped, noise_pairs
from tuneoff.judge.results import EXCLUDED, Results, Scope
from tuneoff.judge.stats.location import Interval
from tuneoff.record.run_record import FAILED

MOST = 3  # differences of a specification that are named
_NO_PART = ("seed", "adapter_target", "local_options", "experiment.timeouts", "experiment.variant", "experiment.workload.target")
_ANALYSIS = ("questions", "primary_metric", "margin_percent", "quality_margin", "confidence", "family_size", "anchors", "weights")
_TOLD = ("done", "failed", "timeout", "skipped")  # interrupted or not run yet: that folder is unfinished, nothing changed
NOTHING = "none"
Sides = tuple[str, str]  # what A has and what B has, as text
OTHER_MACHINE = "another machine: only counts of trials and how good they are can be compared"


class MatchedGroups(NamedTuple):
    """The runs that both folders planned of one adapter entry in one scope, so of the same experiment."""

    old: Group
    new: Group

    @property
    def name(self) -> str:
        return f"{self.old.label} {self.old.scope.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What two equal entries differ by within one folder, A or B."""

    side: str
    pair: str
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One question of a matched entry. `verdict`: of B (`one`) against A (`other`); None: not compared, and `reason` says why.

    `noise`: what equal entries differ by within A and within B, where a folder has such.
    """

    name: str
    adapter: str
    scope: Scope
    question: Question
    verdict: Verdict | None
    reason: str
    noise: tuple[Noise, ...] = ()

    @property
    def outcome(self) -> Outcome | None:
        return None if self.verdict is None else self.verdict.outcome

    @property
    def is_beyond_noise(self) -> bool:
        """Whether B is judged to be better or worse than A."""
        return self.outcome in (Outcome.BETTER, Outcome.WORSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BitComparison:
    """The metrics of every epoch that both trained of the same configuration and seed, bit for bit.

    `is_due`: both ran on the same kind of machine, so that unequal bits are a change.
    """

    name: str
    configurations: int  # that both trained
    tried: Sides  # configurations of A and of B in the same runs
    values: int
    unequal: int
    example: str
    is_due: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChange:
    """A run that came to another end, or was skipped on one side alone."""

    name: str
    seed: int
    old: str
    new: str
    reason: str

    @property
    def is_failure(self) -> bool:
        return self.new in FAILED and self.old == "done"

    @property
    def is_recovery(self) -> bool:
        return self.old in FAILED and self.new == "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The whole comparison. `analysis`: what differs, as (A, B); `sentinel`: how many times as long the same calculation took
    before the runs of B; None: a folder does not tell, or the machines differ."""

    folders: tuple[Path, Path]
    runs: int  # planned in both
    same_machine: bool
    environment: tuple[EnvironmentRow, ...]  # what differs
    analysis: Mapping[str, Sides]
    sentinel: float | None
    baseline: str | None  # the label whose change is taken off those of the others, seed by seed
    changes: tuple[Change, ...]
    exact: tuple[BitComparison, ...]
    ended: tuple[StatusChange, ...]
    flags: Mapping[str, tuple[int, int]]  # runs that have it, where that differs
    left_out: tuple[str, ...]  # groups that cannot be compared, and why

    @property
    def beyond(self) -> tuple[Change, ...]:
        """What changed beyond noise, what got worse first."""
        beyond = (change for change in self.changes if change.is_beyond_noise)
        return tuple(sorted(beyond, key=lambda change: change.outcome is Outcome.BETTER))

    @property
    def unequal(self) -> tuple[BitComparison, ...]:
        return tuple(exact for exact in self.exact if exact.unequal and exact.is_due)

    @property
    def has_changed(self) -> bool:
        """Whether anything changed beyond noise: a judged question, bits that are due to be equal, or how a run ends."""
        return bool(self.beyond or self.unequal or self.ended)

    @property
    def is_judged(self) -> bool:
        """Whether any question has a verdict: else nothing is known, and that nothing changed least of all."""
        return any(change.outcome not in (None, Outcome.NOT_JUDGED) for change in self.changes)


def compared(old: Results, new: Results, baseline: str | None = None) -> Comparison:
    """Return what changed from the old folder to the new one; what `baseline`, a label, changed by is taken off the others.

    Raises:
        ExperimentError: they have no run in common; named is how the first runs of the same adapter differ.
    """
    confidence = frozen(old.plan.analysis).confidence
    both = grouped(old, confidence), grouped(new, confidence)
    group_of = {run.run_id: group for group in both[1] for run in group.runs}
    matched = []  # in the order of the old folder
    for group in both[0]:
        shared = {run.run_id: group_of[run.run_id] for run in group.runs if run.run_id in group_of}
        if shared:
            sides = (group, next(iter(shared.values())))
            restricted = (replace(side, runs=tuple(run for run in side.runs if run.run_id in shared)) for side in sides)
            matched.append(MatchedGroups(*restricted))
    if not matched:
        others = {run.spec.adapter: run.spec for run in reversed(new.planned)}
        twins = ((run.spec, others[run.spec.adapter]) for run in old.planned if run.spec.adapter in others)
        why = next((f": {', '.join(differences(*twin) or ['other seeds'])}" for twin in twins), "")
        raise ExperimentError(
            f"two folders with the same experiments are needed, but {old.folder} ({old.plan.name}) and {new.folder} "
            f"({new.plan.name}) have no run in common{why}; run the same file twice, with the same options"
        )
    by_id = {run.run_id: run for pair in matched for run in pair.new.runs}
    olds = [run for pair in matched for run in pair.old.runs]
    news = [by_id[run.run_id] for run in olds]
    names = [pair.name for pair in matched for _ in pair.old.runs]
    ended = [
        StatusChange(name=name, seed=before.seed, old=before.status, new=now.status, reason=now.reason or before.reason or "")
        for name, before, now in zip(names, olds, news, strict=True)
        if before.status != now.status and {before.status, now.status} <= set(_TOLD)
    ]
    in_a, in_b = (Counter(flag for run in runs for flag in run.flags) for runs in (olds, news))
    a, b = list[Environment](), list[Environment]()  # with the version of the framework as one of a package
    for side, runs in ((a, olds), (b, news)):
        for record in (run.record for run in runs if run.record is not None and run.record.environment):
            name, versions = record.versions.get("framework"), record.environment.get("versions")
            framework = {f"framework {name}": record.versions.get("framework_version")} if name not in (None, NOTHING) else {}
            side.append({**record.environment, "versions": {**(versions if isinstance(versions, Mapping) else {}), **framework}})
    same_machine = is_same_machine(a, b)
    return Comparison(
        folders=(old.folder, new.folder),
        runs=len(olds),
        same_machine=same_machine,
        environment=tuple(row for row in compare_environments(a, b, recorded=True) if row.a != row.b),
        analysis={
            name: (str(old.plan.analysis.get(name, NOTHING)), str(new.plan.analysis.get(name, NOTHING)))
            for name in _ANALYSIS
            if old.plan.analysis.get(name) != new.plan.analysis.get(name)
        },
        sentinel=sentinel_ratio(a, b) if same_machine else None,
        baseline=baseline,
        changes=tuple(_changes(matched, both, old, same_machine, baseline)),
        exact=tuple(exact for pair in matched if (exact := _exact(pair, same_machine)) is not None),
        ended=tuple(sorted(ended, key=lambda change: (not change.is_failure, change.is_recovery))),
        flags={flag: (in_a[flag], in_b[flag]) for flag in sorted({*in_a, *in_b}) if in_a[flag] != in_b[flag]},
        left_out=tuple(_left_out(*both)),
    )


def _changes(
    matched: Sequence[MatchedGroups],
    both: tuple[Sequence[Group], Sequence[Group]],
    old: Results,
    same_machine: bool,
    baseline: str | None,
) -> Iterator[Change]:
    """Yield each question of each entry, judged by what the old folder froze, at its family's size."""
    plan = frozen(old.plan.analysis)
    firsts = [group for group in matched if group.old.spec.replicate == 0]  # an equal entry again is for the noise
    in_scope = Counter(group.old.scope for group in firsts)
    of_scope = {group.old.scope: group for group in firsts if group.old.label == baseline}
    for group in firsts:
        alpha = plan.alpha(in_scope[group.old.scope])
        for question in plan.questions_of(group.old.spec.experiment):
            blocked = None  # or why it is not compared
            base = of_scope.get(group.old.scope) if baseline else group
            bases = (base.new, base.old) if base and base is not group else ()
            if group.old.excluded or group.new.excluded:
                blocked = EXCLUDED
            elif not all(any(run.will_run for run in side.runs) for side in (group.old, group.new)):
                blocked = "skipped"
            elif not same_machine and not metric(question.metric).is_counted:
                blocked = OTHER_MACHINE
            elif not base or not all(group.old.by_seed.keys() <= side.done.keys() for side in bases):
                blocked = f"{baseline} is not done in each seed of both"
            judged = PairComparison(group.new, group.old, question, alpha, bases=bases).verdict() if blocked is None else None
            yield Change(
                name=group.name,
                adapter=group.old.spec.adapter,
                scope=group.old.scope,
                question=question,
                verdict=judged,
                reason=judged.reason if judged is not None else blocked or "",
                noise=tuple(_noise(group, both, question, plan.error)) if blocked is None else (),
            )


def _noise(
    group: MatchedGroups, both: tuple[Sequence[Group], Sequence[Group]], question: Question, error: float
) -> Iterator[Noise]:
    """Yield what equal entries differ by in the scope, within each folder."""
    for side, groups, cell in zip("AB", both, (group.old, group.new), strict=True):
        for again, first in noise_pairs(by_scope(groups)[cell.scope]):
            interval = PairComparison(again, first, question, error, is_noise=True).verdict().interval
            if interval is not None:
                yield Noise(side=side, pair=f"{again.label} against {first.label}", interval=interval)


def _exact(group: MatchedGroups, same_machine: bool) -> BitComparison | None:
    """Compare the values of a matched entry, whatever proposed its configurations; None: no seed is done in both."""
    shared = set(group.old.done) & set(group.new.done)
    if not shared:
        return None
    planned = group.old.spec.experiment.budget.epochs_per_trial
    done = [{seed: run for seed, run in side.done.items() if seed in shared} for side in (group.old, group.new)]
    a, b = (values_of(runs, planned) for runs in done)
    comparison, example = compare_values(a, b), ""
    if comparison.unequal:
        first = comparison.unequal[0]
        example = "seed {}, configuration {}, epoch {}, {}".format(*first)
        example += f": A {a.get(first, ABSENT)} and B {b.get(first, ABSENT)}"
    tried = [str(sum(len({trial.digest for trial in run.trials}) for run in runs.values())) for runs in done]
    return BitComparison(
        name=group.name,
        configurations=len(comparison.configurations),
        tried=(tried[0], tried[1]),
        values=comparison.values,
        unequal=len(comparison.unequal),
        example=example,
        is_due=same_machine,
    )


def _left_out(old: Sequence[Group], new: Sequence[Group]) -> list[str]:
    """Return the entries that are in one folder alone, or of which each folder has another experiment, and seeds left out."""
    ids = {run.run_id for cell in old for run in cell.runs} & {run.run_id for cell in new for run in cell.runs}
    texts = []
    for side, cells, others in (("A", old, new), ("B", new, old)):
        for cell in cells:
            name = f"{cell.label} {cell.scope.text}"
            alone = [run for run in cell.runs if run.run_id not in ids]
            if 0 < len(alone) < len(cell.runs):
                texts.append(f"{name}: {counted(len(alone), 'seed')} only in {side}")
            if len(alone) < len(cell.runs):
                continue
            twin = next((other for other in others if (other.label, other.scope) == (cell.label, cell.scope)), None)
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


def _flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        if isinstance(item, Mapping) and item:
            yield from _flat(item, f"{above}{name}.")
        else:
            yield f"{above}{name}", item
