"""FLAML, local search by `suggest`, in the coordinator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from tuneoff.ask_tell import AskTellAdapter, Capabilities, Native, NativeIndex, Offer, Option, Translation, TrialResult
from tuneoff.experiment.strategies import COST_MODEL
from tuneoff.workload import new_workload

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
            "cfo": Offer(
                implementation="flaml.tune.searcher.blendsearch.CFO",
                repeats=False,
                options={COST_MODEL: Option(type="flag")},
            ),
            "default": Offer(same_as="cfo", note="where Optuna <= 3.6 is installed it is BlendSearch, which is not offered"),
        },
        notes=("where Ray is installed, it imports Ray Tune",),
    )

    def open(self, space: Translation) -> None:
        from flaml import tune

        domains = {name: _domain(tune, kind) for name, kind in space.native.items()}
        costs = self._costs(space) if self.experiment.sampler.options.get(COST_MODEL) else {}
        listed = () if self.experiment.sampler.name == "fixed" else self.experiment.configurations
        points = [dict(space.encode(configuration)) for configuration in listed]  # at the best of which it starts
        arguments = {"metric": "loss", "mode": "min", "seed": self.seed, "points_to_evaluate": points, **costs}
        self._searcher = self.implementation(space=domains, **arguments)
        self._asked: dict[str, Mapping[str, Any]] = {}

    def _costs(self, space: Translation) -> dict[str, dict[str, Any]]:
        """Return the cheaper end of each dimension with an order, and the cost of each choice of others, amid the rest."""
        workload = self.experiment.workload
        model, epochs = new_workload(workload.target, workload.options), self.experiment.budget.epochs_per_trial
        middle = {name: _middle(kind) for name, kind in space.native.items()}

        def cost(name: str, value: float) -> float:
            return model.cost(space.decode({**middle, name: value}), epochs) or 0.0

        ends, choices = dict[str, float](), dict[str, list[float]]()
        for name, kind in space.native.items():
            if isinstance(kind, NativeIndex) and not kind.ordered:
                choices[name] = [cost(name, index) for index in range(kind.size)]
            elif len({cost(name, end) for end in kind.bounds}) == 2:
                ends[name] = min(kind.bounds, key=lambda end, name=name: cost(name, end))
        return {"low_cost_partial_config": ends, "cat_hp_cost": choices}

    def ask(self) -> tuple[str, Mapping[str, Any]]:
        name = f"trial_{len(self._asked)}"
        suggested = (self._searcher.suggest(name) for _ in range(SUGGESTIONS))
        values = next(filter(None, suggested), None)
        self._asked[name] = values or self._searcher._ls.complete_config({})[0]  # a draw, which moves its generator
        return name, self._asked[name]

    def tell(self, handle: str, result: TrialResult) -> None:
        config = self._asked[handle]
        flat = {f"config/{name}": value for name, value in config.items()}  # as `tune.run` reports it
        report = None if result.loss is None else {"loss": result.loss, "config": config, **flat}
        self._searcher.on_trial_complete(handle, report, error=report is None)

    def enqueue(self, values: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        if dict(values) not in self._searcher._points_to_evaluate[:1]:
            self._searcher._points_to_evaluate.append(dict(values))
        return self.ask()


def _middle(kind: Native) -> float:
    low, high = kind.bounds
    if isinstance(kind, NativeIndex):
        return high // 2
    return math.sqrt(low * high) if kind.log else (low + high) / 2


def _domain(tune: Any, kind: Native) -> Any:
    if not isinstance(kind, NativeIndex):
        return (tune.loguniform if kind.log else tune.uniform)(*kind.bounds)
    return tune.randint(0, kind.size) if kind.ordered else tune.choice(range(kind.size), order=False)
