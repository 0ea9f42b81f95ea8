"""Ax, Bayesian optimization with BoTorch by ask and tell, in the coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tuneoff.ask_tell import AskTellAdapter, Capabilities, Native, NativeIndex, Offer, Translation, TrialResult


class AxAdapter(AskTellAdapter):
    """Ax's client; a trial's handle is its index in the experiment."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        framework="Ax",
        package="ax-platform",
        module="ax",
        minimum_version="1.3",
        below_version="2",
        install="tuneoff[ax]",
        samplers={
            "random": Offer(implementation="ax.adapter.registry.Generators.UNIFORM", least_width=2e-5),
            "gp": Offer(implementation="ax.Client", startup_trials=5, repeats=False, least_width=2e-5),
            "default": Offer(same_as="gp"),
        },
    )

    def open(self, space: Translation) -> None:
        import ax

        self._client, steps = ax.Client(random_seed=self.seed), ax.generation_strategy
        self._client.configure_experiment([_parameter(ax, name, kind) for name, kind in space.native.items()])
        self._client.configure_optimization("-loss")
        self._client.configure_generation_strategy(allow_exceeding_initialization_budget=True)
        if self.implementation is not ax.Client:
            node = steps.generation_node.GenerationNode("random", [steps.generator_spec.GeneratorSpec(self.implementation)])
            self._client.set_generation_strategy(steps.generation_strategy.GenerationStrategy(nodes=[node]))

    def ask(self) -> tuple[int, Mapping[str, Any]]:
        ((index, values),) = self._client.get_next_trials(1).items()
        return index, values

    def tell(self, handle: int, result: TrialResult) -> None:
        if result.loss is not None:
            self._client.attach_data(handle, {"loss": result.loss})
        marks = {"completed": "complete_trial", "pruned": "mark_trial_early_stopped", "failed": "mark_trial_failed"}
        getattr(self._client, marks[result.state])(handle)

    def best(self) -> int:
        return int(self._client.get_best_parameterization(use_model_predictions=False)[2])

    def enqueue(self, values: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        return self._client.attach_trial(dict(values)), values


def _parameter(ax: Any, name: str, kind: Native) -> Any:
    if not isinstance(kind, NativeIndex):
        return ax.RangeParameterConfig(name, kind.bounds, "float", scaling="log" if kind.log else "linear")
    integer = ax.RangeParameterConfig(name, kind.bounds, "int")
    return integer if kind.ordered else ax.ChoiceParameterConfig(name, list(range(kind.size)), "int", is_ordered=False)
