"""The pages of the catalogue: what a file's question asks for is told at each level, and shown only where it is judged."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from benchmarks.result_pages import ASKED, rendered, sentences
from builders.made_results import Entry, Metrics, results
from command_line import Call
from corpus.scenarios import statuses
from tuneoff.experiment.plan import Plan
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choice import Choice, Row
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.groups import grouped
from tuneoff.judge.results import Results, in_file_order
from tuneoff.record.metric_value import missing

pytest.importorskip("scipy")
CATALOGUE = Path(__file__).parents[2] / "benchmarks" / "catalogue"


def draw(key: str, metrics: Mapping[str, float]) -> Callable[[int], Metrics]:
    def by_seed(seed: int) -> Metrics:
        chance = random.Random(f"{key} {seed}")
        return {name: value + abs(value) * 0.001 * chance.gauss(0, 1) for name, value in metrics.items()}

    return by_seed


def samplers(seeds: int, gain: float = 0.0, failed: int = 0) -> Choice:
    """Return the choice of S-Sampler; test scores greater by `gain` with one framework's tpe, `failed` runs of another's."""
    entries = [
        Entry(
            name,
            draw(
                f"{name} {sampler}",
                {"quality.test": 0.9 + gain * (name == "optuna" and sampler == "tpe"), "time.jct_without_test": 1000.0},
            ),
            sampler=sampler,
            status=statuses(failed) if (name, sampler) == ("ray-tune", "tpe") else {},
        )
        for sampler in ("random", "tpe")
        for name in ("optuna", "ray-tune")
    ]
    return chosen("S-Sampler", results(entries, range(seeds)))


def chosen(name: str, made: Results) -> Choice:
    return choose(answers(replace(made, plan=replace(made.plan, name=name, path=f"benchmarks/catalogue/{name}.yaml"))))


def test_what_a_sampler_gains_is_shown_where_it_gains_and_nowhere_else(snapshot: SnapshotAssertion) -> None:
    planted, null, few = (sentences(samplers(*given)) for given in ((10, 0.05), (10, 0.0), (3, 0.05)))
    assert "shown in optuna, as good in ray-tune" in planted[0]
    assert not any("shown" in line for line in null)
    assert "tpe +0.0" in few[0]
    assert not any(word in line for line in few for word in ("shown", "as good", "not decided"))
    assert [planted, few] == snapshot


def test_a_level_that_fails_has_no_figure_but_a_name() -> None:
    assert "failed in ray-tune" in sentences(samplers(3, failed=3))[0]
    assert "failed" not in sentences(samplers(3))[0]


def test_runs_without_the_figure_are_counted() -> None:
    missed = missing("s", "goal not met")
    entries = [
        Entry("optuna", lambda seed: {"goal.seconds": missed if seed else 2.0}),
        Entry("ray-tune", lambda seed: {"goal.seconds": 2.0}),
    ]
    (line, *_) = sentences(chosen("Time-to-accuracy", results(entries, range(3))))
    assert line.endswith("(2 of 6 runs have none: goal not met).")
    assert (line.count(" in 1 of 3"), line.count(" of 3")) == (1, 1)


@pytest.mark.parametrize("path", sorted(CATALOGUE.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_levels_that_sentences_name_are_those_of_the_file(path: Path, call: Call) -> None:
    plan = Plan.from_json(json.loads(call("plan", path.stem, "--json").out))
    asked = ASKED[path.stem]
    groups = grouped(Results(folder=path, plan=plan, planned=tuple(in_file_order(plan)), records=(), selected={}))
    rows = {group.label: Row(label=group.label, name=group.label, is_floor=False, excluded="", columns={}) for group in groups}
    levels = {asked.level(rows[group.label], group) for group in groups}
    named = {level for clause in asked.clauses for level in (clause.against, *clause.levels) if level}
    assert len(levels) > 1
    assert named <= levels


def test_a_page_has_the_question_the_answer_a_picture_and_how_to_repeat_it() -> None:
    html = rendered(samplers(3), note="Of one machine.")
    assert "<h1>Which sampler finds a better model on the same budget, and what does it cost?</h1>" in html
    assert "<p>Descriptive: 3 seeds; a verdict needs 10.</p>" in html
    assert html.count('<svg class="strip"') == 4
    assert 'compare</span> <span class="word">S-Sampler</span>' in html
    assert all(text in html for text in ("2026-01-01", "Of one machine.", "against random"))
    assert "#run-" not in html
    assert "Descriptive" not in rendered(samplers(10))
