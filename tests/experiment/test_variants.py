"""`matrix:` multiplies, `zip:` pairs."""

from __future__ import annotations

from typing import Any

import pytest

from builders.refusals import refusal
from tuneoff.experiment.variants import expand, task_digest, without


def test_lists_multiply_and_the_last_varies_fastest() -> None:
    variants = expand({"budget": {"trials": 1}, "matrix": {"budget.trials": [5, 10], "workers.count": [1, 2]}})
    assert [values for values, _ in variants] == [
        {"budget.trials": 5, "workers.count": 1},
        {"budget.trials": 5, "workers.count": 2},
        {"budget.trials": 10, "workers.count": 1},
        {"budget.trials": 10, "workers.count": 2},
    ]
    assert variants[1][1] == {"budget": {"trials": 5}, "workers": {"count": 2}}


def test_groups_of_zip_pair_and_multiply_with_the_rest() -> None:
    variants = expand({"matrix": {"sampler": ["random", "tpe"]}, "zip": [{"workers.count": [1, 2], "budget.trials": [4, 8]}]})
    assert [tuple(values.values()) for values, _ in variants] == [
        ("random", 1, 4),
        ("random", 2, 8),
        ("tpe", 1, 4),
        ("tpe", 2, 8),
    ]


def test_overridden_keys_leave_the_axes() -> None:
    content = {
        "matrix": {"sampler.n": [1], "workers.count": [1]},
        "zip": [{"sampler": ["a"]}, {"pruner": ["none"], "sampler": ["b"]}],
    }
    assert without(content, {"sampler": "random"}) == {"matrix": {"workers.count": [1]}, "zip": [{"pruner": ["none"]}]}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"matrix": [1]}, "matrix: must be a mapping of dotted keys to lists, but got [1]"),
        ({"matrix": {"budget.trials": 5}}, "matrix.budget.trials: must be a list of values, but got 5; write [5]"),
        ({"matrix": {"budget.trials": []}}, "matrix.budget.trials: must not be empty"),
        ({"matrix": {"budget.trials": [5, 5]}}, "values must differ, but 5 is given twice"),
        ({"matrix": {"seeds": [[1], [2]]}}, "'seeds' may not be varied: `seeds:` is a list that multiplies already"),
        ({"matrix": {"adapters.0.name": ["a"]}}, "may not be varied"),
        ({"matrix": {"name": ["a"]}}, "'name' may not be varied"),
        ({"matrix": {"budget..trials": [1]}}, "may not be varied"),
        ({"matrix": {"sampler": ["a"], "sampler.n": [1]}}, "set by one axis only, but got 'sampler' and 'sampler.n'"),
        ({"matrix": {"sampler": ["a"]}, "zip": [{"sampler": ["b"]}]}, "set by one axis only"),
        ({"zip": {"a": [1]}}, "zip: must be a list of groups"),
        ({"matrix": {}}, "matrix: must be a mapping of dotted keys to lists, but got {}"),
        ({"zip": []}, "zip: must be a list of groups, but got []"),
        ({"zip": [{}]}, "zip.0: must be a mapping"),
        (
            {"zip": [{"budget.trials": [1, 2], "workers.count": [1]}]},
            "equally long, but budget.trials has 2, workers.count has 1",
        ),
        ({"zip": [{"budget.trials": [1, 1], "workers.count": [2, 2]}]}, "zip.0: values must differ"),
        ({"seeds": [1], "budget": 3, "matrix": {"budget.trials": [1]}}, "budget must be a mapping to hold it, but it is 3"),
        ({"matrix": {"budget.trials": list(range(101)), "workers.count": list(range(100))}}, "at most 10000 variants"),
        ({"tasks": []}, "tasks: must be a mapping"),
        ({"tasks": {}}, "tasks: must be a mapping"),
        ({"tasks": {"a b": {}}}, "tasks: a name must be letters"),
        ({"tasks": {1: {}}}, "tasks: a name must be letters"),
        ({"tasks": {"a": [1]}}, "tasks.a: must be a mapping"),
        ({"tasks": {"a": {"budget": {}, "budget.trials": 1}}}, "tasks.a: a key may be set once"),
        ({"tasks": {"a": {"seeds": [1]}}}, "'seeds' may not be varied"),
        ({"tasks": {"a": {"tasks.b": 1}}}, "'tasks.b' may not be varied"),
        ({"tasks": {"a": {"budget.trials": 1}}, "matrix": {"budget.trials": [1, 2]}}, "by one axis only"),
        ({"zip": [{"budget": [{}], "budget.trials": [1]}]}, "by one axis only"),
    ],
)
def test_impossible_axes_and_tasks_are_one_line(content: dict[str, Any], problem: str) -> None:
    assert problem in refusal(expand, content)


def test_variants_of_a_long_file_are_bounded_together() -> None:
    content = {"configurations": [{"x": number} for number in range(1000)], "matrix": {"budget.trials": list(range(1, 2000))}}
    assert "all variants together may have at most 2000000 values" in refusal(expand, content)


def test_tasks_come_first_and_are_called_by_their_name() -> None:
    tasks = {"small": {"budget.trials": 3, "search_space": {"x": 1}}, "usual": {}}
    variants = expand({"budget": {"trials": 9}, "tasks": tasks, "matrix": {"sampler": ["a", "b"]}})
    assert [values for values, _ in variants] == [
        {"task": "small", "sampler": "a"},
        {"task": "small", "sampler": "b"},
        {"task": "usual", "sampler": "a"},
        {"task": "usual", "sampler": "b"},
    ]
    assert variants[0][1] == {"budget": {"trials": 3}, "search_space": {"x": 1}, "sampler": "a"}
    assert variants[3][1] == {"budget": {"trials": 9}, "sampler": "b"}


def test_overridden_keys_leave_the_tasks() -> None:
    content = {"tasks": {"one": {"budget.trials": 3, "workers.count": 2}, "other": {"budget.trials": 4}}}
    assert without(content, {"budget.trials": 5}) == {"tasks": {"one": {"workers.count": 2}, "other": {}}}


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
