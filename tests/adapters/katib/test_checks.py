"""The checks of a cluster before a run, and the time that they may take."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from adapters.katib.fake_api import Answer, Asked, FakeApi, Silent, failure, write_kubeconfig
from adapters.katib.faulty_proxy import FaultyProxy
from tuneoff.errors import InfrastructureError, MissingPackageError, StepError
from tuneoff_adapters.katib import checks
from tuneoff_adapters.katib.checks import check_client, katib_needs
from tuneoff_adapters.katib.options import KatibOptions
from tuneoff_adapters.kubernetes.checks import CHECK_SECONDS, FIRST_SECONDS, SLACK_SECONDS, CheckedCluster, check_cluster, reach
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.transport import LOADING_SECONDS

GROUP, KINDS = "/apis/kubeflow.org", "/apis/kubeflow.org/v1beta1"
DEPLOYMENTS = "/apis/apps/v1/namespaces/kubeflow/deployments"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/katib.kubeflow.org"
DEFAULTS = KatibOptions()
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def deployment(available: str = "True", message: str = "fine") -> Answer:
    container = {"image": "katib-controller:v0.19.0"}
    return Answer(
        200,
        {
            "spec": {"template": {"spec": {"containers": [container]}}},
            "status": {"conditions": [{"type": "Available", "status": available, "message": message}]},
        },
    )


def review(*denied: str) -> Any:
    def answer(asked: Asked) -> Answer:
        wanted = asked.body["spec"]["resourceAttributes"]
        text = f"{wanted['verb']} {wanted['resource']}" + (f"/{wanted['subresource']}" if "subresource" in wanted else "")
        return Answer(201, {"status": {"allowed": text not in denied}})

    return answer


@pytest.fixture
def api(api: FakeApi) -> FakeApi:
    """A cluster that can take a run."""
    api.on("GET", "/version", Answer(200, {"gitVersion": "v1.36.2"}))
    api.on("GET", GROUP, Answer(200, {"versions": [{"version": "v1"}, {"version": "v1beta1"}]}))
    resources = [{"name": name} for name in ("experiments", "experiments/status", "trials", "suggestions")]
    api.on("GET", KINDS, Answer(200, {"resources": resources}))
    for name in ("katib-controller", "katib-db-manager"):
        api.on("GET", f"{DEPLOYMENTS}/{name}", deployment())
    webhook = {"name": "validator.experiment.katib.kubeflow.org", "clientConfig": {"caBundle": "QQ=="}}
    for kind in ("validating", "mutating"):
        api.on("GET", WEBHOOKS.replace("validating", kind), Answer(200, {"webhooks": [webhook]}))
    api.on("POST", REVIEWS, review())
    return api


def check(api: FakeApi, within_seconds: float = 10.0, options: KatibOptions = DEFAULTS) -> CheckedCluster:
    return check_cluster(
        Connection(api.kubeconfig), katib_needs(options, is_listed=True), options.namespace or "tuneoff-x", within_seconds
    )


def problem(api: FakeApi, options: KatibOptions = DEFAULTS) -> str:
    with pytest.raises(StepError) as caught:
        check(api, options=options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_good_cluster_passes_and_nothing_is_created(api: FakeApi) -> None:
    assert check(api) == ("v1.36.2", "katib-controller:v0.19.0")
    assert {(one.method, one.path) for one in api.asked if one.method != "GET"} == {("POST", REVIEWS)}
    asked = [one.body["spec"]["resourceAttributes"] for one in api.asked if one.path == REVIEWS]
    assert {"verb": "create", "group": "kubeflow.org", "resource": "experiments", "namespace": "tuneoff-x"} in asked
    assert {"verb": "get", "group": "", "resource": "pods", "subresource": "log", "namespace": "tuneoff-x"} in asked
    assert {"verb": "create", "group": "", "resource": "namespaces"} in asked


@pytest.mark.parametrize(
    ("method", "path", "most_seconds"), [("GET", "/version", FIRST_SECONDS), ("POST", REVIEWS, CHECK_SECONDS)]
)
def test_server_that_is_or_becomes_silent_is_given_up_within_the_time(
    api: FakeApi, gate: threading.Event, method: str, path: str, most_seconds: float
) -> None:
    api.on(method, path, Silent(gate))
    start = time.monotonic()
    with pytest.raises(StepError, match="no answer in time"):
        check(api, 0.5)
    assert time.monotonic() - start < most_seconds


def test_slow_server_is_waited_for_only_twice(api: FakeApi, tmp_path: Path) -> None:
    with FaultyProxy(api.url) as proxy:
        proxy.delay_seconds = 0.15
        slow = Connection(proxy.kubeconfig(api.kubeconfig, tmp_path / "slow"))
        check_cluster(slow, katib_needs(KatibOptions(), is_listed=True), "tuneoff-x", 40.0)
        assert proxy.overlapping() >= 10  # of about 28; one after the other: of none


TEAM = KatibOptions(namespace="team")
TEAM_PATH = "/api/v1/namespaces/team"
LABEL = "katib.kubeflow.org/metrics-collector-injection"


def namespace(phase: str = "Active", injection: str = "enabled") -> Answer:
    return Answer(200, {"metadata": {"name": "team", "labels": {LABEL: injection}}, "status": {"phase": phase}})


@pytest.mark.parametrize(
    ("path", "answer", "told"),
    [
        ("/version", failure(401, "Unauthorized", "Unauthorized"), "does not accept the kubeconfig's credentials"),
        (GROUP, failure(404, "NotFound", "no"), "Katib is not installed: the API server has no group kubeflow.org"),
        (
            KINDS,  # of another project of Kubeflow
            Answer(200, {"resources": [{"name": "pytorchjobs"}, {"name": "experiments"}]}),
            "no trials.kubeflow.org, suggestions.kubeflow.org in v1beta1",
        ),
        (
            GROUP,
            Answer(200, {"versions": [{"version": "v1alpha3"}]}),
            "must be kubeflow.org/v1beta1, but the API server has v1alpha3",
        ),
        (f"{DEPLOYMENTS}/katib-controller", failure(404, "NotFound", "not found"), "set option `katib_namespace`"),
        (f"{DEPLOYMENTS}/katib-controller", deployment("False", "few"), "kubeflow/katib-controller is not available (few)"),
        (f"{DEPLOYMENTS}/katib-db-manager", deployment("False", "few"), "kubeflow/katib-db-manager is not available (few)"),
        (
            WEBHOOKS,
            Answer(200, {"webhooks": [{"name": "validator", "clientConfig": {"service": {}}}]}),
            "webhook validator has no certificate yet",
        ),
        (TEAM_PATH, failure(404, "NotFound", "no"), "namespace 'team' does not exist"),
        (TEAM_PATH, namespace("Terminating"), "namespace 'team' is being deleted"),
        (TEAM_PATH, namespace(injection="disabled"), f"run: kubectl label namespace team {LABEL}=enabled"),
    ],
)
def test_what_is_wrong_with_a_cluster_is_told_in_one_line(api: FakeApi, path: str, answer: Answer, told: str) -> None:
    api.on("GET", TEAM_PATH, namespace())
    api.on("GET", path, answer)
    assert told in problem(api, TEAM)


def test_what_may_not_be_read_is_not_asked_for(api: FakeApi) -> None:
    for path in ("/version", f"{DEPLOYMENTS}/katib-controller", f"{DEPLOYMENTS}/katib-db-manager", WEBHOOKS, TEAM_PATH):
        api.on("GET", path, failure(403, "Forbidden", "no"))
    assert check(api, options=TEAM) == ("unknown", None)


def test_all_missing_rights_come_in_one_line_and_an_unanswered_review_is_no_right(api: FakeApi) -> None:
    api.on("POST", REVIEWS, review("create namespaces", "get pods/log", "watch trials"))
    assert "'tuneoff-x': create namespaces, watch trials.kubeflow.org, get pods/log;" in problem(api)
    api.on("GET", TEAM_PATH, namespace())
    api.on("POST", REVIEWS, review("create namespaces", "get namespaces", "delete namespaces"))
    check(api, options=TEAM)  # in a given one none of these is needed, but
    api.on("POST", REVIEWS, review("delete configmaps"))
    assert "'team': delete configmaps;" in problem(api, TEAM)
    check(api)  # nothing but a namespace is deleted there
    api.on("POST", REVIEWS, Answer(201, {}))
    assert "lacks rights" in problem(api)


@pytest.mark.parametrize(("version", "serves"), [("36.0.3", False), ("37.0.2", False), ("35.0.0", True), (None, True)])
def test_client_that_breaks_the_sdk(monkeypatch: pytest.MonkeyPatch, version: str | None, serves: bool) -> None:
    monkeypatch.setattr(checks, "installed_version", lambda package: version)
    if serves:
        check_client()
    else:
        with pytest.raises(MissingPackageError, match=f"{version} is installed; run: pip install 'kubernetes>=27.2,<36'"):
            check_client()


@pytest.mark.slow
def test_name_that_is_never_resolved_is_given_up_in_the_time_that_the_kubeconfig_left(
    gate: threading.Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(*arguments: Any, **options: Any) -> Any:
        gate.wait(60.0)
        raise socket.gaierror("no answer")

    def connect() -> Connection:
        time.sleep(1.0)  # a credential program
        return Connection(write_kubeconfig(tmp_path / "kubeconfig", "https://cluster.example:6443"))

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    start = time.monotonic()
    with pytest.raises(InfrastructureError, match=r"https://cluster.example:6443 cannot be reached .*DNS") as caught:
        reach(connect, katib_needs(KatibOptions(), is_listed=True), "tuneoff-x", 2.0)
    assert 1.0 < time.monotonic() - start < 2.0 + SLACK_SECONDS + 2.0  # with room for a busy machine
    assert "\n" not in str(caught.value)


def test_the_limit_leaves_the_command_time_to_start() -> None:
    assert LOADING_SECONDS + SLACK_SECONDS < CHECK_SECONDS + SLACK_SECONDS < 15.0  # what the documentation promises
