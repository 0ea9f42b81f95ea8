"""What the adapter refuses before anything starts, and that looking at it imports no framework."""

from __future__ import annotations

from typing import Any

import pytest

from builders.specs import toy_spec
from tuneoff.base.space import Categorical, Float, SearchSpace
from tuneoff_adapters.optuna.adapter import OptunaAdapter

ONE_ORDERED = SearchSpace({"x": Float(low=0.0, high=1.0), "kind": Categorical(choices=("a", "b"))})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sampler": "tpe", "sampler_options": {"n_startup": 5}}, ["'tpe'", "'n_startup'", "n_startup_trials"]),
        ({"sampler": "tpe", "sampler_options": {"n_startup_trials": 0}}, ["n_startup_trials", ">= 1", "0"]),
        ({"sampler": "tpe", "sampler_options": {"n_startup_trials": True}}, ["n_startup_trials", "integer", "True"]),
        ({"sampler": "tpe", "sampler_options": {"multivariate": 1}}, ["multivariate", "true or false", "1"]),
        ({"sampler": "gp", "sampler_options": {"kernel": "rbf"}}, ["'gp'", "'kernel'", "deterministic_objective"]),
        ({"sampler": "random", "sampler_options": {"seed": 1}}, ["'random'", "'seed'", "it has none"]),
        ({"sampler": "cmaes", "space": ONE_ORDERED}, ["'cmaes'", "at least 2", "has 1"]),
        ({"platform": "kubernetes", "options": {"image": "any"}}, ["option `storage`", "postgresql", "None"]),
        ({"platform": "kubernetes", "options": {"image": "any", "storage": "sqlite"}}, ["`storage`", "'sqlite'"]),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(changes: dict[str, Any], words: list[str]) -> None:
    reason = OptunaAdapter.refuse(toy_spec("optuna", **changes))
    assert reason is not None
    assert "\n" not in reason
    assert all(word in reason for word in words), reason


def test_the_packages_own_name_does_not_hide_the_framework() -> None:
    import optuna

    from tuneoff_adapters.optuna import study

    assert vars(study)["optuna"] is optuna
    assert hasattr(optuna, "create_study")
