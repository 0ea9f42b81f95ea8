"""The overall answer: the worst column that decides."""

from __future__ import annotations

from typing import Any

from tuneoff.trust.bundle.columns import ReproducedColumn, ReproductionAnswer, of_columns, overall


def column(answer: ReproductionAnswer, **more: Any) -> ReproducedColumn:
    return ReproducedColumn(**{"name": "c", "tolerance": "exact", "where": "w", "answer": answer, "why": "why", **more})


def test_the_worst_deciding_column_is_the_answer() -> None:
    good, bad, unsure = (
        column(answer)
        for answer in (ReproductionAnswer.REPRODUCED, ReproductionAnswer.DIFFERENT, ReproductionAnswer.INCONCLUSIVE)
    )
    assert overall([good], []) == (ReproductionAnswer.REPRODUCED, "every exact and statistical column agrees")
    assert overall([good, unsure], [])[0] is ReproductionAnswer.INCONCLUSIVE
    assert overall([good, unsure, bad], []) == (ReproductionAnswer.DIFFERENT, "c differ; nothing in the table above explains it")
    assert overall([], [])[0] is ReproductionAnswer.INCONCLUSIVE
    assert of_columns([]) is ReproductionAnswer.INCONCLUSIVE


def test_columns_that_nobody_promised_and_times_do_not_decide() -> None:
    good = column(ReproductionAnswer.REPRODUCED)
    assert overall([good, column(ReproductionAnswer.INCONCLUSIVE, decides=False)], [])[0] is ReproductionAnswer.REPRODUCED
    assert (
        overall([good, column(ReproductionAnswer.DIFFERENT, tolerance="machine", decides=False)], [])[0]
        is ReproductionAnswer.REPRODUCED
    )
    assert (
        overall([column(ReproductionAnswer.REPRODUCED, tolerance="machine", decides=False)], [])[0]
        is ReproductionAnswer.INCONCLUSIVE
    )


def test_another_experiment_is_never_reproduced() -> None:
    answer, why = overall([column(ReproductionAnswer.REPRODUCED)], ["optuna is 5.1 here, 5.0 in the bundle"])
    assert answer is ReproductionAnswer.INCONCLUSIVE
    assert why == "every column agrees, but it is not the same experiment; changed: optuna is 5.1 here, 5.0 in the bundle"
    answer, why = overall([column(ReproductionAnswer.DIFFERENT)], ["seed is 7 here, 0 in the bundle"])
    assert (answer, why) == (ReproductionAnswer.DIFFERENT, "c differ; changed: seed is 7 here, 0 in the bundle")
