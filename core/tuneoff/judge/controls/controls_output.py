"""What the controls say, as lines for people and as JSON values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tuneoff.base.commands import command
from tuneoff.base.format import counted, number
from tuneoff.base.json_values import field_values
from tuneoff.judge.controls.compute import QUALITY, Controls, Effect, EntryPair, differing_pairs
from tuneoff.judge.controls.same_configuration import ComparedAdapter, Difference, Equality
from tuneoff.judge.stats.equivalence import EquivalenceAnswer
from tuneoff.judge.stats.location import Interval

MOST_DIFFERENCES = 10  # shown; the JSON has all
FEW_DIFFERENCES = 3  # at the end of a comparison
_EFFECTS = {
    "algorithm": "Algorithm effect (a sampler − random search in the same framework)",
    "runtime": "Runtime effect (random search in a framework − in {pool})",
    "noise floor": "Noise floor (a framework again − itself)",
}


class Section(NamedTuple):
    """One control: its answer, what contradicts equal treatment, and the evidence."""

    answer: str
    alarms: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    is_control: bool = True  # False: an effect, which is no question of equal treatment


def lines(controls: Controls) -> list[str]:
    """Return the lines of all controls, the answer first in each."""
    result = []
    for section in _sections(controls, MOST_DIFFERENCES):
        result += [section.answer, *(f"  {line}" for line in (*section.alarms, *section.evidence))]
    return result


def headlines(controls: Controls, results: Path) -> list[str]:
    """Return the answers alone, with what contradicts equal treatment: the end of a comparison."""
    result = []
    for section in _sections(controls, FEW_DIFFERENCES):
        if section.is_control:
            result += [section.answer, *(f"  {line}" for line in section.alarms)]
    return [*result, f"Their evidence, effects and noise floor: {command('check', '--controls', results)}"] if result else []


def _sections(controls: Controls, most: int) -> Iterator[Section]:
    """Yield all sections; `most`: differing values that are listed."""
    for control in controls.same_configurations:
        held = [adapter for adapter in control.adapters if not adapter.excluded]
        what = {
            Equality.EQUAL: f"all values of {len(held)} frameworks are equal bit for bit",
            Equality.DIFFERENT: f"{counted(len(control.contradicting), 'value')} not the same in all frameworks",
            Equality.INCOMPLETE: "what could be compared is equal bit for bit, but a part of the plan is missing",
            Equality.NOTHING: "fewer than two frameworks have an epoch in common",
        }[control.answer]
        width = max(len(adapter.label) for adapter in control.adapters)
        excluded = [difference for difference in control.differences if difference.excluded_only]
        yield Section(
            answer=f"Same configurations (sampler {control.setting}): {control.answer.value}: {what}.",
            alarms=tuple(_listed("differs", control.contradicting, most)),
            evidence=(
                *(f"{adapter.label.ljust(width)}  {_compared(adapter, control.reference)}" for adapter in control.adapters),
                *_listed("differs where a flag excludes it, in no answer", excluded, most),
            ),
        )

    if controls.pairs:
        alarms = [
            f"WARNING: {pair.one} and {pair.other} ({pair.setting}) select models of different quality with the same algorithm: "
            "the interval is outside the margin"
            for pair in differing_pairs(controls.pairs)
        ]
        margins = dict.fromkeys((pair.margin.value, pair.margin.source) for pair in controls.pairs)
        evidence = [
            f"margin ±{value:g} of {QUALITY}: {source}; intervals of {100 * (1 - 2 * controls.alpha):.0f} % by seed (TOST)"
            for value, source in margins
            if value is not None
        ]
        settings = dict.fromkeys(pair.setting for pair in controls.pairs)
        rows = [_pair(pair, many=len(settings) > 1) for pair in controls.pairs]
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        evidence += ["  ".join((name.ljust(widths[0]), scores.ljust(widths[1]), quality)) for name, scores, quality in rows]
        answer = _headline([pair for pair in controls.pairs if not pair.is_noise])
        yield Section(
            answer=f"Same algorithm (sampler {', '.join(settings)}): {answer}", alarms=tuple(alarms), evidence=tuple(evidence)
        )

    pool = next((effect.other for effect in controls.effects if effect.kind == "runtime"), "")
    for kind, title in _EFFECTS.items():
        effects = [effect for effect in controls.effects if effect.kind == kind]
        if effects:
            widths = [max(len(effect.one) for effect in effects), max(len(effect.metric) for effect in effects)]
            yield Section(
                answer=f"{title.format(pool=pool)}, {100 * controls.confidence:.0f} % intervals by seed:",
                evidence=tuple(
                    f"{effect.one.ljust(widths[0])}  {effect.metric.ljust(widths[1])}  {_effect(effect)}" for effect in effects
                ),
                is_control=False,
            )


def _listed(what: str, differences: Sequence[Difference], most: int) -> Iterator[str]:
    for difference in differences[:most]:
        values = ", ".join(f"{value} ({', '.join(labels)})" for value, labels in difference.values.items())
        trained = f"seed {difference.seed}, configuration {difference.configuration}, epoch {difference.epoch}"
        yield f"{what}: {trained}, {difference.metric}: {values}"
    if len(differences) > most:
        yield f"and {len(differences) - most} more; --json has all"


def _compared(adapter: ComparedAdapter, reference: str | None) -> str:
    what = f"{adapter.configurations} configurations, {adapter.epochs} epochs, {adapter.values} values"
    if adapter.is_reference:
        text = f"{what}: the reference of the others"
    elif not adapter.values:
        text = f"nothing in common with {reference}" if reference is not None else "no reference"
    elif adapter.unequal:
        text = f"{what}: {adapter.unequal} differ"
    else:
        text = f"{what}: all equal"
    if adapter.same_model is not None:
        text += "; the tested model has the same bytes" if adapter.same_model else "; another model was tested"
    if adapter.lacking:
        whom = "" if adapter.is_reference or reference is None else f" with {reference}"
        text += f"; {adapter.lacking} planned configurations not compared{whom}"
    if adapter.not_done:
        text += "; " + ", ".join(f"seed {seed} {status}" for seed, status in sorted(adapter.not_done.items()))
    return f"{text} ({adapter.excluded}: shown, in no answer)" if adapter.excluded else text


def _headline(pairs: Sequence[EntryPair]) -> str:
    if not pairs:
        return "no two frameworks to compare; only the noise floor."
    judged = [pair.quality.verdict for pair in pairs if pair.quality is not None]
    scores = [pair.scores for pair in pairs if pair.scores is not None]
    parts = []
    if judged:
        counts = Counter(judged)
        different, unshown = counts[EquivalenceAnswer.DIFFERENT], counts[EquivalenceAnswer.NOT_SHOWN]
        part = f"selected quality equivalent in {counts[EquivalenceAnswer.EQUIVALENT]} of {counted(len(pairs), 'pair')}"
        part += f", different in {different}" if different else ""
        part += f", not shown in {unshown}, which is not different" if unshown else ""
        parts.append(part + (f", not judged in {len(pairs) - len(judged)}" if len(judged) < len(pairs) else ""))
    if scores:
        least = min(score.adjusted or 0.0 for score in scores)
        differing = sum(score.differs is True for score in scores)
        text = f"{differing} of {len(scores)} differ" if differing else "none is shown to differ"
        parts.append(f"distributions of scores: {text} (smallest p {least:.2g}, KS, Holm over {counted(len(scores), 'pair')})")
    return "; ".join(parts) + "." if parts else "nothing can be judged."


def _pair(pair: EntryPair, *, many: bool) -> tuple[str, str, str]:
    setting = f" ({pair.setting})" if many else ""
    name = f"{pair.one}, {pair.other}{setting}" + (" [A/A]" if pair.is_noise else "")
    scores = pair.no_scores
    if pair.scores is not None:
        test, p = pair.scores.test, pair.scores.test.p if pair.scores.adjusted is None else pair.scores.adjusted
        scores = f"D {test.distance:.3f}, p {p:.2g}, {test.n} and {test.m} trials"
    return name, f"scores: {scores}", _quality(pair)


def _quality(pair: EntryPair) -> str:
    if pair.quality is None:
        return f"quality: {pair.no_quality}{_failed(pair)}"
    interval = pair.quality.interval
    size = "equal in all" if interval.low == interval.high == 0 else f"{_interval(interval)},"
    text = f"quality: {size} {counted(interval.n, 'seed')}{_failed(pair)}: {pair.quality.verdict.value}"
    if pair.quality.verdict is EquivalenceAnswer.NOT_SHOWN and pair.quality.seeds_needed is not None:
        text += f" (if equal, about {pair.quality.seeds_needed} seeds would show it)"
    return text


def _failed(compared: EntryPair | Effect) -> str:
    return f"; failed runs: {compared.failures[0]} and {compared.failures[1]}" if any(compared.failures) else ""


def _interval(interval: Interval) -> str:
    return f"{interval.estimate:+.4f} [{interval.low:+.4f}, {interval.high:+.4f}]".replace("-", "−")


def _effect(effect: Effect) -> str:
    if effect.interval is None:
        return f"– ({effect.reason}{_failed(effect)})"
    interval = effect.interval
    seeds = f"{counted(interval.n, 'seed')}{_failed(effect)}"
    if effect.metric == QUALITY:
        return f"{_interval(interval)}, {seeds}"
    factor, unit = (1e-3, "s") if effect.unit == "ms" else (1.0, effect.unit)
    mean, low, high = (
        f"{'+' if value >= 0 else '−'}{number(abs(value * factor))}" for value in (interval.estimate, interval.low, interval.high)
    )
    return f"{mean} {unit} [{low}, {high}], {seeds}"


def to_json(controls: Controls) -> dict[str, Any]:
    """Return all controls as JSON values."""
    return {
        "contradicts": controls.contradicts,
        "same_configurations": [
            field_values(control, {"reference": "no done run that no flag excludes"}) for control in controls.same_configurations
        ],
        "same_algorithm": {
            "alpha": round(controls.alpha, 12),
            "correction": "holm, over the pairs that are not A/A",
            "metric": QUALITY,
            "pairs": [
                field_values(pair, {"scores": pair.no_scores, "quality": pair.no_quality}, without=("no_scores", "no_quality"))
                for pair in controls.pairs
            ],
        },
        "effects": [field_values(effect, {"interval": effect.reason}, without=("reason",)) for effect in controls.effects],
    }
