"""Nevergrad, gradient-free optimizers by ask and tell, in the coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tuneoff.ask_tell import AskTellAdapter, Capabilities, Native, NativeIndex, Offer, Translation, TrialResult

OPTIMIZERS = {"random": "RandomSearch", "default": "NGOpt", "de": "TwoPointsDE", "pso": "PSO"}
INTEGERS = 10  # values: Nevergrad advises against integers with fewer, and many choices are slow


class NevergradAdapter(AskTellAdapter):
    """Nevergrad's optimizers; a trial's handle is the `uid` of its candidate."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        framework="Nevergrad",
        package="nevergrad",
        minimum_version="1.0",
        below_version="2",
        install="tuneoff[nevergrad]",
        samplers={name: Offer(implementation=f"nevergrad.optimizers.{optimizer}") for name, optimizer in OPTIMIZERS.items()},
        notes=("it receives only completed trials, no pruned or failed ones",),
    )

    def open(self, space: Translation) -> None:
        import nevergrad

        parametrization = nevergrad.p.Dict(**{name: _parameter(nevergrad.p, kind) for name, kind in space.native.items()})
        parametrization.random_state.seed(self.seed)
        budget, workers = self.experiment.budget.trials, self.experiment.workers.count
        self._optimizer = self.implementation(parametrization, budget=budget, num_workers=workers)
        self._candidates: dict[str, Any] = {}

    def ask(self) -> tuple[str, Mapping[str, Any]]:
        candidate = self._optimizer.ask()
        self._candidates[candidate.uid] = candidate
        return candidate.uid, candidate.value

    def tell(self, handle: str, result: TrialResult) -> None:
        if result.state == "completed":
            self._optimizer.tell(self._candidates[handle], result.loss)

    def best(self) -> str:
        return str(self._optimizer.current_bests["minimum"].parameter.uid)

    def enqueue(self, values: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        self._optimizer.suggest(dict(values))
        return self.ask()


def _parameter(p: Any, kind: Native) -> Any:
    low, high = kind.bounds
    if not isinstance(kind, NativeIndex):
        return p.Log(lower=low, upper=high) if kind.log else p.Scalar(lower=low, upper=high)
    if kind.ordered and kind.size >= INTEGERS:
        return p.Scalar(lower=low - 0.5, upper=high + 0.5).set_integer_casting()
    return (p.TransitionChoice if kind.ordered else p.Choice)(range(kind.size))
