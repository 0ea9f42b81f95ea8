"""The names of runs: short, and never the same for two variants or adapters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders.event_logs import example_a
from tuneoff.experiment.names import run_name, variant_text
from tuneoff.experiment.spec import Strategy


@pytest.mark.parametrize(
    ("variant", "text"),
    [
        ({}, ""),
        ({"workload.name": "null"}, "workload=null"),
        ({"sampler": "tpe", "pruner.name": "asha"}, ""),
        ({"workers.count": 2, "workload.options.noise": 0.5}, "workers=2 noise=0.5"),
        ({"workload.options.seed": 1, "sampler.options.seed": 2}, "workload.options.seed=1 sampler.options.seed=2"),
        ({"a.b": 1, "x.a.b": 2}, "a.b=1 x.a.b=2"),
        ({"sampler": {"name": "tpe", "options": {"multivariate": True}}}, "multivariate=true"),
        ({"workload": {"name": "mlp", "options": {"dataset": "digits"}}}, "workload=mlp dataset=digits"),
        ({"search_space": {"x": 1}}, 'search_space={"x":1}'),
    ],
)
def test_a_variant_has_its_shortest_keys(variant: dict[str, Any], text: str) -> None:
    assert variant_text(variant) == text


def test_a_run_is_named_by_all_that_tells_it_apart() -> None:
    _, spec = example_a()
    experiment = replace(
        spec.experiment, sampler=Strategy(name="tpe"), pruner=Strategy(name="asha"), variant={"workload.name": "null"}
    )
    run = replace(spec, experiment=experiment, seed=3)
    assert run_name("optuna", run) == "optuna tpe + asha workload=null seed 3"
    plain = replace(experiment, pruner=Strategy(name="none"), variant={"sampler": "tpe"})
    assert run_name("optuna", replace(run, experiment=plain, warm_up=True)) == "optuna tpe seed 3 (warm-up)"
