"""The sweep: its configuration, and what Hydra tells of it while it runs. Importing this module imports Hydra and Optuna."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import hydra
import hydra_plugins.hydra_joblib_launcher._core  # noqa: F401  # else with the first batch
import optuna
from hydra_plugins.hydra_optuna_sweeper._impl import create_params_from_overrides
from joblib.externals.loky.process_executor import TerminatedWorkerError
from omegaconf import DictConfig

from tuneoff.adapter import Best
from tuneoff.base.identity import trial_name
from tuneoff.base.layout import EVENTS
from tuneoff.experiment.translation import FrameworkSpace, ListTranslation, Native, NativeIndex, Translation, translation_of
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import TrialEnded
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.trial_process import TrialBudget
from tuneoff_adapters.hydra.job import SPACE, Job

CONFIGURATION = "sweep"  # its file's name, and the program's


class TimeIsOver(Exception):
    """The budget is used up before the sweep's number of trials."""


class ListedSampler(optuna.samplers.RandomSampler):
    """For a given list: trial n has its configuration n."""

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        return trial.number


class Sweep:
    """The sweep of a run, whose configuration file it writes."""

    def __init__(self, context: RunContext) -> None:
        self._context, self._translation = context, translation_of(context.spec)
        self._budget = TrialBudget(context.trial_context)
        self._study: optuna.Study | None = None
        self._announced: list[str] = []
        path = context.work_dir / f"{CONFIGURATION}.yaml"
        path.write_text(json.dumps(_configuration(context, self._translation), indent=1))  # which is YAML too

    def run(self) -> None:
        """Run the application as its command line would, until the sweep ends."""
        os.environ["HYDRA_FULL_ERROR"] = "1"  # else it prints an exception and ends the process
        job = Job(str(self._context.trial_context.path), self._translation)
        application = hydra.main(version_base=None, config_path=str(self._context.work_dir), config_name=CONFIGURATION)(job)
        arguments, sys.argv = sys.argv, [CONFIGURATION, "--multirun"]
        current = _SWEEP.set(self)
        try:
            application()
        except TimeIsOver:
            pass
        except ValueError as error:
            if "No trials are completed" not in str(error):  # it asks Optuna for the best one at the end
                raise
        except TerminatedWorkerError as error:
            self._bury(str(error).partition(".")[0])
            raise
        finally:
            _SWEEP.reset(current)
            sys.argv = arguments

    def announce(self, trial: optuna.Trial) -> None:
        """Announce a trial that was chosen; raise TimeIsOver where it begins a batch, but nothing more may be proposed."""
        if trial.number % self._context.spec.experiment.workers.count == 0 and self._budget.is_used_up():
            raise TimeIsOver
        self._study = trial.study
        self._announced.append(trial_name(trial.number))
        self._context.submitted(self._announced[-1], _chosen(self._translation, trial.params), str(trial.number))

    def best(self) -> Best | None:
        """Return the study's best trial, as `optimization_results.yaml` has it, if Hydra came to write that."""
        complete = (optuna.trial.TrialState.COMPLETE,)
        if self._study is None or not self._study.get_trials(deepcopy=False, states=complete):
            return None
        best = self._study.best_trial
        return Best(trial_id=trial_name(best.number), configuration=_chosen(self._translation, best.params), value=best.value)

    def _bury(self, cause: str) -> None:
        """Write down the deaths of a batch's workers: joblib ends all of them when one has died, and does not say which."""
        events = EventLog(self._context.run_dir / EVENTS)
        ended = {event.trial for _, event in events if isinstance(event, TrialEnded)}
        for trial in self._announced:
            if trial not in ended:
                self._context.events.write("worker_died", trial=trial, cause=cause)


_SWEEP: ContextVar[Sweep] = ContextVar("sweep")


def announce(config: DictConfig, trial: optuna.Trial) -> None:
    """Tell this process's sweep of a trial; the sweeper calls it as its `custom_search_space`."""
    _SWEEP.get().announce(trial)


def draw(context: RunContext, count: int) -> Iterator[Mapping[str, object]]:
    """Yield configurations as the sweeper would choose them for as many trials."""
    translation = translation_of(context.spec)
    distributions = _distributions(translation)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=context.spec.sampler_seed))
    for _ in range(count):
        yield _chosen(translation, study.ask(distributions).params)


def framework_space(context: RunContext) -> FrameworkSpace:
    """Return the space as the sweeper has it."""
    translation = translation_of(context.spec)
    ends = {}
    for key, distribution in _distributions(translation).items():
        values = vars(distribution).get("choices") or (distribution.low, distribution.high)
        ends[key.removeprefix(f"{SPACE}.")] = values[0], values[-1]
    return FrameworkSpace(ends=ends, decode=translation.decode, encode=translation.encode)


def _configuration(context: RunContext, translation: Translation) -> dict[str, Any]:
    """Return the application's configuration, with that of its sweep."""
    spec, experiment = context.spec, context.spec.experiment
    workers, trials = experiment.workers.count, experiment.budget.trials
    sampler = {**experiment.sampler.options, "seed": spec.sampler_seed}
    if isinstance(translation, ListTranslation):
        sampler["_target_"], trials = f"{__name__}.{ListedSampler.__name__}", len(translation.configurations)
    return {
        "defaults": [
            "_self_",
            {"override hydra/sweeper": "optuna"},
            {"override hydra/sweeper/sampler": "tpe" if experiment.sampler.name in ("default", "tpe") else "random"},
            {"override hydra/launcher": "joblib"},
        ],
        SPACE: dict.fromkeys(translation.native),
        "hydra": {
            "sweep": {"dir": str(context.work_dir / "multirun")},
            "launcher": {"n_jobs": workers},
            "sweeper": {
                "sampler": sampler,
                "direction": "minimize" if experiment.objective.mode == "min" else "maximize",
                "n_trials": trials,
                "n_jobs": workers,
                "max_failure_rate": 1.0,
                "params": _params(translation),
                "custom_search_space": f"{__name__}.{announce.__name__}",
            },
        },
    }


def _chosen(translation: Translation, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return core's configuration for the values of a trial of Optuna."""
    return translation.decode({key.removeprefix(f"{SPACE}."): value for key, value in params.items()})


def _distributions(translation: Translation) -> dict[str, Any]:
    """Return what the sweeper makes of the space for Optuna."""
    distributions, _ = create_params_from_overrides([f"{key}={text}" for key, text in _params(translation).items()])
    return dict(distributions)


def _params(translation: Translation) -> dict[str, str]:
    """Return the space in Hydra's grammar of sweeps."""
    return {f"{SPACE}.{name}": _sweep_of(kind) for name, kind in translation.native.items()}


def _sweep_of(kind: Native) -> str:
    """Return a dimension in that grammar; of an interval of integers the sweeper draws both ends."""
    interval = "interval({}, {})".format(*kind.bounds)
    if not isinstance(kind, NativeIndex):
        return f"tag(log, {interval})" if kind.log else interval
    return f"int({interval})" if kind.ordered else f"choice({', '.join(map(str, range(kind.size)))})"
