"""From constraints and results folders to a recommendation: who can, what was measured, who dominates whom; and its JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tuneoff.base.format import listed
from tuneoff.base.json_values import values
from tuneoff.capabilities import Capabilities
from tuneoff.errors import ExperimentError
from tuneoff.experiment.expand import declared_reasons
from tuneoff.experiment.spec import LOCAL, Strategy
from tuneoff.judge.answers.answers_json import choice_to_json
from tuneoff.judge.choice.choose import Answered, choose
from tuneoff.judge.choice.deciding import unfinished
from tuneoff.judge.fault_results import FaultResult
from tuneoff.judge.recommend.eligibility import (
    Candidate,
    No,
    Obstacle,
    candidate,
    fault_notes,
    fault_obstacles,
    of_adapter,
)
from tuneoff.judge.recommend.families import families
from tuneoff.judge.recommend.recommendation import Family, Recommendation, Weighed
from tuneoff.judge.recommend.recommendation_text import headline, how_to_measure
from tuneoff.judge.recommend.request import Request, on_stand_ins, settings
from tuneoff.judge.runs import POOL
from tuneoff.registry import AdapterListing

ANSWERED, NO_ANSWER = 0, 1
ASKED = ("platform", "sampler", "pruner", "must_retry", "must_survive", "never_silently_wrong", "prefer")
OF_FAMILY = ("is_exact", "recommended", "dominated", "against", "without_margin", "differs", "unmeasured")
OF_SETTING = ("front", "is_judged", "dominances", "reasons")


def recommend(
    folders: Sequence[Answered], known: Sequence[AdapterListing], evidence: Sequence[FaultResult], request: Request
) -> Recommendation:
    """Return what the folders say to a request.

    Raises:
        ExperimentError: faults must be survived, and there are no results of faults.
    """
    if request.needs_faults and not evidence:
        option = "--must-survive" if request.must_survive else "--never-silently-wrong"
        raise ExperimentError(f"{option} needs --faults with what `tuneoff faults --json` wrote")
    known = [listing for listing in known if listing.plugin.name != POOL]  # the floor is no choice
    candidates = [*_candidates(known, evidence, request), *_unknown(folders, known)]
    capable = [one.adapter for one in candidates if one.is_capable]
    measured = settings(folders, capable, request)
    reached = {group.adapter for setting in measured for group in setting.groups}
    missing = {listing.plugin.name for listing in known if listing.state != "ready"}
    seen = [one for one in on_stand_ins(folders) if one.adapter in capable]
    if request.platform is None:
        candidates = [one if one.adapter in reached else _elsewhere(one) for one in candidates]
    declared = {listing.plugin.name: listing.capabilities for listing in known}
    candidates = [
        one if one.adapter in reached else _refused(one, declared.get(one.adapter), folders, request) for one in candidates
    ]
    candidates = [_absent(one) if one.adapter in missing - reached else one for one in candidates]
    capable = [one.adapter for one in candidates if one.is_capable]
    inside, outside = families(measured, request)
    recommendation = Recommendation(
        request=request,
        folders=tuple(folder.results.folder for folder in folders),
        unfinished={one.results.folder: found for one in folders if (found := unfinished(one.answers)) is not None},
        files={folder.results.plan.path: folder.results for folder in folders},
        candidates=tuple(candidates),
        families=tuple(inside),
        outside=tuple(outside),
        on_stand_ins=tuple(seen),
        measured=tuple(name for name in capable if name in reached),
        not_measured=tuple(name for name in capable if name not in reached),
        lacking=tuple(_lacking(folders, request)),
        headline=(),
        choices=() if request.asked else tuple(choose(one.results, one.answers, set(capable)) for one in folders if inside),
        exit_code=ANSWERED if any(family.recommended for family in inside) else NO_ANSWER,
    )
    return replace(recommendation, headline=tuple(headline(recommendation)))


def _candidates(known: Sequence[AdapterListing], evidence: Sequence[FaultResult], request: Request) -> list[Candidate]:
    found = []
    for listing in known:
        one = candidate(listing, request)
        if listing.capabilities is not None:
            own = of_adapter(evidence, listing.plugin.name, listing.capabilities.emulated_platforms, request.platform)
            obstacles = (*one.obstacles, *fault_obstacles(own, request))
            one = replace(one, obstacles=obstacles, notes=(*one.notes, *fault_notes(own, request)))
        found.append(one)
    return found


def _unknown(folders: Sequence[Answered], known: Sequence[AdapterListing]) -> list[Candidate]:
    """Return what was measured and is not found here: nothing tells what it can."""
    names = {listing.plugin.name for listing in known}
    measured = dict.fromkeys(group.adapter for folder in folders for group in folder.answers.groups)
    text = "no adapter of this name is installed here, so nothing tells what it can"
    return [
        Candidate(adapter=name, framework="", obstacles=(Obstacle(kind=No.ABSENT, text=text),))
        for name in measured
        if name not in names and name != POOL
    ]


def _lacking(folders: Sequence[Answered], request: Request) -> Iterator[str]:
    """Yield the sampler and the pruner that were asked for and that no folder has."""
    scopes = [scope for folder in folders for scope in folder.answers.scopes]
    if request.sampler is not None and request.sampler not in {scope.sampler for scope in scopes}:
        yield f"sampler: {request.sampler}"
    if request.pruner is not None and request.pruner not in {scope.pruner for scope in scopes}:
        yield f"pruner: {request.pruner}"


def _absent(one: Candidate) -> Candidate:
    """Make it an obstacle that a framework is not installed: it was measured nowhere either."""
    if not one.is_capable or not one.notes:
        return one
    return replace(one, obstacles=(Obstacle(kind=No.ABSENT, text=one.notes[0]),), notes=one.notes[1:])


def _elsewhere(one: Candidate) -> Candidate:
    """Make it an obstacle that it runs on no single machine: nobody asked for a cluster, and it was measured on none."""
    if not one.is_capable or LOCAL in one.platforms:
        return one
    text = f"runs on {listed(one.platforms or ['a stand-in'])} alone"
    text += f"; --platform {one.platforms[0]} asks for it" if one.platforms else ""
    return replace(one, obstacles=(Obstacle(kind=No.ELSEWHERE, text=text),))


def _refused(one: Candidate, capabilities: Capabilities | None, folders: Sequence[Answered], request: Request) -> Candidate:
    """Make it an obstacle that a plan of each of the files, with what is asked for, would skip all of its runs."""
    if not one.is_capable or capabilities is None:
        return one
    platform = LOCAL if LOCAL in one.platforms else next(iter(one.platforms), LOCAL)
    reasons = []
    for spec in {run.spec.scope_key(): run.spec for folder in folders for run in folder.results.planned}.values():
        experiment = spec.experiment
        sampler = Strategy(name=request.sampler) if request.sampler is not None else experiment.sampler
        pruner = Strategy(name=request.pruner) if request.pruner is not None else experiment.pruner
        wanted = replace(experiment, sampler=sampler, pruner=pruner)
        asked = replace(spec, adapter=one.adapter, platform=platform, experiment=wanted)
        reasons.append(next(declared_reasons(asked, capabilities.on(platform)), None))
    if not reasons or not all(reasons):
        return one
    return replace(one, obstacles=tuple(Obstacle(kind=No.FILE, text=text) for text in dict.fromkeys(filter(None, reasons))))


def to_json(recommendation: Recommendation) -> dict[str, Any]:
    """Return everything that the text says, and the runs by folder, run id and execution id, for `write_json`."""
    request = recommendation.request
    return {
        "exit_code": recommendation.exit_code,
        "unfinished": [
            {"folder": folder.resolve(), "waiting": one.waiting, "planned": one.planned}
            for folder, one in recommendation.unfinished.items()
        ],
        "answer": [line.strip() for line in recommendation.headline],
        "choices": [choice_to_json(choice) for choice in recommendation.choices],
        "folders": [folder.resolve() for folder in recommendation.folders],
        "asked": {
            **request.asked,
            **values(request, ASKED),
            "faults_by": request.faults_by if request.needs_faults else None,
        },
        "recommended": list(dict.fromkeys(label for family in recommendation.families for label in family.recommended)),
        "settings": [_family(family) for family in recommendation.families],
        "outside": [
            {"of": one.family, "measured": dict(one.measured), "beyond": one.beyond, "files": one.files}
            for one in recommendation.outside
        ],
        "capable": [one.adapter for one in recommendation.capable],
        "notes": {one.adapter: one.notes for one in recommendation.capable if one.notes},
        "left_out": {
            one.adapter: [{"kind": obstacle.kind, "reason": obstacle.text} for obstacle in one.obstacles]
            for one in recommendation.excluded
        },
        "not_measured": recommendation.not_measured,
        "only_emulated": [{"adapter": one.adapter, "label": one.label, "runs": one.runs} for one in recommendation.on_stand_ins],
        "how_to_measure": list(how_to_measure(recommendation)),
    }


def _family(family: Family) -> dict[str, Any]:
    return {"of": family.name, "measured": [_weighed(one) for one in family.weighed], **values(family, OF_FAMILY)}


def _weighed(one: Weighed) -> dict[str, Any]:
    place = {"folder": one.setting.folder, "scope": one.setting.scope.text, "sizes": one.setting.sizes}
    return {**place, **values(one, OF_SETTING)}
