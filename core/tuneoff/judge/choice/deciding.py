"""The command that would decide what too few seeds leave open, and about how long it takes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tuneoff.base.clock import MILLISECONDS
from tuneoff.experiment.spec import LOCAL
from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.answers.judging import FEWEST_SEEDS
from tuneoff.judge.choice.choice import Certainty, Deciding, Setting
from tuneoff.judge.results import Results

MOST_SEEDS = 100  # more are no advice
WHOLE = "time.jct"


def deciding(results: Results, answers: Answers, settings: Sequence[Setting]) -> Deciding | None:
    """Return what would decide the main setting; None where it is decided, or no number of seeds that is reasonable would."""
    if not settings or settings[0].certainty not in (Certainty.DESCRIBED, Certainty.NOT_DECIDED):
        return None
    seeds = list(dict.fromkeys(run.spec.seed for run in results.planned))
    needed = _needed(answers, settings[0], len(seeds))
    if needed is None or not seeds:
        return None
    new = [*seeds, *(seed for seed in range(needed + len(seeds)) if seed not in seeds)][:needed]
    words = ["tuneoff", "compare", results.plan.path, *_overrides(results), "--seeds", *map(str, new)]
    return Deciding(command=shlex.join(words), seconds=_seconds(results, len(seeds), needed))


def _overrides(results: Results) -> list[str]:
    """Return the options that make it these runs again, whatever the command line replaced; none for what the file varies."""
    specs = [run.spec for run in results.planned]
    names = dict.fromkeys(spec.adapter if spec.platform == LOCAL else f"{spec.adapter}@{spec.platform}" for spec in specs)
    trials = {spec.experiment.budget.trials for spec in specs}
    workers = {spec.experiment.workers.count for spec in specs}
    words = ["--adapter", ",".join(names)]
    words += ["--trials", str(trials.pop())] if len(trials) == 1 else []
    return words + (["--workers", str(workers.pop())] if len(workers) == 1 else [])


def _needed(answers: Answers, setting: Setting, planned: int) -> int | None:
    if setting.certainty is Certainty.DESCRIBED:
        return FEWEST_SEEDS if planned < FEWEST_SEEDS else None
    found = [
        verdict.seeds_to_decide
        for verdict in answers.verdicts
        if not verdict.is_noise
        and verdict.scope in setting.scopes
        and {verdict.one, verdict.other} <= set(setting.chosen)
        and verdict.question.metric.startswith("time.")
    ]
    known = [number for number in found if number is not None and planned < number <= MOST_SEEDS]
    return max(known, default=None)


def _seconds(results: Results, planned: int, needed: int) -> float | None:
    """Return the time of all runs in sequence, with one warm-up each, by those that are done."""
    totals = [
        value.value
        for run in results.planned
        if (record := results.standing.get(run.run_id)) is not None
        and (value := record.metrics.get(WHOLE)) is not None
        and value.value is not None
    ]
    return sum(totals) / MILLISECONDS / planned * (needed + 1) if totals else None
