"""Conditions in the status of Katib's objects and of Jobs: reading, and setting as Katib's controllers do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from katib_emulation.objects import now

CONDITION_EXPRESSION = re.compile(r'status\.conditions\.#\(type=="([^"]+)"\)#\|#\(status=="([^"]+)"\)#')
"""The one form of a trial template's success and failure conditions that is understood (Katib's default)."""

Condition = dict[str, Any]


def conditions_of(obj: Mapping[str, Any]) -> list[Condition]:
    """Return the conditions of an object; none if it has no status."""
    return (obj.get("status") or {}).get("conditions") or []


def find_condition(obj: Mapping[str, Any], kind: str) -> Condition | None:
    """Return the condition of a type, whatever its status."""
    return next((condition for condition in conditions_of(obj) if condition.get("type") == kind), None)


def has_condition(obj: Mapping[str, Any], *kinds: str) -> bool:
    """Whether a condition of one of the types is True."""
    return any(condition.get("type") in kinds and condition.get("status") == "True" for condition in conditions_of(obj))


def set_condition(obj: dict[str, Any], kind: str, reason: str, message: str, status: str = "True") -> None:
    """Set a condition at the end of the list; nothing happens if it is there with the same status and reason."""
    current = find_condition(obj, kind)
    if current is not None and (current.get("status"), current.get("reason")) == (status, reason):
        return
    time = now()
    same_status = current is not None and current.get("status") == status
    condition = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": time,
        "lastTransitionTime": current.get("lastTransitionTime", time) if current is not None and same_status else time,
    }
    remove_condition(obj, kind)
    obj["status"]["conditions"].append(condition)


def remove_condition(obj: dict[str, Any], *kinds: str) -> None:
    """Remove the conditions of the types."""
    kept = [condition for condition in conditions_of(obj) if condition.get("type") not in kinds]
    obj.setdefault("status", {})["conditions"] = kept


def stop_running(obj: dict[str, Any]) -> None:
    """Set Running to False, with its old reason, if it is there: what every end does but an early stop."""
    running = find_condition(obj, "Running")
    if running is not None:
        set_condition(obj, "Running", running["reason"], running["message"], "False")


def matching(obj: Mapping[str, Any], expression: str) -> Condition | None:
    """Return the first condition of a Job that a trial's success or failure condition means."""
    parsed = CONDITION_EXPRESSION.fullmatch(expression)
    if parsed is None:
        return None
    wanted = (parsed[1], parsed[2])
    return next((c for c in conditions_of(obj) if (c.get("type"), c.get("status")) == wanted), None)
