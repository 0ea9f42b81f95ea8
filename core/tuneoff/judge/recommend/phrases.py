"""Verdicts in a recommendation's words."""

from __future__ import annotations

from collections.abc import Sequence

from tuneoff.judge.answers.answer import Outcome, Verdict
from tuneoff.judge.answers.phrases import seen_text
from tuneoff.judge.recommend.dominance import has_figures
from tuneoff.judge.recommend.measured import MeasuredSetting
from tuneoff.judge.recommend.recommendation import Cited


def cited(setting: MeasuredSetting, labels: Sequence[str], verdicts: Sequence[Verdict] = ()) -> tuple[Cited, ...]:
    """Return the runs of labels in a setting; with verdicts, of the seeds in which these have something to compare."""
    seeds = {pair.seed for verdict in verdicts for pair in verdict.differences if pair.difference is not None}
    return tuple(
        Cited(folder=setting.folder, run_id=run_id, execution_id=execution_id)
        for group in setting.groups
        if group.label in labels
        for run in group.runs
        if run.run_id in setting.executions and (not verdicts or run.seed in seeds)
        for run_id, execution_id in (setting.executions[run.run_id],)
    )


def pair_text(verdicts: Sequence[Verdict], one: str, other: str) -> str:
    """Return "serial against optuna: better in time (0.6x (0.5 to 0.8), −1.9 s); not decided in cost"."""
    telling = [verdict for verdict in verdicts if has_figures(verdict)]
    parts = []
    for outcome in (Outcome.BETTER, Outcome.WORSE):
        named = [
            f"{verdict.question.name} ({seen_text(verdict, one)})" for verdict in telling if verdict.outcome_for(one) is outcome
        ]
        parts += [f"{outcome.text} in {', '.join(named)}"] if named else []
    for outcome in (Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT, Outcome.UNDECIDED, Outcome.NOT_JUDGED):
        named = [verdict.question.name for verdict in telling if verdict.outcome is outcome]
        parts += [f"{outcome.text} in {', '.join(named)}"] if named else []
    without = [verdict.question.name for verdict in verdicts if not has_figures(verdict)]
    parts += [f"no figures to compare in {', '.join(without)}"] if without else []
    return f"{one} against {other}: {'; '.join(parts) or 'nothing to compare'}"
