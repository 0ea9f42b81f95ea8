"""Whatever comes first, or seconds late: each event of a trial is in the record once, and slots are those of the pods' times."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from adapters.katib.fake_cluster import FakeCluster
from adapters.katib.followed_run import DONE, FIRST, SECOND, SPACE, THIRD, Run, follower_of
from adapters.katib.katib_objects import condition, container, ended, pod, trial
from adapters.katib.pod_lines import header, line, logged, started
from builders.katib_specs import spec_of
from builders.specs import make_context
from tuneoff.base import clock
from tuneoff.experiment.spec import Budget, Timeouts
from tuneoff.measure.derived import derive_folder
from tuneoff.record.events import schema
from tuneoff.record.events.reader import EventLog
from tuneoff_adapters.katib.plan import katib_plan
from tuneoff_adapters.kubernetes import sources
from tuneoff_adapters.kubernetes.resources import PODS, TRIALS, ApiResource, Object
from tuneoff_adapters.kubernetes.sources import Sources
from waiting import until

S = clock.NANOSECONDS
LIVES = {FIRST: (0, 10), SECOND: (5, 15), THIRD: (11, 20)}  # seconds from the start of a pod's trial to its own end
SLOTS = {FIRST: 0, SECOND: 1, THIRD: 0}
News = tuple[int, Callable[[int], None]]  # when it happened, and what takes it in at a moment


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "SEEK_SECONDS", 0.01)


class Told:
    """A followed experiment of three trials, whose news a test takes in by hand."""

    def __init__(self, folder: Path) -> None:
        options = {"image": "i", "pending_seconds": 10_000}
        limits = Timeouts(trial_seconds=10_000, silence_seconds=10_000)
        budget = Budget(trials=3, epochs_per_trial=1)
        self.spec = spec_of(options=options, search_space=SPACE, budget=budget, timeouts=limits)
        self.context = make_context(self.spec, folder)
        self.plan = katib_plan(self.context)
        self.follower = follower_of(self.context, FakeCluster())
        self.follower._sources = Mock(spec=Sources)  # the test takes their place
        self.zero = self.now = clock.monotonic_ns()

    def sources(self) -> dict[str, list[News]]:
        """Return what each watch and each log tells, in its order."""
        found: dict[str, list[News]] = {"trials": [], "pods": []}
        for suffix, life in LIVES.items():
            start, end = (self.zero + second * S for second in life)
            name = f"{self.plan.experiment}-{suffix}"
            for t, thing in ((start - S, [condition("Running")]), (end + S, list(DONE))):
                found["trials"].append((t, self._seen(TRIALS, self._named(trial(suffix, *thing, values={"x": "0.5"}), name))))
            for t, phase, state in (
                (start, "Running", container(running={})),
                (end + S // 2, "Succeeded", ended(0, finished_at=self._date(end + S // 2))),
            ):
                shown = pod(suffix, phase, state)
                shown["metadata"] = {"name": f"p-{suffix}", "labels": {"job-name": name}}
                found["pods"].append((t, self._seen(PODS, shown)))
            texts = [
                (start, header(self.context.execution_id, t=start - S // 2, process_started_ns=start - S // 2)),
                (start, started(suffix, {"x": 0.5}, t=start)),
                (
                    end,
                    line("epoch", 2, trial=suffix, epoch=1, metrics={"validation_loss": 0.5}, train_ns=1, validate_ns=1, t=end),
                ),
                (end, line("trial_ended", 3, trial=suffix, state="completed", epochs=1, t=end)),
            ]
            found[suffix] = [(t, self._line(name, *logged(text, execution=self.context.execution_id))) for t, text in texts]
            found[suffix].append((end + S, lambda t, name=name: self.follower.take_log_end(name, True, False)))  # type: ignore[misc]
        for stream in ("trials", "pods"):
            found[stream].sort(key=lambda news: news[0])
        return found

    def take(self, news: News) -> None:
        self.now = max(self.now, news[0])
        news[1](self.now)

    def wait(self, seconds: float) -> None:
        self.now += int(seconds * S)
        self.follower._look(self.now)

    def is_open(self, suffix: str, rest: list[News]) -> bool:
        """Tell whether a log can be read: to its end once it is known that the container has ended."""
        known = self.follower.ledger.trials.get(f"{self.plan.experiment}-{suffix}")
        return known is not None and known.is_log_open and (len(rest) > 1 or known.training_ended_ns is not None)

    def close(self) -> None:
        self.follower._look(self.now)
        self.follower.ledger.close(self.now, is_cut=self.follower._is_cut)
        self.context.events.close()

    def events(self, kind: type[schema.Event]) -> list[Any]:
        return [event for _, event in EventLog(self.context.run_dir / "events") if isinstance(event, kind)]

    def _date(self, t: int) -> str:
        wall_ns = t - self.follower.ledger._clock.at_wall(0)
        return datetime.datetime.fromtimestamp(wall_ns // S, datetime.UTC).isoformat()

    def _named(self, thing: Object, name: str) -> Object:
        thing["metadata"]["name"] = name
        return thing

    def _seen(self, resource: ApiResource, thing: Object) -> Callable[[int], None]:
        return lambda t: self.follower.take_seen(resource, "MODIFIED", thing, t)

    def _line(self, name: str, text: bytes) -> Callable[[int], None]:
        return lambda t: self.follower.take_line(name, text, t)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(data=st.data())
def test_news_in_any_order_and_however_late_give_the_same_record(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    told = Told(tmp_path_factory.mktemp("run"))
    left = told.sources()
    while any(left.values()):
        ready = [name for name, news in left.items() if news and (name not in LIVES or told.is_open(name, news))]
        told.take(left[data.draw(st.sampled_from(ready))].pop(0))
        if data.draw(st.booleans()):
            told.wait(data.draw(st.sampled_from([0.1, 2.0, 5.0, 40.0])))
    told.close()
    for kind in (schema.TrialSubmitted, schema.TrialStarted, schema.Epoch, schema.TrialEnded):
        assert sorted(event.trial for event in told.events(kind)) == sorted(LIVES), kind
    record = derive_folder(told.context.run_dir, told.spec).record
    assert (record.flags, {one.trial: one.state for one in record.trials}) == ((), dict.fromkeys(LIVES, "completed"))
    attempts = {one.trial: one.attempts[0] for one in record.trials}
    assert {name: attempt.slot for name, attempt in attempts.items()} == SLOTS
    assert all((one.submitted_ns or 0) <= (one.started_ns or 0) for one in attempts.values())


def test_a_trial_that_never_had_a_pod_gets_its_end(make: Callable[..., Run]) -> None:
    run = make(budget=Budget(trials=1, epochs_per_trial=2))
    run.trial(FIRST, condition("Failed", "TrialFailed", "no room"))
    assert until(lambda: FIRST in run.ends())
    assert run.ends()[FIRST].by == "coordinator"
    assert "no pod of it was seen" in (run.ends()[FIRST].cause or "")


def test_a_trial_whose_pod_is_told_late_is_ended_by_its_own_word(make: Callable[..., Run]) -> None:
    run = make(budget=Budget(trials=1, epochs_per_trial=2))
    shown = pod(FIRST, "Succeeded", ended(0))
    shown["metadata"] = {"name": f"p-{FIRST}", "labels": {"job-name": f"{run.plan.experiment}-{FIRST}"}}
    run.cluster.pods[f"p-{FIRST}"] = shown
    run.trial(FIRST, *DONE)
    assert until(lambda: run.cluster.listings > 3)  # the server has the pod, the watch does not tell
    assert run.ends() == {}
    run.completes(FIRST, [0.5, 0.25])
    run.succeeds(1)
    (end,) = run.events(schema.TrialEnded)
    assert (end.by, end.state) == ("trial", "completed")
