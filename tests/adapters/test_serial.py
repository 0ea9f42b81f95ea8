"""The adapter without a framework, and the start of core's workers in every adapter that has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.lifecycle_run import run_lifecycle
from builders.specs import toy_spec
from trust.space_test.every_kind import context_of
from tuneoff.adapter import Adapter
from tuneoff.base.targets import load_target
from tuneoff.record.events import schema
from tuneoff.registry import adapter_class
from tuneoff.run.pool_adapter import Task
from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff_adapters.serial import SerialAdapter


@pytest.mark.slow
def test_nothing_is_proposed_once_the_budget_is_used_up(tmp_path: Path) -> None:
    run = run_lifecycle(tmp_path, "tuneoff_adapters.serial:SerialAdapter", trials=200, epochs=3, epochs_total=10)
    assert run.exit_code == 0, run.log
    assert len(run.of(schema.Epoch)) == 10
    assert 2 <= len(run.of(schema.TrialSubmitted)) <= 5
    assert len(run.of(schema.TrialRefused)) <= 2  # each worker's last task may be on its way when the budget ends


@pytest.mark.parametrize("order", [("t00000", "t00001"), ("t00001", "t00000")])
def test_of_equal_values_the_earlier_trial_is_named_whichever_ended_first(tmp_path: Path, order: tuple[str, str]) -> None:
    adapter = SerialAdapter(context_of(SerialAdapter, 0, 2, tmp_path))
    adapter.setup()
    for trial_id in order:
        adapter.ended(Task(trial_id, {}, 0), TrialOutcome(state="completed", value=0.5))
    best = adapter.collect_results()
    assert best is not None
    assert best.trial_id == "t00000"


@pytest.mark.parametrize("name", ["serial", "optuna", "nevergrad", "rustuna"])
def test_workers_are_fresh_interpreters_unless_a_run_says_otherwise(name: str) -> None:
    adapter: type[Adapter] = adapter_class(name)
    fresh, forked = toy_spec(name), toy_spec(name, options={"start": "forkserver"})
    assert (adapter.refuse(fresh), adapter.refuse(forked)) == (None, None)
    assert fresh.run_id != forked.run_id
    (text,) = set(adapter.changed_defaults(forked)) - set(adapter.changed_defaults(fresh))
    assert "forked" in text
    refusal = adapter.refuse(toy_spec(name, options={"start": "fork"})) or ""
    assert "`start` must be forkserver" in refusal
    assert "'fork'" in refusal


def test_who_has_no_pruner_cannot_be_told_of_every_epoch() -> None:
    names = ("serial:Serial", "rustuna:Rustuna", "nevergrad:Nevergrad", "optuna.adapter:Optuna", "ray_tune.adapter:RayTune")
    told = [load_target(f"tuneoff_adapters.{name}Adapter").capabilities.reports_with("none", "every_epoch") for name in names]
    assert told == ["none"] * 3 + ["every_epoch"] * 2
