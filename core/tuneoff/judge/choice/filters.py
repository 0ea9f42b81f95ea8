"""What a request leaves of a results folder: the frameworks that can do what is asked for, where that was measured.

It chooses nobody: the choice is made of what is left. Beyond what was measured nothing is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

from tuneoff.base.capabilities import LOCAL
from tuneoff.base.clock import MILLISECONDS
from tuneoff.base.commands import command
from tuneoff.base.format import counted, figure, listed
from tuneoff.base.json_values import values
from tuneoff.base.targets import unknown_name
from tuneoff.errors import ExperimentError, UnknownNameError
from tuneoff.experiment.names import training_name, with_pruner
from tuneoff.experiment.skip_check import declared_reasons
from tuneoff.experiment.spec import Strategy
from tuneoff.judge.answers.answer import Answers, Outcome
from tuneoff.judge.answers.judging import FEWEST_SEEDS
from tuneoff.judge.choice.deciding import more_seeds
from tuneoff.judge.choice.request import (
    TRIAL_SECONDS,
    TRIALS,
    WORKERS,
    Candidate,
    Exclusion,
    Obstacle,
    Range,
    Request,
    bracket,
    candidate_of,
    size_text,
    spans,
)
from tuneoff.judge.fault_results import FaultResult
from tuneoff.judge.groups import Group
from tuneoff.judge.results import POOL, Results, Scope, value
from tuneoff.registry import AdapterClass, AdapterListing

TRAINING = "trial_execution.median"  # of a run's trials, in ms
ASKED = ("platform", "sampler", "pruner", "must_retry", "must_survive", "never_silently_wrong")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredScope:
    """A scope with its sizes, and the groups of capable adapters that were measured there, on a real platform.

    `family` is what scopes share that may surround a request: workload, sampler and pruner. `sizes` lacks the seconds per trial
    where no run is done.
    """

    scope: Scope
    family: str
    sizes: Mapping[str, Range]
    groups: tuple[Group, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(group.label for group in self.groups)

    @property
    def text(self) -> str:
        """The scope and its sizes in words."""
        return f"{self.scope.text} ({', '.join(size_text(name, ends) for name, ends in self.sizes.items())})"


class OutOfRange(NamedTuple):
    """Why a family does not surround the request: by size what was measured; `beyond`: the sizes that are outside, none where
    only the combination was not measured."""

    family: str
    measured: Mapping[str, Range]
    beyond: tuple[str, ...]

    @property
    def text(self) -> str:
        measured = ", ".join(size_text(name, ends) for name, ends in self.measured.items())
        return f"{self.family}: measured {measured}{'' if self.beyond else ', but nothing that surrounds this combination'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """What is left of a results folder, and why not more. `answers`: on what is left alone.

    `measured`: capable adapters with runs of the sampler, pruner and platform that were asked for, of whatever size;
    `not_measured`: the other capable ones. `excluded`: done runs that a flag keeps out, by adapter and label.
    `remarks`: where the measured sizes that surround the request disagree, or lack a framework.
    """

    request: Request
    answers: Answers
    candidates: tuple[Candidate, ...]
    scopes: tuple[MeasuredScope, ...]
    is_exact: bool  # all of them are at the asked sizes
    outside: tuple[OutOfRange, ...]
    remarks: tuple[str, ...]
    measured: tuple[str, ...]
    not_measured: tuple[str, ...]
    excluded: Mapping[tuple[str, str], int]

    @property
    def capable(self) -> tuple[Candidate, ...]:
        return tuple(candidate for candidate in self.candidates if candidate.is_capable)

    @property
    def refusal(self) -> str:
        """Why nothing is left; "" where something is."""
        if self.scopes:
            return ""
        if not self.capable:
            return "No framework meets the constraints."
        if self.outside:
            sizes = ", ".join(size_text(name, (size, size)) for name, size in self.request.sizes.items())
            return f"Not measured, so no claim: {sizes}."
        was = "was" if len(self.not_measured) == 1 else "were"
        return f"{listed(self.not_measured)} can do what is asked for, but {was} not measured there, so there is no choice."

    def lines(self) -> Iterator[str]:
        """Yield what was asked for, where it was measured, who is left out and why, and how to measure what was not."""
        yield f"Asked for: {', '.join(self.request.names()) or 'nothing beyond the file'}."
        yield from (f"Measured outside: {outside.text}." for outside in self.outside)
        if self.scopes and not self.is_exact:
            yield f"Measured only around it: {listed([scope.text for scope in self.scopes])}."
        yield from self.remarks
        for candidate in self.candidates:
            yield from (
                f"Left out: {candidate.adapter}: {obstacle.kind.value}: {obstacle.text}" for obstacle in candidate.obstacles
            )
        for name in self.not_measured:
            excluded = [
                f"; a flag excludes {counted(runs, 'run')} of {label}"
                for (adapter, label), runs in self.excluded.items()
                if adapter == name
            ]
            yield f"Capable, but not measured there: {name}{''.join(excluded)}"
        yield from (f"Note: {candidate.adapter}: {note}" for candidate in self.capable for note in candidate.notes)
        yield from self.how_to_measure()

    def how_to_measure(self) -> Iterator[str]:
        """Yield the command that measures at the asked sizes with enough seeds, and what to change in the file first."""
        results, request = self.answers.results, self.request
        plan = results.plan
        beyond = dict.fromkeys(size for outside in self.outside for size in outside.beyond or request.sizes)
        if plan.is_of_bundle or not (self.outside or self.not_measured):
            return
        scopes = (
            {run.spec.experiment.sampler.name for run in results.planned},
            {run.spec.experiment.pruner.name for run in results.planned},
        )
        changes = [
            f"{kind}: {name}"
            for kind, name, planned in zip(("sampler", "pruner"), (request.sampler, request.pruner), scopes, strict=True)
            if name is not None and name not in planned
        ]
        if TRIAL_SECONDS in beyond:
            changes.append(f"the workload so that a trial takes about {figure(request.sizes[TRIAL_SECONDS])} s")
        changes += [f"sampler: {name}" for name in plan.options.get("--sampler", ()) if request.sampler is None]
        platforms = {candidate.adapter: candidate.platforms for candidate in self.candidates}
        lacking = [
            name if LOCAL in platforms[name] or not platforms[name] else f"{name}@{platforms[name][0]}"
            for name in self.not_measured
        ]
        for adapter, _, platform in (name.partition("@") for name in lacking if "@" in name):
            listing = command("list", "adapters", adapter)
            changes.append(f"an entry {{name: {adapter}, platform: {platform}, options: ...}} ({listing} tells which)")
        replaced: dict[str, Sequence[object]] = {"adapter": [*self.measured, *lacking]}
        replaced |= {name: (f"{request.sizes[name]:g}",) for name in (TRIALS, WORKERS) if name in beyond}
        if len(plan.seeds) - len(plan.added_seeds) < FEWEST_SEEDS:
            replaced["seeds"] = more_seeds(plan, FEWEST_SEEDS)
        compare = plan.compare_command(results.folder, **replaced)
        what = "it" if self.outside else "what was not"
        first = f"set {' and '.join(changes)} in {plan.path}, then: " if changes else ""
        yield f"To measure {what}: {first}{compare}"

    def to_json(self) -> dict[str, Any]:
        """Return everything that the lines say as JSON values."""
        return {
            "asked": {
                **self.request.sizes,
                **{name: wanted for name in ASKED if (wanted := getattr(self.request, name))},
                **({"faults_by": self.request.faults_by} if self.request.needs_faults else {}),
            },
            "measured": [
                {"scope": measured.scope.text, "of": measured.family, "sizes": measured.sizes, "labels": measured.labels}
                for measured in self.scopes
            ],
            "is_exact": self.is_exact,
            "outside": [values(outside, ("family", "measured", "beyond")) for outside in self.outside],
            "remarks": self.remarks,
            "capable": [candidate.adapter for candidate in self.capable],
            "notes": {candidate.adapter: candidate.notes for candidate in self.capable if candidate.notes},
            "left_out": {
                candidate.adapter: [{"kind": obstacle.kind, "reason": obstacle.text} for obstacle in candidate.obstacles]
                for candidate in self.candidates
                if candidate.obstacles
            },
            "not_measured": self.not_measured,
            "only_excluded": [
                {"adapter": adapter, "label": label, "runs": runs} for (adapter, label), runs in self.excluded.items()
            ],
            "how_to_measure": list(self.how_to_measure()),
        }


def filtered(answers: Answers, listings: Sequence[AdapterListing], faults: Sequence[FaultResult], request: Request) -> Filtered:
    """Return what a request leaves of a results folder. `listings`: the adapters here; `faults`: what became of runs with faults.

    Raises:
        UnknownNameError: no adapter knows of the platform, sampler or pruner: it is most likely mistyped.
        ExperimentError: faults must be survived, and there are no results of faults.
    """
    offered = [listing.capabilities for listing in listings if listing.capabilities is not None]
    for kind, wanted, names in (
        ("platform", request.platform, {name for listing in listings for name in listing.platforms}),
        ("sampler", request.sampler, {name for capabilities in offered for name in capabilities.samplers}),
        ("pruner", request.pruner, {name for capabilities in offered for name in capabilities.pruners}),
    ):
        if wanted is not None and wanted not in names:
            raise UnknownNameError(unknown_name(kind, wanted, names))
    if request.needs_faults and not faults:
        option = "--must-survive" if request.must_survive else "--never-silently-wrong"
        raise ExperimentError(f"{option} needs --faults with what `tuneoff faults --json` wrote")
    listings = [listing for listing in listings if listing.plugin.name != POOL]  # the floor is not a choice
    candidates = [candidate_of(listing, request, faults) for listing in listings]
    declared = {POOL, *(listing.plugin.name for listing in listings)}
    absent = Obstacle(Exclusion.ABSENT, "no adapter of this name is installed here, so its capabilities are unknown")
    for name in dict.fromkeys(group.adapter for group in answers.groups if group.adapter not in declared):
        candidates.append(Candidate(adapter=name, obstacles=(absent,)))
    names = {candidate.adapter for candidate in candidates if candidate.is_capable}
    measured = list(_measured(answers, names, request))
    reached = {group.adapter for scope in measured for group in scope.groups}
    candidates = [
        candidate if candidate.adapter in reached else _obstructed(candidate, listings, answers.results, request)
        for candidate in candidates
    ]
    capable = [candidate.adapter for candidate in candidates if candidate.is_capable]
    scopes, is_exact, outside, remarks = _surrounding(measured, answers, request)
    excluded: Counter[tuple[str, str]] = Counter()
    for group in answers.groups:
        if group.excluded and group.adapter in names and group.done:
            excluded[group.adapter, group.label] += len(group.done)
    return Filtered(
        request=request,
        answers=_restricted(answers, scopes, request),
        candidates=tuple(candidates),
        scopes=tuple(scopes),
        is_exact=is_exact,
        outside=tuple(outside),
        remarks=tuple(remarks),
        measured=tuple(name for name in capable if name in reached),
        not_measured=tuple(name for name in capable if name not in reached),
        excluded=excluded,
    )


def _obstructed(candidate: Candidate, listings: Iterable[AdapterListing], results: Results, request: Request) -> Candidate:
    """Return a candidate that was not measured with what keeps it from being measured: a cluster, the file, or its absence."""
    listing = next((listing for listing in listings if listing.plugin.name == candidate.adapter), None)
    if not candidate.is_capable or listing is None or listing.adapter is None:
        return candidate
    if request.platform is None and LOCAL not in candidate.platforms:
        text = f"runs on {listed(candidate.platforms or ['a stand-in'])} alone"
        text += f"; --platform {candidate.platforms[0]} asks for it" if candidate.platforms else ""
        return replace(candidate, obstacles=(Obstacle(Exclusion.ELSEWHERE, text),))
    if reasons := _refusals(candidate, listing.adapter, results, request):
        return replace(candidate, obstacles=tuple(Obstacle(Exclusion.FILE, text) for text in reasons))
    if listing.state != "ready" and candidate.notes:
        return replace(candidate, obstacles=(Obstacle(Exclusion.ABSENT, candidate.notes[0]),), notes=candidate.notes[1:])
    return candidate


def _refusals(candidate: Candidate, adapter: AdapterClass, results: Results, request: Request) -> list[str]:
    """Return why a plan of the file, with what is asked for, would skip all runs of an adapter; nothing where it would not."""
    platform = LOCAL if LOCAL in candidate.platforms else next(iter(candidate.platforms), LOCAL)
    reasons = []
    for spec in {run.spec.scope_key(): run.spec for run in results.planned}.values():
        experiment = spec.experiment
        sampler = Strategy(name=request.sampler) if request.sampler is not None else experiment.sampler
        pruner = Strategy(name=request.pruner) if request.pruner is not None else experiment.pruner
        wanted = replace(experiment, sampler=sampler, pruner=pruner)
        requested = replace(spec, adapter=candidate.adapter, platform=platform, experiment=wanted)
        reasons.append(next(declared_reasons(requested, adapter.capabilities_on(platform)), None))
    return list(dict.fromkeys(filter(None, reasons))) if all(reasons) else []


def _measured(answers: Answers, adapters: set[str], request: Request) -> Iterator[MeasuredScope]:
    """Yield the scopes in which one of the adapters has a run that is done, as far as the request asks for them."""
    for scope in answers.scopes:
        if request.sampler not in (None, scope.sampler) or request.pruner not in (None, scope.pruner):
            continue
        groups = [
            group
            for group in answers.groups
            if group.scope == scope
            and group.adapter in adapters
            and not group.excluded
            and group.replicate == 0
            and request.platform in (None, group.spec.platform)
            and any(run.has_ended for run in group.runs)
        ]
        if not any(run.is_done for group in groups for run in group.runs):
            continue
        experiment = groups[0].spec.experiment
        sizes = {WORKERS: (float(experiment.workers.count),) * 2, TRIALS: (float(experiment.budget.trials),) * 2}
        training_times = (value(run, TRAINING).value for group in groups for run in group.runs)
        if seconds := [milliseconds / MILLISECONDS for milliseconds in training_times if milliseconds is not None]:
            sizes[TRIAL_SECONDS] = (min(seconds), max(seconds))
        name = training_name(experiment.workload, answers.name)
        family = f"workload {name}, sampler {with_pruner(scope.sampler, scope.pruner)}"
        yield MeasuredScope(scope=scope, family=family, sizes=sizes, groups=tuple(groups))


def _surrounding(
    measured: Iterable[MeasuredScope], answers: Answers, request: Request
) -> tuple[list[MeasuredScope], bool, list[OutOfRange], list[str]]:
    """Return the scopes at the request or around it, whether they are at it, what lies elsewhere, and where they disagree."""
    by_family: dict[str, list[MeasuredScope]] = {}
    for scope in measured:
        by_family.setdefault(scope.family, []).append(scope)
    used, is_exact, outside, remarks = list[MeasuredScope](), True, list[OutOfRange](), list[str]()
    for family, in_family in by_family.items():
        nearest = bracket(request.sizes, [scope.sizes for scope in in_family])
        scopes = [in_family[index] for index in nearest.used]
        if not scopes:
            measured_spans = spans([scope.sizes for scope in in_family])
            sizes = {size: measured_spans[size] for size in request.sizes if size in measured_spans}
            outside.append(OutOfRange(family, sizes, tuple(nearest.outside or ())))
        elif not nearest.is_exact:  # who was measured on one side alone is nobody to choose
            is_exact = False
            labels = dict.fromkeys(label for scope in scopes for label in scope.labels)
            everywhere = {label for label in labels if all(label in scope.labels for scope in scopes)}
            remarks += [
                f"{label} was not measured at {scope.text}." for label in labels for scope in scopes if label not in scope.labels
            ]
            remarks += _turned(answers, scopes)
            scopes = (
                [replace(scope, groups=tuple(group for group in scope.groups if group.label in everywhere)) for scope in scopes]
                if everywhere
                else []
            )
        used += scopes
    return used, is_exact, outside, remarks


def _turned(answers: Answers, scopes: Sequence[MeasuredScope]) -> Iterator[str]:
    """Yield where the order of a pair changes from one scope to another."""
    for first, second in combinations(scopes, 2):
        for label, other in combinations([label for label in first.labels if label in second.labels], 2):
            of_pair = [each for each in answers.verdicts if not each.is_noise and {each.one, each.other} == {label, other}]
            outcomes = [
                {verdict.question.name: verdict.outcome_for(label) for verdict in of_pair if verdict.scope == at.scope}
                for at in (first, second)
            ]
            for question, outcome in outcomes[0].items():
                if {outcome, outcomes[1].get(question)} == {Outcome.BETTER, Outcome.WORSE}:
                    at, elsewhere = (first, second) if outcome is Outcome.BETTER else (second, first)
                    better = f"{label} is better than {other} in {question} at {at.text}"
                    yield f"The order differs: {better}, and worse at {elsewhere.text}."


def _restricted(answers: Answers, scopes: Sequence[MeasuredScope], request: Request) -> Answers:
    """Return the answers on some scopes, and in them on some groups and the floor. A claim over tasks stands with all of them."""
    labels = {measured.scope: measured.labels for measured in scopes}
    groups = tuple(
        group
        for group in answers.groups
        if group.scope in labels
        and not group.excluded
        and (group.adapter == POOL or group.label in labels[group.scope])
        and request.platform in (None, group.spec.platform)
    )
    kept = {(group.scope, group.label) for group in groups}
    lost = {(scope.sampler, scope.pruner) for scope in answers.scopes if scope not in labels}
    return replace(
        answers,
        scopes=tuple(labels),
        groups=groups,
        verdicts=tuple(
            verdict for verdict in answers.verdicts if {(verdict.scope, verdict.one), (verdict.scope, verdict.other)} <= kept
        ),
        across=tuple(across for across in answers.across if (across.scope.sampler, across.scope.pruner) not in lost),
    )
