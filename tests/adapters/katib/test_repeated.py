"""A listed configuration that Katib gives again is not trained again; one more trial is asked for as long as some have none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters.katib.followed_run import DONE, FAILED, FIRST, SECOND, THIRD, Run
from adapters.katib.katib_objects import condition, container
from adapters.katib.pod_lines import whole_log
from tuneoff.errors import InfrastructureError
from tuneoff.experiment.spec import Budget
from tuneoff.experiment.translation import LIST_INDEX
from tuneoff.record.events import schema
from tuneoff_adapters.katib import follow
from tuneoff_adapters.katib.trial_ledger import REPEATED
from tuneoff_adapters.kubernetes.api_errors import ApiError
from waiting import until

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
    assert until(lambda: SECOND in {name.rpartition("-")[2] for name in listed.follower.book.repeated})
    assert until(lambda: f"p-{SECOND}" in listed.follower.book.pods)
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
    names = {outcome.framework_id.rpartition("-")[2]: outcome.trial_id for outcome in listed.follower.book.outcomes()}
    assert names == {FIRST: FIRST, SECOND: FIRST, THIRD: THIRD}  # should Katib name the repeated one as its best


def test_where_all_have_been_given_a_repeated_one_is_ended_and_none_is_asked_for(listed: Run) -> None:
    completes(listed, FIRST, 0)
    completes(listed, SECOND, 1)
    begins(listed, THIRD, 1)
    assert until(lambda: listed.cluster.deleted == [("pods", f"p-{THIRD}")])
    listed.trial(THIRD, *FAILED, values={LIST_INDEX: "1"})
    listed.succeeds(trials=3)
    assert listed.cluster.patched == []
    assert listed.record().refusals == ()


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
