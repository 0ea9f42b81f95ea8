"""The answer in words: its claims by question and scope, one line per claim, the first questions open and the others folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tuneoff.judge.answers.answer import Answers, Claim
from tuneoff.judge.answers.claims import NO_VERDICTS
from tuneoff.tell.page.texts import unbroken

MOST_OPEN = 12  # claims that are not folded; those of the first question never are


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimGroup:
    """The claims on one question, by place, a line each. `question` is "" for what is of none."""

    question: str
    places: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def count(self) -> int:
        """How many claims there are."""
        return sum(len(texts) for _, texts in self.places)


def unjudged(answers: Answers) -> str:
    """Return the sentence that nothing is judged; claims over tasks may stand before it."""
    found = (text for text in answers.summary if text.startswith(NO_VERDICTS))
    return next(found, f"{NO_VERDICTS}: there is nothing to compare.")


def said(answers: Answers, banner: str = "") -> tuple[tuple[ClaimGroup, ...], tuple[ClaimGroup, ...]]:
    """Return what is shown, and what is folded, both without the banner."""
    claims = answers.claims or [Claim(question="", where="", text=text) for text in answers.summary]
    groups = _groups([one for one in claims if one.sentence != banner])
    shown: list[ClaimGroup] = []
    for group in groups:
        if any(one.question for one in shown) and sum(one.count for one in shown) + group.count > MOST_OPEN:
            break
        shown.append(group)
    return tuple(shown), tuple(groups[len(shown) :])


def _groups(claims: Sequence[Claim]) -> list[ClaimGroup]:
    found: dict[str, dict[str, list[str]]] = {}
    for one in claims:
        found.setdefault(one.question, {}).setdefault(one.where, []).append(unbroken(one.text))
    return [
        ClaimGroup(question=question, places=tuple((where, tuple(texts)) for where, texts in places.items()))
        for question, places in found.items()
    ]
