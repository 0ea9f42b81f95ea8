"""What a continued run begins with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tuneoff.errors import ResultsError
from tuneoff.experiment.spec import Budget
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.history import (
    FILE_NAME,
    EarlierExecution,
    FinishedTrial,
    History,
    UnfinishedTrial,
    begun,
    history_from_json,
    not_begun,
    read_history,
)
from tuneoff.run.supervisor.execution import budget_left
from tuneoff.run.trial.trial_process import TrialBudget


def finished(number: int, value: float | None = 0.5, state: str = "completed") -> FinishedTrial:
    values = ((1, value), (2, None))
    return FinishedTrial(trial_id=f"t{number:05d}", configuration={"x": number}, state=state, values=values, value=value)


def context_of(folder: Path, **more: Any) -> TrialContext:
    return TrialContext(run_dir=str(folder), execution_id="e", workload="m:W", metric="m", mode="max", epochs=1, trials=1, **more)


HISTORY = History(
    finished=(finished(2), finished(0, 0.7), finished(3, 0.7)),
    unfinished=(UnfinishedTrial(trial_id="t00005", configuration={"x": 5}, attempt=2),),
    executions=(EarlierExecution(execution_id="run-a", status="interrupted", reason="killed", charged="user"),),
    epochs=7,
    seconds=2.5,
)


def test_a_history_survives_its_file() -> None:
    assert history_from_json(HISTORY.to_json()) == HISTORY


def test_a_run_that_begins_anew_has_an_empty_history(tmp_path: Path) -> None:
    assert read_history(tmp_path) == History()
    assert not read_history(tmp_path)
    assert read_history(tmp_path).next_number == 0


def test_new_trials_are_numbered_above_all_that_there_were() -> None:
    assert HISTORY.next_number == 6, "t00004 was numbered, and its event was lost"
    assert [trial.trial_id for trial in begun(HISTORY)] == ["t00000", "t00002", "t00003", "t00005"]
    assert HISTORY.first_attempts() == {"t00005": 2}


def test_the_best_is_the_earliest_of_equals_and_completed() -> None:
    assert HISTORY.best("max") == HISTORY.finished[1]
    assert HISTORY.best("min") == HISTORY.finished[0]
    assert History(finished=(finished(0, 0.9, "pruned"), finished(1, None))).best("max") is None


def test_of_a_list_what_was_not_begun_is_left_and_equal_ones_count_one_by_one() -> None:
    assert not_begun([{"x": 5}, {"x": 1}, {"x": 0}, {"x": 5}, {"x": 9}], HISTORY) == [1, 3, 4]


def test_the_budget_is_what_earlier_executions_left() -> None:
    left = budget_left(Budget(trials=5, epochs_per_trial=2, epochs_total=10, wall_clock_seconds=10.0), HISTORY)
    assert left == Budget(trials=2, epochs_per_trial=2, epochs_total=3, wall_clock_seconds=7.5)
    over = budget_left(Budget(trials=5, epochs_per_trial=2, epochs_total=5, wall_clock_seconds=1.0), HISTORY)
    assert over == Budget(trials=2, epochs_per_trial=2, epochs_total=0, wall_clock_seconds=0.0)
    assert budget_left(Budget(trials=5, epochs_per_trial=2), HISTORY) == Budget(trials=2, epochs_per_trial=2)


def test_a_budget_of_seconds_that_is_used_up_is_so_before_the_first_trial(tmp_path: Path) -> None:
    context = TrialContext(
        run_dir=str(tmp_path),
        execution_id="e",
        workload="m:W",
        metric="m",
        mode="max",
        epochs=1,
        trials=1,
        wall_clock_seconds=0.0,
    )
    assert TrialBudget(context).is_used_up()


def test_the_first_attempt_of_an_execution_takes_the_ticket(tmp_path: Path) -> None:
    context = context_of(tmp_path, first_attempts={"t00005": 2})
    assert [context.is_first("t00005", attempt) for attempt in (1, 2, 3)] == [False, True, False]
    assert context.is_first("t00006", 1)


@pytest.mark.parametrize("text", ["", "[]", '{"finished": []}', '{"finished": 1, "unfinished": [], "executions": []}'])
def test_a_damaged_file_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(ResultsError, match=r"continues\.json is damaged: .*; run without --continue"):
        read_history(tmp_path)


@pytest.mark.parametrize("name", ["../other", "/etc", "a/b", ".."])
def test_an_execution_id_that_leads_elsewhere_is_refused(name: str) -> None:
    data = HISTORY.to_json()
    data["executions"][0]["execution_id"] = name
    with pytest.raises(ValueError, match=rf"executions\[#1\]\.execution_id must match .*{re.escape(repr(name))}"):
        history_from_json(data)


def test_a_damaged_item_is_named_by_its_place() -> None:
    data = HISTORY.to_json()
    data["finished"][1] = {"trial_id": "t00001"}
    with pytest.raises(ValueError, match=r"^finished\[#2\]: Object missing required field `\w+`"):
        history_from_json(data)
