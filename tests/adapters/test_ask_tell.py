"""The base class for ask and tell: what follows from a subclass's methods, stops, and the best trial."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from adapters.lifecycle_run import run_lifecycle
from builders.specs import TOY_SPACE, make_context, toy_spec
from trust.space_test.every_kind import PROBED, context_of
from tuneoff.ask_tell import AskTellAdapter, Capabilities, NativeIndex, Offer, Support, Translation, TrialResult
from tuneoff.errors import StepError
from tuneoff.experiment.strategies import draws, listed_configurations
from tuneoff.platform import Death
from tuneoff.record.events import schema
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.writer import EventWriter
from tuneoff.run.pool_adapter import PoolAdapter, Task
from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff.trust.space_test.draw import mapping_problems


class Plain(AskTellAdapter):
    """A library that chooses at random."""

    capabilities: ClassVar[Capabilities] = Capabilities(framework="toy", samplers={"random": Offer(implementation="toy")})

    def open(self, space: Translation) -> None:
        self.native, self.random = space.native, random.Random(self.seed)
        self.told: dict[str, TrialResult] = {}
        self.asked = 0
        self._told = self._ask = self._tell = self._import = None  # names that authors like, and core leaves free

    def ask(self) -> tuple[str, Mapping[str, Any]]:
        self.asked += 1
        return f"a{self.asked}", {
            name: self.random.randrange(kind.size) if isinstance(kind, NativeIndex) else self.random.uniform(*kind.bounds)
            for name, kind in self.native.items()
        }

    def tell(self, handle: str, result: TrialResult) -> None:
        self.told[handle] = result

    def best(self) -> str:
        losses = {
            handle: result.loss for handle, result in self.told.items() if result.state == "completed" and result.loss is not None
        }
        return min(losses, key=losses.__getitem__)


class Whole(Plain):
    """It evaluates given points too, and stops trials."""

    capabilities: ClassVar[Capabilities] = replace(
        Plain.capabilities,
        pruners={"second": Offer(implementation="toy")},
    )

    def enqueue(self, values: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        return self.ask()[0], values

    def report(self, handle: str, epoch: int, value: float) -> bool:
        return handle == "a2" and epoch >= 2


def test_the_capabilities_follow_from_the_methods() -> None:
    plain, whole = Plain.capabilities, Whole.capabilities
    assert (set(plain.samplers), set(plain.pruners)) == ({"random"}, {"none", "scripted"})
    assert plain.retry is Support.YES
    assert (set(whole.samplers), set(whole.pruners)) == ({"random", "fixed", "grid"}, {"none", "scripted", "second"})
    assert whole.samplers["fixed"].implementation == f"{__name__}.Whole.enqueue"


def test_a_pruner_without_reports_is_refused() -> None:
    with pytest.raises(TypeError, match="must have `report` to offer pruner 'second'"):
        type("Careless", (Plain,), {"capabilities": Whole.capabilities})


@pytest.mark.parametrize("name", ["decide", "seed", "ended", "_pool"])
def test_a_name_of_core_s_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"must not define '{name}'"):
        type("Careless", (Plain,), {name: lambda *arguments: None})


@pytest.mark.parametrize("sampler", ["fixed", "grid"])
def test_of_a_list_each_configuration_is_enqueued_once(tmp_path: Path, sampler: str) -> None:
    space = (
        None
        if sampler == "fixed"
        else replace(TOY_SPACE, dimensions={name: TOY_SPACE.dimensions[name] for name in ("depth", "kind")})
    )
    given = {"configurations": list(itertools.islice(draws(TOY_SPACE, 99), 7))} if space is None else {"space": space}
    spec = toy_spec("optuna", sampler=sampler, trials=7, **given)
    configurations = listed_configurations(spec)
    assert configurations is not None
    toy = Whole(make_context(spec, tmp_path))
    toy.setup()
    assert [configuration for _, configuration in toy.propose()] == configurations


@pytest.mark.parametrize("named", ["nobody", "a2"])
def test_a_best_trial_that_did_not_complete_is_refused(tmp_path: Path, named: str) -> None:
    toy = Plain(context_of(Plain, 0, 3, tmp_path))
    toy.setup()
    assert toy.collect_results() is None
    for (trial_id, configuration), state in zip(list(toy.propose()), ("completed", "pruned", "refused"), strict=True):
        toy.ended(Task(trial_id, configuration, 1), TrialOutcome(state=state, value=0.5))  # type: ignore[arg-type]
    assert [result.state for result in toy.told.values()] == ["completed", "pruned", "failed"]
    assert toy.collect_results() is not None
    toy.best = lambda: named  # type: ignore[method-assign]
    with pytest.raises(StepError, match=f"the handle of a trial that completed, but returned '{named}'"):
        toy.collect_results()


def test_the_space_is_told_as_it_is_given(tmp_path: Path) -> None:
    toy = Plain(context_of(Plain, 0, 3, tmp_path))
    assert mapping_problems(PROBED, toy.framework_space()) == {}
    assert len(list(toy.draw(3))) == 3


@pytest.mark.parametrize(("may_retry", "is_used_up"), [(True, False), (True, True), (False, False)])
@pytest.mark.parametrize(("epochs", "end"), [(1, ""), (1, "completed"), (1, "failed"), (3, "")])
def test_a_trial_whose_worker_died_is_told_unless_it_is_tried_again(
    tmp_path: Path, may_retry: bool, is_used_up: bool, epochs: int, end: str
) -> None:
    """`end`: what its process logged before it died, without an answer; all three epochs are as good as that."""
    ends: list[TrialOutcome] = []
    context = make_context(toy_spec("serial", epochs=3), tmp_path)
    worker = EventWriter(context.run_dir, context.execution_id, "worker")
    metric = context.spec.experiment.objective.metric
    for epoch in range(1, epochs + 1):
        worker.write("epoch", trial="t00000", epoch=epoch, metrics={metric: 0.5}, train_ns=1, validate_ns=1)
    if end:
        worker.write("trial_ended", trial="t00000", state=end, epochs=epochs)
    end = "completed" if epochs == 3 else end
    adapter: Any = Plain(context)
    adapter._retries = SimpleNamespace(may_retry=lambda *_: may_retry)
    adapter._budget = SimpleNamespace(is_used_up=lambda: is_used_up, note_goal=lambda *_: None)
    adapter.ended = lambda task, outcome: ends.append(outcome)
    again = adapter._bury(Death(worker=0, pid=worker.pid, exit_code=-9), Task("t00000", {}, 1))
    is_retried = may_retry and not is_used_up and not end
    assert again == (Task("t00000", {}, 2) if is_retried else None)
    assert [outcome.state for outcome in ends] == ([] if is_retried else [end or "failed"])
    assert [outcome.value for outcome in ends if end] == [0.5] * bool(end)
    died = [event for _, event in EventLog(context.run_dir / "events") if isinstance(event, schema.WorkerDied)]
    assert [event.trial for event in died] == [None if end else "t00000"]


@pytest.mark.parametrize("is_used_up", [False, True])
def test_what_is_tried_again_is_sent_even_if_the_budget_is_used_up_meanwhile(is_used_up: bool) -> None:
    sent: list[tuple[int, object]] = []
    adapter: Any = SimpleNamespace(
        context=SimpleNamespace(submitted=lambda *_: None),
        framework_id=lambda trial_id: None,
        _pool=SimpleNamespace(send=lambda worker, task: sent.append((worker, task))),
        _budget=SimpleNamespace(is_used_up=lambda: is_used_up),
        _proposals=iter([("t00001", {})]),
    )
    again = Task("t00000", {}, 2)
    assert PoolAdapter._dispatch(adapter, 0, again) == again
    assert PoolAdapter._dispatch(adapter, 1) == (None if is_used_up else ("t00001", {}, 1))
    assert len(sent) == (1 if is_used_up else 2)


@pytest.mark.slow
def test_what_the_library_stops_is_stopped_and_what_died_is_tried_again(tmp_path: Path) -> None:
    run = run_lifecycle(tmp_path, f"{__name__}:Whole", pruner="second", workers=1)
    assert run.exit_code == 0, run.log
    assert list(run.ends.values()) == ["completed", "pruned", "completed", "completed"]
    assert [(event.trial, event.epoch) for event in run.of(schema.StopDecided)] == [("t00001", 2)]
    assert [event.framework_id for event in run.of(schema.TrialSubmitted)] == ["a1", "a2", "a3", "a4"]
    assert {event.name for event in run.of(schema.Stage)} == {"ask", "tell"}
    begun = min(event.t for event in run.events)
    assert all(0 <= event.duration_ns < event.t - begun for event in run.of(schema.Stage))
