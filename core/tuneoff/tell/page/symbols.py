"""Outcomes and statuses as symbols and words: never colour alone."""

from __future__ import annotations

from tuneoff.judge.answers.answer import Outcome
from tuneoff.tell.page.view import Status

OUTCOMES = {  # symbol and CSS class
    Outcome.BETTER: ("▲", "better"),
    Outcome.WORSE: ("▼", "worse"),
    Outcome.EQUIVALENT: ("=", "equivalent"),
    Outcome.EQUIVALENT_THOUGH_DIFFERENT: ("≈", "equivalent"),
    Outcome.UNDECIDED: ("?", "undecided"),
    Outcome.NOT_JUDGED: ("·", "unjudged"),
}
STATUSES = {"done": "●", "failed": "✕", "timeout": "◷", "interrupted": "◐", "skipped": "–", "planned": "○"}


def status(name: str) -> Status:
    """Return a status with its symbol."""
    return Status(name=name, symbol=STATUSES.get(name, "!"))
