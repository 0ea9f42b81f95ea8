"""What un-deploy removes, in its own namespace and in one that was there before."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from adapters.katib.deployed import POD, SPECS, deploy, hold, make_owned
from adapters.katib.fake_api import Answer, FakeApi, failure, listing, thing, write_kubeconfig
from adapters.katib.faulty_proxy import FaultyProxy
from emulated.served import INJECTED, Object, Served, experiment
from katib_emulation import objects as kinds
from tuneoff.errors import StepError
from tuneoff_adapters.kubernetes import removal
from tuneoff_adapters.kubernetes.connection import Connection, Limits
from tuneoff_adapters.kubernetes.removal import RunObjects, remove

pytestmark = pytest.mark.slow  # processes, or faults that have to last

LABEL = ("tuneoff.io/execution", "0123-ab")
NAMESPACE, NAME = "tuneoff-0123-ab", "r0123-ab"
MADE = RunObjects(namespace=NAMESPACE, is_own_namespace=True, experiment=NAME, config_map=NAME, labels=dict([LABEL]))
QUICK = Limits(api=5.0, call=2.0, pause=0.01)


def deployed(cluster: Served, *, finalizers: tuple[str, ...] = (), conditions: tuple[str, ...] = ("Created", "Running")) -> None:
    """Make what a run makes, with a namespace of its own."""
    labels = dict([LABEL])
    cluster.store.create(kinds.NAMESPACES, {"metadata": {"name": NAMESPACE, "labels": {**labels, **INJECTED}}})
    deploy(cluster, NAMESPACE, NAME, labels, finalizers=finalizers, conditions=conditions)


def let_go(cluster: Served) -> None:
    def change(obj: dict[str, Any]) -> None:
        obj["metadata"]["finalizers"] = [one for one in obj["metadata"].get("finalizers", []) if one == "foregroundDeletion"]

    cluster.store.update(kinds.EXPERIMENTS, NAME, NAMESPACE, change)


def left(cluster: Served) -> list[str]:
    all_kinds = (kinds.NAMESPACES, kinds.EXPERIMENTS, kinds.TRIALS, kinds.JOBS, kinds.PODS, kinds.CONFIG_MAPS)
    return [obj["metadata"]["name"] for kind in all_kinds for obj in cluster.store.list(kind, None, dict([LABEL]))]


def test_everything_is_gone_afterwards_and_a_second_time_changes_nothing(cluster: Served, to_cluster: Connection) -> None:
    deployed(cluster)
    assert len(left(cluster)) == 6
    removal = remove(to_cluster, MADE, 10.0)
    assert left(cluster) == []
    assert 0 < removal.experiment_seconds <= removal.total_seconds < 10
    assert remove(to_cluster, MADE, 10.0)


def test_nothing_to_remove_is_no_error(to_cluster: Connection) -> None:
    remove(to_cluster, MADE, 10.0)


def test_other_runs_are_left_alone(cluster: Served, to_cluster: Connection) -> None:
    other = {"metadata": {"name": "tuneoff-other", "labels": {LABEL[0]: "other"}}}
    cluster.store.create(kinds.NAMESPACES, other)
    cluster.store.create(kinds.CONFIG_MAPS, {"metadata": {"name": "tuneoff"}}, "tuneoff-other")
    deployed(cluster)
    remove(to_cluster, MADE, 10.0)
    assert cluster.store.get(kinds.CONFIG_MAPS, "tuneoff", "tuneoff-other")


def test_finalizer_is_waited_for(cluster: Served, to_cluster: Connection) -> None:
    deployed(cluster, finalizers=("update-prometheus-metrics",))
    threading.Timer(0.5, let_go, (cluster,)).start()
    removal = remove(to_cluster, MADE, 20.0)
    assert removal.experiment_seconds >= 0.2
    assert left(cluster) == []


def test_the_experiments_end_is_told_apart_from_the_namespaces(cluster: Served, to_cluster: Connection) -> None:
    deployed(cluster)
    hold(cluster, kinds.CONFIG_MAPS, NAMESPACE, NAME, "example.org/slow")
    store = cluster.store

    def let_go_later() -> None:
        while any(store.list(kind, NAMESPACE) for kind in (kinds.EXPERIMENTS, kinds.TRIALS, kinds.JOBS, kinds.PODS)):
            time.sleep(0.01)
        time.sleep(0.5)
        hold(cluster, kinds.CONFIG_MAPS, NAMESPACE, NAME)

    threading.Thread(target=let_go_later).start()
    removal = remove(to_cluster, MADE, 20.0)
    assert removal.total_seconds - removal.experiment_seconds > 0.1
    assert left(cluster) == []


def test_everything_is_asked_for_before_anything_is_waited_for(cluster: Served, to_cluster: Connection) -> None:
    deployed(cluster, finalizers=("update-prometheus-metrics",))
    with pytest.raises(StepError, match="all of it was asked to go"):
        remove(to_cluster, MADE, 0.01)
    for kind, name, namespace in ((kinds.EXPERIMENTS, NAME, NAMESPACE), (kinds.NAMESPACES, NAMESPACE, None)):
        assert cluster.store.get(kind, name, namespace)["metadata"]["deletionTimestamp"]
    let_go(cluster)  # nobody waits any more
    assert left(cluster) == []


def test_namespace_of_our_name_that_is_not_ours_stays(cluster: Served, to_cluster: Connection) -> None:
    cluster.store.create(kinds.NAMESPACES, {"metadata": {"name": NAMESPACE, "labels": {LABEL[0]: "other"}}})
    cluster.store.create(kinds.EXPERIMENTS, experiment(NAME), NAMESPACE)
    remove(to_cluster, MADE, 10.0)
    assert cluster.store.get(kinds.EXPERIMENTS, NAME, NAMESPACE)


def test_what_hangs_is_named_with_its_finalizer_and_the_way_out(cluster: Served, to_cluster: Connection) -> None:
    deployed(cluster, finalizers=("update-prometheus-metrics",))
    start = time.monotonic()
    with pytest.raises(StepError) as caught:
        remove(to_cluster, MADE, 1.0)
    assert time.monotonic() - start < 15.0
    text = str(caught.value)
    assert f"namespace {NAMESPACE} is still terminating after 1 s: experiments.kubeflow.org {NAME} (finalizers" in text
    assert f"see: kubectl get namespace {NAMESPACE} -o yaml" in text
    assert f"kubectl patch experiments.kubeflow.org {NAME} -n {NAMESPACE} --type=merge" in text
    assert "update-prometheus-metrics" in text
    assert "\n" not in text
    let_go(cluster)
    remove(to_cluster, MADE, 10.0)
    assert left(cluster) == []


@pytest.mark.parametrize(
    ("conditions", "propagation"),
    [
        (("Created", "Running"), "Background"),
        (("Created", "Succeeded"), "Foreground"),
        (("Failed",), "Foreground"),
        ((), "Foreground"),
    ],
)
def test_only_an_experiment_that_runs_is_deleted_in_the_background(
    cluster: Served, to_cluster: Connection, monkeypatch: pytest.MonkeyPatch, conditions: tuple[str, ...], propagation: str
) -> None:
    deployed(cluster, conditions=conditions)
    assert deletions(to_cluster, monkeypatch) == [(NAME, propagation), (NAMESPACE, "Background")]


def test_dead_controller_makes_it_foreground(cluster: Served, to_cluster: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(deployment: dict[str, Any]) -> None:
        deployment["status"]["conditions"][0]["status"] = "False"

    cluster.store.update(kinds.DEPLOYMENTS, "katib-controller", "kubeflow", stop)
    deployed(cluster)
    assert deletions(to_cluster, monkeypatch)[0] == (NAME, "Foreground")


def deletions(to_cluster: Connection, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Remove, and return what was asked for: name and propagation."""
    found: list[tuple[str, str]] = []
    original = Connection.delete

    def delete(self: Connection, resource: Any, name: str, namespace: str | None = None, how: Any = "Background") -> bool:
        found.append((name, how))
        return original(self, resource, name, namespace, how)

    monkeypatch.setattr(Connection, "delete", delete)
    remove(to_cluster, MADE, 10.0)
    return found


def test_leftover_elsewhere_is_found_by_its_label(cluster: Served, to_cluster: Connection) -> None:
    cluster.store.create(kinds.NAMESPACES, {"metadata": {"name": "elsewhere"}})
    cluster.store.create(kinds.PODS, {"metadata": {"name": "stray", "labels": dict([LABEL])}, "spec": POD}, "elsewhere")
    with pytest.raises(StepError, match=r"un-deploy left pods elsewhere/stray with label tuneoff.io/execution=0123-ab"):
        remove(to_cluster, MADE, 10.0)


@pytest.mark.parametrize("fault", ["refuses", "hangs", "fails"])
def test_server_that_is_away_names_what_may_be_left(cluster: Served, tmp_path: Path, fault: str) -> None:
    deployed(cluster)
    with FaultyProxy(cluster.url) as proxy:
        away = Connection(write_kubeconfig(tmp_path / "proxied", proxy.url), limits=QUICK)
        proxy.is_hanging = fault == "hangs"
        proxy.status = 500 if fault == "fails" else None
        if fault == "refuses":
            proxy.refuse()
        start = time.monotonic()
        with pytest.raises(StepError) as caught:
            remove(away, MADE, 1.0)
        assert time.monotonic() - start < 15.0
        text = str(caught.value)
        assert f"experiment {NAME} and namespace {NAMESPACE} may be left" in text
        assert f"kubectl delete namespace {NAMESPACE}" in text
        assert "\n" not in text
        assert len(text) < 300  # it stands beside the reason for which the run failed
        proxy.restore()
        remove(away, MADE, 10.0)
    assert left(cluster) == []


def test_server_that_comes_back_in_time_is_enough(cluster: Served, tmp_path: Path) -> None:
    deployed(cluster)
    with FaultyProxy(cluster.url) as proxy:
        away = Connection(write_kubeconfig(tmp_path / "proxied", proxy.url), limits=Limits(api=20.0))
        proxy.refuse()
        threading.Timer(0.3, proxy.restore).start()
        remove(away, MADE, 20.0)
    assert left(cluster) == []


def test_user_who_may_list_only_the_own_namespace_can_still_remove(api: FakeApi, connection: Connection) -> None:
    api.on("GET", f"/api/v1/namespaces/{NAMESPACE}", failure(404, "NotFound", "gone"))
    for path in ("/api/v1/namespaces", "/api/v1/pods", "/apis/batch/v1/jobs", "/apis/kubeflow.org/v1beta1/trials"):
        api.on("GET", path, failure(403, "Forbidden", "no"))
    remove(connection, MADE, 5.0)


def test_namespace_that_hangs_without_objects_tells_its_conditions(api: FakeApi, connection: Connection) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}"
    told = {"type": "NamespaceContentRemaining", "status": "True", "message": "secrets. has 1\nresource instances"}
    other = {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "all well"}
    namespace = thing(NAMESPACE, status={"phase": "Terminating", "conditions": [told, other]})
    namespace["metadata"]["labels"] = dict([LABEL])
    api.on("GET", path, Answer(200, namespace))
    api.on("DELETE", path, failure(409, "Conflict", "being deleted"))
    api.on("GET", "/api/v1/pods", listing())
    with pytest.raises(StepError, match=r"secrets. has 1 resource instances; .* see: kubectl get namespace") as caught:
        remove(connection, MADE, 0.3)
    assert "all well" not in str(caught.value)


def test_slow_server_is_asked_several_things_at_once(cluster: Served, tmp_path: Path) -> None:
    deployed(cluster)
    with FaultyProxy(cluster.url) as proxy:
        proxy.delay_seconds = 0.15
        slow = Connection(write_kubeconfig(tmp_path / "proxied", proxy.url))
        remove(slow, MADE, 40.0)
        assert len(proxy.seen) > 12
        assert proxy.overlapping() >= 4  # of about 10; one after the other: of none
    assert left(cluster) == []


TEAM, NAME, OTHER = "team", "r0123-ab", "r0123-cd"
LABELS, OTHERS = {"tuneoff.io/execution": "0123-ab"}, {"tuneoff.io/execution": "0123-cd"}
GIVEN = RunObjects(namespace=TEAM, is_own_namespace=False, experiment=NAME, config_map=NAME, labels=LABELS)
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
    removal = remove(to_cluster, GIVEN, 10.0)
    assert 0 < removal.experiment_seconds <= removal.total_seconds
    assert everything(cluster) == before
    remove(to_cluster, GIVEN, 10.0)
    assert everything(cluster) == before


def test_experiment_and_config_map_of_our_name_that_are_older_stay(cluster: Served, to_cluster: Connection) -> None:
    deploy(cluster, TEAM, NAME, {"made-by": "someone"})
    before = everything(cluster)
    remove(to_cluster, GIVEN, 10.0)  # and its children are not waited for
    assert everything(cluster) == before


def test_child_without_a_label_is_waited_for(cluster: Served, to_cluster: Connection) -> None:
    """The suggestion's pod outlives its owners, as on a cluster, where they go one after the other."""
    deploy(cluster, TEAM, NAME, LABELS)
    hold(cluster, kinds.PODS, TEAM, f"{NAME}-random-0", "example.org/slow")
    threading.Timer(0.6, hold, (cluster, kinds.PODS, TEAM, f"{NAME}-random-0")).start()
    assert remove(to_cluster, GIVEN, 20.0).experiment_seconds > 0.5
    assert ours(cluster) == []


@pytest.mark.parametrize("kind", SERVING, ids=lambda kind: kind.plural)
def test_each_part_of_the_suggestions_service_is_waited_for(cluster: Served, to_cluster: Connection, kind: kinds.Kind) -> None:
    deploy(cluster, TEAM, NAME, LABELS)
    (suggestion,) = of(cluster, kinds.SUGGESTIONS)
    make_owned(cluster, kind, TEAM, f"{NAME}-random", suggestion)
    make_owned(cluster, kind, TEAM, "of-another", {"kind": "Owner", "metadata": {"name": OTHER, "uid": "u"}})
    hold(cluster, kind, TEAM, f"{NAME}-random", "example.org/slow")
    with pytest.raises(StepError, match=rf"{kind.plural}\S* {NAME}-random \(finalizers example.org/slow\)") as caught:
        remove(to_cluster, GIVEN, 0.5)
    assert "of-another" not in str(caught.value)
    hold(cluster, kind, TEAM, f"{NAME}-random")
    remove(to_cluster, GIVEN, 20.0)


def test_user_who_may_not_list_the_services_parts_can_still_remove(api: FakeApi, connection: Connection) -> None:
    for resource in SERVING_PATHS:
        api.on("GET", resource, failure(403, "Forbidden", "no"))
    remove(connection, GIVEN, 5.0)
    assert {one.path for one in api.asked} >= set(SERVING_PATHS)


def test_what_hangs_is_named_without_anything_of_others(cluster: Served, to_cluster: Connection) -> None:
    deploy(cluster, TEAM, OTHER, OTHERS, finalizers=("update-prometheus-metrics",))
    deploy(cluster, TEAM, NAME, LABELS, finalizers=("update-prometheus-metrics",))
    with pytest.raises(StepError) as caught:
        remove(to_cluster, GIVEN, 0.3)
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
        remove(to_cluster, GIVEN, 10.0)


def test_server_that_is_away_names_the_way_without_the_namespace(cluster: Served, to_cluster: Connection) -> None:
    cluster.server.stop()
    with pytest.raises(StepError, match=f"run: kubectl delete experiments,configmaps -n {TEAM} -l tuneoff.io/execution=0123-ab"):
        remove(to_cluster, GIVEN, 0.5)
