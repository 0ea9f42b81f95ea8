"""What holds over tasks is shown in the file's order, and a column only where it has a value."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tuneoff.judge.answers.answer import AcrossTasks, OverTasks, Question
from tuneoff.judge.runs import Scope
from tuneoff.judge.stats.location import Interval
from tuneoff.tell.page.render import environment
from tuneoff.tell.page.texts import confidence

QUALITY = Question(
    name="quality",
    metric="quality.test",
    unit="test_accuracy",
    better="max",
    scale="difference",
    margin=0.01,
    margin_text="0.01 (of the workload)",
)
SHARE = Interval(estimate=0.75, low=0.5, high=0.9, confidence=0.95, n=12, method="made")
ACROSS = AcrossTasks(
    question=QUALITY,
    scope=Scope(sampler="random", pruner="none", variant="", task="", text="random"),
    tasks=("small", "large"),
    labels=("serial", "optuna"),
    iqm_regret={"serial": SHARE},
    compared=(OverTasks(one="serial", other="optuna", tasks=("small", "large"), mean=SHARE, p=0.0312),),
    is_regret=True,
    texts=("no diagram below 10 tasks",),
)


def cells(one: AcrossTasks) -> list[list[str]]:
    """Return the texts of the rows that the page has of a question over tasks."""
    html = str(environment().get_template("verdicts.html").module.task(one, 1))  # type: ignore[attr-defined]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)(?:<small|</t[hd])", row, re.S) for row in re.findall(r"<tr>(.*?)</tr>", html, re.S)]
    return [[re.sub(r"<[^>]*>", "", cell) for cell in row] for row in rows]


def test_frameworks_stay_in_the_order_of_the_file() -> None:
    assert cells(ACROSS) == [
        ["framework", "regret"],
        ["serial", "0.75"],
        ["optuna", "–"],
        ["pair", "mean", "p, adjusted"],
        ["serial against optuna", "+0.7500", "0.031"],
    ]


def test_a_small_p_is_not_shown_as_none() -> None:
    assert cells(replace(ACROSS, compared=(replace(ACROSS.compared[0], p=2 / 2**12),)))[-1][-1] == "&lt;0.001"


def test_a_question_without_anchors_has_no_regret() -> None:
    assert cells(replace(ACROSS, iqm_regret={}))[0][0] == "pair"


@pytest.mark.parametrize(
    ("value", "text"), [(0.95, "95\u202f%"), (0.95 + 0.05 * 14 / 15, "99.67\u202f%"), (0.9997, "99.97\u202f%")]
)
def test_a_confidence_is_never_rounded_to_certainty(value: float, text: str) -> None:
    assert confidence(value) == text


def test_a_control_is_marked() -> None:
    control = OverTasks(one="serial#2", other="serial", tasks=("small",), mean=SHARE, p=0.5, is_noise=True)
    last = cells(replace(ACROSS, compared=(*ACROSS.compared, control)))[-1]
    assert last == ["serial#2 against serial, the same again", "+0.7500", "0.500"]
