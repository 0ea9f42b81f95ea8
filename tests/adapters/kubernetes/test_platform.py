"""What the plain pool refuses on a cluster before anything starts, and what it is there."""

from __future__ import annotations

from typing import Any

import pytest

from builders.specs import toy_spec
from tuneoff.cli import listing
from tuneoff.errors import ExperimentError
from tuneoff.experiment.skip_check import SkipCheck
from tuneoff.experiment.spec import Budget, WorkloadSpec
from tuneoff.registry import list_adapters
from tuneoff.run.pool_adapter import WithPool
from tuneoff_adapters.serial import SerialAdapter

SURROGATE = WorkloadSpec(name="surrogate", target="tuneoff_workloads.surrogate:Surrogate", options={})
IMAGE = {"image": "registry.example/tuneoff:1"}


def reason(**changes: Any) -> str | None:
    given = {"workload": SURROGATE, "platform": "kubernetes", "options": IMAGE, **changes}
    return SkipCheck().reason(toy_spec("serial", **given), SerialAdapter)


@pytest.mark.parametrize("platform", ["kubernetes", "kubernetes-jobs"])
def test_what_can_be_served_is_not_refused(platform: str) -> None:
    assert reason(platform=platform, retries=1) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"budget": Budget(trials=2, epochs_per_trial=2, epochs_total=3)}, "budget.epochs_total=3; use budget.trials"),
        ({"sampler": "tpe"}, "does not list sampler 'tpe'"),
        ({"pruner": "asha"}, "does not list pruner 'asha'"),
        ({"platform": "kubernetes-cron"}, "it offers: local, kubernetes, kubernetes-jobs, slurm"),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_reason(changes: dict[str, Any], words: str) -> None:
    assert words in (reason(**changes) or "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs option `image`"),
        ({**IMAGE, "katib_namespace": "kubeflow"}, "adapter 'serial' has no option 'katib_namespace'"),
        ({**IMAGE, "data_claim": "data"}, "give option `namespace` too"),
    ],
)
def test_a_wrong_option_is_the_users_mistake(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        reason(options=options)


def test_pods_are_limited_by_their_container_and_processes_by_core() -> None:
    here, workers, jobs = (SerialAdapter.capabilities_on(name) for name in ("local", "kubernetes", "kubernetes-jobs"))
    assert (here.memory_limiter, here.cpu_limiter, here.head_node) == ("", "", False)
    assert {(one.memory_limiter, one.cpu_limiter, one.head_node) for one in (workers, jobs)} == {("container", "container", True)}
    assert [one.long_lived_workers for one in (here, workers, jobs)] == [True, True, False]


def test_options_of_a_cluster_mean_nothing_here() -> None:
    assert "has no options, but got image" in (reason(platform="local") or "")


@pytest.mark.parametrize("platform", ["kubernetes", "kubernetes-jobs"])
def test_list_platforms_names_the_adapters_with_a_pool_that_plan_accepts_there(platform: str) -> None:
    ((row,), _, _) = listing.platforms([platform])
    accepted = []
    for entry in list_adapters():
        name, adapter = entry.plugin.name, entry.adapter
        if adapter is not None and issubclass(adapter, WithPool):
            options = {**IMAGE, "storage": "postgresql+psycopg://t:$PASSWORD@db.example/optuna"} if name == "optuna" else IMAGE
            spec = toy_spec(name, workload=SURROGATE, platform=platform, options=options, sampler="random")
            reason = SkipCheck().reason(spec, adapter)
            # of one whose package is not here, `plan` says that
            assert reason is None or "does not offer platform" in reason or entry.state != "ready"
            accepted += [name] if "does not offer platform" not in (reason or "") else []
    assert set(accepted) == set(row["adapters"]) - {"katib"}
    assert {"optuna", "serial"} & set(accepted) == ({"serial"} if platform == "kubernetes-jobs" else {"optuna", "serial"})
