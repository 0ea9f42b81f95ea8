"""Configurations: those that were given, those that were drawn, and that trials get what was proposed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tuneoff.base.findings import Finding, check, judged, not_applicable
from tuneoff.base.identity import canonical_json, configuration_digest
from tuneoff.base.space import SearchSpace
from tuneoff.record.events import schema
from tuneoff.trust.check.evidence import AdapterEvidence, FinishedRun, run_check
from tuneoff.trust.check.planned_runs import DRAWS, FIRST, SEED, not_offered, repetitions
from tuneoff.trust.space_test.judge import Sample, judge
from tuneoff.trust.space_test.statistics import ValuePlaces

FIXED = ("honest-max", "honest-min")
RANDOM = (repetitions(1)[0], repetitions(2)[0], "other-seed")
ALARM = 1e-6  # probability under core's distribution below which draws are not of it


@check(
    "configurations.listed",
    rule="`fixed`: exactly the given configurations are submitted, once each",
    reason="`fixed` is the control in which frameworks differ by orchestration alone",
    way_out="submit each of listed_configurations(spec) once, and nothing else",
    reads=FIXED,
    needs_all=False,
)
def _listed(evidence: AdapterEvidence) -> Finding:
    if evidence.runs[FIXED[0]].experiment.sampler.name != "fixed":
        return not_applicable(not_offered("sampler", "fixed", evidence.subject.capabilities.samplers) or "")
    problems = []
    for run in evidence.some(*FIXED):
        listed = Counter(configuration_digest(configuration) for configuration in run.experiment.configurations)
        submitted = Counter(
            configuration_digest(event.configuration) for event in run.of(schema.TrialSubmitted) if event.attempt == 1
        )
        foreign, missing = (submitted - listed).total(), (listed - submitted).total()
        if foreign:
            problems.append(f"{run.name}: {foreign} submitted configurations were not given, or not so often")
        if missing:
            problems.append(f"{run.name}: {missing} of {listed.total()} given configurations were not submitted")
    return judged(problems)


@check(
    "configurations.first",
    rule="`first_configurations` are submitted first, in their order, within the budget, and the sampler learns from them",
    reason="known good points save trials only if they come first and the model is told of them",
    way_out="hand given_values(spec) to the framework's own means, e.g. enqueue or points_to_evaluate, before it proposes any",
    reads=FIRST,
)
def _first(evidence: AdapterEvidence) -> Finding:
    problems, proposals = [], []
    for run in evidence.some(*FIRST):
        given = [configuration_digest(configuration) for configuration in run.experiment.configurations]
        submitted = [configuration_digest(event.configuration) for event in run.of(schema.TrialSubmitted) if event.attempt == 1]
        in_order = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(given, submitted, strict=False)))
        if in_order < len(given):
            problems.append(f"{run.name}: only {in_order} of {len(given)} given configurations were submitted first, in order")
        if len(submitted) != run.experiment.budget.trials:
            problems.append(
                f"{run.name}: {len(submitted)} trials were submitted, but the budget is {run.experiment.budget.trials}"
            )
        proposals.append(submitted[len(given) :])
    sampler = evidence.runs[FIRST[0]].experiment.sampler.name
    if sampler == "random":
        return judged(problems, "no sampler with a model here: what it learns cannot be seen")
    if len(proposals) == len(FIRST) and proposals[0] == proposals[1]:
        problems.append(
            f"sampler {sampler!r} proposed the same whether the given values are good or bad: it was not told of them"
        )
    return judged(problems, f"sampler {sampler}")


@run_check(
    "configurations.received",
    rule="what a trial trains is what was submitted",
    reason="the sampler must learn from what is trained",
    way_out="hand over exactly the submitted configuration; SpaceTranslation is exact in both directions",
    reads=(*FIXED, *RANDOM),
)
def _received(run: FinishedRun) -> Iterator[str]:
    submitted = {(event.trial, event.attempt): event.configuration for event in run.of(schema.TrialSubmitted)}
    for event in run.of(schema.TrialStarted):
        proposed = submitted.get((event.trial, event.attempt))
        if proposed is not None and canonical_json(proposed) != canonical_json(event.configuration):
            yield f"{run.name}: trial {event.trial} trained {event.configuration}, but {proposed} was submitted"


@check(
    "space.inside",
    rule="every random configuration lies in core's space, bounds and types",
    reason="a framework that searches another space answers another question",
    way_out="translate the space by SpaceTranslation, or correct the bounds: core's are inclusive",
    reads=(*RANDOM, DRAWS),
)
def _inside(evidence: AdapterEvidence) -> Finding:
    space = evidence.runs[RANDOM[0]].experiment.search_space
    configurations = [("draw", configuration) for configuration in (evidence.drawn.configurations if evidence.drawn else ())]
    configurations += [(run.name, trial.configuration) for run in evidence.some(*RANDOM) for trial in run.record.trials]
    problems = [f"{source}: {problem}" for source, configuration in configurations for problem in _outside(space, configuration)]
    if evidence.drawn is not None and evidence.drawn.text:
        problems.append(f"{evidence.drawn.source}: {evidence.drawn.text}")
    return judged(problems, f"{len(configurations)} configurations")


def _outside(space: SearchSpace, configuration: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(set(configuration) ^ set(space.dimensions)):
        yield f"{name!r} is {'missing' if name in space.dimensions else 'in no search space'}"
    for name, dimension in space:
        if name not in configuration:
            continue
        if ValuePlaces(dimension)(configuration[name]) is None:
            yield f"{name}={configuration[name]!r} is outside {dimension}"


@check(
    "space.distribution",
    rule="values are drawn as often as core's space says, also both ends of a range, and independently",
    reason="an exclusive upper bound hides a value, and a rounded uniform draws its ends half as often, in one framework only",
    way_out="core's bounds are inclusive: draw an index, or a uniform number in [0, 1), and let core map it; closer: --space",
    reads=(RANDOM[0], DRAWS),
)
def _distribution(evidence: AdapterEvidence) -> Finding:
    assert evidence.drawn is not None
    space, drawn = evidence.runs[RANDOM[0]].experiment.search_space, evidence.drawn
    judgement = judge(space, Sample(by_seed={SEED: drawn.configurations}), rate=ALARM)
    departures = [finding for finding in judgement.findings if finding.values["p"] is not None]
    # What lies outside is the matter of space.inside.
    problems = [departure.text for departure in departures if judgement.outside.keys().isdisjoint(departure.values["dimensions"])]
    least = min(judgement.p_values, default=1.0)
    return judged(problems, f"{len(drawn.configurations)} configurations of {drawn.source}, smallest p = {least:.2g}")
