"""`matrix:` multiplies, `zip:` pairs, `tasks:` come first and have names."""

from __future__ import annotations

from typing import Any

import pytest

from builders.refusals import refusal
from tuneoff.experiment.variants import expand, task_digest, without


def test_tasks_lists_and_groups_multiply_and_the_last_varies_fastest() -> None:
    tasks = {"small": {"budget.trials": 3, "search_space": {"x": 1}}, "usual": {}}
    zipped = [{"workers.count": [1, 2], "workers.cpus": [4, 8]}]
    variants = expand({"budget": {"trials": 9}, "tasks": tasks, "matrix": {"sampler": ["a", "b"]}, "zip": zipped})
    assert [tuple(values.items()) for values, _ in variants] == [
        (("task", task), ("sampler", sampler), ("workers.count", count), ("workers.cpus", 4 * count))
        for task in ("small", "usual")
        for sampler in "ab"
        for count in (1, 2)
    ]
    assert variants[1][1] == {
        "budget": {"trials": 3},
        "search_space": {"x": 1},
        "sampler": "a",
        "workers": {"count": 2, "cpus": 8},
    }
    assert variants[6][1] == {"budget": {"trials": 9}, "sampler": "b", "workers": {"count": 1, "cpus": 4}}


def test_overridden_keys_leave_the_axes() -> None:
    content = {
        "matrix": {"sampler.n": [1], "workers.count": [1]},
        "zip": [{"sampler": ["a"]}, {"pruner": ["none"], "sampler": ["b"]}],
        "tasks": {"one": {"sampler": "c", "workers.count": 2}, "other": {"sampler.n": 4}},
    }
    assert without(content, {"sampler": "random"}) == {
        "matrix": {"workers.count": [1]},
        "zip": [{"pruner": ["none"]}],
        "tasks": {"one": {"workers.count": 2}, "other": {}},
    }


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"matrix": [1]}, "matrix: must be a mapping of dotted keys to lists, but got [1]"),
        ({"matrix": {}}, "matrix: must be a mapping of dotted keys to lists, but got {}"),
        ({"matrix": {"budget.trials": 5}}, "matrix.budget.trials: must be a list of values, but got 5; write [5]"),
        ({"matrix": {"budget.trials": []}}, "matrix.budget.trials: must be a list of values, but got []; give values"),
        ({"matrix": {"budget.trials": [5, 5]}}, 'values must differ, but {"budget.trials":5} is given twice'),
        ({"matrix": {"seeds": [[1], [2]]}}, "'seeds' may not be varied: `seeds:` is a list that multiplies already"),
        ({"matrix": {"name": ["a"]}}, "'name' may not be varied"),
        ({"matrix": {"budget..trials": [1]}}, "may not be varied"),
        ({"matrix": {"sampler": ["a"], "sampler.n": [1]}}, "set once, by one axis or task, but got 'sampler' and 'sampler.n'"),
        ({"matrix": {"sampler": ["a"]}, "zip": [{"sampler": ["b"]}]}, "may be set once"),
        ({"zip": [{"budget": [{}], "budget.trials": [1]}]}, "may be set once"),
        ({"zip": {"a": [1]}}, "zip: must be a list of groups"),
        ({"zip": []}, "zip: must be a list of groups, but got []"),
        ({"zip": [{}]}, "zip.0: must be a mapping"),
        ({"zip": [{"budget.trials": [1, 2], "workers.count": [1]}]}, "long, but budget.trials has 2, workers.count has 1"),
        ({"zip": [{"budget.trials": [1, 1], "workers.count": [2, 2]}]}, "zip.0: values must differ"),
        ({"seeds": [1], "budget": 3, "matrix": {"budget.trials": [1]}}, "budget must be a mapping to hold it, but it is 3"),
        ({"matrix": {"budget.trials": list(range(101)), "workers.count": list(range(100))}}, "at most 10000 variants"),
        (
            {"configurations": [{"x": number} for number in range(1000)], "matrix": {"budget.trials": list(range(1, 2000))}},
            "all variants together may have at most 2000000 values",
        ),
        ({"tasks": []}, "tasks: must be a mapping"),
        ({"tasks": {"a b": {}}}, "tasks: a name must be letters"),
        ({"tasks": {1: {}}}, "tasks: a name must be letters"),
        ({"tasks": {"a": [1]}}, "tasks.a: must be a mapping"),
        ({"tasks": {"a": {"budget": {}, "budget.trials": 1}}}, "may be set once"),
        ({"tasks": {"a": {"tasks.b": 1}}}, "'tasks.b' may not be varied"),
        ({"tasks": {"a": {"budget.trials": 1}}, "matrix": {"budget.trials": [1, 2]}}, "may be set once"),
    ],
)
def test_impossible_axes_and_tasks_are_one_line(content: dict[str, Any], problem: str) -> None:
    assert problem in refusal(expand, content)


@pytest.mark.parametrize(
    ("steps", "is_another"),
    [
        ({"budget.trials": 4}, True),
        ({"budget.trials": 3}, False),
        ({"workers": {"count": 2}}, True),
        ({"anchors": {"random_search": 1}, "timeouts.trial_seconds": 9}, False),
    ],
)
def test_a_task_is_another_one_by_what_it_changes_of_the_runs(steps: dict[str, Any], is_another: bool) -> None:
    assert bool(task_digest({"budget": {"trials": 3}, "tasks": {"a": steps}}, "a")) is is_another
