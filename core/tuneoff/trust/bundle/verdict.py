"""The answer of one column, and of all together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

UNEXPLAINED = "nothing in the table above explains it"
ToleranceClass = Literal["exact", "statistical", "machine"]


class ReproductionAnswer(StrEnum):
    """What a comparison came to."""

    REPRODUCED = "REPRODUCED"
    DIFFERENT = "DIFFERENT"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproducedColumn:
    """One column of one run (or of all seeds of a cell): its tolerance class, its answer and why.

    `decides`: whether it counts in the overall answer. What nobody promises (equal bits on another CPU, times) does not.
    """

    name: str
    tolerance: ToleranceClass
    where: str
    answer: ReproductionAnswer
    why: str
    decides: bool = True


def exact(name: str, where: str, equal: str | None, different: str, excuse: str | None = None) -> ReproducedColumn:
    """Return an exact column: `equal` says what is equal (None: it is not), `excuse` why it need not be."""
    if equal is not None:
        return ReproducedColumn(name=name, tolerance="exact", where=where, answer=ReproductionAnswer.REPRODUCED, why=equal)
    if excuse is not None:
        return inconclusive(name, where, f"{different}, which need not be equal: {excuse}", decides=False)
    return ReproducedColumn(name=name, tolerance="exact", where=where, answer=ReproductionAnswer.DIFFERENT, why=different)


def inconclusive(name: str, where: str, why: str, *, decides: bool = True) -> ReproducedColumn:
    """Return an exact column that tells nothing."""
    answer = ReproductionAnswer.INCONCLUSIVE
    return ReproducedColumn(name=name, tolerance="exact", where=where, answer=answer, why=why, decides=decides)


def of_columns(columns: Iterable[ReproducedColumn]) -> ReproductionAnswer:
    """Return the worst answer: DIFFERENT before INCONCLUSIVE before REPRODUCED; without columns INCONCLUSIVE."""
    answers = {column.answer for column in columns}
    for answer in (ReproductionAnswer.DIFFERENT, ReproductionAnswer.INCONCLUSIVE, ReproductionAnswer.REPRODUCED):
        if answer in answers:
            return answer
    return ReproductionAnswer.INCONCLUSIVE


def overall(columns: Sequence[ReproducedColumn], changed: Sequence[str]) -> tuple[ReproductionAnswer, str]:
    """Return the answer of a whole reproduction and why, in words.

    `changed`: what makes it another experiment (data, seed, framework version, an unverified bundle).
    """
    deciding = [column for column in columns if column.decides and column.tolerance != "machine"]
    answer = of_columns(deciding)
    cause = f"changed: {'; '.join(changed)}" if changed else ""
    if answer is ReproductionAnswer.DIFFERENT:
        names = list(dict.fromkeys(column.name for column in deciding if column.answer is ReproductionAnswer.DIFFERENT))
        return answer, f"{', '.join(names)} differ; {cause or UNEXPLAINED}"
    if answer is ReproductionAnswer.INCONCLUSIVE:
        open_ones = [column for column in deciding if column.answer is ReproductionAnswer.INCONCLUSIVE]
        why = open_ones[0].why if open_ones else "no column could be compared"
        return answer, f"{why}; {cause}" if cause and cause.removeprefix("changed: ") not in why else why
    if changed:
        return ReproductionAnswer.INCONCLUSIVE, f"every column agrees, but it is not the same experiment; {cause}"
    return answer, "every exact and statistical column agrees"
