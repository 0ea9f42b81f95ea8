"""Search spaces in the frameworks' own types, as their names suggest them: integers, steps and logarithmic integers.

tuneoff's adapters avoid these types; docs/findings.md shows with `tuneoff check --space` what they draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tuneoff.base.space import Dimension, IntegerLog, Stepped
from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.translation import FrameworkSpace
from tuneoff.trust.space_test.verify import PREFIX
from tuneoff_adapters.optuna.adapter import OptunaAdapter
from tuneoff_adapters.ray_tune.adapter import RayTuneAdapter
from tuneoff_adapters.ray_tune.environment import prepare_environment
from tuneoff_adapters.syne_tune.adapter import SyneTuneAdapter


class _OwnTypes:
    """What the three have in common: the file's own four dimensions, and values that need no translation."""

    context: Any

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        probes = [name for name, _ in spec.experiment.search_space if name.startswith(PREFIX)]
        return f"it has types for the file's own dimensions alone, not for {probes[0]!r}" if probes else None

    def framework_space(self) -> FrameworkSpace:
        raise NotImplementedError("its values are the configuration")

    @property
    def _dimensions(self) -> Mapping[str, Dimension]:
        space: Mapping[str, Dimension] = self.context.spec.experiment.search_space.searched
        return space

    @property
    def _seed(self) -> int:
        seed: int = self.context.spec.sampler_seed
        return seed

    def _domain(self, types: Any, dimension: Dimension) -> Any:
        """Return `randint`, `qrandint`, `quniform` or `lograndint` with the ends that were declared."""
        if isinstance(dimension, IntegerLog):
            return types.lograndint(dimension.low, dimension.high)
        assert isinstance(dimension, Stepped)
        if not dimension.integer:
            return types.quniform(dimension.value_at(0), dimension.value_at(dimension.size - 1), dimension.step)
        low, high = dimension.value_at(0), dimension.value_at(dimension.size - 1)
        return types.randint(low, high) if dimension.step == 1 else types.qrandint(low, high, dimension.step)


class OptunaTypes(_OwnTypes, OptunaAdapter):
    """`suggest_int` and `suggest_float` with `step` and `log`."""

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=self._seed))
        for _ in range(count):
            trial = study.ask()
            yield {name: self._suggest(trial, name, dimension) for name, dimension in self._dimensions.items()}

    @staticmethod
    def _suggest(trial: Any, name: str, dimension: Dimension) -> Any:
        if isinstance(dimension, IntegerLog):
            return trial.suggest_int(name, dimension.low, dimension.high, log=True)
        assert isinstance(dimension, Stepped)
        suggest = trial.suggest_int if dimension.integer else trial.suggest_float
        return suggest(name, dimension.value_at(0), dimension.value_at(dimension.size - 1), step=dimension.step)


class RayTypes(_OwnTypes, RayTuneAdapter):
    """`tune.randint`, `tune.qrandint`, `tune.quniform`, `tune.lograndint`, drawn by Ray's own random search."""

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        prepare_environment()
        from ray import tune
        from ray.tune.experiment import Experiment
        from ray.tune.search.basic_variant import BasicVariantGenerator

        space = {name: self._domain(tune, dimension) for name, dimension in self._dimensions.items()}
        search = BasicVariantGenerator(random_state=self._seed)
        folder = str(self.context.work_dir)
        search.add_configurations([Experiment("draws", _nothing, config=space, num_samples=count, storage_path=folder)])
        for _ in range(count):
            trial = search.next_trial()
            yield {name: _plain(value) for name, value in trial.config.items()}
            search.on_trial_complete(trial.trial_id)


class SyneTypes(_OwnTypes, SyneTuneAdapter):
    """`randint`, `qrandint`, `quniform`, `lograndint`, drawn by Syne Tune's `RandomSearch`; numpy's generator is seeded."""

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        self.deploy()
        import numpy
        from syne_tune import config_space
        from syne_tune.optimizer.baselines import RandomSearch

        numpy.random.seed(self._seed)
        space = {name: self._domain(config_space, dimension) for name, dimension in self._dimensions.items()}
        scheduler = RandomSearch(space, metrics=["value"], random_seed=self._seed)
        for _ in range(count):
            yield {name: _plain(value) for name, value in scheduler.suggest().config.items()}


class SyneSeedAlone(SyneTuneAdapter):
    """Syne Tune's `RandomSearch` with its argument `random_seed` and nothing else that could seed it."""

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        self.deploy()
        from syne_tune.optimizer.baselines import RandomSearch

        from tuneoff.experiment.translation import translation_of
        from tuneoff_adapters.syne_tune.schedulers import domains

        translation = translation_of(self.context.spec)
        scheduler = RandomSearch(domains(translation.native), metrics=["value"], random_seed=self.context.spec.sampler_seed)
        for _ in range(count):
            yield translation.decode(scheduler.suggest().config)


def _nothing(config: dict[str, Any]) -> None:
    """Stand in for a training: no trial is run."""


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
