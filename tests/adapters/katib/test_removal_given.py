"""Un-deploy in a namespace that was there before: what is the execution's goes, everything else stays as it is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.katib.fake_api import FakeApi, failure, write_kubeconfig
from emulated.served import INJECTED, Object, Served, experiment, served
from katib_emulation import kinds
from tuneoff.errors import StepError
from tuneoff_adapters.kubernetes import removal
from tuneoff_adapters.kubernetes.connection import Connection, Limits
from tuneoff_adapters.kubernetes.removal import Made, remove

pytestmark = pytest.mark.slow  # processes, or faults that have to last

TEAM, NAME, OTHER = "team", "r0123-ab", "r0123-cd"
LABELS, OTHERS = {"tuneoff.io/execution": "0123-ab"}, {"tuneoff.io/execution": "0123-cd"}
MADE = Made(namespace=TEAM, is_own_namespace=False, experiment=NAME, config_map=NAME, labels=LABELS)
POD = {"restartPolicy": "Never", "containers": [{"name": "training-container", "image": "i", "command": ["true"]}]}
SPECS: dict[kinds.Kind, Object] = {kinds.TRIALS: {}, kinds.JOBS: {"template": {"spec": POD}}, kinds.PODS: POD}
KINDS = (kinds.EXPERIMENTS, kinds.TRIALS, kinds.JOBS, kinds.PODS, kinds.CONFIG_MAPS, kinds.SUGGESTIONS)

SERVING = (kinds.DEPLOYMENTS, kinds.SERVICES, kinds.SERVICE_ACCOUNTS, kinds.ROLES, kinds.ROLE_BINDINGS)
SERVING_PATHS = tuple(resource.path(TEAM) for resource in removal.SERVING)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "store") as cluster:
        cluster.store.create(kinds.NAMESPACES, {"metadata": {"name": TEAM, "labels": INJECTED}})
        yield cluster


@pytest.fixture
def connection(cluster: Served, tmp_path: Path) -> Connection:
    limits = Limits(api=1.0, call=0.5, pause=0.01)
    return Connection(write_kubeconfig(tmp_path / "kubeconfig", cluster.url), limits=limits)


def deployed(cluster: Served, name: str, labels: dict[str, str], *, finalizers: tuple[str, ...] = ()) -> None:
    """Make what a run makes: config map, experiment, suggestion with its pod, a trial with its Job and pod."""
    cluster.store.create(kinds.CONFIG_MAPS, {"metadata": {"name": name, "labels": labels}}, TEAM)
    obj = experiment(name)
    obj["metadata"].update(labels=labels, finalizers=list(finalizers))
    obj["status"] = {"conditions": [{"type": "Running", "status": "True"}]}
    top = cluster.store.create(kinds.EXPERIMENTS, obj, TEAM, keep_status=True)
    suggestion = make(cluster, kinds.SUGGESTIONS, name, top)
    make(cluster, kinds.PODS, f"{name}-random-0", suggestion, SPECS[kinds.PODS])
    owner = top
    for kind, child in ((kinds.TRIALS, f"{name}-a"), (kinds.JOBS, f"{name}-a"), (kinds.PODS, f"{name}-a-0")):
        owner = make(cluster, kind, child, owner, SPECS[kind], labels)


def make(
    cluster: Served, kind: kinds.Kind, name: str, owner: Object, spec: Object | None = None, labels: Object | None = None
) -> Object:
    metadata = owner["metadata"]
    reference = {"apiVersion": "v1", "kind": owner.get("kind", "Owner"), "name": metadata["name"], "uid": metadata["uid"]}
    reference |= {"controller": True, "blockOwnerDeletion": True}
    thing = {"metadata": {"name": name, "labels": labels or {}, "ownerReferences": [reference]}, "spec": spec or {}}
    return cluster.store.create(kind, thing, TEAM)


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


def test_only_what_is_the_executions_own_goes(cluster: Served, connection: Connection) -> None:
    deployed(cluster, OTHER, OTHERS)
    cluster.store.create(kinds.CONFIG_MAPS, {"metadata": {"name": "settings"}}, TEAM)
    cluster.store.create(kinds.JOBS, {"metadata": {"name": "nightly"}, "spec": SPECS[kinds.JOBS]}, TEAM)
    before = everything(cluster)
    deployed(cluster, NAME, LABELS)
    assert len(ours(cluster)) == 7
    removal = remove(connection, MADE, 10.0)
    assert 0 < removal.experiment_seconds <= removal.total_seconds
    assert everything(cluster) == before
    remove(connection, MADE, 10.0)
    assert everything(cluster) == before


def test_experiment_and_config_map_of_our_name_that_are_older_stay(cluster: Served, connection: Connection) -> None:
    deployed(cluster, NAME, {"made-by": "someone"})
    before = everything(cluster)
    remove(connection, MADE, 10.0)  # and its children are not waited for
    assert everything(cluster) == before


def test_child_without_a_label_is_waited_for(cluster: Served, connection: Connection) -> None:
    """The suggestion's pod outlives its owners, as on a cluster, where they go one after the other."""
    deployed(cluster, NAME, LABELS)
    hold(cluster, f"{NAME}-random-0", ["example.org/slow"])
    threading.Timer(0.6, hold, (cluster, f"{NAME}-random-0", [])).start()
    assert remove(connection, MADE, 20.0).experiment_seconds > 0.5
    assert ours(cluster) == []


def hold(cluster: Served, name: str, finalizers: list[str], kind: kinds.Kind = kinds.PODS) -> None:
    def change(obj: dict[str, Any]) -> None:
        obj["metadata"]["finalizers"] = finalizers

    cluster.store.update(kind, name, TEAM, change)


@pytest.mark.parametrize("kind", SERVING, ids=lambda kind: kind.plural)
def test_each_part_of_the_suggestions_service_is_waited_for(cluster: Served, connection: Connection, kind: kinds.Kind) -> None:
    deployed(cluster, NAME, LABELS)
    (suggestion,) = of(cluster, kinds.SUGGESTIONS)
    make(cluster, kind, f"{NAME}-random", suggestion)
    make(cluster, kind, "of-another", {"kind": "Owner", "metadata": {"name": OTHER, "uid": "u"}})
    hold(cluster, f"{NAME}-random", ["example.org/slow"], kind)
    with pytest.raises(StepError, match=rf"{kind.plural}\S* {NAME}-random \(finalizers example.org/slow\)") as caught:
        remove(connection, MADE, 0.5)
    assert "of-another" not in str(caught.value)
    hold(cluster, f"{NAME}-random", [], kind)
    remove(connection, MADE, 20.0)


def test_user_who_may_not_list_the_services_parts_can_still_remove(tmp_path: Path) -> None:
    with FakeApi(tmp_path) as api:
        for resource in SERVING_PATHS:
            api.on("GET", resource, failure(403, "Forbidden", "no"))
        remove(Connection(api.kubeconfig, limits=Limits(api=5.0, call=2.0, pause=0.01)), MADE, 5.0)
        assert {one.path for one in api.asked} >= set(SERVING_PATHS)


def test_what_hangs_is_named_without_anything_of_others(cluster: Served, connection: Connection) -> None:
    deployed(cluster, OTHER, OTHERS, finalizers=("update-prometheus-metrics",))
    deployed(cluster, NAME, LABELS, finalizers=("update-prometheus-metrics",))
    with pytest.raises(StepError) as caught:
        remove(connection, MADE, 0.3)
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


def test_leftover_with_the_label_is_found(cluster: Served, connection: Connection) -> None:
    cluster.store.create(kinds.CONFIG_MAPS, {"metadata": {"name": "stray", "labels": LABELS}}, TEAM)
    with pytest.raises(StepError, match=r"un-deploy left configmaps team/stray with label .*,pods,configmaps -n team -l"):
        remove(connection, MADE, 10.0)


def test_server_that_is_away_names_the_way_without_the_namespace(cluster: Served, connection: Connection) -> None:
    cluster.server.stop()
    with pytest.raises(StepError, match=f"run: kubectl delete experiments,configmaps -n {TEAM} -l tuneoff.io/execution=0123-ab"):
        remove(connection, MADE, 0.5)
