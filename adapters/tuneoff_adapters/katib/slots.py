"""Which slot a pod occupies: Kubernetes knows none, the run's figures are per slot."""

from __future__ import annotations


class PodSlots:
    """Gives each pod the lowest free slot at its start. More pods at once than workers get numbers beyond theirs."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def take(self, pod: str) -> int:
        """Return the slot of a pod; the same at every call until it is freed."""
        slot = self._taken.get(pod)
        if slot is None:
            used = set(self._taken.values())
            slot = next(number for number in range(len(used) + 1) if number not in used)
            self._taken[pod] = slot
        return slot

    def free(self, pod: str) -> None:
        """Give a pod's slot back; nothing happens where it has none."""
        self._taken.pop(pod, None)
