"""Settings of one workload, sampler and pruner: those at the request or around it, weighed together, or why there are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from tuneoff.judge.answers.answer import Outcome, Verdict
from tuneoff.judge.answers.phrases import seen_text
from tuneoff.judge.recommend.recommendation import (
    Against,
    Cited,
    Family,
    Outside,
    Reason,
    Weighed,
    between,
    dominances,
    front,
    has_figures,
)
from tuneoff.judge.recommend.request import MeasuredSetting, Request, bracket, size_text, spans
from tuneoff.judge.runs import POOL

_INDIFFERENT = (Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT)
_OPEN = (Outcome.UNDECIDED, Outcome.NOT_JUDGED)


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
            weighed = [weigh(own[place], request.prefer) for place in found.used]
            inside.append(_family(name, found.is_exact, weighed, request.prefer))
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


def _family(name: str, is_exact: bool, weighed: Sequence[Weighed], prefer: str | None) -> Family:
    labels = list(dict.fromkeys(label for one in weighed for label in one.setting.labels))
    where = {label: [one for one in weighed if label in one.setting.labels] for label in labels}
    eligible = [label for label in labels if is_exact or len(where[label]) == len(weighed)]  # nothing from one side alone
    recommended = [label for label in eligible if all(label in one.front for one in where[label])]
    pairs = [*combinations(recommended, 2), *((label, POOL) for label in recommended)]
    return Family(
        name=name,
        is_exact=is_exact,
        weighed=tuple(weighed),
        recommended=tuple(recommended),
        dominated=tuple(label for label in labels if not any(label in one.front for one in where[label])),
        differs=tuple(_differences(weighed)),
        unmeasured=tuple(
            f"{label} was not measured at {place_text(one.setting)}"
            for label in labels
            for one in weighed
            if label not in one.setting.labels
        ),
        against=tuple(_against(weighed, pairs, prefer)),
        without_margin={
            verdict.question.name: verdict.question.margin_text
            for pair in pairs
            for verdict in _shown(weighed, pair, prefer)
            if verdict.outcome is Outcome.UNDECIDED and verdict.question.margin is None
        },
    )


def _against(weighed: Sequence[Weighed], pairs: Sequence[tuple[str, str]], prefer: str | None) -> Iterator[Against]:
    """Yield what the verdicts show of each pair in which somebody is better in something and the settings do not disagree."""
    failures: Counter[str] = Counter()
    for item in weighed:
        failures.update({group.label: sum(run.is_failure for run in group.runs) for group in item.setting.groups})
    for pair in pairs:
        shown = _shown(weighed, pair, prefer)
        by_question: dict[str, list[Outcome]] = {}
        for verdict in shown:
            by_question.setdefault(verdict.question.name, []).append(verdict.outcome_for(pair[0]))
        better = tuple(name for name, outcomes in by_question.items() if Outcome.BETTER in outcomes)
        worse = tuple(name for name, outcomes in by_question.items() if Outcome.WORSE in outcomes)
        if not (better or worse) or set(better) & set(worse):
            continue
        one, other = pair if worse else pair[::-1]
        yield Against(
            one=one,
            other=other,
            better=better if worse else (),
            worse=worse or better,
            undecided=tuple(
                name
                for name, outcomes in by_question.items()
                if name not in (*better, *worse) and any(outcome in _OPEN for outcome in outcomes)
            ),
            is_everywhere=all(len(set(by_question[name])) == 1 for name in (*better, *worse)),
            failed_less=POOL not in pair and failures[one] < failures[other],
        )


def _shown(weighed: Sequence[Weighed], pair: tuple[str, str], prefer: str | None) -> list[Verdict]:
    """Return the verdicts of a pair in all settings that have something to compare."""
    found = (verdict for item in weighed for verdict in between(_of_setting(item.setting, prefer), *pair))
    return [verdict for verdict in found if has_figures(verdict) and not verdict.is_by_failures]


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


def weigh(setting: MeasuredSetting, prefer: str | None) -> Weighed:
    """Return who is on the front of a setting and why. `prefer`: the question that is told first; it decides nothing."""
    verdicts = _of_setting(setting, prefer)
    labels = setting.labels
    failures = {group.label: sum(run.is_failure for run in group.runs) for group in setting.groups}
    found = dominances(verdicts, labels, failures)
    ahead = front(labels, found)
    pairs = {pair: [one for one in between(verdicts, *pair) if has_figures(one)] for pair in combinations(ahead, 2)}
    outcomes = [one.outcome for own in pairs.values() for one in own]
    return Weighed(
        setting=setting,
        dominances=tuple(found),
        front=tuple(ahead),
        reasons=tuple(_reasons(setting, verdicts, ahead)),
        is_judged=any(one.outcome is not Outcome.NOT_JUDGED for one in verdicts if POOL not in (one.one, one.other)),
        is_indifferent=all(pairs.values()) and all(outcome in _INDIFFERENT for outcome in outcomes),
        undecided=tuple(dict.fromkeys(one.question.name for own in pairs.values() for one in own if one.outcome in _OPEN)),
    )


def _of_setting(setting: MeasuredSetting, prefer: str | None) -> list[Verdict]:
    labels = {*setting.labels, *(group.label for group in setting.floor)}
    own = [
        verdict
        for verdict in setting.answers.verdicts
        if verdict.scope == setting.scope and verdict.one in labels and verdict.other in labels and not verdict.is_noise
    ]
    return sorted(own, key=lambda verdict: verdict.question.name != prefer)  # stable: the others in the answers' order


def _reasons(setting: MeasuredSetting, verdicts: Sequence[Verdict], ahead: Sequence[str]) -> Iterator[Reason]:
    """Yield a sentence per pair, those on the front first, then one per label that failed."""
    ordered = [*ahead, *(label for label in setting.labels if label not in ahead)]
    for one, other in (*combinations(ordered, 2), *((label, POOL) for label in ordered)):
        own = between(verdicts, one, other)
        telling = [verdict for verdict in own if has_figures(verdict)]
        if other == POOL and not any(map(_is_claim, telling)):
            continue
        text = pair_text(own, one, other)
        unsure: dict[str, list[str]] = {}
        for verdict in telling:
            if _is_claim(verdict) and not verdict.is_robust:
                unsure.setdefault(verdict.robustness, []).append(verdict.question.name)
        text += "".join(f"; {how} in {', '.join(names)}" for how, names in unsure.items())
        few = next((verdict.reason for verdict in telling if verdict.outcome is Outcome.NOT_JUDGED), "")
        text += f" ({few})" if few else ""
        yield Reason(text=text, runs=cited(setting, (one, other), telling) if telling else ())
    for group in setting.groups:
        failed = [run for run in group.runs if run.is_failure]
        if failed:
            tried = sum(run.status == "done" for run in group.runs) + len(failed)
            yield Reason(text=f"{group.label} failed in {len(failed)} of {tried} runs", runs=cited(setting, (group.label,)))


def _is_claim(verdict: Verdict) -> bool:
    return verdict.outcome not in _OPEN


def cited(setting: MeasuredSetting, labels: Sequence[str], verdicts: Sequence[Verdict] = ()) -> tuple[Cited, ...]:
    """Return the runs of labels in a setting; with verdicts, of the seeds in which these have something to compare."""
    seeds = {pair.seed for verdict in verdicts for pair in verdict.differences if pair.difference is not None}
    return tuple(
        Cited(folder=setting.folder, run_id=run.record.run_id, execution_id=run.record.execution_id)
        for group in (*setting.groups, *setting.floor)
        if group.label in labels
        for run in group.runs
        if run.record is not None and (not verdicts or run.seed in seeds)
    )


def pair_text(verdicts: Sequence[Verdict], one: str, other: str) -> str:
    """Return "serial against optuna: better in time (0.6x (0.5 to 0.8), −1.9 s); not decided in cost"."""
    by_failures = [verdict.question.name for verdict in verdicts if verdict.is_by_failures]
    telling = [verdict for verdict in verdicts if has_figures(verdict) and not verdict.is_by_failures]
    parts = [f"failed runs decide {', '.join(by_failures)}"] if by_failures else []
    for outcome in (Outcome.BETTER, Outcome.WORSE):
        named = [
            f"{verdict.question.name} ({seen_text(verdict, one)})" for verdict in telling if verdict.outcome_for(one) is outcome
        ]
        parts += [f"{outcome.text} in {', '.join(named)}"] if named else []
    for outcome in (Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT, Outcome.UNDECIDED, Outcome.NOT_JUDGED):
        named = [verdict.question.name for verdict in telling if verdict.outcome is outcome]
        parts += [f"{outcome.text} in {', '.join(named)}"] if named else []
    without = [verdict.question.name for verdict in verdicts if not has_figures(verdict)]
    parts += [f"no figures to compare in {', '.join(without)}"] if without else []
    return f"{one} against {other}: {'; '.join(parts) or 'nothing to compare'}"
