"""Un-deploy in a namespace that was there before: what is the execution's goes, everything else stays as it is."""

from __future__ import annotations

import threading

import pytest

from adapters.katib.deployed import SPECS, deploy, hold, make_owned
from adapters.katib.fake_api import FakeApi, failure
from emulated.served import Object, Served
from katib_emulation import kinds
from tuneoff.errors import StepError
from tuneoff_adapters.kubernetes import removal
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.removal import Made, remove

pytestmark = pytest.mark.slow  # processes, or faults that have to last

TEAM, NAME, OTHER = "team", "r0123-ab", "r0123-cd"
LABELS, OTHERS = {"tuneoff.io/execution": "0123-ab"}, {"tuneoff.io/execution": "0123-cd"}
MADE = Made(namespace=TEAM, is_own_namespace=False, experiment=NAME, config_map=NAME, labels=LABELS)
KINDS = (kinds.EXPERIMENTS, kinds.TRIALS, kinds.JOBS, kinds.PODS, kinds.CONFIG_MAPS, kinds.SUGGESTIONS)

SERVING = (kinds.DEPLOYMENTS, kinds.SERVICES, kinds.SERVICE_ACCOUNTS, kinds.ROLES, kinds.ROLE_BINDINGS)
SERVING_PATHS = tuple(resource.path(TEAM) for resource in removal.SERVING)


def everything(cluster: Served) -> list[tuple[str, str, str]]:
    """Return kind, name and version of all that is in the namespace."""
    found = [
        (kind.kind, obj["metadata"]["name"], obj["metadata"]["resourceVersion"]) for kind in KINDS for obj in of(cluster, kind)
    ]
    (namespace,) = [item for item in cluster.store.list(kinds.NAMESPACES) if item["metadata"]["name"] == TEAM]
    return [*found, ("Namespace", TEAM, namespace["metadata"]["resourceVersion"])]


def of(cluster: Served, kind: kinds.Kind) -> list[Object]:
    return cluster.store.list(kind, TEAM)


def ours(cluster: Served) -> list[str]:
    return [name for _, name, _ in everything(cluster) if name.startswith(NAME)]


def test_only_what_is_the_executions_own_goes(cluster: Served, to_cluster: Connection) -> None:
    deploy(cluster, TEAM, OTHER, OTHERS)
    cluster.store.create(kinds.CONFIG_MAPS, {"metadata": {"name": "settings"}}, TEAM)
    cluster.store.create(kinds.JOBS, {"metadata": {"name": "nightly"}, "spec": SPECS[kinds.JOBS]}, TEAM)
    before = everything(cluster)
    deploy(cluster, TEAM, NAME, LABELS)
    assert len(ours(cluster)) == 7
    removal = remove(to_cluster, MADE, 10.0)
    assert 0 < removal.experiment_seconds <= removal.total_seconds
    assert everything(cluster) == before
    remove(to_cluster, MADE, 10.0)
    assert everything(cluster) == before


def test_experiment_and_config_map_of_our_name_that_are_older_stay(cluster: Served, to_cluster: Connection) -> None:
    deploy(cluster, TEAM, NAME, {"made-by": "someone"})
    before = everything(cluster)
    remove(to_cluster, MADE, 10.0)  # and its children are not waited for
    assert everything(cluster) == before


def test_child_without_a_label_is_waited_for(cluster: Served, to_cluster: Connection) -> None:
    """The suggestion's pod outlives its owners, as on a cluster, where they go one after the other."""
    deploy(cluster, TEAM, NAME, LABELS)
    hold(cluster, kinds.PODS, TEAM, f"{NAME}-random-0", "example.org/slow")
    threading.Timer(0.6, hold, (cluster, kinds.PODS, TEAM, f"{NAME}-random-0")).start()
    assert remove(to_cluster, MADE, 20.0).experiment_seconds > 0.5
    assert ours(cluster) == []


@pytest.mark.parametrize("kind", SERVING, ids=lambda kind: kind.plural)
def test_each_part_of_the_suggestions_service_is_waited_for(cluster: Served, to_cluster: Connection, kind: kinds.Kind) -> None:
    deploy(cluster, TEAM, NAME, LABELS)
    (suggestion,) = of(cluster, kinds.SUGGESTIONS)
    make_owned(cluster, kind, TEAM, f"{NAME}-random", suggestion)
    make_owned(cluster, kind, TEAM, "of-another", {"kind": "Owner", "metadata": {"name": OTHER, "uid": "u"}})
    hold(cluster, kind, TEAM, f"{NAME}-random", "example.org/slow")
    with pytest.raises(StepError, match=rf"{kind.plural}\S* {NAME}-random \(finalizers example.org/slow\)") as caught:
        remove(to_cluster, MADE, 0.5)
    assert "of-another" not in str(caught.value)
    hold(cluster, kind, TEAM, f"{NAME}-random")
    remove(to_cluster, MADE, 20.0)


def test_user_who_may_not_list_the_services_parts_can_still_remove(api: FakeApi, connection: Connection) -> None:
    for resource in SERVING_PATHS:
        api.on("GET", resource, failure(403, "Forbidden", "no"))
    remove(connection, MADE, 5.0)
    assert {one.path for one in api.asked} >= set(SERVING_PATHS)


def test_what_hangs_is_named_without_anything_of_others(cluster: Served, to_cluster: Connection) -> None:
    deploy(cluster, TEAM, OTHER, OTHERS, finalizers=("update-prometheus-metrics",))
    deploy(cluster, TEAM, NAME, LABELS, finalizers=("update-prometheus-metrics",))
    with pytest.raises(StepError) as caught:
        remove(to_cluster, MADE, 0.3)
    text = str(caught.value)
    assert (
        f"un-deploy: experiment {NAME} is still being deleted in namespace {TEAM} after 0.3 s: experiments.kubeflow.org" in text
    )
    assert f"see: kubectl get experiments,trials,jobs,pods,configmaps -n {TEAM} -l tuneoff.io/execution=0123-ab" in text
    assert f"kubectl patch experiments.kubeflow.org {NAME} -n {TEAM}" in text
    assert OTHER not in text
    assert "delete namespace" not in text
    assert "\n" not in text
    assert NAME not in [item["metadata"]["name"] for item in of(cluster, kinds.CONFIG_MAPS)]  # asked for all the same


def test_leftover_with_the_label_is_found(cluster: Served, to_cluster: Connection) -> None:
    cluster.store.create(kinds.CONFIG_MAPS, {"metadata": {"name": "stray", "labels": LABELS}}, TEAM)
    with pytest.raises(StepError, match=r"un-deploy left configmaps team/stray with label .*,pods,configmaps -n team -l"):
        remove(to_cluster, MADE, 10.0)


def test_server_that_is_away_names_the_way_without_the_namespace(cluster: Served, to_cluster: Connection) -> None:
    cluster.server.stop()
    with pytest.raises(StepError, match=f"run: kubectl delete experiments,configmaps -n {TEAM} -l tuneoff.io/execution=0123-ab"):
        remove(to_cluster, MADE, 0.5)
