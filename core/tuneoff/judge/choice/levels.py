"""How much is enough? From which level on a job takes as long, or selects as good a model, as with the most that was measured.

Levels are the CPU time or the memory of a worker, or the number of trials.

All levels of all frameworks are one family, so where nothing differs any is called different with at most the family's error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from tuneoff.judge.answers.analysis_plan import Frozen
from tuneoff.judge.answers.answer import Outcome, Verdict
from tuneoff.judge.answers.judging import PairComparison
from tuneoff.judge.answers.phrases import difference_text
from tuneoff.judge.choice.choice import Over, Row, ScalingCurve
from tuneoff.judge.choice.curve import LEVELS, number_of

ENOUGH: Mapping[Over, str] = {
    "cpus": "Enough processor for a worker, by the time of the job",
    "memory": "Enough memory for a worker, by the time of the job",
    "trials": "Enough trials, by the test score of the selected model",
}
AS_GOOD = (Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT, Outcome.BETTER)


def with_enough(curves: Iterable[ScalingCurve], rows: Sequence[Row], plan: Frozen) -> Iterator[ScalingCurve]:
    """Yield the curves, those over levels with what is enough for each framework; with few seeds only what failed."""
    for curve in curves:
        unit, metric = LEVELS.get(curve.over, ("", ""))
        if curve.metric != metric:
            yield curve
            continue
        measured = {  # (level, group) by label
            row.label: sorted(
                (
                    (number_of(curve.over, (of := row.columns[scope].group).spec), of)
                    for scope in curve.scopes
                    if scope in row.columns
                ),
                key=itemgetter(0),
            )
            for row in rows
            if not row.excluded
        }
        comparisons = sum(max(0, len(levels) - 1) for levels in measured.values())
        texts = {}
        for label, levels in measured.items():
            if len(levels) < 2:
                continue
            *fewer, (most, largest) = levels
            question = plan.question("enough", curve.metric, largest.spec.experiment)
            verdicts = [PairComparison(group, largest, question, plan.alpha(comparisons)).verdict() for _, group in fewer]
            if all(verdict.outcome is not Outcome.NOT_JUDGED for verdict in verdicts):
                texts[label] = _text([level for level, _ in fewer], most, verdicts, unit)
            elif failed := [level for level, group in levels if any(run.is_failure for run in group.runs)]:
                texts[label] = f"more than {max(failed):g} {unit}, with which runs failed"
        yield replace(curve, enough=texts)


def _text(levels: Sequence[float], most: float, verdicts: Sequence[Verdict], unit: str) -> str:
    """Return `from 256 MB on (128 MB: 1.8x (1.6 to 2.1))`: the next lower level, and its job time over that with the most."""
    short = [position for position, verdict in enumerate(verdicts) if verdict.outcome not in AS_GOOD]
    if not short:
        return f"from {levels[0]:g} {unit} on, the least measured"
    at = short[-1]
    verdict = verdicts[at]
    size = "failed runs" if any(verdict.failures) else difference_text(verdict.interval, verdict.question)
    doubt = "" if verdict.outcome is Outcome.WORSE or any(verdict.failures) else ", not decided"
    where = f"from {levels[at + 1]:g} {unit} on" if at + 1 < len(levels) else f"not shown below {most:g} {unit}"
    return f"{where} ({levels[at]:g} {unit}: {size}{doubt})"


def level_lines(curves: Iterable[ScalingCurve], rows: Iterable[Row]) -> Iterator[str]:
    """Yield what is enough for each framework."""
    names = {row.label: row.marked for row in rows}
    for curve in curves:
        if curve.enough:
            texts = "; ".join(f"{names[label]} {text}" for label, text in curve.enough.items())
            yield f"{ENOUGH[curve.over]}: {texts}."
