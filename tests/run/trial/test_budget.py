"""Tickets of the budget and slots: who may train, and where."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from trial_runs import trial_context
from tuneoff.base import clock
from tuneoff.run.trial.trial_process import Slots, Tickets, TrialBudget


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


def test_a_slot_is_held_by_one_holder_and_the_preferred_one_comes_first(tmp_path: Path) -> None:
    first, second = Slots(tmp_path, 2), Slots(tmp_path, 2)
    assert first.take(preferred=1)[0] == 1
    assert second.take(preferred=1)[0] == 0
    with pytest.raises(TimeoutError, match="no free slot of 2"):
        Slots(tmp_path, 2).take(timeout_seconds=0.01)
    first.free(1)
    assert Slots(tmp_path, 2).take()[0] == 1


def test_a_reservation_waits_for_nothing_and_is_what_is_taken_next(tmp_path: Path) -> None:
    first, second, third = (Slots(tmp_path, 2) for _ in range(3))
    for slots in (first, second, third):
        slots.reserve(preferred=1)
    assert first.take()[0] == 1
    assert second.take(preferred=1)[0] == 0
    with pytest.raises(TimeoutError):
        third.take(timeout_seconds=0.01)
    second.free(0)
    assert third.take(preferred=1)[0] == 0
    third.free(0)
    assert third.take()[0] == 0, "a reservation is used up by the first take"


def test_a_process_takes_slots_of_the_device_that_it_sees_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = (5, 5, 3)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")  # by who started it
    bound = Slots(tmp_path, 3, devices)
    bound.reserve(preferred=0)
    assert bound.take(preferred=0)[0] == 2
    with pytest.raises(TimeoutError):
        Slots(tmp_path, 3, devices).take(timeout_seconds=0.01)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,3")  # by nobody: its first slot decides
    free = Slots(tmp_path, 3, devices)
    free.reserve(preferred=1)
    assert (os.environ["CUDA_VISIBLE_DEVICES"], os.environ["CUDA_DEVICE_ORDER"]) == ("5", "PCI_BUS_ID")
    assert free.take(preferred=1)[0] == 1
    bound.free(2)
    assert free.take(preferred=2)[0] == 0  # never that of another device, though that is free


def _hold(folder: str, ready, leave) -> None:  # type: ignore[no-untyped-def]
    Slots(folder, 1).take()
    ready.set()
    leave.wait()


def test_a_killed_holder_frees_its_slot(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    ready, leave = spawn.Event(), spawn.Event()
    holder = spawn.Process(target=_hold, args=(str(tmp_path), ready, leave))
    holder.start()
    assert ready.wait(30)
    slots = Slots(tmp_path, 1)
    with pytest.raises(TimeoutError):
        slots.take(timeout_seconds=0.01)
    holder.kill()
    holder.join()
    assert slots.take(timeout_seconds=5)[0] == 0


def _take_all(path: str, taken) -> None:  # type: ignore[no-untyped-def]
    tickets = Tickets(path, 200)
    numbers = []
    while (number := tickets.take()) is not None:
        numbers.append(number)
    taken.put(numbers)


def test_the_first_ticket_tells_when_the_budget_was_first_used(tmp_path: Path) -> None:
    tickets = Tickets(tmp_path / "tickets", 2)
    assert tickets.first_ns is None
    tickets.take()
    first = tickets.first_ns
    tickets.take()
    assert first is not None
    assert tickets.first_ns == first
    assert tickets.taken == 2


def test_no_limit_means_no_file_content(tmp_path: Path) -> None:
    tickets = Tickets(tmp_path / "tickets", None)
    assert [tickets.take() for _ in range(3)] == [0, 0, 0]
    assert tickets.taken == 0


@pytest.mark.slow
def test_concurrent_takers_share_the_tickets_exactly(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    taken = spawn.Queue()
    takers = [spawn.Process(target=_take_all, args=(str(tmp_path / "tickets"), taken)) for _ in range(3)]
    for taker in takers:
        taker.start()
    numbers = [number for _ in takers for number in taken.get(timeout=60)]
    for taker in takers:
        taker.join()
    assert sorted(numbers) == list(range(200))
