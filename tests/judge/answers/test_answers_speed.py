"""Answers must not cost more than reading: nothing in them grows with the number of trials."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest

from builders.made_results import Draw, Entry, Metrics, results
from builders.made_runs import METRIC, made_run
from tuneoff.experiment.metric_catalogue import QUESTIONS
from tuneoff.judge.answers.compute import answers

pytest.importorskip("scipy")
TASKS, SEEDS, TRIALS = 12, 10, 210
MOST_SECONDS = 4.0  # of CPU time, twice of what is aimed at: other programs share the caches


def drawn(key: str) -> Draw:
    def draw(seed: int) -> Metrics:
        chance = random.Random(f"{key} {seed}")
        return {metric: 1 + 0.1 * chance.random() for metric in (*QUESTIONS.values(), "quality.validation")}

    return draw


@pytest.mark.slow
def test_answers_of_a_hundred_thousand_trials_take_a_few_seconds() -> None:
    adapters = ("serial", "optuna", "ray-tune", "syne-tune")
    entries = [Entry(name, drawn(f"{name} {task}"), variant={"task": f"t{task}"}) for task in range(TASKS) for name in adapters]
    anchors = {f"t{task}": {"random_search": 1.0, "best_known": 1.1, "source": "made"} for task in range(TASKS)}
    made = results(entries, seeds=range(SEEDS), questions=dict(QUESTIONS), anchors=anchors)
    trials = made_run(made.records[0].run_spec(), [[{METRIC: 0.5}]] * TRIALS).trials
    records = tuple(replace(record, trials=trials) for record in made.records)
    made = replace(made, records=records, standing={record.run_id: record for record in records})
    assert sum(len(record.trials) for record in made.records) > 100_000
    begin = time.process_time()
    found = answers(made)
    assert time.process_time() - begin < MOST_SECONDS
    assert len(found.verdicts) == TASKS * 6 * len(found.questions)
