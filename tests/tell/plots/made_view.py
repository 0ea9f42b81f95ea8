"""Folders made in memory, with their answers and their choice."""

from __future__ import annotations

import re

from builders.made_curves import Made, made_results
from tuneoff.judge.answers.answer import Answers, Question
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choice import Setting
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.results import Results

QUESTIONS = {"quality": "quality.test", "time": "time.jct_without_test", "energy": "energy.per_completed_trial_without_test"}
ANALYSIS = {
    "confidence": 0.95,
    "questions": QUESTIONS,
    "margin_percent": 5.0,
    "quality_margin": 0.01,
    "family_size": 9,
}
SEVERAL = Made(
    adapters=("serial", "optuna", "katib"), seeds=range(10), emulated=("katib",), failed=(("optuna", 1),), analysis=ANALYSIS
)


def view(made: Made) -> tuple[Results, Answers, Setting]:
    """Return results, answers and the main setting."""
    results = made_results(made)
    found = answers(results)
    return results, found, choose(results, found).settings[0]


def question(found: Answers, name: str) -> Question:
    """Return a question by its name."""
    return next(one for one in found.questions if one.name == name)


def corners(path: str) -> list[tuple[float, float]]:
    """Return the points of a drawn path."""
    return [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path)]
