"""What a worker tells of an error that ends its work."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pytest

from adapters.framework_objects import plan_of
from builders.specs import toy_spec
from tuneoff.errors import InfrastructureError
from tuneoff_adapters.optuna import worker
from tuneoff_adapters.optuna.plan import Broken, Order, Storage, StudyPlan
from tuneoff_adapters.optuna.study import Operations, create_study
from tuneoff_adapters.optuna.worker_state import WorkerState


def broken_by(error: Callable[[], None], plan: StudyPlan, monkeypatch: pytest.MonkeyPatch) -> Broken:
    """Return what a worker answers whose first order meets an error."""
    orders: list[Order | None] = [Order(generation=0, repeats=0), None]
    answers: list[Any] = []
    asker = SimpleNamespace(obey=lambda order: error())
    monkeypatch.setattr(worker, "_Asker", lambda *arguments: asker)
    pipe = SimpleNamespace(recv=lambda: orders.pop(0))
    worker.work(SimpleNamespace(index=1, context=None, pipe=pipe, answer=answers.append), plan)  # type: ignore[arg-type]
    assert len(answers) == 1
    assert isinstance(answers[0], Broken)
    return answers[0]


def test_a_journal_that_is_removed_in_a_trial_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(toy_spec("optuna"), tmp_path)
    study = create_study(plan)

    def objective(trial: optuna.Trial) -> float:
        os.unlink(plan.journal)
        return 0.0

    answer = broken_by(lambda: study.optimize(objective, n_trials=1), plan, monkeypatch)
    assert (answer.is_infrastructure, plan.journal in answer.text) == (True, True)


@pytest.mark.parametrize(
    ("error", "is_infrastructure"),
    [
        (OSError(28, "No space left on device"), True),
        (FileNotFoundError(2, "No such file", "/other"), True),
        (InfrastructureError("gone"), True),
        (ValueError("no such parameter"), False),
    ],
)
def test_errors_of_the_machine_are_charged_to_it_whatever_came_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, is_infrastructure: bool
) -> None:
    def fail() -> None:
        try:
            raise error
        except (OSError, InfrastructureError, ValueError):
            raise UnboundLocalError("updated_state")  # noqa: B904  as Optuna's own handling does

    answer = broken_by(fail, plan_of(toy_spec("optuna"), tmp_path), monkeypatch)
    assert answer.is_infrastructure == is_infrastructure
    name = type(error).__name__ if is_infrastructure else "UnboundLocalError"
    assert answer.text.startswith(f"worker 1 met {name}: ")


@pytest.mark.parametrize(
    ("storage", "error", "is_swallowed"),
    [
        (Storage(kind="sqlite", heartbeat_seconds=1), ValueError("Cannot tell a FAIL trial."), True),
        (Storage(kind="sqlite", heartbeat_seconds=1), ValueError("The value nan is not acceptable"), False),
        (Storage(kind="sqlite", heartbeat_seconds=1), AssertionError("Should not reach."), False),
        (Storage(kind="sqlite"), ValueError("Cannot tell a FAIL trial."), False),
    ],
)
def test_only_a_heartbeats_failing_of_a_living_trial_is_no_end(storage: Storage, error: Exception, is_swallowed: bool) -> None:
    def optimize(*_: Any, **__: Any) -> None:
        raise error

    asker: Any = object.__new__(worker._Asker)
    asker._study, asker._plan = SimpleNamespace(optimize=optimize), SimpleNamespace(storage=storage, goal=None)
    asker._state, asker._state_file, asker._operations = WorkerState(), SimpleNamespace(write=lambda state: None), Operations()
    asker._events, asker._ended_ns = SimpleNamespace(write=lambda *_, **__: None), 0
    with contextlib.nullcontext() if is_swallowed else pytest.raises(type(error), match=str(error)):
        asker._run_one()
