"""The thread of the controllers: takes changes in, and reconciles what they touch."""

from __future__ import annotations

import logging
import threading

from katib_emulation.controllers.experiments import ExperimentReconciler
from katib_emulation.controllers.reconciling import ReconcileError, Reconciler
from katib_emulation.controllers.suggestions import SuggestionReconciler
from katib_emulation.controllers.trials import TrialReconciler
from katib_emulation.controllers.view import ClusterView, owner_of
from katib_emulation.controllers.work_queue import WorkQueue
from katib_emulation.kinds import EXPERIMENTS, JOBS, SUGGESTIONS, TRIALS
from katib_emulation.objects import Key, Object
from katib_emulation.observations import Observations
from katib_emulation.storage.store import Store

log = logging.getLogger(__name__)

RANKS = {TRIALS: 0, SUGGESTIONS: 1, EXPERIMENTS: 2}
"""Trials first: their Jobs start soonest, and one look at the Experiment then serves all that happened to its Trials."""


class Controllers:
    """Runs Katib's controllers on a store, from `start` to `stop`. After a restart of the server they go on where they were."""

    def __init__(self, store: Store, observations: Observations) -> None:
        self._queue: WorkQueue[Key] = WorkQueue(lambda key: RANKS[key.kind])
        self._cluster = ClusterView(store, self._touched)
        self._reconcilers: dict[object, Reconciler] = {
            EXPERIMENTS: ExperimentReconciler(self._cluster, observations),
            SUGGESTIONS: SuggestionReconciler(self._cluster, observations),
            TRIALS: TrialReconciler(self._cluster, observations),
        }
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="controllers", daemon=True)

    def start(self) -> None:
        """Start to reconcile; objects that are there already are looked at first."""
        self._thread.start()

    def stop(self) -> None:
        """End after the step under way. May be called twice, and without `start`."""
        self._stopping.set()
        self._cluster.close()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            while self._cluster.learn(0):
                continue  # all changes first, so that one look serves many of them
            key = self._queue.take()
            if key is not None:
                self._reconcile(key)
            elif not self._cluster.write_event():
                wait = self._queue.wait_seconds()
                if not self._cluster.learn(wait) and wait is None:
                    break  # the store was closed
        while self._cluster.write_event():
            continue

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
        obj = self._cluster.get(key.kind, key.namespace, key.name)
        if obj is None:
            reconciler.forget(key)
            self._queue.succeeded(key)
            return
        try:
            again = reconciler.reconcile(obj)
        except Exception as error:  # one object's fault must not end the controllers of all others; it is shown, and tried again
            if not isinstance(error, ReconcileError):
                log.exception("%s %s/%s cannot be reconciled", key.kind.kind, key.namespace, key.name)
            self._cluster.event(obj, "Warning", "ReconcileError", reconciler.event_text(error))
            self._queue.retry(key)
            return
        self._queue.succeeded(key)
        if again is not None:
            self._queue.add_after(key, again)
