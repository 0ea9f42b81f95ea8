"""What the controls say, as lines for people and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneoff.base.commands import command
from tuneoff.base.format import counted, number
from tuneoff.base.json_values import field_values
from tuneoff.judge.controls.compute import Controls, Effect
from tuneoff.judge.controls.same_algorithm import QUALITY, EntryPair, EquivalenceAnswer, differing_pairs
from tuneoff.judge.controls.same_configuration import Compared, Difference, Equality, SameConfiguration
from tuneoff.judge.stats.location import Interval

MOST_DIFFERENCES = 10  # shown; the JSON has all
FEW_DIFFERENCES = 3  # at the end of a comparison
_EFFECTS = {
    "algorithm": "Algorithm effect (a sampler − random search in the same framework)",
    "runtime": "Runtime effect (random search in a framework − in {pool})",
    "noise floor": "Noise floor (a framework again − itself)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One control: its answer, what contradicts equal treatment, and the evidence."""

    answer: str
    alarms: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    is_control: bool = True  # False: an effect, which is no question of equal treatment


def lines(found: Controls) -> list[str]:
    """Return the lines of all controls, the answer first in each."""
    result = []
    for section in _sections(found, MOST_DIFFERENCES):
        result += [section.answer, *(f"  {line}" for line in (*section.alarms, *section.evidence))]
    return result


def headlines(found: Controls, results: Path) -> list[str]:
    """Return the answers alone, with what contradicts equal treatment: the end of a comparison."""
    result = []
    for section in _sections(found, FEW_DIFFERENCES):
        if section.is_control:
            result += [section.answer, *(f"  {line}" for line in section.alarms)]
    return [*result, f"Their evidence, effects and noise floor: {command('check', '--controls', results)}"] if result else []


def _sections(found: Controls, most: int) -> Iterator[Section]:
    """Yield all sections; `most`: differing values that are listed."""
    for one in found.same_configurations:
        yield _same_configuration(one, most)
    if found.pairs:
        yield _same_algorithm(found)
    yield from _effects(found)


def _same_configuration(one: SameConfiguration, most: int) -> Section:
    held = [item for item in one.adapters if not item.emulated]
    what = {
        Equality.EQUAL: f"all values of {len(held)} frameworks are equal bit for bit",
        Equality.DIFFERENT: f"{counted(len(one.contradicting), 'value')} not the same in all frameworks",
        Equality.INCOMPLETE: "what could be compared is equal bit for bit, but some of the plan is not there",
        Equality.NOTHING: "fewer than two frameworks have an epoch in common",
    }[one.answer]
    width = max(len(item.label) for item in one.adapters)
    return Section(
        answer=f"Same configurations (sampler {one.setting}): {one.answer.value}: {what}.",
        alarms=tuple(_listed("differs", one.contradicting, most)),
        evidence=(
            *(f"{item.label.ljust(width)}  {_compared(item, one.reference)}" for item in one.adapters),
            *_listed("differs where emulated, in no answer", [item for item in one.differences if item.emulated_only], most),
        ),
    )


def _listed(what: str, differences: Sequence[Difference], most: int) -> Iterator[str]:
    for one in differences[:most]:
        values = ", ".join(f"{value} ({', '.join(labels)})" for value, labels in one.values.items())
        yield f"{what}: seed {one.seed}, configuration {one.configuration}, epoch {one.epoch}, {one.metric}: {values}"
    if len(differences) > most:
        yield f"and {len(differences) - most} more; --json has all"


def _compared(item: Compared, reference: str | None) -> str:
    what = f"{item.configurations} configurations, {item.epochs} epochs, {item.values} values"
    if item.is_reference:
        text = f"{what}: what the others are held to"
    elif not item.values:
        text = f"nothing in common with {reference}" if reference is not None else "nothing to hold it to"
    elif item.unequal:
        text = f"{what}: {item.unequal} differ"
    else:
        text = f"{what}: all equal"
    if item.same_model is not None:
        text += "; the tested model has the same bytes" if item.same_model else "; another model was tested"
    if item.lacking:
        whom = "" if item.is_reference or reference is None else f" with {reference}"
        text += f"; {item.lacking} planned configurations not compared{whom}"
    if item.not_done:
        text += "; " + ", ".join(f"seed {seed} {status}" for seed, status in sorted(item.not_done.items()))
    return f"{text} (emulated: shown, in no answer)" if item.emulated else text


def _same_algorithm(found: Controls) -> Section:
    pairs = [pair for pair in found.pairs if not pair.is_noise]
    alarms = [
        f"WARNING: {pair.one} and {pair.other} ({pair.setting}) select models of different quality with the same algorithm: "
        "the interval is outside the margin"
        for pair in differing_pairs(found.pairs)
    ]
    margins = dict.fromkeys((pair.margin.value, pair.margin.source) for pair in found.pairs)
    evidence = [
        f"margin ±{value:g} of {QUALITY}: {source}; intervals of {100 * (1 - 2 * found.alpha):.0f} % by seed (TOST)"
        for value, source in margins
        if value is not None
    ]
    rows = [_pair(pair, many=len({one.setting for one in found.pairs}) > 1) for pair in found.pairs]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    evidence += ["  ".join((name.ljust(widths[0]), scores.ljust(widths[1]), quality)) for name, scores, quality in rows]
    answer = f"Same algorithm (sampler {_names(found.pairs)}): {_headline(found, pairs)}"
    return Section(answer=answer, alarms=tuple(alarms), evidence=tuple(evidence))


def _names(pairs: Sequence[EntryPair]) -> str:
    return ", ".join(dict.fromkeys(pair.setting for pair in pairs))


def _headline(found: Controls, pairs: Sequence[EntryPair]) -> str:
    if not pairs:
        return "no two frameworks to compare; the noise floor alone."
    judged = [pair.quality.verdict for pair in pairs if pair.quality is not None]
    scores = [pair.scores for pair in pairs if pair.scores is not None]
    parts = []
    if judged:
        counts = {verdict: judged.count(verdict) for verdict in EquivalenceAnswer}
        equivalent, different = counts[EquivalenceAnswer.EQUIVALENT], counts[EquivalenceAnswer.DIFFERENT]
        part = f"selected quality equivalent in {equivalent} of {counted(len(pairs), 'pair')}"
        part += f", different in {different}" if different else ""
        part += (
            f", not shown in {counts[EquivalenceAnswer.NOT_SHOWN]}, which is not different"
            if counts[EquivalenceAnswer.NOT_SHOWN]
            else ""
        )
        left = len(pairs) - len(judged)
        parts.append(part + (f", not judged in {left}" if left else ""))
    if scores:
        least = min(score.adjusted or 0.0 for score in scores)
        differing = sum(score.differs is True for score in scores)
        shown = f"{differing} of {len(scores)} differ" if differing else "none is shown to differ"
        parts.append(f"distributions of scores: {shown} (least p {least:.2g}, KS, Holm over {counted(len(scores), 'pair')})")
    return "; ".join(parts) + "." if parts else "nothing could be judged."


def _pair(pair: EntryPair, *, many: bool) -> tuple[str, str, str]:
    setting = f" ({pair.setting})" if many else ""
    name = f"{pair.one}, {pair.other}{setting}" + (" [A/A]" if pair.is_noise else "")
    if pair.scores is None:
        scores = f"scores: {pair.no_scores}"
    else:
        test = pair.scores.test
        p = f"p {test.p:.2g}" if pair.scores.adjusted is None else f"p {pair.scores.adjusted:.2g}"
        scores = f"scores: D {test.distance:.3f}, {p}, {test.n} and {test.m} trials"
    return name, scores, _quality(pair)


def _quality(pair: EntryPair) -> str:
    if pair.quality is None:
        return f"quality: {pair.no_quality}{_failed(pair)}"
    found = pair.quality.interval
    size = "equal in all" if found.low == found.high == 0 else f"{_interval(found)},"
    text = f"quality: {size} {counted(found.n, 'seed')}{_failed(pair)}: {pair.quality.verdict.value}"
    if pair.quality.verdict is EquivalenceAnswer.NOT_SHOWN and pair.quality.seeds_needed is not None:
        text += f" (if equal, about {pair.quality.seeds_needed} seeds would show it)"
    return text


def _failed(one: EntryPair | Effect) -> str:
    return f"; failed runs: {one.failures[0]} and {one.failures[1]}" if any(one.failures) else ""


def _interval(found: Interval) -> str:
    return f"{found.estimate:+.4f} [{found.low:+.4f}, {found.high:+.4f}]".replace("-", "−")


def _effects(found: Controls) -> Iterator[Section]:
    pool = next((one.other for one in found.effects if one.kind == "runtime"), "")
    for kind, title in _EFFECTS.items():
        own = [one for one in found.effects if one.kind == kind]
        if own:
            widths = [max(len(one.one) for one in own), max(len(one.metric) for one in own)]
            yield Section(
                answer=f"{title.format(pool=pool)}, {100 * found.confidence:.0f} % intervals by seed:",
                evidence=tuple(f"{one.one.ljust(widths[0])}  {one.metric.ljust(widths[1])}  {_effect(one)}" for one in own),
                is_control=False,
            )


def _effect(one: Effect) -> str:
    if one.interval is None:
        return f"– ({one.reason}{_failed(one)})"
    found = one.interval
    seeds = f"{counted(found.n, 'seed')}{_failed(one)}"
    if one.metric == QUALITY:
        return f"{_interval(found)}, {seeds}"
    factor, unit = (1e-3, "s") if one.unit == "ms" else (1.0, one.unit)
    mean, low, high = (_signed(value * factor) for value in (found.estimate, found.low, found.high))
    return f"{mean} {unit} [{low}, {high}], {seeds}"


def _signed(value: float) -> str:
    return f"{'+' if value >= 0 else '−'}{number(abs(value))}"


def to_json(found: Controls) -> dict[str, Any]:
    """Return all controls as JSON values."""
    return {
        "contradicts": found.contradicts,
        "same_configurations": [
            field_values(one, {"reference": "nothing is done that is not emulated"}) for one in found.same_configurations
        ],
        "same_algorithm": {
            "alpha": round(found.alpha, 12),
            "correction": "holm, over the pairs that are not A/A",
            "metric": QUALITY,
            "pairs": [_pair_json(pair) for pair in found.pairs],
        },
        "effects": [field_values(one, {"interval": one.reason}, without=("reason",)) for one in found.effects],
    }


def _pair_json(pair: EntryPair) -> dict[str, Any]:
    because = {"scores": pair.no_scores, "quality": pair.no_quality}
    return field_values(pair, because, without=("no_scores", "no_quality"))
