"""The answer is grouped by question and scope, a line per claim; what begins it is never lost behind the banner."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from builders.made_results import Draw, Entry, results, steady
from builders.page_folders import folder, specs
from tell.page.conftest import made_page
from tell.page.documents import Document
from tell.page.test_across import ANSWERS
from tuneoff.judge.answers.answer import Claim
from tuneoff.judge.answers.compute import answers
from tuneoff.record.metric_value import Kind, known
from tuneoff.tell.page.answer import MOST_OPEN, said, unjudged
from tuneoff.tell.page.verdicts import glance, note, robustness

NAMES = ("serial", "optuna", "ray-tune", "katib")
QUESTIONS = ("Time (time.jct)", "Quality (quality.test)", "Overhead (o)", "Energy (e)", "Cost (c)")
CLAIMS = tuple(
    Claim(question=question, where=where, text=f"{one} beats {other}.")
    for question in QUESTIONS
    for where in ("random, 10 seeds", "tpe, 10 seeds")
    for one, other in combinations(NAMES, 2)
)


def test_each_question_and_each_scope_is_named_once() -> None:
    shown, folded = said(replace(ANSWERS, claims=CLAIMS))
    assert [one.question for one in (*shown, *folded)] == list(QUESTIONS)
    assert all([where for where, _ in one.places] == ["random, 10 seeds", "tpe, 10 seeds"] for one in shown)
    assert [text for one in (*shown, *folded) for _, texts in one.places for text in texts] == [one.text for one in CLAIMS]


@pytest.mark.parametrize("of_first", [2, MOST_OPEN, 3 * MOST_OPEN])
def test_the_first_question_is_always_open_and_the_rest_is_limited(of_first: int) -> None:
    claims = [Claim(question="", where="", text="first of all")]
    claims += [Claim(question="Time", where="w", text=f"{number}") for number in range(of_first)]
    claims += [Claim(question=f"q{number}", where="w", text="x") for number in range(2 * MOST_OPEN)]
    shown, folded = said(replace(ANSWERS, claims=tuple(claims)))
    assert [one.question for one in shown[:2]] == ["", "Time"]
    assert sum(one.count for one in shown) == max(MOST_OPEN, 1 + of_first)
    assert sum(one.count for one in (*shown, *folded)) == len(claims)


def test_a_claim_over_tasks_is_not_what_the_banner_says() -> None:
    banner = "No verdicts within a task: 3 seeds planned for both, and a verdict needs 10."
    texts = ("Time, over 12 tasks: a is ahead of b.", banner)
    found = replace(ANSWERS, summary=texts, claims=tuple(Claim(question="", where="", text=text) for text in texts))
    assert unjudged(found) == banner
    (group,), folded = said(found, banner)
    assert group.places == (("", texts[:1]),)
    assert folded == ()


@pytest.mark.parametrize(("kind", "is_told"), [("estimated", True), ("measured", False)])
def test_a_claim_on_estimated_energy_says_that_it_is_estimated(kind: Kind, is_told: bool) -> None:
    pytest.importorskip("scipy")

    def draw(joules: float) -> Draw:
        times = steady(1000, key=f"{joules}")
        return lambda seed: {**times(seed), "energy.per_completed_trial": known(joules + seed / 100, "J", kind=kind)}

    asked = {"energy": "energy.per_completed_trial"}
    found = answers(results([Entry("a", draw(10)), Entry("b", draw(50))], questions=asked))
    lines = [line for line in found.summary if line.startswith("Energy")]
    assert lines
    assert all(("estimated" in line) is is_told for line in lines)


def test_the_page_has_a_line_per_claim(tmp_path: Path) -> None:
    document = Document(made_page(folder(tmp_path / "r", specs(["serial", "optuna"], 12))))
    (block,) = [one for one in document.all("div") if one.attributes.get("class") == "summary"]
    assert " ".join(block.text.split()) == "The first line of the answer. The second line of the answer."


def test_a_claim_on_disturbed_runs_says_so_on_the_page_in_place_of_robust() -> None:
    entries = [Entry("a", steady(1000, key="a"), disturbed=range(10)), Entry("b", steady(2000, key="b"))]
    made = answers(results(entries, questions={"time": "time.jct"}))
    (claim,) = [text for group in said(made)[0] for _, texts in group.places for text in texts]
    ((verdict,),) = (verdicts.values() for pairs in glance(made).values() for verdicts in pairs.values())
    assert "10 of 20 runs disturbed" in claim
    assert verdict.disturbance.text == "10 of 20 runs disturbed"
    for words in (claim, note(verdict), robustness(verdict)):
        assert "not checked without disturbed runs" in words
        assert "robust" not in words
