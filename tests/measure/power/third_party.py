"""Power meters of other distributions: a good one, and each way to be none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuneoff.meter import MeterDescription, PowerMeter, PowerSample


class Plug(PowerMeter):
    """Always draws the power of its option."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._watts = options.get("watts", 40)
        self.is_closed = False
        self.description = MeterDescription(kind="measured", source="plug 7", domains=("node",))

    def read(self) -> Sequence[PowerSample]:
        return (PowerSample(t=1, domain="node", watts=self._watts),)

    def close(self) -> None:
        self.is_closed = True


class Raising(Plug):
    """Breaks when it is opened."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        raise RuntimeError("first line\nsecond line")


class Mute(Plug):
    """Describes nothing."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.description = "a meter"  # type: ignore[assignment]


class NoMeter:
    """Derives from nothing."""

    def close(self) -> None: ...
