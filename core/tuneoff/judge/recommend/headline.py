"""The first lines of a recommendation: who, or why nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tuneoff.base.format import counted, figure, listed
from tuneoff.judge.recommend.recommendation import Family, Outside, Recommendation
from tuneoff.judge.recommend.request import TRIAL_SECONDS, TRIALS, WORKERS, Request, size_text

LOCAL = "local"


def headline(recommendation: Recommendation) -> Iterator[str]:
    """Yield the answer, one line per workload, sampler and pruner; a clear refusal where there is none."""
    if not recommendation.capable:
        yield "no framework meets the constraints"
        return
    for family in recommendation.families:
        yield f"{family.name}: {_of_family(family)}"
    if recommendation.families:
        return
    if recommendation.outside:
        yield "not measured, so nothing is said: " + _asked(recommendation.request)
        for one in recommendation.outside:
            yield _outside(one, recommendation.request)
        return
    names = listed(recommendation.not_measured)
    was = "was not" if len(recommendation.not_measured) == 1 else "were not"
    yield f"{names} can do what is asked for, but {was} measured at it, so nobody is recommended"
    for seen in recommendation.on_stand_ins:
        yield f"{seen.label} has {counted(seen.runs, 'run')}, on a stand-in for its platform: they recommend nothing"


def how_to_measure(recommendation: Recommendation) -> Iterator[str]:
    """Yield which file to run, and with what, for what is not measured."""
    request = recommendation.request
    names = " ".join([*recommendation.measured, *map(_real_name(recommendation), recommendation.not_measured)])
    for one in recommendation.outside:
        changes = _changes(request, one.beyond or tuple(request.asked))
        for file in one.files:
            yield f"to measure it: set {changes} in {file}, then: tuneoff compare {file} --adapter {names}"
    if recommendation.not_measured and not recommendation.outside:
        lacking = " and ".join(recommendation.lacking)
        for file in recommendation.files:
            first = f"set {lacking} in {file}, then: " if lacking else ""
            yield f"to measure what was not: {first}tuneoff compare {file} --adapter {names}"


def _real_name(recommendation: Recommendation) -> Callable[[str], str]:
    """Return how an adapter is named on the first platform that is real and asked for."""
    platforms = {one.adapter: one.platforms for one in recommendation.candidates}

    def name(adapter: str) -> str:
        first = next(iter(platforms.get(adapter, ())), LOCAL)
        return adapter if first == LOCAL else f"{adapter}@{first}"

    return name


def _of_family(family: Family) -> str:
    names = listed(family.recommended)
    judged = [one for one in family.weighed if one.is_judged]
    labels = {label for one in family.weighed for label in one.setting.labels}
    if not family.recommended:
        if family.differs or family.dominated:
            return "the measured settings disagree, so nobody is recommended: see below"
        return "nobody was measured on all sides of the request, so nobody is recommended: see below"
    if len(labels) == 1:
        return f"{names} is the only one that can and was measured; there is nothing to compare it with"
    if len(family.recommended) == 1:
        others = labels - set(family.recommended)
        dominated = [label for label in family.dominated if label in others]
        if len(dominated) == len(others):
            return f"{names}; {listed(dominated)} {'is' if len(dominated) == 1 else 'are'} dominated"
        return f"{names}; of the others the measured settings say different things: see below"
    if not judged:
        return f"nothing is judged, so {names} remain: too few seeds, or no pair has figures to compare"
    if all(one.is_indifferent for one in family.weighed):
        return f"no difference that matters between {names}"
    offs = list(dict.fromkeys(text for one in family.weighed for text in one.trade_offs))
    if offs:
        return f"{names} remain: {'; '.join(offs)}"
    questions = list(dict.fromkeys(name for one in family.weighed for name in one.undecided))
    return f"not decided between {names}" + (f" in {listed(questions)}" if questions else "")


def _outside(one: Outside, request: Request) -> str:
    measured = ", ".join(size_text(name, ends) for name, ends in one.measured)
    if one.beyond:
        return f"{one.family}: measured were {measured}"
    return f"{one.family}: measured were {measured}, but no settings that surround this combination"


def _asked(request: Request) -> str:
    return ", ".join(size_text(name, (value, value)) for name, value in request.asked.items())


def _changes(request: Request, names: Sequence[str]) -> str:
    texts = []
    for name in names:
        value = request.asked[name]
        if name == WORKERS:
            texts.append(f"workers.count to {value:g}")
        elif name == TRIALS:
            texts.append(f"budget.trials to {value:g}")
        elif name == TRIAL_SECONDS:
            texts.append(f"the workload so that a trial takes about {figure(value)} s")
    return " and ".join(texts)
