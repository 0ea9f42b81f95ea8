"""Settings of one workload, sampler and pruner: those at the request or around it, weighed together, or why there are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from tuneoff.judge.answers.answer import Outcome
from tuneoff.judge.recommend.bracket import bracket, spans
from tuneoff.judge.recommend.dominance import between
from tuneoff.judge.recommend.measured import MeasuredSetting
from tuneoff.judge.recommend.pareto import weigh
from tuneoff.judge.recommend.phrases import cited
from tuneoff.judge.recommend.recommendation import Family, Outside, Reason, Weighed
from tuneoff.judge.recommend.request import Request, size_text


def families(measured: Sequence[MeasuredSetting], request: Request) -> tuple[list[Family], list[Outside]]:
    """Return what is measured at or around the request, and what is not."""
    by_name: dict[str, list[MeasuredSetting]] = {}
    for setting in measured:
        by_name.setdefault(setting.family, []).append(setting)
    inside: list[Family] = []
    outside: list[Outside] = []
    for name, own in by_name.items():
        found = bracket(request.asked, [setting.sizes for setting in own])
        if found.used:
            inside.append(_family(name, found.is_exact, [weigh(own[place], request.prefer) for place in found.used]))
        else:
            known = spans([setting.sizes for setting in own])
            outside.append(
                Outside(
                    family=name,
                    measured=tuple((size, known[size]) for size in request.asked if size in known),
                    beyond=tuple(found.outside or ()),
                    files=tuple(dict.fromkeys(setting.file for setting in own)),
                )
            )
    return inside, outside


def place_text(setting: MeasuredSetting) -> str:
    """Return a setting's scope and sizes in words."""
    sizes = ", ".join(size_text(name, ends) for name, ends in setting.sizes.items())
    return f"{setting.scope.text} ({sizes})"


def _family(name: str, is_exact: bool, weighed: Sequence[Weighed]) -> Family:
    labels = list(dict.fromkeys(label for one in weighed for label in one.setting.labels))
    where = {label: [one for one in weighed if label in one.setting.labels] for label in labels}
    eligible = [label for label in labels if is_exact or len(where[label]) == len(weighed)]  # nothing from one side alone
    return Family(
        name=name,
        is_exact=is_exact,
        weighed=tuple(weighed),
        recommended=tuple(label for label in eligible if all(label in one.front for one in where[label])),
        dominated=tuple(label for label in labels if not any(label in one.front for one in where[label])),
        differs=tuple(_differences(weighed)),
        unmeasured=tuple(
            f"{label} was not measured at {place_text(one.setting)}"
            for label in labels
            for one in weighed
            if label not in one.setting.labels
        ),
    )


def _differences(weighed: Sequence[Weighed]) -> Iterator[Reason]:
    """Yield where the order of a pair turns round from one setting to another."""
    for first, second in combinations(weighed, 2):
        shared = [label for label in first.setting.labels if label in second.setting.labels]
        for one, other in combinations(shared, 2):
            ours, theirs = (
                {
                    verdict.question.name: verdict.outcome_for(one)
                    for verdict in between(item.setting.answers.verdicts, one, other)
                    if verdict.scope == item.setting.scope
                }
                for item in (first, second)
            )
            for question, outcome in ours.items():
                if {outcome, theirs.get(question)} == {Outcome.BETTER, Outcome.WORSE}:
                    places = (first, second) if outcome is Outcome.BETTER else (second, first)
                    at, elsewhere = (place_text(item.setting) for item in places)
                    yield Reason(
                        text=f"the order differs: {one} is better than {other} in {question} at {at}, and worse at {elsewhere}",
                        runs=(*cited(first.setting, (one, other)), *cited(second.setting, (one, other))),
                    )
