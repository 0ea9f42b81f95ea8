"""What was computed of the object that was asked about last."""

from __future__ import annotations

import gc

from tuneoff.base.last import remembers_last


class Thing:
    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return True


def test_it_computes_once_for_one_object_and_anew_for_another_or_an_equal_one() -> None:
    asked: list[int] = []

    @remembers_last
    def twice(thing: Thing) -> int:
        asked.append(thing.value)
        return 2 * thing.value

    first, second = Thing(1), Thing(2)
    assert [twice(thing) for thing in (first, first, second, second, first)] == [2, 2, 4, 4, 2]
    assert asked == [1, 2, 1]
    del first
    gc.collect()
    assert [twice(Thing(value)) for value in (5, 6, 7)] == [10, 12, 14]  # each may stand where the one before stood
