"""SMAC3, random forests and Gaussian processes by ask and tell, in the coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tuneoff.ask_tell import AskTellAdapter, Capabilities, Native, NativeIndex, Offer, Translation, TrialResult


class SmacAdapter(AskTellAdapter):
    """SMAC's facades; a trial's handle is the number of its configuration in the run history, and its seed."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        framework="SMAC3",
        package="smac",
        minimum_version="2.4",
        below_version="3",
        install="tuneoff[smac]",
        samplers={
            "random": Offer(implementation="smac.RandomFacade", least_width=1e-9, note="drawn by ConfigSpace, the first one too"),
            "gp": Offer(implementation="smac.BlackBoxFacade", repeats=False, least_width=1e-9),
            "default": Offer(implementation="smac.HyperparameterOptimizationFacade", repeats=False, least_width=1e-9),
        },
        notes=("told as crashed: pruned trials at their value, failed ones at the highest cost so far (it fails at infinity)",),
    )

    def open(self, space: Translation) -> None:
        import ConfigSpace
        import smac

        self._runs, self._configuration = smac.runhistory.dataclasses, ConfigSpace.Configuration
        parameters = {name: _parameter(ConfigSpace, name, kind) for name, kind in space.native.items()}
        self._space = ConfigSpace.ConfigurationSpace(space=parameters)
        trials, folder = self.experiment.budget.trials, self.context.work_dir
        scenario = smac.Scenario(self._space, "smac", folder, deterministic=True, n_trials=trials, seed=self.seed)
        self._smac = self.implementation(scenario, logging_level=False)

    def ask(self) -> tuple[tuple[int, int], Mapping[str, Any]]:
        if self.experiment.sampler.name == "random":
            return self.enqueue(self._space.sample_configuration(), self._smac.runhistory.submitted)  # it may repeat one
        return ((trial := self._smac.ask()).config.config_id, trial.seed), dict(trial.config)

    def tell(self, handle: tuple[int, int], result: TrialResult) -> None:
        history, status = self._smac.runhistory, self._runs.StatusType
        reported = [value.cost for value in history.values() if value.status is not status.RUNNING]
        if costs := reported if result.loss is None else [result.loss]:  # else it stays a running one, and is not proposed again
            end = self._runs.TrialValue(max(costs), status=status["SUCCESS" if result.state == "completed" else "CRASHED"])
            self._smac.tell(self._runs.TrialInfo(history.get_config(handle[0]), seed=handle[1]), end)

    def enqueue(self, values: Mapping[str, Any], seed: int = 0) -> tuple[tuple[int, int], Mapping[str, Any]]:
        trial = self._runs.TrialInfo(self._configuration(self._space, values), seed=seed)  # the model learns from seed 0 alone
        self._smac.runhistory.add_running_trial(trial)
        return (trial.config.config_id, trial.seed), dict(trial.config)


def _parameter(space: Any, name: str, kind: Native) -> Any:
    if not isinstance(kind, NativeIndex):
        return space.Float(name, kind.bounds, log=kind.log)
    return space.Integer(name, kind.bounds) if kind.ordered else space.Categorical(name, list(range(kind.size)))
