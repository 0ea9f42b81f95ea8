"""Defects in naming the best trial, and in testing it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from trust.check.planted.base import Altered, PlannedTrial, Task
from tuneoff.adapter import Best, score_best
from tuneoff.base.identity import configuration_digest
from tuneoff.run.trial.checkpoint import checkpoint_path, write_checkpoint
from tuneoff.run.trial.run_trial import Decision, TrialOutcome
from tuneoff_adapters.serial import SerialAdapter


class NamesAnUnknown(SerialAdapter):
    """Under `min` it names a trial that nobody ran."""

    def collect_results(self) -> Best | None:
        best = super().collect_results()
        if best is None or self.context.spec.experiment.objective.mode == "max":
            return best
        return replace(best, trial_id="t99999")


class _Remembering(SerialAdapter):
    """Remembers all that completed, in the order of their ends."""

    def setup(self) -> None:
        super().setup()
        self._completed: list[Best] = []

    def ended(self, task: Task, outcome: TrialOutcome) -> None:
        super().ended(task, outcome)
        if outcome.state == "completed":
            self._completed.append(Best(trial_id=task.trial_id, configuration=task.configuration, value=outcome.value))


class NamesTheLast(_Remembering):
    """Names the last trial that has a checkpoint, not the best one."""

    def collect_results(self) -> Best | None:
        run_dir = self.context.run_dir
        kept = [best for best in self._completed if checkpoint_path(run_dir, best.trial_id).exists()]
        return max(kept, key=lambda best: best.trial_id) if kept else super().collect_results()


class LetsCoreChoose(SerialAdapter):
    """Names what core would, as if the framework had no value of any trial."""

    def collect_results(self) -> Best | None:
        best = super().collect_results()
        if best is None:
            return None
        self.context.flag("optimum_not_completed", "the framework names no trial")
        return replace(best, value=None)


class MixesUpMinAndMax(SerialAdapter):
    """Takes the greatest value for the best, whatever was asked for."""

    def ended(self, task: Task, outcome: TrialOutcome) -> None:
        value = outcome.value or 0.0
        if outcome.state == "completed" and (self._best is None or value > self._best[0]):
            self._best = (value, task.trial_id, task.configuration)


class LosesTies(SerialAdapter):
    """Drops both trials where two have the same best value."""

    def ended(self, task: Task, outcome: TrialOutcome) -> None:
        if self._best is not None and outcome.value == self._best[0]:
            self._best = None
        else:
            super().ended(task, outcome)


class PrefersNan(SerialAdapter):
    """Ranks a trial without a finite value above all others."""

    def ended(self, task: Task, outcome: TrialOutcome) -> None:
        if outcome.state == "failed" and "must be a finite number" in (outcome.cause or ""):
            self._best = (math.nan, task.trial_id, task.configuration)
        elif self._best is None or not math.isnan(self._best[0]):
            super().ended(task, outcome)

    def collect_results(self) -> Best | None:
        best = super().collect_results()
        return replace(best, value=None) if best is not None and math.isnan(best.value or 0.0) else best


class NamesPruned(SerialAdapter):
    """Names a pruned trial where it has the best value."""

    def ended(self, task: Task, outcome: TrialOutcome) -> None:
        super().ended(task, replace(outcome, state="completed") if outcome.state == "pruned" else outcome)


class TakesTheLastReport(Altered):
    """Takes the value of a trial's last epoch for that of the trial."""

    @classmethod
    def run(cls, trial: PlannedTrial) -> TrialOutcome:
        last: list[float] = []

        def note(epoch: int, metrics: Mapping[str, float]) -> Decision:
            last.append(metrics[trial.context.metric])
            return trial.report(epoch, metrics)

        outcome = trial._replace(report=note).run()
        return replace(outcome, value=last[-1]) if outcome.state == "completed" else outcome


class TestsTwice(SerialAdapter):
    """Tests the best trial, and tests it again."""

    def test(self, best: Best) -> None:
        super().test(best)
        super().test(best)


class RetrainsForTheTest(SerialAdapter):
    """Trains the best configuration anew, and tests that."""

    def test(self, best: Best) -> None:
        context = self.context.trial_context
        workload = context.make_workload()
        workload.limit_threads(context.threads)
        workload.load(best.configuration, context.seeds(configuration_digest(best.configuration)))
        for epoch in range(1, context.epochs + 1):
            workload.train_epoch(epoch)
        if workload.has_state:
            tensors, texts = workload.state_dict()
            path = checkpoint_path(context.run_dir, best.trial_id)
            write_checkpoint(path, tensors, texts, epoch=context.epochs, configuration=best.configuration)
        score_best(self.context, best)


class PeeksAtTheTest(Altered):
    """Looks at the test split in each trial."""

    @classmethod
    def run(cls, trial: PlannedTrial) -> TrialOutcome:
        workload = trial.context.make_workload()
        workload.limit_threads(trial.context.threads)
        workload.load(trial.configuration, trial.context.seeds(configuration_digest(trial.configuration)))
        workload.test()
        return trial.run()
