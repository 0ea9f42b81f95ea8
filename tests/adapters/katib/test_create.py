"""What is made in the cluster: a name that is taken and a namespace that is going are one line each, and change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.katib_specs import IMAGE, plan_of, spec_of
from emulated.served import Served, experiment
from katib_emulation import objects as kinds
from tuneoff.errors import InfrastructureError
from tuneoff_adapters.katib.manifest import config_map_manifest, experiment_manifest
from tuneoff_adapters.katib.plan import KatibPlan
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.create import create_config_map, objects_of, submit
from tuneoff_adapters.kubernetes.removal import remove

TEAM = {"image": IMAGE, "namespace": "team"}


@pytest.fixture
def plan(tmp_path: Path) -> KatibPlan:
    return plan_of(spec_of(options=TEAM), tmp_path)


def make_all(connection: Connection, plan: KatibPlan) -> None:
    create_config_map(connection, plan, config_map_manifest(plan))
    submit(connection, plan, experiment_manifest(plan))


def problem(connection: Connection, plan: KatibPlan) -> str:
    with pytest.raises(InfrastructureError) as caught:
        make_all(connection, plan)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_older_experiment_of_the_name_is_one_line_and_survives_undeploy(
    cluster: Served, to_cluster: Connection, plan: KatibPlan
) -> None:
    older = cluster.store.create(kinds.EXPERIMENTS, experiment(plan.experiment), "team")
    text = problem(to_cluster, plan)
    assert f"it is not of this run: experiments.kubeflow.org {plan.experiment} -n team; it stays" in text
    remove(to_cluster, objects_of(plan), 10.0)
    assert cluster.store.get(kinds.EXPERIMENTS, plan.experiment, "team") == older
    assert not [item for item in cluster.store.list(kinds.CONFIG_MAPS, "team") if item["metadata"]["name"] == plan.config_map]


@pytest.mark.parametrize("options", [TEAM, {"image": IMAGE}])
def test_older_object_of_the_first_name_is_one_line_and_survives_undeploy(
    cluster: Served, to_cluster: Connection, tmp_path: Path, options: dict[str, str]
) -> None:
    plan = plan_of(spec_of(options=options), tmp_path)
    kind, name, namespace = (kinds.NAMESPACES, plan.namespace, None)
    if not plan.is_own_namespace:
        kind, name, namespace = (kinds.CONFIG_MAPS, plan.config_map, "team")
    older = cluster.store.create(kind, {"metadata": {"name": name}}, namespace)
    assert f"it is not of this run: {kind.plural} {name}" in problem(to_cluster, plan)
    remove(to_cluster, objects_of(plan), 10.0)
    assert cluster.store.get(kind, name, namespace) == older


def test_namespace_that_is_being_deleted_is_one_line(cluster: Served, to_cluster: Connection, plan: KatibPlan) -> None:
    held = {"metadata": {"name": "held", "finalizers": ["example.org/slow"]}}
    cluster.store.create(kinds.CONFIG_MAPS, held, "team")
    cluster.store.delete(kinds.NAMESPACES, "team")
    assert "namespace 'team' is being deleted, so nothing can be made in it; wait until it is gone" in problem(to_cluster, plan)


def test_namespace_that_is_not_there_is_one_line(cluster: Served, to_cluster: Connection, plan: KatibPlan) -> None:
    cluster.store.delete(kinds.NAMESPACES, "team")
    assert "namespace 'team' does not exist" in problem(to_cluster, plan)
