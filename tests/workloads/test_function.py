"""A function as a workload: a generator's yields are epochs, a number is the objective of a trial of one epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from trial_runs import events_of, trial_context
from tuneoff.errors import ExperimentError, PluginError
from tuneoff.experiment.build import build_experiments
from tuneoff.experiment.load import load_matrix
from tuneoff.record.events import schema
from tuneoff.registry import workload_class
from tuneoff.run.trial.run_trial import Decision, TrialOutcome, run_trial
from tuneoff.workload import Workload, workload_at
from tuneoff_workloads.null import Null

FILE = """
workload: "{target}"
search_space: {{x: {{type: float, low: 0, high: 1}}}}
objective: {objective}
adapters: [serial]
budget: {{trials: 2, epochs_per_trial: 2}}
"""


def curve(configuration: Mapping[str, Any], seed: int, epochs: int = 9, closed: str = "") -> Iterator[Mapping[str, float]]:
    try:
        for epoch in range(1, epochs + 1):
            yield {"loss": configuration["x"] / epoch, "seed": float(seed)}
    finally:
        if closed:
            Path(closed).touch(exist_ok=False)


def square(configuration: Mapping[str, Any]) -> float:
    return float(configuration["x"]) ** 2


def late(configuration: Mapping[str, Any], width: int = 1, *, seed: int) -> float:
    return float(width)


def nothing(configuration: Mapping[str, Any]) -> None:
    """A training that trains, and forgets to return what came of it."""


class Untested(Null):
    test = Workload.test  # as where a class has none


def run(folder: Path, name: str, stop_at: int = 99, **context: Any) -> TrialOutcome:
    def report(epoch: int, metrics: Mapping[str, float]) -> Decision:
        return Decision.STOP if epoch >= stop_at else Decision.CONTINUE

    return run_trial(trial_context(folder, workload=f"workloads.test_function:{name}", **context), "t0", {"x": 0.5}, report)


def test_a_generator_is_closed_where_its_trial_is_stopped(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    assert run(tmp_path, "curve", stop_at=1, workload_options={"closed": str(closed)}).state == "pruned"
    assert closed.exists()


def test_where_the_function_ends_the_training_has_ended(tmp_path: Path) -> None:
    outcome = run(tmp_path, "curve", epochs=9, workload_options={"epochs": 4})
    assert outcome == TrialOutcome(state="completed", epochs=4, value=0.125, best_epoch=4)
    outcome = run(tmp_path, "square", metric="value", mode="min", epochs=9)
    assert outcome == TrialOutcome(state="completed", epochs=1, value=0.25, best_epoch=1)


@pytest.mark.parametrize(
    ("name", "context", "words"),
    [
        ("curve", {"workload_options": {"epochs": 0}}, "the training ended before its first epoch"),
        ("curve", {"metric": "accuracy"}, "each epoch must give accuracy, the objective's metric, but epoch 1 gave loss, seed"),
        ("nothing", {"metric": "val_loss"}, "val_loss must be a finite number, but epoch 1 gave None"),
    ],
)
def test_what_does_not_fit_fails_the_trial_with_the_rule(tmp_path: Path, name: str, context: Any, words: str) -> None:
    outcome = run(tmp_path, name, **context)
    assert outcome.state == "failed"
    assert words in (outcome.cause or "")


def built(tmp_path: Path, target: str, objective: str = "{metric: value, mode: min}") -> Any:
    file = tmp_path / "own.yaml"
    file.write_text(FILE.format(target=target, objective=objective))
    return build_experiments(load_matrix(file))[0]


def test_the_file_says_which_direction_is_better(tmp_path: Path) -> None:
    objective = built(tmp_path, "workloads.test_function:square").objective
    assert (objective.metric, objective.mode) == ("value", "min")
    with pytest.raises(ExperimentError, match="mode: it must be given for 'value'"):
        built(tmp_path, "workloads.test_function:square", "{metric: value}")


def test_a_class_without_a_test_must_say_so() -> None:
    with pytest.raises(PluginError, match="must implement `test`, or set `has_test = False`"):
        workload_class("workloads.test_function:Untested")
    assert workload_at("workloads.test_function:square").has_test is False


def test_the_seed_is_passed_by_its_name(tmp_path: Path) -> None:
    assert run(tmp_path, "late", metric="value", epochs=1).value == 1.0


def test_a_bundle_calls_no_function() -> None:
    assert workload_at("subprocess:call").refuse_foreign({"executable": "bash"}) is not None


def test_each_yield_is_an_epoch_and_the_generator_is_closed(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    assert run(tmp_path, "curve", workload_options={"closed": str(closed)}) == TrialOutcome(
        state="completed", epochs=3, value=0.5 / 3, best_epoch=3
    )
    epochs = list(events_of(tmp_path, schema.Epoch))
    assert [epoch.metrics["loss"] for epoch in epochs] == [0.5, 0.25, 0.5 / 3]
    assert epochs[0].metrics["seed"] == next(iter(events_of(tmp_path, schema.TrialStarted))).seed
    assert closed.exists()


def test_without_an_objective_it_is_the_accuracy(tmp_path: Path) -> None:
    objective = built(tmp_path, "workloads.test_function:curve", "{}").objective
    assert (objective.metric, objective.mode) == ("validation_accuracy", "max")
