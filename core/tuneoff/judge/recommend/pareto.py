"""One measured setting weighed: dominances, front, and the reasons with their runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from tuneoff.base.format import listed
from tuneoff.judge.answers.answer import Outcome, Verdict
from tuneoff.judge.recommend.dominance import between, dominances, front, has_figures
from tuneoff.judge.recommend.measured import MeasuredSetting
from tuneoff.judge.recommend.phrases import cited, pair_text
from tuneoff.judge.recommend.recommendation import Reason, Weighed

_INDIFFERENT = (Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT)
_OPEN = (Outcome.UNDECIDED, Outcome.NOT_JUDGED)


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
        is_judged=any(one.outcome is not Outcome.NOT_JUDGED for one in verdicts if not one.is_noise),
        is_indifferent=all(pairs.values()) and all(outcome in _INDIFFERENT for outcome in outcomes),
        undecided=tuple(dict.fromkeys(one.question.name for own in pairs.values() for one in own if one.outcome in _OPEN)),
        trade_offs=tuple(_trade_offs(pairs)),
    )


def _of_setting(setting: MeasuredSetting, prefer: str | None) -> list[Verdict]:
    labels = set(setting.labels)
    own = [
        verdict
        for verdict in setting.answers.verdicts
        if verdict.scope == setting.scope and verdict.one in labels and verdict.other in labels and not verdict.is_noise
    ]
    return sorted(own, key=lambda verdict: verdict.question.name != prefer)  # stable: the others in the answers' order


def _reasons(setting: MeasuredSetting, verdicts: Sequence[Verdict], ahead: Sequence[str]) -> Iterator[Reason]:
    """Yield a sentence per pair, those on the front first, then one per label that failed."""
    ordered = [*ahead, *(label for label in setting.labels if label not in ahead)]
    for one, other in combinations(ordered, 2):
        own = between(verdicts, one, other)
        telling = [verdict for verdict in own if has_figures(verdict)]
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


def _trade_offs(pairs: dict[tuple[str, str], list[Verdict]]) -> Iterator[str]:
    for (one, other), verdicts in pairs.items():
        better = [verdict.question.name for verdict in verdicts if verdict.outcome_for(one) is Outcome.BETTER]
        worse = [verdict.question.name for verdict in verdicts if verdict.outcome_for(one) is Outcome.WORSE]
        if better and worse:
            yield f"{one} is better in {listed(better)}, {other} in {listed(worse)}"
        elif better or worse:
            first, second, names = (one, other, better) if better else (other, one, worse)
            unsure = [verdict.question.name for verdict in verdicts if verdict.outcome in _OPEN]
            rest = f"in {listed(unsure)} they are not decided" if unsure else f"{first} failed more often"
            yield f"{first} is better than {second} in {listed(names)}, but {rest}"
