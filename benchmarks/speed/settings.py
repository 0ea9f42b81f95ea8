"""What all benchmarks share: how often, how long, where, and where progress goes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # the project's root: `benchmarks` is importable from here


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`folder` is temporary and lies beside the results, so that both sides of a pair write to the same disk."""

    folder: Path
    pairs: int = 20  # of each ratio with an A/A control
    is_quick: bool = False  # only to see that everything runs: the figures mean little
    adapters: Sequence[str] = ("serial", "optuna", "ray-tune", "syne-tune", "katib")

    def repeats(self, count: int) -> int:
        """Return how often something is measured that takes `count` repetitions by default."""
        return max(2, count // 10) if self.is_quick else count

    def say(self, text: str) -> None:
        """Print a line of progress to standard error."""
        print(text, file=sys.stderr, flush=True)
