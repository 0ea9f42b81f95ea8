"""What an adapter asks before it proposes a trial."""

from __future__ import annotations

from pathlib import Path

import pytest

from trial_runs import trial_context
from tuneoff.base import clock
from tuneoff.run.trial.trial_process import TrialBudget


def test_without_limits_the_budget_is_never_used_up(tmp_path: Path) -> None:
    budget = TrialBudget(trial_context(tmp_path, trials=1))
    budget.tickets.take()
    assert budget.epoch_tickets.take() == 0
    assert not budget.is_used_up()


def test_the_last_epoch_ticket_uses_the_budget_up_for_every_process(tmp_path: Path) -> None:
    context = trial_context(tmp_path, epochs_total=2)
    proposer, trial = TrialBudget(context), TrialBudget(context)
    trial.epoch_tickets.take()
    assert not proposer.is_used_up()
    trial.epoch_tickets.take()
    assert proposer.is_used_up()
    assert not proposer.is_over_time()


def test_the_deadline_counts_from_the_first_ticket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 5 * clock.NANOSECONDS
    monkeypatch.setattr(clock, "monotonic_ns", lambda: now)
    budget = TrialBudget(trial_context(tmp_path, wall_clock_seconds=2.0))
    now += 100 * clock.NANOSECONDS
    assert not budget.is_used_up()
    budget.tickets.take()
    now += 2 * clock.NANOSECONDS
    assert not budget.is_used_up()
    budget.tickets.take()
    now += 1
    assert budget.is_used_up()
