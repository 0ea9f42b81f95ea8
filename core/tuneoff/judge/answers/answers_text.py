"""The answer as text: the verdicts in words, then what cannot be concluded. The pairs and their figures are on the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from tuneoff.judge.answers.answer import Answers, Claim


def lines(answers: Answers) -> Iterator[str]:
    """Yield the answer's lines."""
    total = sum(answers.statuses.values())
    came = ", ".join(f"{count} {status}" for status, count in sorted(answers.statuses.items()))
    yield f"{answers.name}: {total} planned runs: {came}"
    yield ""
    yield from _claims(answers.claims)
    yield ""
    yield "What cannot be concluded:"
    yield from (f"  - {limit}" for limit in answers.limits)
    percent = 100 * answers.confidence
    family = answers.family_size
    looks = f", {len(answers.looks)} looks" if answers.looks else ""
    yield (
        f"Intervals of medians: {percent:g} %. Verdicts: paired by seed, {percent:g} % over a family of {family} pairs per "
        f"question and scope (Bonferroni{looks}). How to read them: docs/verdicts.md"
    )


def _claims(claims: Sequence[Claim]) -> Iterator[str]:
    """Yield the claims below one heading per question and scope; a claim that is alone keeps its heading in its line."""
    for (question, where), found in groupby(claims, key=lambda one: (one.question, one.where)):
        heading = ", ".join(part for part in (question, where) if part)
        group = list(found)
        if len(group) == 1 or not heading:
            yield from (one.sentence for one in group)
        else:
            yield f"{heading}:"
            yield from (f"  - {one.text}" for one in group)
