"""The result of a run: its best trial, versions, and trials that Katib proposed twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.katib.fake_cluster import FakeCluster
from adapters.katib.followed_run import DONE, FAILED, FIRST, SECOND, THIRD, Run, follower_of
from adapters.katib.katib_objects import EXPERIMENT, RUNNING, Object, condition, container, experiment, pod, trial
from adapters.katib.pod_lines import whole_log
from builders.katib_specs import spec_of
from builders.specs import make_context
from tuneoff.base.space import Float, SearchSpace
from tuneoff.errors import InfrastructureError
from tuneoff.experiment.spec import Budget, Objective
from tuneoff.experiment.translation import LIST_INDEX
from tuneoff.record.events import schema
from tuneoff_adapters.katib import follow
from tuneoff_adapters.katib.results import optimum
from tuneoff_adapters.katib.trial_ledger import REPEATED
from tuneoff_adapters.kubernetes.api_errors import ApiError
from tuneoff_adapters.kubernetes.resources import COLLECTOR, PODS, TRIALS
from waiting import until

LOSS = Objective(metric="loss", mode="min")


def report(suffix: str, value: float, is_complete: bool = True) -> Any:
    return SimpleNamespace(trial_id=suffix, configuration={"x": value}, is_complete=is_complete, value=value)


REPORTS = {
    f"{EXPERIMENT}-{suffix}": report(suffix, value, suffix != "c") for suffix, value in (("a", 0.5), ("b", 0.25), ("c", 0.125))
}


def with_optimum(suffix: str | None, **values: str) -> Object:
    told: dict[str, Any] = {"observation": {}}
    if suffix is not None:
        told = {"bestTrialName": f"{EXPERIMENT}-{suffix}"}
        told["observation"] = {"metrics": [{"name": "other", "min": "0"}, {"name": "objective", **values}]}
    return experiment(RUNNING, currentOptimalTrial=told)


NONE_NAMED = "Katib names no optimal trial; the best trial that completed is 'b'"


@pytest.mark.parametrize(
    ("thing", "mode", "trial", "value", "note"),
    [
        pytest.param(with_optimum("b", latest="0.3", min="0.25", max="9"), "min", "b", 0.25, None, id="Katib's own"),
        pytest.param(with_optimum("a", latest="0.3", min="0.25", max="0.5"), "max", "a", 0.5, None, id="the other direction"),
        pytest.param(with_optimum("a", min="0.5"), "min", "a", 0.5, None, id="the events say otherwise"),
        pytest.param(with_optimum("b", min="unavailable"), "min", "b", None, None, id="no value"),
        pytest.param(with_optimum("c", min="0.125"), "min", "b", None, f"{EXPERIMENT}-c", id="did not complete"),
        pytest.param(with_optimum("unknown", min="0.125"), "min", "b", None, f"{EXPERIMENT}-unknown", id="unknown"),
        pytest.param(with_optimum(None), "min", "b", None, NONE_NAMED, id="none is named"),
    ],
)
def test_katib_s_own_optimum_is_taken_if_it_completed(
    thing: Object, mode: str, trial: str, value: float | None, note: str | None
) -> None:
    found = optimum(thing, REPORTS, Objective(metric="loss", mode=mode), "objective")  # type: ignore[arg-type]
    assert found is not None
    best, why = found
    assert (best.trial_id, best.value) == (trial, value)
    assert why is None if note is None else note in (why or "")


def test_no_completed_trial_gives_no_best() -> None:
    assert optimum(with_optimum("c"), {f"{EXPERIMENT}-c": report("c", 0.125, is_complete=False)}, LOSS, "objective") is None
    assert optimum(None, {}, LOSS, "objective") is None


DIGEST = "registry.example/tuneoff@sha256:" + "a" * 64
LATER = "registry.example/tuneoff@sha256:" + "b" * 64


def with_image(image: str, name: str = "training-container") -> dict[str, object]:
    return {**container(name, running={}), "imageID": image}


def test_every_image_that_trials_ran_is_told_once(tmp_path: Path) -> None:
    spec = spec_of(options={"image": "i"}, search_space=SearchSpace({"x": Float(low=0.0, high=1.0)}))
    context = make_context(spec, tmp_path)
    follower = follower_of(context, FakeCluster())
    for suffix, image in (("aaaaaaaa", LATER), ("bbbbbbbb", DIGEST), ("cccccccc", DIGEST)):
        follower.take_seen(TRIALS, "ADDED", trial(suffix, values={"x": "0.5"}), 1)
        follower.take_seen(PODS, "ADDED", pod(suffix, "Running", with_image(image)), 1)
    for image in ("", "another"):  # not known yet; of no trial
        suffix = "dddddddd" if image else "cccccccc"
        follower.take_seen(PODS, "ADDED", pod(suffix, "Running", with_image("c@sha256:0", COLLECTOR), with_image(image)), 1)
    assert follower.image_digests() == [DIGEST, LATER]
    follower.stop(0.0)


LIST = ({"x": 0.25}, {"x": 0.75})
REFUSED = ApiError("PATCH /experiments", 422, "Invalid", "the experiment is completed")


@pytest.fixture
def listed(make: Callable[..., Run]) -> Run:
    """A run of two given configurations."""
    return make(sampler="fixed", configurations=LIST, budget=Budget(trials=2, epochs_per_trial=2))


def begins(run: Run, suffix: str, index: int) -> None:
    run.trial(suffix, condition("Running"), values={LIST_INDEX: str(index)})
    run.pod(suffix, "Running", container(running={}), change="ADDED")


def completes(run: Run, suffix: str, index: int) -> None:
    begins(run, suffix, index)
    run.cluster.log(f"p-{suffix}", *whole_log(suffix, [0.5, 0.25], dict(LIST[index]), run.context.execution_id))
    run.pod(suffix, "Succeeded", container(terminated={"exitCode": 0}))
    run.trial(suffix, *DONE, values={LIST_INDEX: str(index)})


def test_another_trial_is_asked_for_before_the_repeated_one_is_ended(listed: Run) -> None:
    completes(listed, FIRST, 0)
    listed.cluster.may_patch.clear()
    begins(listed, SECOND, 0)
    assert until(lambda: SECOND in {name.rpartition("-")[2] for name in listed.follower.ledger.repeated})
    assert until(lambda: f"p-{SECOND}" in listed.follower.ledger.pods)
    assert listed.cluster.deleted == []  # else the experiment could reach its number of trials
    listed.cluster.may_patch.set()
    assert until(lambda: listed.cluster.deleted == [("pods", f"p-{SECOND}")])
    assert listed.cluster.patched == [{"maxTrialCount": 3}]
    listed.trial(SECOND, *FAILED, values={LIST_INDEX: "0"})
    completes(listed, THIRD, 1)
    listed.succeeds(trials=3)
    record = listed.record()
    assert {trial.trial: (trial.state, trial.configuration) for trial in record.trials} == {
        FIRST: ("completed", LIST[0]),
        THIRD: ("completed", LIST[1]),
    }
    assert record.refusals == ()
    (flag,) = listed.events(schema.Flag)
    assert (flag.name, "configuration 0 of the list" in flag.text) == (REPEATED, True)
    names = {name.rpartition("-")[2]: report.trial_id for name, report in listed.follower.ledger.reports().items()}
    assert names == {FIRST: FIRST, SECOND: FIRST, THIRD: THIRD}  # should Katib name the repeated one as its best


@pytest.mark.parametrize("fewest", [0, 10])
def test_what_is_never_given_is_the_infrastructure_s_with_why(listed: Run, monkeypatch: pytest.MonkeyPatch, fewest: int) -> None:
    monkeypatch.setattr(follow, "FEWEST_REPEATS", fewest)
    listed.cluster.patch_refusal = REFUSED if fewest else None
    suffixes = [SECOND, THIRD, "dddddddd"]
    completes(listed, FIRST, 0)
    for suffix in suffixes:
        begins(listed, suffix, 0)
        assert until(lambda name=f"p-{suffix}": ("pods", name) in listed.cluster.deleted)  # type: ignore[misc]
        listed.trial(suffix, *FAILED, values={LIST_INDEX: "0"})
    listed.experiment(condition("Succeeded", "ExperimentMaxTrialsReached"), trials=4)
    why = "the experiment is completed" if fewest else "after 2 repetitions no more were asked for"
    text = f"must give each of 2 configurations, but gave 3 again and 1 never .*{why}.*loses answers of the suggestion service"
    with pytest.raises(InfrastructureError, match=text):
        listed.follower.wait_end()
