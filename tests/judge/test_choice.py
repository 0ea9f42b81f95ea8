"""What is told of what a matrix varies: levels, copies, workers, weighed tasks, releases, environments."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from benchmarks.releases import Spread, found, marked, spreads
from builders.made_results import Draw, Entry, results, steady
from corpus.figures import figure, written
from corpus.scenarios import RELEASES, TIME, over_releases, statuses, tasks_of
from tuneoff.judge.answers.analysis_plan import Frozen, frozen
from tuneoff.judge.answers.answers_json import choice_to_json
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choice import Choice
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.choice.releases import figures, frameworks
from tuneoff.judge.results import Results

pytest.importorskip("scipy")
MEMORY, MEGABYTES = "workers.memory_mb", (128.0, 256.0, 512.0, 1024.0)
EQUAL: Mapping[int, Sequence[float]] = {1: (1.0,), 2: (2.0, 2.0), 4: (4.0, 4.0, 4.0, 4.0)}  # times of a job, by copies
UNFAIR = {**EQUAL, 2: (1.5, 3.0)}
TIMES = {"a": (1000.0, 1000.0, 1000.0), "b": (2000.0, 500.0, 1000.0)}  # by task
INSTALLED: Mapping[str, Any] = {"python": "3.11.7", "versions": {"numpy": "2.4.6", "optuna": "5.0.0"}}


def jobs(key: str, milliseconds: float, noise: float = 0.01, lost: float = 0.0, trial: float = 500.0) -> Draw:
    """Return job times around some ms and test scores lower by `lost`, both with chance; `trial`: ms of one."""

    def draw(seed: int) -> dict[str, float]:
        chance = random.Random(f"{key} {seed}")
        job = milliseconds * math.exp(noise * chance.gauss(0, 1))
        score = 0.95 - lost + 0.001 * chance.gauss(0, 1)
        return {"time.jct_without_test": job, "time.jct": job, "trial_execution.median": trial, "quality.test": score}

    return draw


def levels(
    key: str, slower: Mapping[float, float], of: Sequence[float] = MEGABYTES, seeds: int = 10, failed: float = 0.0
) -> Results:
    """Return two frameworks over levels, of which one takes so many times as long at some, and fails at one."""
    entries = [
        Entry(name, jobs(f"{name} {level}", 1000 * times), variant={key: level}, status=statuses(seeds if is_failed else 0))
        for level in of
        for name in ("serial", "optuna")
        for times in [slower.get(level, 1.0) if name == "optuna" else 1.0]
        for is_failed in [name == "optuna" and level == failed]
    ]
    return results(entries, range(seeds), **TIME)


def fewer_trials() -> Results:
    """Return models that are worse after fewer than 20 trials."""
    entries = [
        Entry(name, jobs(f"{name} {trials}", 1000, lost=0.05 if trials < 20 else 0.0), variant={"budget.trials": trials})
        for trials in (5, 10, 20, 40)
        for name in ("serial", "optuna")
    ]
    return results(entries, range(10), **TIME)


def shared(times: Mapping[int, Sequence[float]] = EQUAL, seeds: int = 10, noise: float = 0.01, **last: Any) -> Results:
    """Return two frameworks, of which Optuna's jobs take these times; `last`: what its last copy has besides."""
    entries = [
        Entry(
            name,
            jobs(f"{name} {copy} {factor}", 1000 * factor, noise),
            variant={"copies": count},
            copy=copy,
            **(last if name == "optuna" and copy == count - 1 > 0 else {}),
        )
        for name in ("serial", "optuna")
        for count, factors in (times if name == "optuna" else EQUAL).items()
        for copy, factor in enumerate(factors)
    ]
    return results(entries, range(seeds), **TIME)


def workers(failed: Mapping[int, int]) -> Results:
    """Return jobs of 1, 2 and 4 workers; `failed`: runs of optuna, by workers."""
    entries = [
        Entry(
            label,
            jobs(f"{label} {count}", 60_000 / count, trial=1000.0),
            variant={"workers.count": count},
            status=statuses(failed.get(count, 0) if label == "optuna" else 0),
        )
        for label in ("serial", "optuna")
        for count in (1, 2, 4)
    ]
    return results(entries)


def weighed(**more: Any) -> Results:
    """Return three tasks: with weights of 1/2, 2 and 1 the speed of b is 2 ** (-1 / 4) of that of a, and its price 7/4 of it."""

    def draw(label: str, task: int) -> Draw:
        usd = 0.001 if label == "a" else 0.001 * (1 + task)
        return lambda seed: {"time.jct": TIMES[label][task] * (1 + seed / 100), "cost.job_without_test": usd}

    return tasks_of(draw, count=3, seeds=3, **more)


def lacking(weights: Mapping[str, float]) -> Results:
    return weighed(weights=weights, of=lambda label, task: {"skipped": "refused"} if (label, task) == ("b", 1) else {})


def family_of(size: int, made: Results) -> Results:
    return replace(made, plan=replace(made.plan, analysis={**made.plan.analysis, "family_size": size}))


def in_the_command_s_environment(*labels: str) -> Results:
    """Return releases of which some are that of the command's environment: what its runs found installed."""
    made = over_releases()
    bare = {
        run.run_id: replace(run, label="optuna", spec=replace(run.spec, environment=None))
        for run in made.planned
        if run.label in labels
    }
    versions = {"framework": "Optuna", "framework_version": "4.9.0"}
    selected = {
        run_id: replace(record, versions=versions) if run_id in bare else record for run_id, record in made.selected.items()
    }
    planned = tuple(bare.get(run.run_id, run) for run in made.planned)
    plan = replace(made.plan, runs=planned)
    return replace(made, plan=plan, planned=planned, selected=selected, records=tuple(selected.values()))


def one_release() -> Results:
    made = over_releases()
    return replace(made, planned=tuple(run for run in made.planned if run.label == "optuna==5.0.0"))


def installed(**other: Any) -> Results:
    """Return two frameworks of which the baseline's environment is another one."""
    environments = {"serial": {**INSTALLED, **other}, "optuna": INSTALLED}
    return results([Entry(name, steady(key=name), environment=of) for name, of in environments.items()])


SITUATIONS: Mapping[str, Callable[[], Results]] = {
    "levels of memory": lambda: levels(MEMORY, {128: 2.0, 256: 1.5}),
    "a level whose runs fail": lambda: levels(MEMORY, {}, failed=128.0),
    "levels that all differ": lambda: levels("workers.cpus", {0.25: 4.0, 0.5: 2.0}, (0.25, 0.5, 1.0)),
    "levels of trials": fewer_trials,
    "a level whose runs fail, three seeds": lambda: levels(MEMORY, {}, seeds=3, failed=256.0),
    "levels of memory, three seeds": lambda: levels(MEMORY, {128: 2.0}, seeds=3),
    "copies": shared,
    "an unfair split": lambda: shared(UNFAIR),
    "an unfair split, five seeds": lambda: shared(UNFAIR, 5),
    "a split that is uneven by chance": lambda: shared(EQUAL, 3, noise=0.3),
    "a split that may be uneven by chance": lambda: shared(EQUAL, 10, noise=0.08),
    "a copy that fails": lambda: shared(status=statuses(10)),
    "a copy that begins late": lambda: shared(began_ms=900),
    "a copy that begins a tenth of a job late": lambda: shared(began_ms=100),
    "copies without a job alone": lambda: shared({2: EQUAL[2], 4: EQUAL[4]}),
    "workers": lambda: workers({}),
    "workers, some runs fail": lambda: workers({4: 4}),
    "workers, one number is left": lambda: workers({2: 10, 4: 10}),
    "workers, the fewest fail": lambda: workers({1: 6}),
    "weights": lambda: weighed(weights={"t0": 2.0, "t1": 1.0}),
    "weights and a task that lacks": lambda: lacking({"t1": 5.0}),
    "no weights": weighed,
    "few seeds": lambda: results([Entry(label, steady(key=label, spread=0.05)) for label in "ab"], range(2)),
    "releases in jobs of 100 trials": lambda: over_releases(trials=(100,)),
    "a release whose runs fail": lambda: over_releases(
        asks=(1, 1, 1, 1), of=lambda release, number: {"status": statuses(10)} if release == "4.10.0" else {}
    ),
    "releases, three seeds": lambda: over_releases(seeds=3),
    "releases with more figures than seeds bear": lambda: family_of(26, over_releases()),
    "one release": one_release,
    "a release of the command's environment": lambda: in_the_command_s_environment(f"optuna=={RELEASES[1]}"),
    "another NumPy": lambda: installed(versions={"numpy": "1.26.0"}),
    "another Python": lambda: installed(python="3.12.1"),
    "another release of the framework": lambda: installed(versions={"numpy": "2.4.6", "optuna": "4.5.0"}),
    "a package that is not there": lambda: installed(versions={"numpy": None}),
}
AGAINST = {"weights and a task that lacks": "b", "few seeds": "b"}  # the baseline of these


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_choice_is_told(name: str, snapshot: SnapshotAssertion) -> None:
    choice = choose(answers(SITUATIONS[name]()), baseline=AGAINST.get(name))
    curves = [setting["curves"] for setting in choice_to_json(choice)["settings"]]
    deciding = [choice.deciding.command] if choice.deciding is not None else []
    warnings = [f"{warning.kind}: {warning.short}" for warning in choice.warnings if warning.short]
    assert "\n".join([*choice.lines, *deciding, *warnings, written(figure(json.loads(json.dumps(curves)), 0))]) == snapshot


# --- releases: how often a step is shown ---


def measured(made: Results) -> tuple[Choice, list[Spread], Frozen]:
    choice = choose(answers(made))
    ((_, rows),) = frameworks(choice.settings[0].rows)
    return choice, list(spreads(figures(rows))), frozen(choice.answers.analysis)


@pytest.mark.slow
def test_histories_without_a_change_are_rarely_marked_and_a_test_without_correction_is_caught() -> None:
    """`python -m benchmarks.releases` draws 1 000 histories of ten releases, with the spread of measured runs."""
    _, spread, plan = measured(over_releases())
    assert marked(spread, plan, 40, releases=4, seeds=10) <= 3
    assert marked(spread, replace(plan, confidence=0.0), 40, releases=4, seeds=10) >= 10  # control: 24 times the error
    assert marked(spread, plan, 50, releases=10, seeds=12) <= 5


@pytest.mark.slow
def test_the_smallest_step_that_is_stated_is_found_in_nine_of_ten_and_a_third_of_it_is_not() -> None:
    choice, spread, plan = measured(over_releases(asks=(1, 1, 1, 1)))
    curves = [curve for curve in choice.settings[0].curves if curve.over == "release"]
    shares = [share for _, share in found(spread, curves, plan, 50, seeds=10)]
    assert len(shares) == 8
    assert sum(shares) / 8 == pytest.approx(0.9, abs=0.06)
    small = [replace(curve, smallest_step=(curve.smallest_step or 0) / 3) for curve in curves]
    assert max(share for _, share in found(spread, small, plan, 40, seeds=10)) < 0.3
