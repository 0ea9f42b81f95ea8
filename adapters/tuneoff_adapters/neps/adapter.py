"""The adapter: it makes the folder, has the workers run NePS on it, and tells NePS of those that die."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tuneoff.adapter import Best, Capabilities, Offer, Support, import_framework
from tuneoff.base.identity import trial_name
from tuneoff.base.layout import EVENTS
from tuneoff.errors import StepError, TrialFailedError
from tuneoff.experiment.strategies import search_refusal
from tuneoff.experiment.translation import FrameworkSpace, NumberedTranslation, native_space, translation_of
from tuneoff.run.pool_adapter import WithPool
from tuneoff.run.trial.faults import Retries
from tuneoff.run.trial.trial_process import TrialBudget
from tuneoff.workload import workload_at

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec
    from tuneoff.platform import Death
    from tuneoff.record.events.schema import TrialEnded, TrialSubmitted

MAX_FRUITLESS_DEATHS = 10  # of workers in a row that had no trial
_PROMOTES = "NePS stops no trial: it trains the best ones on, from their `previous_pipeline_directory`; use pruner none"
_FIRST_TRIALS = "its first trials, one per dimension, have low values in the first of these: NePS sorts what it draws"
_STOPS_NOTHING = "NePS is told of a trial when that has ended"


class NepsAdapter(WithPool):
    """NePS in `workers.count` long-lived processes on one folder."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        framework="NePS",
        package="neural-pipeline-search",
        module="neps",
        minimum_version="0.17",
        below_version="0.18",
        install="tuneoff[neps]",
        apart="0.17.0",
        samplers={
            "random": Offer(implementation="neps.algorithms.random_search"),
            "fixed": Offer(implementation="neps.algorithms.grid_search", note="over the index of the list"),
            "grid": Offer(implementation="neps.algorithms.grid_search", note="over the index of core's shuffled grid"),
            "gp": Offer(implementation="neps.algorithms.bayesian_optimization", note=_FIRST_TRIALS),
            "default": Offer(implementation="neps.algorithms.bayesian_optimization", same_as="gp", note="what `auto` takes"),
        },
        pruners={
            "none": Offer(implementation="none"),
            **dict.fromkeys(("asha", "hyperband"), Offer(support=Support.NOT_BY_TUNEOFF, note=_PROMOTES)),
            **dict.fromkeys(("median", "scripted"), Offer(support=Support.NOT_BY_FRAMEWORK, note=_STOPS_NOTHING)),
        },
        retry=Support.YES,
        reports="none",
        changed_defaults=(
            "worker processes are started by tuneoff (documented: the same script is started several times by hand)",
            "`ignore_errors` (default: the first failed trial ends all workers)",
            "locks by `flock` alone (default: workers begin with it and go on with `lockf`; neither keeps the other out)",
            "a dead worker's trial is told as failed, or tried again (default: it stays `evaluating`, and counts)",
        ),
    )

    @classmethod
    def platforms(cls) -> tuple[str, ...]:
        """Return this machine alone: on others NePS's folder was not tried."""
        return cls.capabilities.platforms

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        return search_refusal(spec) or super().refuse(spec)

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        import_framework(self.context.spec.adapter, self.capabilities)
        from tuneoff_adapters.neps.worker import sampled

        return sampled(self.context.spec, count)

    def framework_space(self) -> FrameworkSpace:
        return native_space(self.context.spec)

    def deploy(self) -> None:
        """Start the workers, which have NePS imported."""
        os.environ["NEPS_LINUX_FILELOCK_FUNCTION"] = "flock"
        import_framework(self.context.spec.adapter, self.capabilities)
        spec = self.context.spec
        self._folder = str(self.context.work_dir / "neps")
        self.start_pool(
            "tuneoff_adapters.neps.worker:work", (spec, self._folder), workload_at(spec.experiment.workload.target).preload
        )

    def setup(self) -> None:
        """Make NePS's folder: of two workers that did at once one would fail."""
        import neps
        from neps.state import NePSState

        from tuneoff_adapters.neps.worker import arguments, seed_all

        spec = self.context.spec
        seed_all(spec)
        neps.run(dict, **arguments(spec, self._folder, trials=0))
        if spec.experiment.sampler.name in ("gp", "default"):
            self.context.flag_unused_model(len(spec.experiment.search_space.searched))
        self._budget = TrialBudget(self.context.trial_context)
        self._state = NePSState.create_or_load(Path(self._folder), load_only=True)
        self._retries = Retries(self.context.trial_context, spec.experiment.failures.retries)
        self._fruitless_deaths = 0
        self._fresh = dict.fromkeys(range(self._pool.count), True)  # workers whose process has not run NePS

    def run_trials(self) -> None:
        self._pool.run(self._give, self._heard, self._bury)

    def collect_results(self) -> Best | None:
        """Return the best configuration of NePS's own summary."""
        import neps

        from tuneoff_adapters.neps.worker import loss_of

        spec = self.context.spec
        _, summary = neps.status(self._folder)
        number = summary.get("best_config_id")
        if number is None:
            return None
        return Best(
            trial_id=trial_name(int(number) - 1),
            configuration=NumberedTranslation(translation_of(spec)).decode(dict(summary)),
            value=loss_of(spec, float(summary["best_objective_to_minimize"])),
        )

    def _give(self, worker: int, again: bool | None) -> bool | None:
        """Have a process run NePS if it is one that has not."""
        is_fresh = again or self._fresh.pop(worker, None)
        if is_fresh:
            self._pool.send(worker, True)
        return is_fresh

    def _heard(self, _: bool, answer: tuple[int, bool, StepError | None]) -> None:
        worker, leaves, error = answer
        if error is not None:
            raise error
        if leaves and not self._budget.is_used_up():
            self._fresh[worker] = True

    def _bury(self, death: Death, is_busy: bool | None) -> bool | None:
        """Mend what a dead worker left, and have the process in its place run NePS."""
        if is_busy:
            self._mend(death)
        return is_busy if not self._budget.is_used_up() else None

    def _mend(self, death: Death) -> None:
        """Have a dead worker's trial fail, begin again, or end as it did before NePS was told."""
        import neps

        from tuneoff_adapters.neps.worker import ATTEMPT, loss_of

        evaluating = self._state.lock_and_get_current_evaluating_trials()
        trial = next((trial for trial in evaluating if trial.metadata.evaluating_worker_id.startswith(f"{death.pid}-")), None)
        last, end, value = self._last_trial(death.pid)
        is_submitted = trial is not None and trial.id == last.framework_id
        is_running = is_submitted and end is None
        attempt: dict[str, Any] = {"trial": last.trial, "attempt": last.attempt} if is_running else {"trial": None}
        self.context.events.write("worker_died", cause=death.cause, exit_code=death.exit_code, **attempt)
        may_retry = self._retries.may_retry(last.trial, last.attempt, death.exit_code, death.worker)
        self._fruitless_deaths = self._fruitless_deaths + 1 if trial is None else 0
        if self._fruitless_deaths > MAX_FRUITLESS_DEATHS:
            rule = f"a worker must get as far as a trial, but {self._fruitless_deaths} in a row did not"
            raise StepError(f"{rule}: {death.cause}; see the run's log")
        if trial is None:
            return
        if is_running and may_retry and not self._budget.is_used_up():
            Path(trial.metadata.location, ATTEMPT).write_text(str(last.attempt + 1))
        elif is_submitted:
            result: dict[str, Any] = {"exception": TrialFailedError(death.cause)}
            if end is not None and end.state == "completed" and value is not None:
                result = {"objective_to_minimize": loss_of(self.context.spec, value)}
            neps.save_pipeline_results(result, trial.id, Path(self._folder))
            return
        trial.reset()  # whoever samples next takes it
        self._state.put_updated_trial(trial)

    def _last_trial(self, pid: int) -> tuple[TrialSubmitted, TrialEnded | None, float | None]:
        """Return a process's last trial (an empty one: it had none), how that ended, if it did, and its best value so far."""
        from tuneoff.record.events.reader import of_worker
        from tuneoff.record.events.schema import Epoch, TrialEnded, TrialSubmitted
        from tuneoff.record.trials import best_epoch

        last, end, epochs = TrialSubmitted(t=0, seq=0, trial="", configuration={}), None, list[Epoch]()
        for event in of_worker(self.context.run_dir / EVENTS, pid, self.context.spec.experiment.budget.epochs_per_trial):
            if isinstance(event, TrialSubmitted):
                last, end, epochs = event, None, []
            elif isinstance(event, TrialEnded):
                end = event
            elif isinstance(event, Epoch):
                epochs.append(event)
        objective = self.context.spec.experiment.objective
        best = best_epoch(objective, epochs)
        return last, end, best.metrics[objective.metric] if best is not None else None
