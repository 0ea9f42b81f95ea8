"""Configurations: those that were given, those that were drawn, and that trials get what was proposed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tuneoff.base.dimension import typed
from tuneoff.base.findings import Finding, check, judged, not_applicable, passed
from tuneoff.base.identity import canonical_json, configuration_digest
from tuneoff.base.space import Dimension, IntegerLog, SearchSpace, points
from tuneoff.record.events import schema
from tuneoff.trust.check.evidence import AdapterEvidence, FinishedRun, run_check
from tuneoff.trust.check.planned_runs import DRAWS, not_offered, repetitions

FIXED = ("honest-max", "honest-min")
RANDOM = (repetitions(1)[0], repetitions(2)[0], "other-seed")
NARROW = 10  # values: both ends of such a dimension are drawn, and how often, can be told
ALARM = 1e-6  # probability under core's distribution below which an end is starved


@check(
    "configurations.listed",
    rule="`fixed`: exactly the given configurations are submitted, once each",
    reason="`fixed` is the control in which frameworks differ by orchestration alone",
    way_out="submit each of listed_configurations(spec) once, and nothing else",
    reads=FIXED,
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
        value = configuration[name]  # one of the dimension's, in its own type: 1 is not 1.0
        if not dimension.contains(value) or canonical_json(value) != canonical_json(typed(dimension, value)):
            yield f"{name}={value!r} is outside {dimension}"


@check(
    "space.bounds-reached",
    rule="both ends of each narrow dimension are drawn",
    reason="an exclusive upper bound hides a value from one framework only",
    way_out="core's bounds are inclusive: add the step where the framework's upper bound is exclusive",
    reads=(RANDOM[0], DRAWS),
)
def _bounds(evidence: AdapterEvidence) -> Finding:
    problems = []
    for name, dimension, values in _narrow(evidence):
        counts = Counter(canonical_json(value) for value in values)
        for end in _ends(dimension):
            if not counts[canonical_json(end)]:
                problems.append(f"{name}: {end!r} was never drawn in {len(values)} draws")
    return judged(problems)


@check(
    "space.ends-not-starved",
    rule="the ends of narrow dimensions are as frequent as core's space says",
    reason="a rounded uniform draws its ends half as often",
    way_out="draw an index, or a uniform number in [0, 1), and let core map it; tuneoff check --space tests it closely",
    reads=(RANDOM[0], DRAWS),
)
def _starved(evidence: AdapterEvidence) -> Finding:
    from scipy import stats

    problems, least = [], 1.0
    for name, dimension, values in _narrow(evidence):
        counts = Counter(canonical_json(value) for value in values)
        for end in _ends(dimension):
            count = counts[canonical_json(end)]
            if count == 0:
                continue  # the matter of space.bounds-reached
            share = 1.0 / (dimension.cardinality or 1)
            if isinstance(dimension, IntegerLog):
                share = dimension.probability(end)
            drawn = stats.binom(len(values), share)
            p = min(1.0, 2 * float(min(drawn.cdf(count), drawn.sf(count - 1))))
            least = min(least, p)
            if p < ALARM:
                problems.append(
                    f"{name}: {end!r} came {count} times in {len(values)}, not about {share * len(values):.0f} (p = {p:.1g})"
                )
    assert evidence.drawn is not None
    text = f"{len(evidence.drawn.configurations)} configurations of {evidence.drawn.source}, least p = {least:.2g}"
    return judged(problems) if problems else passed(text)


def _narrow(evidence: AdapterEvidence) -> Iterator[tuple[str, Dimension, list[Any]]]:
    assert evidence.drawn is not None
    space = evidence.runs[RANDOM[0]].experiment.search_space
    for name, dimension in space.searched.items():
        if dimension.cardinality is not None and dimension.cardinality <= NARROW:
            yield (
                name,
                dimension,
                [configuration[name] for configuration in evidence.drawn.configurations if name in configuration],
            )


def _ends(dimension: Dimension) -> Iterable[Any]:
    values = points(dimension)
    return values[0], values[-1]


CHECKS = (_listed, _received, _inside, _bounds, _starved)
