"""Which slot a pod occupies: Kubernetes knows none, the run's figures are per slot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class _Stay:
    """One pod on one slot; times are nanoseconds on one clock."""

    pod: str
    start_ns: int
    end_ns: int | None = None  # not told yet


class PodSlots:
    """Gives each pod the lowest slot that was free when it started, whenever that is heard of.

    A pod whose end is not told occupies its slot. Only where more pods than `count` really were there at once, some get numbers
    beyond theirs. Pods that are told in the order of their starts, each with its end if it has one, never share a slot.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._slots: list[list[_Stay]] = []
        self._given: dict[str, tuple[int, _Stay]] = {}

    def has_room(self, start_ns: int) -> bool:
        """Tell whether one of the `count` slots was free from a moment on, with no later pod on it that was heard of first."""
        return any(self._room(number, start_ns) == float("inf") for number in range(self._count))

    def take(self, pod: str, start_ns: int) -> int:
        """Return the slot of a pod that started at a moment; the same at every call."""
        if pod not in self._given:
            slot, stay = self._best(start_ns), _Stay(pod, start_ns)
            self._slots.extend([] for _ in range(slot + 1 - len(self._slots)))
            self._slots[slot].append(stay)
            self._given[pod] = slot, stay
        return self._given[pod][0]

    def free(self, pod: str, end_ns: int) -> None:
        """Take note of a pod's end; nothing happens where it has no slot, or its end is known."""
        given = self._given.get(pod)
        if given is not None and given[1].end_ns is None:
            given[1].end_ns = max(end_ns, given[1].start_ns)

    def _best(self, start_ns: int) -> int:
        """Return the slot that is free for longest from a moment on; of equal ones the lowest."""
        for numbers in (range(self._count), range(self._count, max(self._count, len(self._slots)) + 1)):
            found = max(numbers, key=lambda number: (self._room(number, start_ns), -number), default=None)
            if found is not None and self._room(found, start_ns) > 0:
                return found
        return max(self._count, len(self._slots))

    def _room(self, number: int, start_ns: int) -> float:
        """Return for how long a slot was free from a moment on; 0: it was taken."""
        stays = self._slots[number] if number < len(self._slots) else []
        if any(stay.start_ns <= start_ns and (stay.end_ns is None or start_ns < stay.end_ns) for stay in stays):
            return 0
        return min((stay.start_ns - start_ns for stay in stays if stay.start_ns > start_ns), default=float("inf"))
