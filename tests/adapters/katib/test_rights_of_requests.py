"""The probe that maps requests to rights (the control of the whole runs in tests/e2e/test_katib_rights_used.py)."""

from __future__ import annotations

import pytest

from adapters.katib.katib_rights import right_of

EXPERIMENTS = "/apis/kubeflow.org/v1beta1/namespaces/team/experiments"


@pytest.mark.parametrize(
    ("method", "target", "right"),
    [
        ("GET", "/version", None),
        ("GET", "/apis/kubeflow.org/v1beta1", None),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", None),
        ("POST", "/api/v1/namespaces", ("", "namespaces", "create")),
        ("DELETE", "/api/v1/namespaces/team", ("", "namespaces", "delete")),
        ("GET", "/api/v1/pods?labelSelector=a%3Db", ("", "pods", "list")),
        ("GET", "/api/v1/namespaces/team/pods/p/log?container=c&follow=true", ("", "pods/log", "get")),
        ("GET", f"{EXPERIMENTS}?watch=true&resourceVersion=1", ("kubeflow.org", "experiments", "watch")),
        ("GET", EXPERIMENTS, ("kubeflow.org", "experiments", "list")),
        ("PATCH", f"{EXPERIMENTS}/e", ("kubeflow.org", "experiments", "patch")),
    ],
)
def test_a_request_needs_this_right(method: str, target: str, right: tuple[str, str, str] | None) -> None:
    assert right_of(method, target) == right
