"""What is refused, in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tuneoff.errors import ExperimentError


def refusal(act: Callable[..., object], *arguments: Any, **named: Any) -> str:
    """Return what a call is refused with; it must be one line."""
    with pytest.raises(ExperimentError) as caught:
        act(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)
