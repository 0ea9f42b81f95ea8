"""The API over real HTTP: paths, verbs, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from emulated.served import INJECTED, KATIB, Served, experiment, trial
from katib_emulation.objects import PODS, TRIALS


def test_a_duplicate_is_refused_in_the_servers_words(api: Served) -> None:
    path = api.namespace()
    api.ask("POST", f"{path}/experiments", experiment())
    assert api.ask("POST", f"{path}/experiments", experiment()) == (
        409,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'experiments.kubeflow.org "e1" already exists',
            "reason": "AlreadyExists",
            "code": 409,
        },
    )


def test_a_status_is_not_the_clients_to_write(api: Served) -> None:
    path = api.namespace()
    assert "status" not in api.ask("POST", f"{path}/trials", {**trial(), "status": {"conditions": []}})[1]
    api.store.update(TRIALS, "t1", "ns", lambda obj: obj.update(status={"a": 1}))
    patch = {"Content-Type": "application/merge-patch+json"}
    assert api.ask("PATCH", f"{path}/trials/t1", {"status": {"a": 2}, "spec": {"n": 2}}, patch)[1]["status"] == {"a": 1}


def test_a_denial_of_the_webhook_has_no_reason(api: Served) -> None:
    path = api.namespace()
    bad = experiment()
    bad["spec"]["resumePolicy"] = "Always"
    code, status = api.ask("POST", f"{path}/experiments", bad)
    assert code == status["code"] == 400
    assert "reason" not in status
    assert status["message"].startswith('admission webhook "validator.experiment.katib.kubeflow.org" denied the request: ')
    assert api.ask("GET", f"{path}/experiments/e1")[0] == 404


def test_admission_also_guards_updates_of_the_spec(api: Served) -> None:
    path = api.namespace()
    api.ask("POST", f"{path}/experiments", experiment())
    patch = {"Content-Type": "application/merge-patch+json"}
    code, changed = api.ask("PATCH", f"{path}/experiments/e1", {"spec": {"maxTrialCount": 5}}, patch)
    assert (code, changed["spec"]["maxTrialCount"], changed["metadata"]["generation"]) == (200, 5, 2)
    code, status = api.ask("PATCH", f"{path}/experiments/e1", {"spec": {"objective": {"type": "minimize"}}}, patch)
    assert code == 400
    assert "denied the request" in status["message"]
    assert api.ask("GET", f"{path}/experiments/e1")[1] == changed


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b"{", 400, "it is no JSON"),
        ({"metadata": {"name": "t"}}, 400, "Object 'Kind' is missing"),
        ({**trial(), "kind": "Pod"}, 400, "the Kind in the data"),
        ({**trial(), "apiVersion": "kubeflow.org/v1"}, 400, "the apiVersion in the data"),
        (trial(namespace="other"), 400, "the namespace of the provided object does not match"),
        (trial("T_1"), 422, "a lowercase RFC 1123 name"),
        ([1], 400, "must be a Trial object"),
    ],
)
def test_bodies_that_are_no_such_object_are_refused(api: Served, body: Any, code: int, text: str) -> None:
    path = api.namespace()
    got, status = api.ask("POST", f"{path}/trials", body)
    assert (got, status["kind"], status["code"]) == (code, "Status", code)
    assert text in status["message"]


def test_a_missing_namespace(api: Served) -> None:
    path = f"{KATIB}/namespaces/nope"
    assert api.ask("POST", f"{path}/experiments", experiment())[1]["message"] == 'namespaces "nope" not found'
    assert api.ask("GET", f"{path}/experiments/e1")[1]["message"] == 'experiments.kubeflow.org "e1" not found'
    assert api.ask("GET", f"{path}/experiments")[1]["items"] == []


@pytest.mark.parametrize(
    ("verb", "path", "code"),
    [
        ("GET", "/apis/kubeflow.org/v1/experiments", 404),
        ("GET", "/nowhere", 404),
        ("GET", "/apis/kubeflow.org/v1beta1/experiments/e1", 404),
        ("GET", "/api/v1/namespaces/default/namespaces", 404),
        ("GET", "/api/v1/namespaces/default/configmaps/c/status", 404),
        ("PUT", "/api/v1/namespaces/default/pods", 405),
        ("POST", "/api/v1/pods", 405),
        ("POST", "/version", 404),
        ("DELETE", "/api/v1/namespaces/default/pods/p/log", 405),
    ],
)
def test_what_does_not_exist_is_told_apart_from_what_is_not_allowed(api: Served, verb: str, path: str, code: int) -> None:
    got, status = api.ask(verb, path, {"metadata": {}} if verb in ("POST", "PUT") else None)
    assert (got, status["kind"]) == (code, "Status")


def test_lists_select_by_labels_and_fields(api: Served) -> None:
    path = api.namespace()
    for name, labels in (("t1", {"e": "a", "x": "1"}), ("t2", {"e": "a"}), ("t3", {"e": "b"})):
        api.store.create(TRIALS, trial(name, labels=labels), "ns")

    def names(query: str) -> list[str]:
        code, found = api.ask("GET", f"{path}/trials?{query}")
        assert (code, found["kind"], found["apiVersion"]) == (200, "TrialList", "kubeflow.org/v1beta1")
        assert found["metadata"]["resourceVersion"] == str(api.store.view(TRIALS)[0])
        return [item["metadata"]["name"] for item in found["items"]]

    assert names("labelSelector=e%3Da") == ["t1", "t2"]
    assert names("labelSelector=e%3D%3Da,x%3D1") == ["t1"]
    assert names("fieldSelector=metadata.name%3Dt2") == ["t2"]
    assert api.ask("GET", f"{path}/trials?labelSelector=e!%3Da")[0] == 400
    assert api.ask("GET", f"{path}/trials?labelSelector=e")[0] == 400
    assert len(api.ask("GET", f"{KATIB}/trials")[1]["items"]) == 3


def test_events_select_by_the_object_they_are_about(api: Served) -> None:
    api.namespace()
    for name in ("t1", "t2"):
        api.store.record_event(api.store.create(TRIALS, trial(name), "ns"), "Normal", "R", "m")
    events = api.ask("GET", "/api/v1/namespaces/ns/events?fieldSelector=involvedObject.name%3Dt2,involvedObject.kind%3DTrial")[1]
    assert [event["involvedObject"]["name"] for event in events["items"]] == ["t2"]


def test_deletion_answers_with_a_status_or_with_the_held_object(api: Served) -> None:
    path = api.namespace()
    api.ask("POST", f"{path}/trials", trial("free"))
    api.ask("POST", f"{path}/trials", trial("held", finalizers=["hold"]))
    code, status = api.ask("DELETE", f"{path}/trials/free")
    assert (code, status["kind"], status["status"]) == (200, "Status", "Success")
    code, held = api.ask("DELETE", f"{path}/trials/held")
    assert (code, held["kind"]) == (200, "Trial")
    assert held["metadata"]["deletionTimestamp"]
    assert api.ask("DELETE", f"{path}/trials/held") == (200, held)
    patch = {"Content-Type": "application/merge-patch+json"}
    api.ask("PATCH", f"{path}/trials/held", {"metadata": {"finalizers": None}}, patch)
    assert api.ask("GET", f"{path}/trials/held")[0] == 404
    assert api.ask("DELETE", f"{path}/trials/held")[0] == 404


@pytest.mark.parametrize("where", ["body", "query"])
def test_the_propagation_policy_is_read_from_body_and_query(api: Served, where: str) -> None:
    path = api.namespace()
    _, owner = api.ask("POST", f"{path}/trials", trial("owner", finalizers=["hold"]))
    api.ask("POST", f"{path}/trials", trial("owned", ownerReferences=[{"uid": owner["metadata"]["uid"], "name": "owner"}]))
    body = {"propagationPolicy": "Foreground"} if where == "body" else None
    query = "" if body else "?propagationPolicy=Foreground"
    assert api.ask("DELETE", f"{path}/trials/owner{query}", body)[0] == 200
    assert api.ask("GET", f"{path}/trials/owned")[0] == 404
    assert api.ask("GET", f"{path}/trials/owner")[0] == 200
    assert api.ask("DELETE", f"{path}/trials/owner?propagationPolicy=Sideways")[0] == 422


def test_the_namespace_can_be_created_again_when_it_is_gone(api: Served) -> None:
    api.namespace()
    assert api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "ns"}})[0] == 409
    api.ask("DELETE", "/api/v1/namespaces/ns")
    assert api.ask("GET", "/api/v1/namespaces/ns")[0] == 404
    assert api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "ns", "labels": INJECTED}})[0] == 201


def test_logs_are_read_and_followed(api: Served) -> None:
    api.namespace()
    api.store.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, "ns")
    path = "/api/v1/namespaces/ns/pods/p/log"
    assert api.ask("GET", f"{path}?container=c") == (200, "one\ntwo\nthree\n")
    assert api.ask("GET", f"{path}?container=c&follow=true") == (200, "one\ntwo\n")


def test_discovery_and_the_installed_katib(api: Served) -> None:
    assert "emulated" in api.ask("GET", "/version")[1]["gitVersion"]
    assert api.ask("GET", "/apis/kubeflow.org")[1]["versions"] == [{"groupVersion": "kubeflow.org/v1beta1", "version": "v1beta1"}]
    resources = [entry["name"] for entry in api.ask("GET", KATIB)[1]["resources"]]
    assert resources == ["experiments", "trials", "suggestions"]
    for name in ("katib-controller", "katib-db-manager"):
        deployment = api.ask("GET", f"/apis/apps/v1/namespaces/kubeflow/deployments/{name}")[1]
        assert deployment["spec"]["template"]["spec"]["containers"][0]["image"].endswith("emulated")
        assert {"type": "Available", "status": "True"}.items() <= deployment["status"]["conditions"][0].items()
    for webhooks in ("validating", "mutating"):
        found = api.ask("GET", f"/apis/admissionregistration.k8s.io/v1/{webhooks}webhookconfigurations/katib.kubeflow.org")[1]
        assert all(webhook["clientConfig"]["caBundle"] for webhook in found["webhooks"])
