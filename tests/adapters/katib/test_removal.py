"""What un-deploy removes, in its own namespace and in one that was there before."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from adapters.katib.deployed import SPECS, deploy, hold, make_owned
from adapters.katib.fake_api import Answer, FakeApi, failure, listing, thing, write_kubeconfig
from adapters.katib.faulty_proxy import FaultyProxy
from emulated.served import INJECTED, Served
from katib_emulation import objects as kinds
from tuneoff.errors import StepError
from tuneoff_adapters.kubernetes import removal
from tuneoff_adapters.kubernetes.connection import Connection, Limits
from tuneoff_adapters.kubernetes.removal import RunObjects, remove

pytestmark = pytest.mark.slow  # processes, or faults that have to last

LABELS, OTHERS = {"tuneoff.io/execution": "0123-ab"}, {"tuneoff.io/execution": "0123-cd"}
SELECTOR = "tuneoff.io/execution=0123-ab"
NAMESPACE, NAME, OTHER = "tuneoff-0123-ab", "r0123-ab", "r0123-cd"
OWN = RunObjects(namespace=NAMESPACE, is_own_namespace=True, name=NAME, labels=LABELS)
GIVEN = RunObjects(namespace="team", is_own_namespace=False, name=NAME, labels=LABELS)
BOTH = pytest.mark.parametrize("run", [OWN, GIVEN], ids=["own namespace", "given namespace"])
FINALIZERS = ("update-prometheus-metrics",)
QUICK = Limits(api=5.0, call=2.0, pause=0.01)


def deployed(cluster: Served, run: RunObjects, **more: Any) -> None:
    """Make what a run makes."""
    if run.is_own_namespace:
        cluster.store.create(kinds.NAMESPACES, {"metadata": {"name": run.namespace, "labels": {**LABELS, **INJECTED}}})
    deploy(cluster, run.namespace, NAME, LABELS, **more)


def everything(cluster: Served) -> list[tuple[str, ...]]:
    """Return kind, namespace, name and version of all that is there, without events."""
    found = [(kind, obj["metadata"]) for kind in kinds.KINDS if kind is not kinds.EVENTS for obj in cluster.store.list(kind)]
    return [(kind.kind, of.get("namespace", ""), of["name"], of["resourceVersion"]) for kind, of in found]


def let_go(cluster: Served, run: RunObjects) -> None:
    def change(obj: dict[str, Any]) -> None:
        obj["metadata"]["finalizers"] = [one for one in obj["metadata"].get("finalizers", []) if one == "foregroundDeletion"]

    cluster.store.update(kinds.EXPERIMENTS, NAME, run.namespace, change)


@BOTH
def test_only_what_is_the_executions_own_goes_and_a_second_time_changes_nothing(
    cluster: Served, to_cluster: Connection, run: RunObjects
) -> None:
    deploy(cluster, "team", OTHER, OTHERS)
    cluster.store.create(kinds.CONFIG_MAPS, {"metadata": {"name": "settings"}}, "team")
    cluster.store.create(kinds.JOBS, {"metadata": {"name": "nightly"}, "spec": SPECS[kinds.JOBS]}, "team")
    before = everything(cluster)
    deployed(cluster, run)
    assert len(everything(cluster)) == len(before) + 7 + run.is_own_namespace
    assert 0 < remove(to_cluster, run, 10.0) < 10
    assert everything(cluster) == before
    remove(to_cluster, run, 10.0)
    assert everything(cluster) == before


@BOTH
def test_what_has_our_names_and_is_not_ours_stays(cluster: Served, to_cluster: Connection, run: RunObjects) -> None:
    if run.is_own_namespace:
        cluster.store.create(kinds.NAMESPACES, {"metadata": {"name": NAMESPACE, "labels": OTHERS}})
    deploy(cluster, run.namespace, NAME, {"made-by": "someone"})
    before = everything(cluster)
    remove(to_cluster, run, 10.0)  # and its children are not waited for
    assert everything(cluster) == before


def test_the_experiments_end_is_waited_for_and_told_apart_from_the_namespaces(cluster: Served, to_cluster: Connection) -> None:
    deployed(cluster, OWN, finalizers=FINALIZERS)
    hold(cluster, kinds.CONFIG_MAPS, NAMESPACE, NAME, "example.org/slow")

    def let_go_later() -> None:
        time.sleep(0.4)
        let_go(cluster, OWN)
        while any(cluster.store.list(kind, NAMESPACE) for kind in (kinds.EXPERIMENTS, kinds.TRIALS, kinds.JOBS, kinds.PODS)):
            time.sleep(0.01)
        time.sleep(removal.LONGEST_PAUSE + 0.5)
        hold(cluster, kinds.CONFIG_MAPS, NAMESPACE, NAME)

    threading.Thread(target=let_go_later).start()
    start = time.monotonic()
    experiment_seconds = remove(to_cluster, OWN, 20.0)
    assert 0.2 <= experiment_seconds < time.monotonic() - start - 0.1


@pytest.mark.parametrize(
    ("run", "what", "see"),
    [
        (OWN, f"namespace {NAMESPACE} is still terminating", f"kubectl get namespace {NAMESPACE} -o yaml"),
        (
            GIVEN,
            f"experiment {NAME} is still being deleted in namespace team",
            f"kubectl get experiments,trials,jobs,pods,configmaps -n team -l {SELECTOR}",
        ),
    ],
    ids=["own namespace", "given namespace"],
)
def test_what_hangs_is_named_with_its_finalizer_and_the_way_out_once_all_was_asked_to_go(
    cluster: Served, to_cluster: Connection, run: RunObjects, what: str, see: str
) -> None:
    deploy(cluster, "team", OTHER, OTHERS, finalizers=FINALIZERS)
    before = everything(cluster)
    deployed(cluster, run, finalizers=FINALIZERS)
    with pytest.raises(StepError) as caught:
        remove(to_cluster, run, 0.01)
    text = str(caught.value)
    assert f"{what} after 0.01 s: experiments.kubeflow.org {NAME} (finalizers update-prometheus-metrics" in text
    assert f"all of it was asked to go, see: {see}" in text
    assert f"kubectl patch experiments.kubeflow.org {NAME} -n {run.namespace} --type=merge" in text
    assert (OTHER in text, "\n" in text) == (False, False)
    assert cluster.store.get(kinds.EXPERIMENTS, NAME, run.namespace)["metadata"]["deletionTimestamp"]
    let_go(cluster, run)  # nobody waits any more
    assert everything(cluster) == before


@pytest.mark.parametrize(
    ("conditions", "is_katib_there", "propagation"),
    [
        (("Created", "Running"), True, "Background"),
        (("Created", "Running"), False, "Foreground"),
        (("Created", "Succeeded"), True, "Foreground"),
        (("Failed",), True, "Foreground"),
        ((), True, "Foreground"),
    ],
)
def test_only_an_experiment_that_runs_under_a_living_katib_is_deleted_in_the_background(
    cluster: Served,
    to_cluster: Connection,
    monkeypatch: pytest.MonkeyPatch,
    conditions: tuple[str, ...],
    is_katib_there: bool,
    propagation: str,
) -> None:
    asked: list[tuple[str, str]] = []
    original = Connection.delete

    def delete(self: Connection, resource: Any, name: str, namespace: str | None = None, how: Any = "Background") -> bool:
        asked.append((name, how))
        return original(self, resource, name, namespace, how)

    def change(deployment: dict[str, Any]) -> None:
        deployment["status"]["conditions"][0]["status"] = str(is_katib_there)

    monkeypatch.setattr(Connection, "delete", delete)
    cluster.store.update(kinds.DEPLOYMENTS, "katib-controller", "kubeflow", change)
    deployed(cluster, OWN, conditions=conditions)
    remove(to_cluster, OWN, 10.0)
    assert asked == [(NAME, propagation), (NAMESPACE, "Background")]


@BOTH
def test_leftover_is_found_by_its_label(cluster: Served, to_cluster: Connection, run: RunObjects) -> None:
    cluster.store.create(kinds.CONFIG_MAPS, {"metadata": {"name": "stray", "labels": LABELS}}, "team")
    where = "-A" if run.is_own_namespace else "-n team"
    with pytest.raises(StepError, match=rf"un-deploy left configmaps team/stray with label {SELECTOR}; .*,configmaps {where} -l"):
        remove(to_cluster, run, 10.0)


@pytest.mark.parametrize(
    ("fault", "run", "way_out"),
    [
        *((fault, OWN, f"kubectl delete namespace {NAMESPACE}") for fault in ("refuses", "hangs", "fails")),
        ("refuses", GIVEN, f"kubectl delete experiments,configmaps -n team -l {SELECTOR}"),
    ],
)
def test_server_that_is_away_names_what_may_be_left(
    cluster: Served, tmp_path: Path, fault: str, run: RunObjects, way_out: str
) -> None:
    before = everything(cluster)
    deployed(cluster, run)
    with FaultyProxy(cluster.url) as proxy:
        away = Connection(write_kubeconfig(tmp_path / "proxied", proxy.url), limits=QUICK)
        proxy.is_hanging = fault == "hangs"
        proxy.status = 500 if fault == "fails" else None
        if fault == "refuses":
            proxy.refuse()
        start = time.monotonic()
        with pytest.raises(StepError) as caught:
            remove(away, run, 1.0)
        assert time.monotonic() - start < 15.0
        text = str(caught.value)
        assert (
            f"experiment {NAME} and {'namespace' if run is OWN else 'its config map in namespace'} {run.namespace} may be" in text
        )
        assert f"run: {way_out}" in text
        assert ("\n" in text, len(text) < 300) == (False, True)  # it stands beside the reason for which the run failed
        proxy.restore()
        remove(away, run, 10.0)
    assert everything(cluster) == before


SERVING_PATHS = [resource.path("team") for resource in removal.SERVING]
CLUSTER_PATHS = ["/api/v1/namespaces", "/api/v1/pods", "/apis/batch/v1/jobs", "/apis/kubeflow.org/v1beta1/trials"]


@pytest.mark.parametrize(("run", "paths"), [(OWN, CLUSTER_PATHS), (GIVEN, SERVING_PATHS)])
def test_user_who_may_list_only_what_is_needed_can_still_remove(
    api: FakeApi, connection: Connection, run: RunObjects, paths: list[str]
) -> None:
    for path in paths:
        api.on("GET", path, failure(403, "Forbidden", "no"))
    remove(connection, run, 5.0)
    assert {one.path for one in api.asked} >= set(paths)


def test_namespace_that_hangs_without_objects_tells_its_conditions(api: FakeApi, connection: Connection) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}"
    told = {"type": "NamespaceContentRemaining", "status": "True", "message": "secrets. has 1\nresource instances"}
    other = {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "all well"}
    namespace = thing(NAMESPACE, status={"phase": "Terminating", "conditions": [told, other]})
    namespace["metadata"]["labels"] = LABELS
    api.on("GET", path, Answer(200, namespace))
    api.on("DELETE", path, failure(409, "Conflict", "being deleted"))
    api.on("GET", "/api/v1/pods", listing())
    with pytest.raises(StepError, match=r"secrets. has 1 resource instances; .* see: kubectl get namespace") as caught:
        remove(connection, OWN, 0.3)
    assert "all well" not in str(caught.value)


SERVING = (kinds.DEPLOYMENTS, kinds.SERVICES, kinds.SERVICE_ACCOUNTS, kinds.ROLES, kinds.ROLE_BINDINGS)


def test_each_part_of_the_suggestions_service_is_waited_for(cluster: Served, to_cluster: Connection) -> None:
    """They outlive their owners, as on a cluster, where one goes after the other."""
    deploy(cluster, "team", NAME, LABELS)
    suggestion = cluster.store.get(kinds.SUGGESTIONS, NAME, "team")
    for kind in SERVING:
        make_owned(cluster, kind, "team", f"{NAME}-random", suggestion)
        make_owned(cluster, kind, "team", "of-another", {"kind": "Owner", "metadata": {"name": OTHER, "uid": "u"}})
        hold(cluster, kind, "team", f"{NAME}-random", "example.org/slow")
    with pytest.raises(StepError) as caught:
        remove(to_cluster, GIVEN, 0.5)
    for kind in SERVING:
        assert f"{kind.resource} {NAME}-random (finalizers example.org/slow)" in str(caught.value)
        hold(cluster, kind, "team", f"{NAME}-random")
    assert "of-another" not in str(caught.value)
    remove(to_cluster, GIVEN, 20.0)
