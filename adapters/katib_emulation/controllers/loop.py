"""The thread of the controllers: takes changes in, and reconciles what they touch."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import Counter
from typing import Protocol

from katib_emulation.controllers.experiments import ExperimentReconciler
from katib_emulation.controllers.suggestions import SuggestionReconciler
from katib_emulation.controllers.trials import TrialReconciler
from katib_emulation.controllers.view import ReconcileError, owner_of
from katib_emulation.kinds import EXPERIMENTS, JOBS, SUGGESTIONS, TRIALS
from katib_emulation.objects import Key, Object, key_of
from katib_emulation.observations import Observations
from katib_emulation.storage.store import Store

FIRST_RETRY_SECONDS = 0.005
LAST_RETRY_SECONDS = 1000.0


class WorkQueue:
    """Every key at most once, first in, first out; some later. For one thread.

    Failures are retried as by controller-runtime: after 5 ms, doubling up to 1000 s.
    """

    def __init__(self) -> None:
        self._waiting: dict[Key, None] = {}  # in the order of adding
        self._later: list[tuple[float, int, Key]] = []
        self._counter = itertools.count()
        self._failures: Counter[Key] = Counter()

    def add(self, key: Key) -> None:
        """Put a key at the end, unless it is there."""
        self._waiting.setdefault(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Put a key at the end after a time."""
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._counter), key))

    def retry(self, key: Key) -> float:
        """Put a key that failed at the end, later each time; return the delay in seconds."""
        seconds = min(FIRST_RETRY_SECONDS * 2.0 ** min(self._failures[key], 20), LAST_RETRY_SECONDS)
        self._failures[key] += 1
        self.add_after(key, seconds)
        return seconds

    def succeeded(self, key: Key) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    def take(self) -> Key | None:
        """Return the first key that is ready, and remove it; None if there is none."""
        self._promote()
        if not self._waiting:
            return None
        key = next(iter(self._waiting))
        del self._waiting[key]
        return key

    def wait_seconds(self) -> float | None:
        """Return how long nothing will be ready: 0 if something is; None if nothing is planned."""
        self._promote()
        if self._waiting:
            return 0.0
        return max(0.0, self._later[0][0] - time.monotonic()) if self._later else None

    def _promote(self) -> None:
        while self._later and self._later[0][0] <= time.monotonic():
            self.add(heapq.heappop(self._later)[2])


log = logging.getLogger(__name__)


class Reconciler(Protocol):
    """Brings the objects of one kind one step nearer to what they ask for."""

    def reconcile(self, obj: Object) -> float | None:
        """Do the next step for an object, which must not be changed; return after how many seconds to look again, if at all."""

    def forget(self, key: Key) -> None:
        """Let go of what is kept for an object that does not exist any more."""


class Controllers:
    """Runs Katib's controllers on a store, from `start` to `stop`. After a restart of the server they go on where they were."""

    def __init__(self, store: Store, observations: Observations, lose_answers: int | None = None) -> None:
        """`lose_answers`: of the suggestion services, as `SuggestionReconciler` has it."""
        self._queue = WorkQueue()
        self._store = store
        self._changes = store.subscribe(EXPERIMENTS, TRIALS, SUGGESTIONS, JOBS, initial=True)
        self._reconcilers: dict[object, Reconciler] = {
            EXPERIMENTS: ExperimentReconciler(store),
            SUGGESTIONS: SuggestionReconciler(store, observations, lose_answers),
            TRIALS: TrialReconciler(store, observations),
        }
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="controllers", daemon=True)

    def start(self) -> None:
        """Start to reconcile; objects that are there already are looked at first."""
        self._thread.start()

    def stop(self) -> None:
        """End after the step under way. May be called twice, and without `start`."""
        self._stopping.set()
        self._changes.close()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            wait = self._queue.wait_seconds()
            change = self._changes.next(wait)
            if change is not None:  # all changes first, so that one look serves many of them
                self._touched(key_of(change.kind, change.object), change.object)
            elif (key := self._queue.take()) is not None:
                self._reconcile(key)
            elif wait is None:
                break  # the store was closed

    def _touched(self, key: Key, obj: Object) -> None:
        """Plan what has to look at an object that changed: its own controller, and that of its owner."""
        if key.kind in self._reconcilers:
            self._queue.add(key)
        owner_kind = TRIALS if key.kind is JOBS else EXPERIMENTS
        owner = owner_of(obj, owner_kind)
        if owner is not None:
            self._queue.add(Key(owner_kind, key.namespace, owner))

    def _reconcile(self, key: Key) -> None:
        reconciler = self._reconcilers[key.kind]
        obj = self._store.find(key.kind, key.name, key.namespace)
        if obj is None:
            reconciler.forget(key)
            self._queue.succeeded(key)
            return
        try:
            again = reconciler.reconcile(obj)
        except Exception as error:  # one object's fault must not end the controllers of all others; it is shown, and tried again
            if not isinstance(error, ReconcileError):
                log.exception("%s %s/%s cannot be reconciled", key.kind.kind, key.namespace, key.name)
            text = str(error) if key.kind is SUGGESTIONS else f"Failed to reconcile: {error}"
            self._store.record_event(obj, "Warning", "ReconcileError", text)
            self._queue.retry(key)
            return
        self._queue.succeeded(key)
        if again is not None:
            self._queue.add_after(key, again)
