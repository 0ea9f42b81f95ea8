"""Run one trial: the same function in every framework."""

from __future__ import annotations

import enum
import functools
import os
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tuneoff.base import clock, phases
from tuneoff.base.identity import configuration_digest, own_copy
from tuneoff.base.process_limits import VISIBLE
from tuneoff.base.processes import has_more_memory
from tuneoff.base.tracebacks import described, log_bytes, log_traceback
from tuneoff.errors import InfrastructureError
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.trial.checkpoint import EpochMetrics, checkpoint_path, read_checkpoint, state_of, write_checkpoint
from tuneoff.run.trial.children import end_children, own_children
from tuneoff.run.trial.faults import KernelKills, announce_kill, out_of_memory_cause
from tuneoff.run.trial.trial_process import CpuClock, TrialProcess, peak_rss_bytes, trial_process
from tuneoff.workload import NO_EPOCH, TrainingEnded, Workload

OUT_OF_TIME = "wall-clock budget used up"  # the cause of a trial's end
_NOT_FINITE = ("nan", "inf", "-inf")  # numbers all the same
State = Literal["completed", "pruned", "failed", "cancelled", "refused"]
Epoch = tuple[int, Mapping[str, float]]  # from 1, and its metrics


class Decision(enum.Enum):
    """What a framework answers to a report."""

    CONTINUE = "continue"
    STOP = "stop"


Report = Callable[[int, Mapping[str, float]], Decision]  # (epoch from 1, metrics) -> decision
Steps = Generator[Epoch, Decision, "TrialOutcome"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutcome:
    """How an attempt ended. `value`: the best finite validation value over its epochs, `refused`: no budget ticket was left.

    One that is completed with fewer `epochs` than planned ended by itself.
    """

    state: State
    epochs: int = 0
    value: float | None = None
    best_epoch: int | None = None
    cause: str | None = None


def run_trial(
    context: TrialContext,
    trial_id: str,
    configuration: Mapping[str, Any],
    report: Report,
    *,
    attempt: int = 1,
    framework_id: str | None = None,
    role: str = "worker",
) -> TrialOutcome:
    """Run a trial with a `report` that returns a decision or never returns. Whatever it raises is raised again.

    See `trial_steps`.
    """
    steps = trial_steps(context, trial_id, configuration, attempt=attempt, framework_id=framework_id, role=role)
    try:
        epoch, metrics = next(steps)
        while True:
            try:
                decision = report(epoch, metrics)
            except BaseException as error:
                epoch, metrics = steps.throw(error)
            else:
                epoch, metrics = steps.send(decision)
    except StopIteration as end:
        outcome: TrialOutcome = end.value
        return outcome


def trial_steps(
    context: TrialContext,
    trial_id: str,
    configuration: Mapping[str, Any],
    *,
    attempt: int = 1,
    framework_id: str | None = None,
    role: str = "worker",
) -> Steps:
    """Train one configuration under the run's budget, and log every event: yield each epoch, take the framework's decision.

    It takes a slot and a budget ticket, limits threads, loads, and for each epoch trains, validates, keeps the checkpoint
    where the value improved, and yields, where the framework is told of it (`context.reports`): of every epoch, or once the
    training has ended of the metrics of its best one. What is thrown in there is the framework's, and is raised again after the
    end was logged; to close the steps stops the trial. Whatever the workload raises is a failed outcome. The workload finds the
    process as `TrainingState` says, and its configuration is its own. An attempt after the first goes on from the trial's
    checkpoint, if its workload can: epochs up to there are reported again, and not trained.
    """
    process = trial_process(context, role)
    slot, waited_ns = process.slots.take(preferred=process.preferred_slot)
    try:
        process.enter(slot)
        configuration = own_copy(configuration)
        if attempt == 1:
            is_over_time = process.budget.is_over_time()  # before this trial's own ticket, which may be the first
            has_ticket = process.budget.tickets.take() is not None
            if is_over_time or not has_ticket:
                reason = "wall_clock" if is_over_time else "trials"
                process.events.write("refused", trial=trial_id, reason=reason, configuration=configuration)
                return TrialOutcome(state="refused", cause=f"budget of {reason} used up")
        note = functools.partial(announce_kill, context.run_dir, process.events, trial_id, attempt, charged="workload")
        with process.training.entered(), process.own_end.noted(note):
            return (yield from _Attempt(process, trial_id, attempt, configuration).run(slot, waited_ns, framework_id))
    finally:
        process.slots.free(slot)


class _Attempt:
    """One attempt at one trial."""

    def __init__(self, process: TrialProcess, trial_id: str, attempt: int, configuration: Mapping[str, Any]) -> None:
        self.process = process
        self.context = process.context
        self.events = process.events
        self.identity = {"trial": trial_id} if attempt == 1 else {"trial": trial_id, "attempt": attempt}
        self.trial_id = trial_id
        self.configuration = configuration
        self.digest = configuration_digest(configuration)
        self.seeds = process.context.seeds(self.digest)
        self.cpu = CpuClock()
        self.printed = log_bytes(self.context.run_dir)
        self.epochs = 0
        self.value: float | None = None
        self.best_epoch: int | None = None
        self.best_metrics: Mapping[str, float] = {}
        self.attempt = attempt
        self.history: list[EpochMetrics] = []  # of the epochs so far, if training can go on from a checkpoint

    def run(self, slot: int, waited_ns: int, framework_id: str | None) -> Steps:
        imported_ns, self.process.imported_ns = self.process.imported_ns, None
        optional: dict[str, Any] = {"waited_ns": waited_ns or None, "framework_id": framework_id, "imported_ns": imported_ns}
        if self.context.devices:
            optional["visible"] = os.environ.get(VISIBLE, "")
        self.events.write(
            "trial_started",
            **self.identity,
            slot=slot,
            configuration=self.configuration,
            digest=self.digest,
            seed=self.seeds.trial,
            threads=self.context.threads,
            process_cpu_ns=self.cpu.started_ns,
            cpus_allowed=len(os.sched_getaffinity(0)),
            **{name: value for name, value in optional.items() if value is not None},
        )
        kernel_kills = KernelKills(self.context.limits[slot].memory_cgroup if self.context.limits else None)
        state: State = "failed"
        cause: str | None = None
        charged: str | None = None
        workload: Workload | None = None
        started_before = own_children()
        phases.begin_training()
        try:
            workload = self.context.make_workload()
            self._load(workload)
            if (problem := self._restore(workload)) is not None:
                self.events.flag("checkpoint_lost", f"trial {self.trial_id} begins at its first epoch again: {problem}")
                self._close(workload)
                workload = None  # closed once, also where the next line fails
                workload = self.context.make_workload()
                self._load(workload)
            self.events.write("trial_loaded", **self.identity, device=workload.device())
            limit = self.context.memory_bytes
            if limit is not None and has_more_memory(os.getpid(), limit):  # a short trial may end before the watchdog's look
                cause = out_of_memory_cause(limit, "after load")
            else:
                state, cause = yield from self._epochs(workload)
            if state == "failed":
                charged = "workload"
        except _ReportError as error:
            if isinstance(error.error, Exception):  # else the framework's own way to stop a trial
                cause = f"report failed: {described(error.error)}"
                charged = "infrastructure" if isinstance(error.error, InfrastructureError) else "framework"
                self._log(error.error)
            else:
                state = "completed" if self.epochs >= self.context.epochs else "pruned"
            raise error.error from error.error.__cause__
        except BaseException as error:  # a workload may fail in any way; that is a failed trial with its reason
            cause = "out of memory" if isinstance(error, MemoryError) else described(error)
            # what is not installed where the trial runs is the user's to install, and the run goes well then
            is_missing = any(isinstance(origin, ModuleNotFoundError) for origin in (error, error.__cause__))
            charged = "user" if is_missing else "workload"
            self._log(error)
        finally:
            self._close(workload)
            workload = None  # what it refers to can end by itself
            self.process.is_spent |= end_children(started_before, keeps=not self.process.is_replaceable)
            if charged == "workload" and kernel_kills.are_new():  # of its children: what it failed of is what followed
                cause = out_of_memory_cause(self.context.memory_bytes, "control group")
                kernel_kills.claim(self.context.run_dir, slot)
            self._end(state, cause, charged)
        if state == "completed":
            self.process.budget.note_goal(self.events, self.trial_id, self.value)
        return TrialOutcome(state=state, epochs=self.epochs, value=self.value, best_epoch=self.best_epoch, cause=cause)

    def _close(self, workload: Workload | None) -> None:
        try:
            if workload is not None:
                workload.close()
        except BaseException as error:  # the trial's outcome is known: what is left behind is found at un-deploy
            self._log(error)

    def _load(self, workload: Workload) -> None:
        workload.limit_threads(self.context.threads)
        workload.load(own_copy(self.configuration), self.seeds)

    def _restore(self, workload: Workload) -> str | None:
        """Load the checkpoint of an earlier attempt, with the metrics up to it, if there is one; return what is wrong with it."""
        if self.attempt == 1 or not workload.restores_training:
            return None
        path = checkpoint_path(self.context.run_dir, self.trial_id)
        if not path.exists():
            return None
        try:
            checkpoint = read_checkpoint(path)
            if configuration_digest(checkpoint.configuration) != self.digest:
                return "the checkpoint is of another configuration"
            if not checkpoint.history:
                return None
            workload.load_state_dict(checkpoint.tensors, checkpoint.texts)
        except BaseException as error:  # e.g. it was written on another kind of device
            return described(error)
        self.history = list(checkpoint.history)
        return None

    def _epochs(self, workload: Workload) -> Generator[Epoch, Decision, tuple[State, str | None]]:
        context, budget = self.context, self.process.budget
        for epoch, restored in enumerate(tuple(self.history), start=1):
            values = self._restored(epoch, restored)
            if (yield from self._report(workload, epoch, values)) is Decision.STOP and epoch < context.epochs:
                return "pruned", None
        for epoch in range(len(self.history) + 1, context.epochs + 1):
            if budget.is_over_time():
                return "cancelled", OUT_OF_TIME
            if budget.epoch_tickets.take() is None:
                return "cancelled", "budget of epochs used up"
            metrics = self._epoch(workload, epoch)
            if metrics is None:
                budget.epoch_tickets.give_back()
                if self.epochs == 0:
                    return "failed", NO_EPOCH
                if context.reports == "at_end":
                    yield from self._report(workload, self.epochs, {}, began=clock.monotonic_ns())
                return "completed", None
            if context.metric not in metrics.metrics:
                names = ", ".join(metrics.metrics) or "nothing"
                rule = f"each epoch must give {context.metric}, the objective's metric, but epoch {epoch} gave {names}"
                return "failed", f"{rule}; correct one of them"
            if (text := metrics.non_finite.get(context.metric)) is not None:
                rule = f"{context.metric} must be a finite number, but epoch {epoch} gave {text}"
                return "failed", rule if text in _NOT_FINITE else f"{rule}; give float(...) of it"
            if (yield from self._report(workload, epoch, metrics.values)) is Decision.STOP and epoch < context.epochs:
                return "pruned", None
        return "completed", None

    def _restored(self, epoch: int, epoch_metrics: EpochMetrics) -> dict[str, float]:
        """Log an epoch that an earlier attempt trained."""
        values = epoch_metrics.values
        if self._improves(values[self.context.metric]):
            self.value, self.best_epoch, self.best_metrics = values[self.context.metric], epoch, values
        self.epochs = epoch
        self._write_epoch(
            epoch, epoch_metrics, clock.monotonic_ns(), train_ns=0, validate_ns=0, cpu_ns=self.cpu.used_ns(), restored=True
        )
        return values

    def _epoch(self, workload: Workload, epoch: int) -> EpochMetrics | None:
        """Train, validate and log an epoch; None: the training ended by itself before it."""
        started = clock.monotonic_ns()
        phases.begin_epoch(started)
        try:
            metrics = dict(workload.train_epoch(epoch))
        except TrainingEnded:
            return None
        trained, items = clock.monotonic_ns(), phases.counted_items()
        metrics.update(workload.validate())
        validated = clock.monotonic_ns()
        phase_ns = phases.phase_times(validated)
        epoch_metrics = EpochMetrics.of(metrics)
        value = epoch_metrics.metrics.get(self.context.metric)
        saved = False
        if self.context.retries and workload.restores_training:
            self.history.append(epoch_metrics)
        if value is not None and self._improves(value):
            self.value, self.best_epoch, self.best_metrics = value, epoch, epoch_metrics.values
            if workload.has_state:
                tensors, texts = state_of(workload)
                path = checkpoint_path(self.context.run_dir, self.trial_id)
                write_checkpoint(path, tensors, texts, epoch=epoch, configuration=self.configuration, history=self.history)
                saved = True
        self.epochs = epoch
        fields: dict[str, Any] = {"train_ns": trained - started, "validate_ns": validated - trained}
        if items is not None:
            fields["items"] = items
        if phase_ns:
            fields["phases"] = phase_ns
        now = clock.monotonic_ns()
        fields["cpu_ns"] = self.cpu.used_ns()
        if saved:
            fields.update(checkpoint_ns=now - validated, saved=True)
        self._write_epoch(epoch, epoch_metrics, now, **fields)
        return epoch_metrics

    def _write_epoch(self, epoch: int, epoch_metrics: EpochMetrics, now: int, **fields: Any) -> None:
        if epoch_metrics.non_finite:
            fields["non_finite"] = epoch_metrics.non_finite
        if not self._is_reported(epoch):
            fields["is_reported"] = False
        self.events.write("epoch", t=now, **self.identity, epoch=epoch, metrics=epoch_metrics.metrics, **fields)

    def _improves(self, value: float) -> bool:
        return self.value is None or (value > self.value if self.context.mode == "max" else value < self.value)

    def _is_reported(self, epoch: int) -> bool:
        reports = self.context.reports
        return reports == "every_epoch" or (reports == "at_end" and epoch >= self.context.epochs)

    def _report(
        self, workload: Workload, epoch: int, metrics: Mapping[str, float], began: int | None = None
    ) -> Generator[Epoch, Decision, Decision]:
        """Tell the framework of an epoch, or at the end of the best one; `began`: when, if the training ended by itself."""
        if began is None and not self._is_reported(epoch):
            return Decision.CONTINUE
        extra: dict[str, Any] = {} if began is None else {"began": began}
        reports = workload.to_report(epoch, self.best_metrics if self.context.reports == "at_end" else metrics)
        decision = Decision.CONTINUE
        try:
            with self.process.own_end.paused():
                for report in reports:
                    if (yield report) is Decision.STOP:
                        decision = Decision.STOP
        except BaseException as error:  # logged, then raised again: the steps of a stopped trial are closed by GeneratorExit
            stop = not isinstance(error, Exception)
            self.events.write("reported", **self.identity, epoch=epoch, stop=stop, cpu_ns=self.cpu.used_ns(), **extra)
            raise _ReportError(error) from error
        if decision is Decision.STOP:
            extra["stop"] = True
        self.events.write("reported", **self.identity, epoch=epoch, cpu_ns=self.cpu.used_ns(), **extra)
        return decision

    def _log(self, error: BaseException) -> None:
        title = f"trial {self.trial_id} failed"
        log_traceback(self.context.run_dir, title, error, to_stderr=self.context.events_to_stdout)

    def _end(self, state: State, cause: str | None, charged: str | None) -> None:
        extra: dict[str, Any] = {"cause": cause, "charged": charged} if cause is not None else {}
        if state == "completed" and self.epochs < self.context.epochs:
            extra["ended_early"] = True
        if (printed := log_bytes(self.context.run_dir)) > self.printed:
            extra["printed"] = (self.printed, printed)
        self.events.write(
            "trial_ended",
            **self.identity,
            state=state,
            epochs=self.epochs,
            cpu_ns=self.cpu.used_ns(),
            peak_rss_bytes=peak_rss_bytes(),
            **extra,
        )


class _ReportError(BaseException):
    """Carries what `report` raised past the handlers for faults of the workload."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error
