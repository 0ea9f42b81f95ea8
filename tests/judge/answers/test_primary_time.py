"""What frameworks are compared by is the time without the test, which is core's own and the same for all."""

from __future__ import annotations

import random

from builders.made_results import ANALYSIS, Draw, Entry, results
from tuneoff.experiment.matrix_parts import AnalysisPart
from tuneoff.judge.answers.answer import Outcome
from tuneoff.judge.answers.compute import answers

DEFAULT = AnalysisPart()


def _run(own: float, key: str) -> Draw:
    """Return a time of the framework's own, and beside it a test that takes most of the run and much as it likes."""

    def draw(seed: int) -> dict[str, float]:
        test = random.Random(f"{key} {seed}").uniform(1000, 9000)
        return {"time.jct_without_test": own + seed, "time.jct": own + seed + test, "quality.test": 0.9}

    return draw


def test_a_test_that_takes_most_of_the_run_hides_no_difference() -> None:
    entries = [Entry("quick", _run(200, "quick")), Entry("slow", _run(300, "slow"))]
    (verdict,) = answers(
        results(entries, questions={"time": DEFAULT.questions["time"]}, primary_metric=DEFAULT.primary_metric)
    ).verdicts
    assert (verdict.question.name, verdict.outcome) == ("time", Outcome.BETTER)


def test_a_plan_that_froze_jct_is_answered_by_jct() -> None:
    entries = [Entry("quick", _run(200, "quick")), Entry("slow", _run(300, "slow"))]
    (verdict,) = answers(results(entries, questions={"time": ANALYSIS["questions"]["time"]})).verdicts
    assert (verdict.question.metric, verdict.outcome) == ("time.jct", Outcome.UNDECIDED)
