"""What would decide a choice: the command with more seeds, and about how long it takes."""

from __future__ import annotations

from collections.abc import Sequence

from tuneoff.base.clock import MILLISECONDS
from tuneoff.experiment.plan import Plan
from tuneoff.experiment.seeds import seeds_text
from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.answers.judging import FEWEST_SEEDS
from tuneoff.judge.choice.choice import Certainty, Deciding, Setting

MOST_SEEDS = 100  # more are no advice
WHOLE = "time.jct"


def deciding(answers: Answers, settings: Sequence[Setting], baseline: str | None = None) -> Deciding | None:
    """Return what would decide the main setting; None where it is decided, or no number of seeds that is reasonable would.

    `baseline`: the label that was asked for, which its command asks for too.
    """
    results, seeds = answers.results, answers.results.plan.seeds
    planned, needed = len(seeds) - len(results.plan.added_seeds), None
    main = settings[0] if settings else None
    if main is not None and main.certainty is Certainty.DESCRIBED:
        needed = FEWEST_SEEDS if planned < FEWEST_SEEDS else None
    elif main is not None and main.certainty is Certainty.NOT_DECIDED:
        numbers = [
            verdict.seeds_to_decide
            for verdict in answers.verdicts
            if not verdict.is_noise
            and verdict.scope in main.scopes
            and {verdict.one, verdict.other} <= set(main.chosen)
            and verdict.question.metric.startswith("time.")
        ]
        needed = max((number for number in numbers if number is not None and planned < number <= MOST_SEEDS), default=None)
    if needed is None or not seeds or results.plan.is_of_bundle:
        return None
    totals = [
        value.value
        for run in results.planned
        if (record := results.selected.get(run.run_id)) is not None
        and (value := record.metrics.get(WHOLE)) is not None
        and value.value is not None
    ]
    return Deciding(
        command=results.plan.compare_command(
            results.folder, *(("--baseline", baseline) if baseline else ()), seeds=more_seeds(results.plan, needed)
        ),
        seconds=sum(totals) / MILLISECONDS / len(seeds) * (needed + 1) if totals else None,  # in sequence, with one warm-up each
    )


def more_seeds(plan: Plan, needed: int) -> list[str]:
    """Return as many seeds as are needed, those of a plan first, as `--seeds` takes them."""
    seeds = plan.seeds
    return [seeds_text([*seeds, *(seed for seed in range(needed + len(seeds)) if seed not in seeds)][:needed])]
