"""Rustuna, Optuna's interface written in Rust: one study in memory, asked in the coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tuneoff.ask_tell import AskTellAdapter, Capabilities, Native, NativeIndex, Offer, Translation, TrialResult

STATES = {"completed": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}


class RustunaAdapter(AskTellAdapter):
    """Rustuna by `Study.ask` and `Study.tell`; a trial's handle is its number in the study."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        framework="Rustuna",
        package="rustuna",
        minimum_version="0.2",
        below_version="0.3",
        install="tuneoff[rustuna]",
        samplers={
            "random": Offer(implementation="rustuna.samplers.RandomSampler"),
            "tpe": Offer(implementation="rustuna.samplers.TPESampler", startup_trials=10),
            "default": Offer(same_as="tpe"),
        },
    )

    def open(self, space: Translation) -> None:
        import rustuna

        self._library, self._space = rustuna, space.native
        sampler = self.implementation(seed=self.seed)
        self._study = rustuna.create_study(direction="minimize" if self.minimize else "maximize", sampler=sampler)

    def ask(self) -> tuple[int, Mapping[str, Any]]:
        trial = self._study.ask()
        return trial.number, {name: _suggested(trial, name, kind) for name, kind in self._space.items()}

    def tell(self, handle: int, result: TrialResult) -> None:
        self._study.tell(handle, result.value, state=getattr(self._library.trial.TrialState, STATES[result.state]))

    def best(self) -> int:
        return int(self._study.best_trial.number)

    def enqueue(self, values: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        self._study.enqueue_trial(dict(values))
        return self.ask()


def _suggested(trial: Any, name: str, kind: Native) -> Any:
    if not isinstance(kind, NativeIndex):
        return trial.suggest_float(name, *kind.bounds, log=kind.log)
    return trial.suggest_int(name, *kind.bounds) if kind.ordered else trial.suggest_categorical(name, list(range(kind.size)))
