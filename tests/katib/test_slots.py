"""Slots by the times at which pods were there, whatever the order in which they are told."""

from __future__ import annotations

from tuneoff_adapters.katib.slots import PodSlots


def test_a_pod_gets_the_lowest_slot_that_is_free() -> None:
    slots = PodSlots(2)
    assert [slots.take(name, 0) for name in ("a", "b", "a")] == [0, 1, 0]
    slots.free("a", 5)
    assert slots.take("c", 5) == 0
    slots.free("nobody", 5)


def test_a_pod_whose_start_and_end_are_told_before_a_parallel_start_keeps_its_slot() -> None:
    slots = PodSlots(2)
    assert slots.take("a", 0) == 0
    slots.free("a", 10)
    assert slots.take("b", 5) == 1
    slots.free("b", 15)
    assert slots.take("c", 11) == 0


def test_a_number_beyond_the_workers_is_given_only_to_what_overlapped() -> None:
    slots = PodSlots(1)
    assert slots.take("a", 0) == 0
    assert not slots.has_room(3)
    assert slots.take("b", 3) == 1
    slots.free("b", 20)
    slots.free("a", 4)
    assert slots.has_room(4)
    assert slots.take("c", 4) == 0


def test_an_earlier_start_that_is_told_later_takes_the_slot_that_is_free_for_longest() -> None:
    slots = PodSlots(2)
    assert slots.take("c", 41) == 0
    assert slots.take("b", 10) == 1
    slots.free("b", 50)
    assert slots.take("a", 0) == 0
    slots.free("a", 40)
    assert slots.take("d", 51) == 1


def test_there_is_no_room_before_a_later_pod_that_was_heard_of_first() -> None:
    slots = PodSlots(2)
    slots.take("p", 0)
    slots.take("q", 0)
    slots.free("p", 10)
    assert slots.take("later", 14) == 0
    assert not slots.has_room(12), "slot 0 would be shared, and of slot 1 the end is not told yet"
    slots.free("q", 11)
    assert slots.has_room(12)
    assert slots.take("earlier", 12) == 1
