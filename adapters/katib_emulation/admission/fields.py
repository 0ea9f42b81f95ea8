"""A list of what is wrong with an object, worded as the Kubernetes field validation does."""

from __future__ import annotations

import json
from typing import Any


def quoted(value: Any) -> str:
    """Return a value as it stands in messages: strings in double quotes, structures as JSON."""
    if isinstance(value, bool) or value is None or not isinstance(value, int | float):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


class FieldErrors:
    """Collects errors with the paths of their fields."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._texts)

    def invalid(self, path: str, value: Any, why: str) -> None:
        """Add: the value breaks a rule."""
        self._add(f"{path}: Invalid value: {quoted(value)}: {why}")

    def required(self, path: str, why: str) -> None:
        """Add: the field is missing or empty."""
        self._add(f"{path}: Required value: {why}")

    def forbidden(self, path: str, why: str) -> None:
        """Add: the field must not be given or changed."""
        self._add(f"{path}: Forbidden: {why}")

    def _add(self, text: str) -> None:
        if text not in self._texts:
            self._texts.append(text)

    def text(self) -> str:
        """Return all errors in one line, in the order in which they were added."""
        return self._texts[0] if len(self._texts) == 1 else f"[{', '.join(self._texts)}]"
