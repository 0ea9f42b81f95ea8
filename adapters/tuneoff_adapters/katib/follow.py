"""Follow an experiment to its end: one thread decides, on news from the watches and logs and on the passing of time."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable

from tuneoff.base import clock
from tuneoff.errors import InfrastructureError, StepError
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.katib.options import KatibOptions
from tuneoff_adapters.katib.plan import KatibPlan
from tuneoff_adapters.katib.trial_ledger import FollowedTrial, TrialLedger
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.diagnosis import ClusterView, PodObstacle, obstacles, trial_of
from tuneoff_adapters.kubernetes.endings import PodEnding
from tuneoff_adapters.kubernetes.pod_follower import LOOK_SECONDS, PodFollower
from tuneoff_adapters.kubernetes.resources import EXPERIMENTS, PODS, TRIALS, ApiResource, Object, has, name_of, terminal
from tuneoff_platforms.time_limits import SETUP_SHARE

FEWEST_REPEATS = 10  # of configurations, that are made up for; of longer lists as many as they have
_DRAIN_NS = clock.NANOSECONDS
_CUT_NS = 10 * clock.NANOSECONDS  # for the pods' end, once the run's time is used up
_NOTICEABLE_NS = clock.NANOSECONDS


class Follower(PodFollower[FollowedTrial]):
    """Follows one experiment in a thread of its own: an interruption of the main thread never finds it half-way."""

    def __init__(self, context: RunContext, plan: KatibPlan, options: KatibOptions, connection: Connection) -> None:
        super().__init__(context, plan, connection, options.pending_seconds)
        self._plan = plan
        seconds = context.spec.experiment.budget.wall_clock_seconds
        self._wall_clock_ns = None if seconds is None else int(seconds * clock.NANOSECONDS)
        self.ledger = TrialLedger(context, plan)
        self.experiment: Object | None = None  # as last seen
        self._refused: set[str] = set()  # trials that are not to be trained
        self._awaited: set[str] = set()  # of them those in whose place another one is asked for, which Katib has not taken in
        self._no_more: str | None = None  # why none is asked for any more
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
        self._patience.seconds = min(self._pending_seconds, SETUP_SHARE * self._timeouts.setup_seconds)
        while not self._has_trial.wait(LOOK_SECONDS):
            self._raise_if_broken()
        self._patience.seconds = self._pending_seconds

    def wait_end(self) -> None:
        """Return when every trial has ended and its log was read.

        Raises:
            StepError: the experiment does not go on, and why; or whatever ended the thread.
            InfrastructureError: Katib gave other configurations of the list more than once, and some never.
        """
        while not self._finished.wait(LOOK_SECONDS):
            pass
        self._raise_if_broken()
        missing = self._plan.trials - len(self.ledger.trials)
        if self.ledger.repeated and missing > 0 and not (self._is_cut or self.ledger.is_goal_met):
            raise InfrastructureError(
                f"Katib must give each of {self._plan.trials} configurations, but gave {len(self.ledger.repeated)} again and "
                f"{missing} never ({self._no_more or 'it ended before one more was asked for'}): its controller loses answers of "
                "the suggestion service; run it again (--resume)"
            )
        for trial in self.ledger:
            if trial.disagreement is not None:
                self._context.flag(*trial.disagreement)
        starts = [(trial.unscheduled_ns, trial.running_ns) for trial in self.ledger]
        waited = sum(begin is not None and end is not None and end - begin > _NOTICEABLE_NS for begin, end in starts)
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
        try:
            while not self._is_over(is_quiet=not self._step()):
                pass
            self.ledger.close(clock.monotonic_ns(), is_cut=self._is_cut)
        except Exception as error:  # the main thread raises it: a thread that is gone would look like a silent cluster
            self._error = self._error or error
        finally:
            self._finished.set()

    def take_seen(self, resource: ApiResource, kind: str, obj: Object, t: int) -> None:
        if resource is EXPERIMENTS:
            if name_of(obj) == self._plan.experiment:
                if self.experiment is None:
                    self.ledger.take_experiment(obj, t)
                self.experiment = obj
                if kind == "DELETED" and not self._is_cut:
                    self.fail(StepError(f"experiment {self._plan.experiment} was deleted by someone else; run it again"))
                elif has(obj, "Failed"):
                    self._sources.wake()  # the suggestion knows why
                elif self._plan.goal is not None and has(obj, "Succeeded"):
                    self.ledger.take_end(obj, t)
        elif resource is TRIALS:
            trial = self.ledger.take_trial(kind, obj, t)
            if trial is not None:
                self._has_trial.set()
                self._open_log(trial)
                if trial.over_ns is not None and trial.pod is None and not trial.is_pod_sought:
                    trial.is_pod_sought = True  # the watch that will tell of one may be seconds behind
                    self._sources.seek_pod(trial.name, lambda: trial.pod is not None, trial.take_no_pod)
            elif (name := name_of(obj)) not in self._refused or kind == "ADDED":
                if name not in self._refused:
                    self._refused.add(name)
                    self._replace(name)
                self._drop(name)  # its pod may have been seen before it
        else:
            followed = self.ledger.take_pod(kind, obj, t)
            if followed is not None:
                self._open_log(followed)
            elif kind == "ADDED":
                self._drop(trial_of(obj))

    def _replace(self, name: str) -> None:
        """Have Katib make one more trial in place of one with a repeated configuration, as long as some of the list have none.

        Its grid gives what has not succeeded once all were given: those that it lost, or that are at work.
        """
        ledger, planned = self.ledger, self._plan.trials
        if name not in ledger.repeated or len(ledger.trials) >= planned:
            return
        if len(ledger.repeated) > max(FEWEST_REPEATS, planned):
            self._no_more = f"after {len(ledger.repeated) - 1} repetitions no more were asked for"
            return
        self._awaited.add(name)
        change = {"spec": {"maxTrialCount": planned + len(ledger.repeated)}}
        self._sources.patch(EXPERIMENTS, self._plan.experiment, change, functools.partial(self._take_raised, name))

    def _take_raised(self, name: str, problem: str | None) -> None:
        """Katib has been asked for one more trial, or it refused (`problem`)."""
        self._no_more = problem or self._no_more
        self._awaited.discard(name)
        self._drop(name)

    def _drop(self, name: str) -> None:
        """End the pod of a trial that is not to be trained, once another one is asked for: the experiment might end before."""
        if name in self.ledger.over_budget and name not in self._awaited:
            for pod in self.ledger.pods_of(name):
                self._sources.delete(PODS, name_of(pod))

    def _take_line(self, pod: FollowedTrial, line: bytes, t: int) -> None:
        self.ledger.take_line(pod, line, t)

    def take_log_end(self, name: str, is_complete: bool, was_rotated: bool, problem: str | None = None) -> None:
        super().take_log_end(name, is_complete, was_rotated, problem)
        trial = self.ledger.trials[name]
        unusable = trial.log.end()
        if unusable is not None:
            self.checkpoint_problems[trial.trial_id] = unusable

    def _find(self, name: str) -> FollowedTrial | None:
        return self.ledger.trials.get(name)

    def _pods(self) -> Iterable[FollowedTrial]:
        return self.ledger

    def _is_limited(self, pod: FollowedTrial) -> bool:
        return pod.state is None and pod.killed_ns is None and pod.training_ended_ns is None

    def _note_kill(self, pod: FollowedTrial, ending: PodEnding) -> None:
        self.ledger.kill(pod, ending)

    def _look(self, now: int) -> None:
        self.ledger.settle(now)
        if self._ends_at_ns is not None or self._is_cut:
            return
        first_ns = min((trial.started_ns for trial in self.ledger if trial.started_ns is not None), default=now)
        if self._wall_clock_ns is not None and now - first_ns > self._wall_clock_ns:
            self._is_cut = True
            self._ends_at_ns = now + _CUT_NS
            self.ledger.cut(now)
            self._sources.delete(EXPERIMENTS, self._plan.experiment)
            return
        super()._look(now)

    def fail(self, error: Exception) -> None:
        """End with an error, as soon as what is already on its way has been taken in."""
        if self._error is None:
            self._error = error
            self._end_at(clock.monotonic_ns() + _DRAIN_NS)

    def _end_at(self, moment_ns: int) -> None:
        self._ends_at_ns = moment_ns if self._ends_at_ns is None else min(moment_ns, self._ends_at_ns)

    def _is_over(self, is_quiet: bool) -> bool:
        if self._ends_at_ns is not None:
            return clock.monotonic_ns() >= self._ends_at_ns or (
                is_quiet
                and all(
                    # nothing more is worth waiting for, where a run ends before its time
                    trial.is_log_done or not trial.is_log_open or (not self._is_cut and trial.training_ended_ns is None)
                    for trial in self.ledger
                )
            )
        if self.experiment is None or terminal(self.experiment) is None or has(self.experiment, "Failed"):
            return False
        status = self.experiment.get("status") or {}
        if status.get("trialsRunning"):  # at its goal: the best may be one of these, once they have ended
            return False
        if len(self.ledger.trials) + len(self.ledger.over_budget) < (status.get("trials") or 0):
            return False
        return all(trial.state is not None and trial.over_ns is not None and trial.is_log_done for trial in self.ledger)

    def _obstacles(self) -> Iterable[PodObstacle]:
        trials = {trial.name: trial.obj for trial in self.ledger if not trial.is_deleted}
        view = ClusterView(
            experiment=self.experiment, suggestion=self._suggestion, trials=trials, pods=self.ledger.pods, events=self._warnings
        )
        return obstacles(view)
