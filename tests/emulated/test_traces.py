"""The emulation against what a real cluster did: Kubernetes 1.36.2 and Katib 0.19.0, recorded by `emulated.tracing`."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from emulated.program import program
from emulated.trace_cases import CASES, Object
from emulated.tracing import outline, record_apart

pytest.importorskip("kubeflow.katib", reason="needs kubeflow-katib")
pytestmark = pytest.mark.slow

RECORDED = Path(__file__).with_name("traces")
# what the emulation leaves out: the suggestion's service is not a pod there; no scheduler, kubelet or deployment says anything
ONLY_REAL = {
    "Deployment Normal ScalingReplicaSet",
    "Pod Normal Created",
    "Pod Normal Killing",
    "Pod Normal Pulled",
    "Pod Normal Scheduled",
    "ReplicaSet Normal SuccessfulCreate",
}


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Object]:
    """Return the trace of each experiment on one emulated cluster, all at once."""
    cluster = tmp_path_factory.mktemp("cluster") / "objects"
    with program(cluster) as server, ThreadPoolExecutor(len(CASES)) as pool:
        traces = pool.map(lambda name: record_apart(server.kubeconfig, name, "any:1"), CASES)
        return dict(zip(CASES, traces, strict=True))


def recorded(name: str) -> Object:
    return outline(json.loads((RECORDED / f"{name}.json").read_text()))


def emulable(real: Object) -> Object:
    """Return the part of a real outline that the emulation claims to show."""
    objects = {kind: lasts for kind, lasts in real["objects"].items() if kind != "Service pod"}
    return {**real, "objects": objects, "events": [event for event in real["events"] if event not in ONLY_REAL]}


@pytest.mark.parametrize("name", CASES)
def test_the_emulation_shows_the_sdks_user_what_a_real_cluster_showed(name: str, emulated: Mapping[str, Object]) -> None:
    assert outline(emulated[name]) == emulable(recorded(name))


@pytest.mark.parametrize("name", CASES)
def test_what_is_left_out_was_there(name: str) -> None:
    assert set(recorded(name)["events"]) >= ONLY_REAL
    assert recorded(name)["objects"]["Service pod"]


def test_another_reason_of_a_condition_would_be_seen() -> None:
    """Control."""
    found = json.loads((RECORDED / "success.json").read_text())
    planted = copy.deepcopy(found)
    (_, states) = planted["objects"]["Trial"][0]
    states[-2][1]["conditions"][-1] = "Succeeded=True TrialSucceeded"
    assert outline(planted) != outline(found)
