"""The processors and the memory of the emulated node, and which pod holds how much of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
_FACTORS = {"m": Decimal("0.001"), "k": Decimal(10**3)}
_FACTORS |= {unit: Decimal(10) ** (3 * power) for power, unit in enumerate("MGTPE", start=2)}
_FACTORS |= {f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)}


def quantity(text: object) -> Decimal:
    """Return the number that a Kubernetes quantity means: "500m" is 0.5, "1Ki" is 1024.

    Raises:
        ValueError: it is no quantity.
    """
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"a quantity is a number with a unit such as 500m or 512Mi, but got {text!r}")
    try:
        return Decimal(match[1]) * _FACTORS.get(match[2], Decimal(1))
    except InvalidOperation:
        raise ValueError(f"a quantity is a number with a unit such as 500m or 512Mi, but got {text!r}") from None


def requests_of(pod: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return what the containers of a pod ask for together (processors, bytes of memory); without a request the limit counts.

    Raises:
        ValueError: a quantity cannot be read.
    """
    total = {"cpu": Decimal(0), "memory": Decimal(0)}
    for container in pod["spec"]["containers"]:
        resources = container.get("resources") or {}
        wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name in total:
            total[name] += quantity(wanted.get(name, 0))
    return total


def memory_limit(container: Mapping[str, Any]) -> int | None:
    """Return the container's memory limit in bytes, or None."""
    limits = (container.get("resources") or {}).get("limits") or {}
    return int(quantity(limits["memory"])) if "memory" in limits else None


class Capacity:
    """What the node has and what is left of it. Used by one thread."""

    def __init__(self, cpus: float | None, memory: int | None) -> None:
        """`cpus` processors and `memory` bytes; None: without end."""
        self._total = {"cpu": None if cpus is None else Decimal(str(cpus)), "memory": None if memory is None else Decimal(memory)}
        self._held: dict[str, dict[str, Decimal]] = {}  # by the pod's uid

    def lacking(self, wanted: Mapping[str, Decimal]) -> list[str]:
        """Return the resources of which too little is free, in the order of the scheduler's message."""
        return [
            name
            for name, total in self._total.items()
            if total is not None and wanted[name] > 0 and wanted[name] > total - sum(held[name] for held in self._held.values())
        ]

    def hold(self, uid: str, wanted: Mapping[str, Decimal]) -> None:
        """Give a pod what it wants."""
        self._held[uid] = dict(wanted)

    def release(self, uid: str) -> bool:
        """Take back what a pod holds; return whether it held anything."""
        return self._held.pop(uid, None) is not None


def unschedulable_message(lacking: list[str]) -> str:
    """Return the scheduler's words."""
    reasons = ", ".join(f"1 Insufficient {name}" for name in lacking)
    preemption = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    return f"0/1 nodes are available: {reasons}. {preemption}"
