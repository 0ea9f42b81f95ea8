"""FLAML, local search by `suggest`, in the coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tuneoff.ask_tell import AskTellAdapter, Capabilities, Native, NativeIndex, Offer, Translation, TrialResult

SUGGESTIONS = 100  # known ones in a row, after which `flaml.tune.run` ends


class FlamlAdapter(AskTellAdapter):
    """FLAML's searchers, called as its `tune.run` calls them; a trial's handle is the name that it gives a searcher."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        framework="FLAML",
        package="flaml",
        minimum_version="2.7",
        below_version="3",
        install="tuneoff[flaml]",
        samplers={
            "random": Offer(implementation="flaml.tune.searcher.blendsearch.RandomSearch"),
            "cfo": Offer(implementation="flaml.tune.searcher.blendsearch.CFO", repeats=False),
            "default": Offer(same_as="cfo", note="where Optuna <= 3.6 is installed it is BlendSearch, which is not offered"),
        },
        notes=("where Ray is installed, it imports Ray Tune",),
    )

    def open(self, space: Translation) -> None:
        from flaml import tune

        domains = {name: _domain(tune, kind) for name, kind in space.native.items()}
        self._searcher = self.implementation(metric="loss", mode="min", space=domains, seed=self.seed)
        self._asked: dict[str, Mapping[str, Any]] = {}

    def ask(self) -> tuple[str, Mapping[str, Any]]:
        name = f"trial_{len(self._asked)}"
        suggested = (self._searcher.suggest(name) for _ in range(SUGGESTIONS))
        values = next(filter(None, suggested), None)
        self._asked[name] = values or self._searcher._ls.complete_config({})[0]  # a draw, which moves its generator
        return name, self._asked[name]

    def tell(self, handle: str, result: TrialResult) -> None:
        report = None if result.loss is None else {"loss": result.loss, "config": self._asked[handle]}
        self._searcher.on_trial_complete(handle, report, error=report is None)

    def enqueue(self, values: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        self._searcher._points_to_evaluate.append(dict(values))
        return self.ask()


def _domain(tune: Any, kind: Native) -> Any:
    if not isinstance(kind, NativeIndex):
        return (tune.loguniform if kind.log else tune.uniform)(*kind.bounds)
    return tune.randint(0, kind.size) if kind.ordered else tune.choice(range(kind.size), order=False)
