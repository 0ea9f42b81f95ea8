"""Follow an experiment to its end: one thread decides, on news from the watches and logs and on the passing of time."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tuneoff.base import clock
from tuneoff.errors import InfrastructureError, StepError
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.katib.followed import FollowedTrial
from tuneoff_adapters.katib.options import KatibOptions
from tuneoff_adapters.katib.plan import KatibPlan
from tuneoff_adapters.katib.trial_ledger import Book, disagreement
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.diagnosis import View, findings, trial_of
from tuneoff_adapters.kubernetes.patience import Patience
from tuneoff_adapters.kubernetes.resources import EXPERIMENTS, PODS, TRIALS, Object, name_of
from tuneoff_adapters.kubernetes.sources import (
    Away,
    Broken,
    Item,
    LogEnd,
    LogLine,
    Podless,
    Polled,
    Recounted,
    Seen,
    Sources,
    Undeleted,
)
from tuneoff_adapters.kubernetes.status import has, terminal

LOOK_SECONDS = 0.25  # between two looks at what only time brings: limits, ends
_FIND_NS = clock.NANOSECONDS  # between two searches for a reason why nothing goes on
_BACK_NS = 5 * clock.NANOSECONDS  # after the server was away: what happened meanwhile has come through by then
_SETUP_SHARE = 0.75  # of the step's own limit: the reason is to be told before it
_DRAIN_NS = clock.NANOSECONDS
_CUT_NS = 10 * clock.NANOSECONDS  # for the pods' end, once the run's time is used up


class Follower:
    """Follows one experiment in a thread of its own: an interruption of the main thread never finds it half-way."""

    def __init__(self, context: RunContext, plan: KatibPlan, options: KatibOptions, connection: Connection) -> None:
        self._context, self._plan = context, plan
        self._timeouts = context.spec.experiment.timeouts
        seconds = context.spec.experiment.budget.wall_clock_seconds
        self._wall_clock_ns = None if seconds is None else int(seconds * clock.NANOSECONDS)
        self._sources = Sources(connection, plan.namespace, plan.experiment, plan.labels)
        self._patience = Patience(options.pending_seconds)
        self._pending_seconds = options.pending_seconds
        self.book = Book(context, plan)
        self.experiment: Object | None = None  # as last seen
        self._suggestion: Object | None = None
        self._warnings: Sequence[Object] = ()
        self._is_away = False  # the API server fails to answer: nothing known is taken for true
        self._back_ns: int | None = None  # since when it answers again
        self._searched_ns = 0
        self._is_cut = False  # the time of the run is used up
        self._ends_at_ns: int | None = None  # the latest moment, where the run does not come to its own end
        self._error: Exception | None = None
        self._has_trial, self._finished = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to follow."""
        for resource in (EXPERIMENTS, TRIALS, PODS):
            self._sources.watch(resource)
        self._sources.poll()
        self._thread = threading.Thread(target=self._run, name="follow", daemon=True)
        self._thread.start()

    def wait_first_trial(self) -> None:
        """Return when Katib has made the first trial.

        Raises:
            StepError: it makes none, and why; or whatever ended the thread.
        """
        self._patience.seconds = min(self._pending_seconds, _SETUP_SHARE * self._timeouts.setup_seconds)
        while not self._has_trial.wait(LOOK_SECONDS):
            self._raise_if_broken()
        self._patience.seconds = self._pending_seconds

    def wait_end(self) -> None:
        """Return when every trial has ended and its log was read.

        Raises:
            StepError: the experiment does not go on, and why; or whatever ended the thread.
        """
        while not self._finished.wait(LOOK_SECONDS):
            pass
        self._raise_if_broken()
        for trial in self.book:
            flag = disagreement(trial)
            if flag is not None:
                self._context.flag(*flag)
        waited = sum(trial.had_to_wait for trial in self.book)
        if waited:
            text = f"{waited} pods had to wait for room in the cluster: at times fewer ran than {self._plan.parallel} workers"
            self._context.flag("pods_waited", text)

    def stop(self, within_seconds: float) -> None:
        """Take in what is still to be had of trials that have ended, for at most `within_seconds`, and end; idempotent."""
        if self._thread is not None and not self._finished.is_set():
            self._end_at(clock.monotonic_ns() + int(within_seconds * clock.NANOSECONDS))
            self._finished.wait(within_seconds + LOOK_SECONDS)
        self._sources.close()

    def _raise_if_broken(self) -> None:
        if self._error is not None:
            raise self._error
        if self._finished.is_set() and not self._has_trial.is_set():
            raise StepError(f"experiment {self._plan.experiment} ended without a trial; see Katib's controller")

    # The thread that decides

    def _run(self) -> None:
        looked_ns = 0
        try:
            while True:
                item = self._sources.get(LOOK_SECONDS)
                if item is not None:
                    self._take(item)
                now = clock.monotonic_ns()
                if item is None or now - looked_ns > LOOK_SECONDS * clock.NANOSECONDS:
                    looked_ns = now
                    self._look(now)
                if self._is_over(now, is_quiet=item is None):
                    break
            self.book.close(clock.monotonic_ns(), is_cut=self._is_cut)
        except Exception as error:  # the main thread raises it: a thread that is gone would look like a silent cluster
            self._error = self._error or error
        finally:
            self._finished.set()

    def _take(self, item: Item) -> None:
        if isinstance(item, Broken):
            self._fail(item.error)
            return
        if isinstance(item, Seen):
            self._take_seen(item)
        elif isinstance(item, Away):
            self._is_away = True
        elif isinstance(item, Undeleted):
            text = f"{item.resource.full_name} {item.name} was to be deleted, which was refused: {item.problem}"
            self._context.flag("delete_refused", text)
        elif isinstance(item, Polled):
            if self._is_away:
                self._is_away, self._back_ns = False, clock.monotonic_ns()
            self._suggestion = item.suggestion or self._suggestion
            self._warnings = item.warnings if item.warnings is not None else self._warnings
        else:
            trial = self.book.trials[item.trial]
            if isinstance(item, LogLine):
                self.book.take_line(trial, item.line, item.t)
            elif isinstance(item, LogEnd):
                if item.problem is not None:
                    text = f"the log of pod {trial.pod} cannot be read, so events of its trial are missing: {item.problem}"
                    self._context.flag("pod_log_unreadable", text)
                self.book.take_log_end(trial, item.is_complete, item.was_rotated)
            elif isinstance(item, Podless):
                trial.has_no_pod = True
            elif isinstance(item, Recounted):
                self._take_recount(trial, item.lines)

    def _take_seen(self, item: Seen) -> None:
        if item.resource is EXPERIMENTS:
            if name_of(item.thing) == self._plan.experiment:
                self._take_experiment(item)
        elif item.resource is TRIALS:
            trial = self.book.take_trial(item.kind, item.thing, item.t)
            if trial is not None:
                self._has_trial.set()
                self._open_log(trial)
                self._seek_pod(trial)
            elif item.kind == "ADDED":
                for pod in self.book.pods_of(name_of(item.thing)):
                    self._sources.delete(PODS, name_of(pod))
        else:
            trial = self.book.take_pod(item.kind, item.thing, item.t)
            if trial is not None:
                self._open_log(trial)
            elif trial_of(item.thing) in self.book.over_budget and item.kind == "ADDED":
                self._sources.delete(PODS, name_of(item.thing))

    def _take_experiment(self, item: Seen) -> None:
        if self.experiment is None:
            self.book.take_experiment(item.thing, item.t)
        self.experiment = item.thing
        if item.kind == "DELETED" and not self._is_cut:
            self._fail(StepError(f"experiment {self._plan.experiment} was deleted by someone else; run it again"))
        elif has(item.thing, "Failed"):
            self._sources.wake()  # the suggestion knows why

    def _take_recount(self, trial: FollowedTrial, lines: int | None) -> None:
        """A trial seemed silent: it was, unless its log has lines that have not come through, or cannot be read."""
        trial.is_recounting = False
        now = clock.monotonic_ns()
        if lines is None:
            trial.asked_ns = now
        elif lines > trial.lines:
            trial.last_sign_ns = now
        elif self._is_silent(trial, now):
            self._kill(trial, f"timed out: silent for {self._timeouts.silence_seconds:g} s", now)

    def _open_log(self, trial: FollowedTrial) -> None:
        has_begun = trial.running_ns is not None or trial.training_ended_ns is not None
        if has_begun and not trial.is_log_open and trial.state is None:
            trial.is_log_open = True
            self._sources.follow_log(trial.name, trial.pod, lambda: trial.training_ended_ns is not None)

    def _seek_pod(self, trial: FollowedTrial) -> None:
        """Ask for the pod of a trial that is over, where none was seen: the watch that will tell may be seconds behind."""
        if trial.over_ns is not None and not trial.pod and not trial.is_pod_sought:
            trial.is_pod_sought = True
            self._sources.seek_pod(trial.name, lambda: bool(trial.pod))

    def _look(self, now: int) -> None:
        """Act on what only time brings."""
        self.book.settle(now)
        if self._ends_at_ns is not None or self._is_cut:
            return
        if self._is_out_of_time(now):
            self._is_cut = True
            self._ends_at_ns = now + _CUT_NS
            self.book.cut(now)
            self._sources.delete(EXPERIMENTS, self._plan.experiment)
            return
        if self._is_away:
            self._patience.forget()
            return
        if self._back_ns is None or now - self._back_ns > _BACK_NS:  # else one that has ended meanwhile would be killed
            for trial in self.book:
                self._limit(trial, now)
        if now - self._searched_ns > _FIND_NS:
            self._searched_ns = now
            self._search(now)

    def _search(self, now: int) -> None:
        finding = self._patience.overdue(findings(self._view()), now)
        if finding is not None:
            self._fail(StepError(finding.line) if finding.is_final else InfrastructureError(finding.line))

    def _limit(self, trial: FollowedTrial, now: int) -> None:
        if trial.state is not None or trial.killed_ns is not None or trial.training_ended_ns is not None:
            return
        seconds = self._timeouts.trial_seconds
        if trial.started_ns is not None and now - trial.started_ns > seconds * clock.NANOSECONDS:
            self._kill(trial, f"timed out: longer than {seconds:g} s", now)
        elif self._is_silent(trial, now) and not trial.is_recounting:
            trial.is_recounting = True
            self._sources.recount(trial.name, trial.pod)

    def _is_silent(self, trial: FollowedTrial, now: int) -> bool:
        limit = self._timeouts.silence_seconds * clock.NANOSECONDS
        last_ns = max(trial.last_sign_ns or 0, trial.asked_ns or 0)
        return trial.last_sign_ns is not None and not trial.was_log_read and now - last_ns > limit

    def _kill(self, trial: FollowedTrial, cause: str, now: int) -> None:
        self.book.kill(trial, cause, now)
        self._sources.delete(PODS, trial.pod)

    def _is_out_of_time(self, now: int) -> bool:
        if self._wall_clock_ns is None:
            return False
        first_ns = min((trial.started_ns for trial in self.book if trial.started_ns is not None), default=now)
        return now - first_ns > self._wall_clock_ns

    def _fail(self, error: Exception) -> None:
        """End with an error, as soon as what is already on its way has been taken in."""
        if self._error is None:
            self._error = error
            self._end_at(clock.monotonic_ns() + _DRAIN_NS)

    def _end_at(self, moment_ns: int) -> None:
        self._ends_at_ns = moment_ns if self._ends_at_ns is None else min(moment_ns, self._ends_at_ns)

    def _is_over(self, now: int, is_quiet: bool) -> bool:
        if self._ends_at_ns is not None:
            return now >= self._ends_at_ns or (is_quiet and all(self._is_at_rest(trial) for trial in self.book))
        if self.experiment is None or terminal(self.experiment) is None or has(self.experiment, "Failed"):
            return False
        made = (self.experiment.get("status") or {}).get("trials") or 0
        if len(self.book.trials) + len(self.book.over_budget) < made:
            return False
        return all(trial.state is not None and trial.over_ns is not None and trial.is_log_done for trial in self.book)

    def _is_at_rest(self, trial: FollowedTrial) -> bool:
        """Tell whether nothing more is worth waiting for, where a run ends before its time."""
        if trial.is_log_done or not trial.is_log_open:
            return True
        return not self._is_cut and trial.training_ended_ns is None

    def _view(self) -> View:
        trials = {trial.name: trial.thing for trial in self.book if not trial.is_deleted}
        return View(
            experiment=self.experiment, suggestion=self._suggestion, trials=trials, pods=self.book.pods, events=self._warnings
        )
