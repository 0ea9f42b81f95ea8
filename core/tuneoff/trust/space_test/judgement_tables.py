"""Verdicts as text and as JSON values: one row per adapter and dimension, then one verdict per adapter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tuneoff.base.findings import CONFORMS, FAILS
from tuneoff.base.format import counted
from tuneoff.base.output import columns, one_line
from tuneoff.base.space import describe
from tuneoff.errors import NOT_KNOWN
from tuneoff.trust.space_test.judge import SpaceJudgement, SpaceVerdict
from tuneoff.trust.space_test.statistics import FALSE_DISCOVERY_RATE, Kind, Test
from tuneoff.trust.space_test.verify import Outcome, SpaceTarget

HEADER = ("adapter", "dimension", "range", "outside", "distribution", "ends", "pairs", "mapping", "verdict")
_NOT_TESTED = "-"
_RANGE = 34  # characters of a range in the table


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """Return 0 where each adapter is accepted, or was skipped for a stated reason; not where all were skipped."""
    verdicts = _verdicts(outcomes)
    return NOT_KNOWN if not verdicts else CONFORMS if {*verdicts} == {"accepted"} else FAILS


def _verdicts(outcomes: Sequence[Outcome]) -> list[SpaceVerdict]:
    return [judgement.verdict for _, judgement in outcomes if judgement is not None]


def text(outcomes: Sequence[Outcome]) -> str:
    """Return the table, the verdict of each adapter with its reasons, and the answer."""
    table = [row for target, judgement in outcomes if judgement is not None for row in _rows(target, judgement)]
    parts = [columns(HEADER, table), ""] if table else []
    parts += [line for outcome in outcomes for line in _lines(*outcome)]
    verdicts = _verdicts(outcomes)
    skipped, accepted = len(outcomes) - len(verdicts), verdicts.count("accepted")
    answer = "ACCEPTED: no draw speaks against core's space" if accepted == len(verdicts) else "NOT ACCEPTED"
    answer = answer if verdicts else "NOT KNOWN: nothing was drawn"
    more = f", {skipped} skipped" if skipped else ""
    return "\n".join([*parts, f"{answer}: {accepted} of {counted(len(verdicts), 'framework')} accepted{more}"])


def _rows(target: SpaceTarget, judgement: SpaceJudgement) -> Iterator[tuple[str, ...]]:
    """Yield one row per searched dimension; p-values, of the pairs the least one that the dimension is in."""
    for name, dimension in target.space.searched.items():
        wrong = [finding.id for finding in judgement.findings if name in finding.values["dimensions"]]
        distribution, values = _of(judgement, "distribution", name), describe(dimension)
        verdict = "not tested" if judgement.verdict == "failed" else "ok"
        yield (
            target.title,
            name,
            values if len(values) <= _RANGE else f"{values[: _RANGE - 3]}...",
            str(judgement.outside.get(name, 0)),
            " ".join([*(test.method for test in distribution[:1]), _least(judgement, distribution)]),
            _least(judgement, _of(judgement, "ends", name)),
            _least(judgement, _of(judgement, "independence", name)),
            _mapping(judgement, name),
            f"REJECTED: {', '.join(dict.fromkeys(wrong))}" if wrong else verdict,
        )


def _lines(target: SpaceTarget, judgement: SpaceJudgement | None) -> Iterator[str]:
    """Yield an adapter's verdict, then one line per reason and per thing that was not tested."""
    if judgement is None:
        yield one_line(f"{target.title}: skipped: {target.run.skip_reason}")
        return
    word = judgement.verdict if judgement.verdict == "accepted" else judgement.verdict.upper()
    seeds = f"seeds {', '.join(map(str, judgement.seeds))}" if judgement.seeds else "no seed"
    values = judgement.p_values
    least = ""
    if values:
        limit = f"the first to be rejected is one of {FALSE_DISCOVERY_RATE / len(values):.2g} or less"
        if any(judgement.rejected(test) for test in judgement.tests):
            limit = f"those up to {judgement.threshold:.2g} are rejected"
        least = f", the smallest {min(values):.2g}; {limit}"
    yield one_line(f"{target.title}: {word}: {judgement.draws} configurations ({seeds}), {len(values)} p-values{least}")
    yield from (f"  {one_line(f'{finding.id}: {finding.text}')}" for finding in judgement.findings)
    yield from (f"  {one_line(f'note: {note}')}" for note in (*judgement.notes, target.unprobed) if note)


def to_json(target: SpaceTarget, judgement: SpaceJudgement | None) -> dict[str, Any]:
    """Return everything about one adapter as JSON values."""
    spec = target.run.spec
    head = {
        "adapter": spec.adapter,
        "label": target.label,
        "platform": spec.platform,
        "options": dict(spec.options),
        "variant": target.variant,
    }
    if judgement is None:
        return {**head, "verdict": "skipped", "reason": target.run.skip_reason}
    return {
        **head,
        "verdict": judgement.verdict,
        "source": judgement.source,
        "seeds": list(judgement.seeds),
        "draws": judgement.draws,
        "findings": [{"check": finding.id, "text": finding.text, **finding.values} for finding in judgement.findings],
        "notes": [note for note in (*judgement.notes, target.unprobed) if note],
        "p_values": len(judgement.p_values),
        "rejected_up_to": judgement.threshold,
        "dimensions": [
            {
                "name": name,
                "type": dimension.type,
                "range": describe(dimension),
                "probe": name not in target.file_dimensions,
                "outside": judgement.outside.get(name, 0),
                "mapping": _mapping(judgement, name),
                "tests": [_test(judgement, test) for test in judgement.tests if test.names == (name,)],
            }
            for name, dimension in target.space.searched.items()
        ],
        "pairs": [_test(judgement, test) for test in judgement.tests if len(test.names) > 1],
    }


def _test(judgement: SpaceJudgement, test: Test) -> dict[str, Any]:
    values: dict[str, Any] = {"test": test.kind, "method": test.method, "statistic": test.statistic, "p": test.p}
    if len(test.names) > 1:
        values["dimensions"] = list(test.names)
    if test.text:
        values["reason"] = test.text
    return {**values, "rejected": judgement.rejected(test)}


def _of(judgement: SpaceJudgement, kind: Kind, name: str) -> list[Test]:
    return [test for test in judgement.tests if test.kind == kind and name in test.names]


def _least(judgement: SpaceJudgement, tests: Sequence[Test]) -> str:
    """Return the least p-value of some tests, marked where it is rejected."""
    values = [test for test in tests if test.p is not None]
    if not values:
        return _NOT_TESTED
    least = min(values, key=lambda test: test.p or 0.0)
    return f"{least.p:.2g}{'!' if judgement.rejected(least) else ''}"


def _mapping(judgement: SpaceJudgement, name: str) -> str:
    if not judgement.mapping_tested:
        return _NOT_TESTED
    wrong = [finding.values["dimensions"] for finding in judgement.findings if finding.id == "mapping"]
    return "wrong" if any(not names or name in names for names in wrong) else "exact"
