"""What a user asks a recommendation for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tuneoff.base.format import figure
from tuneoff.errors import ExperimentError

WORKERS, TRIAL_SECONDS, TRIALS = "workers", "trial_seconds", "trials"
_NAMES = {WORKERS: "worker", TRIALS: "trial"}
ADAPTER, DEFAULTS = "adapter", "defaults"


def size_text(name: str, ends: tuple[float, float]) -> str:
    """Return a size, or a range of it, in words: "2 workers", "0.4 to 0.5 s per trial"."""
    low, high = ends
    if name == TRIAL_SECONDS:
        return f"{figure(low)}{f' to {figure(high)}' if high != low else ''} s per trial"
    text = f"{low:g}" if high == low else f"{low:g} to {high:g}"
    return f"{text} {_NAMES[name]}{'' if low == high == 1 else 's'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The constraints; None or nothing: any. `faults_by`: whose settings must survive, the adapter's or the framework's own.

    `prefer` names a question that is explained first. It ranks nothing.
    """

    workers: int | None = None
    trial_seconds: float | None = None
    trials: int | None = None
    must_resume: bool = False
    must_retry: bool = False
    platform: str | None = None
    sampler: str | None = None
    pruner: str | None = None
    must_survive: tuple[str, ...] = ()
    never_silently_wrong: bool = False
    faults_by: str = ADAPTER
    prefer: str | None = None

    def __post_init__(self) -> None:
        for name, value in self.asked.items():
            if not 0 < value < float("inf"):
                raise ExperimentError(f"--{name.replace('_', '-')} must be above 0, but got {value:g}")

    @property
    def asked(self) -> Mapping[str, float]:
        """The sizes that must lie in what was measured."""
        sizes = {WORKERS: self.workers, TRIAL_SECONDS: self.trial_seconds, TRIALS: self.trials}
        return {name: value for name, value in sizes.items() if value is not None}

    @property
    def needs_faults(self) -> bool:
        """Whether the results of `tuneoff faults` decide."""
        return bool(self.must_survive) or self.never_silently_wrong

    def names(self) -> list[str]:
        """Return the constraints in words."""
        found = [size_text(name, (value, value)) for name, value in self.asked.items()]
        found += [f"{kind} {name}" for kind, name in self._strategies() if name is not None]
        found += ["an interrupted run goes on"] if self.must_resume else []
        found += ["a lost trial is tried again"] if self.must_retry else []
        by = "its adapter" if self.faults_by == ADAPTER else "its own defaults"
        found += [f"survives {', '.join(self.must_survive)} by {by}"] if self.must_survive else []
        found += [f"never silently wrong by {by}"] if self.never_silently_wrong else []
        return found

    def _strategies(self) -> list[tuple[str, str | None]]:
        return [("platform", self.platform), ("sampler", self.sampler), ("pruner", self.pruner)]
