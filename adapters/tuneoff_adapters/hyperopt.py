"""Hyperopt, tree-structured Parzen estimators and annealing by `suggest`, in the coordinator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from tuneoff.ask_tell import AskTellAdapter, Capabilities, Native, NativeIndex, Offer, Translation, TrialResult


class HyperoptAdapter(AskTellAdapter):
    """Hyperopt's algorithms, called as its `fmin` calls them; a trial's handle is its `tid`."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        framework="Hyperopt",
        package="hyperopt",
        minimum_version="0.3",
        below_version="0.4",
        install="tuneoff[hyperopt]",
        samplers={
            "random": Offer(implementation="hyperopt.rand.suggest"),
            "tpe": Offer(implementation="hyperopt.tpe.suggest", startup_trials=20),
            "default": Offer(same_as="tpe"),
            "anneal": Offer(implementation="hyperopt.anneal.suggest"),
        },
        notes=("it is told that pruned trials failed: it knows no other end",),
    )

    def open(self, space: Translation) -> None:
        import hyperopt
        import numpy
        from hyperopt.fmin import generate_trial

        self._done, self._given, self._suggest = hyperopt.JOB_STATE_DONE, generate_trial, self.implementation
        self._domain = hyperopt.base.Domain(None, {name: _node(hyperopt.hp, name, kind) for name, kind in space.native.items()})
        self._trials, self._random = hyperopt.Trials(), numpy.random.default_rng(self.seed)

    def ask(self, enqueued: Mapping[str, Any] | None = None) -> tuple[int, Mapping[str, Any]]:
        (tid,), seed = self._trials.new_trial_ids(1), self._random.integers(2**31 - 1)
        trials = [self._given(tid, enqueued)] if enqueued else self._suggest([tid], self._domain, self._trials, seed)
        self._trials.insert_trial_docs(trials)
        self._trials.refresh()
        return tid, {name: value for name, (value,) in trials[0]["misc"]["vals"].items()}

    def tell(self, handle: int, result: TrialResult) -> None:
        report = {"status": "ok", "loss": result.loss} if result.state == "completed" else {"status": "fail"}
        self._trials.trials[handle].update(state=self._done, result=report)

    def best(self) -> int:
        return int(self._trials.best_trial["tid"])

    def enqueue(self, values: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        return self.ask(values)


def _node(hp: Any, name: str, kind: Native) -> Any:
    if not isinstance(kind, NativeIndex):
        return hp.loguniform(name, *map(math.log, kind.bounds)) if kind.log else hp.uniform(name, *kind.bounds)
    return hp.quniform(name, -0.5, kind.size - 0.5, 1) if kind.ordered else hp.randint(name, kind.size)
