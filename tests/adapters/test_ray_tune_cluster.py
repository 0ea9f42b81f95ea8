"""What Ray Tune refuses on platform `cluster` before anything starts, and what `plan` says of a run there. Starts no Ray."""

from __future__ import annotations

import socket
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from builders.specs import make_context, toy_spec
from tuneoff.errors import ExperimentError, InfrastructureError
from tuneoff.experiment.skip_check import SkipCheck
from tuneoff.experiment.spec import Workers, WorkloadSpec
from tuneoff_adapters.ray_tune.adapter import RayTuneAdapter
from tuneoff_adapters.ray_tune.cluster import RayAddress, RayHosts
from tuneoff_platforms.remote.host import Timed

SURROGATE = WorkloadSpec(name="surrogate", target="tuneoff_workloads.surrogate:Surrogate", options={})
HERE = socket.gethostname()


def reason(options: dict[str, Any], **changes: Any) -> str | None:
    given = {"workload": SURROGATE, "platform": "cluster", **changes}
    return SkipCheck().reason(toy_spec("ray-tune", options=options, **given), RayTuneAdapter)


@pytest.mark.parametrize("options", [{"hosts": ["a", "b"]}, {"hosts": ["a"], "lost_seconds": 10}, {"address": "10.0.0.1:6379"}])
def test_what_can_be_served_is_not_refused(options: dict[str, Any]) -> None:
    assert reason(options) is None
    assert "has no options, but got" in (reason(options, platform="local") or "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs option `hosts`"),
        ({"hosts": ["a"], "address": "a:1"}, "needs option `hosts`"),
        ({"hosts": ["a"], "host": "b"}, "has no option 'host'; did you mean 'hosts'"),
        ({"address": "h1"}, "must be HOST:PORT"),
    ],
)
def test_a_wrong_option_is_the_users_mistake(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        reason(options)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("workers", "words"),
    [
        (Workers(count=1), "each of the 2 hosts must get a slot, but workers.count is 1"),
        (Workers(count=2, cpu_limit="quota"), "remove workers.cpu_limit"),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_reason(workers: Workers, words: str) -> None:
    assert words in (reason({"hosts": ["a", "b"]}, workers=workers) or "")


def test_the_hosts_are_no_part_of_the_run() -> None:
    assert {"hosts", "host_command", "host_python", "lost_seconds", "address"} == RayTuneAdapter.local_options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hosts": [HERE, "b"]}, f"starts Ray on {HERE} 2 slots and Ray head, b 1 slots; reached by `ssh {{host}}`"),
        ({"hosts": ["b", "c"]}, "starts Ray on this machine Ray's head, b 2 slots, c 1 slots; reached by `ssh {host}`"),
        ({"address": "a:1"}, "Ray's cluster at a:1: 3 slots where it puts them; starts no node"),
    ],
)
def test_the_plan_says_what_is_started_where(options: dict[str, Any], words: str) -> None:
    assert RayTuneAdapter.placement(toy_spec("ray-tune", platform="cluster", options=options, workers=Workers(count=3))) == words
    assert RayTuneAdapter.placement(toy_spec("ray-tune")) is None


def test_undeploy_without_a_deploy_reaches_no_host(tmp_path: Path) -> None:
    options = {"hosts": ["nowhere"], "host_command": "false {host}"}
    adapter = RayTuneAdapter(make_context(toy_spec("ray-tune", platform="cluster", options=options), tmp_path))
    adapter.undeploy()
    assert list(adapter.context.work_dir.iterdir()) == []


def test_a_command_that_cannot_be_run_is_said_in_one_line_and_leaves_nothing_to_undeploy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuneoff_adapters.ray_tune.cluster.prepare_environment", lambda **_: {})  # would stay after the test
    options = {"hosts": ["nowhere"], "host_command": "no-such-program {host}"}
    context = make_context(toy_spec("ray-tune", platform="cluster", options=options), tmp_path)
    hosts = RayHosts(context)
    with pytest.raises(InfrastructureError, match=r"^host nowhere cannot be reached: .*no-such-program: not found$"):
        hosts.start(lambda: None)
    hosts.stop(20)
    assert not context.outside.exists()


class Gone:
    """A node whose agent cannot start."""

    def __init__(self, name: str, node_id: str) -> None:
        self.name = name

    def send(self, do: str, **arguments: object) -> Future[Timed]:
        future: Future[Timed] = Future()
        future.set_exception(InfrastructureError(f"node {self.name}: No module named 'tuneoff_adapters'"))
        return future

    def close(self, at_once: bool = False) -> None:
        pass


def test_a_node_of_a_cluster_without_tuneoff_ends_the_start_and_is_flagged_when_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuneoff_adapters.ray_tune.cluster.ActorNode", Gone)
    cluster = RayAddress(make_context(toy_spec("ray-tune", platform="cluster", options={"address": "a:1"}), tmp_path))
    with pytest.raises(InfrastructureError, match="node h1: No module named"):
        cluster._take_in([("h1", "1")])
    answers: list[object] = [ValueError("not of Ray's"), [("h2", "2")], [("h3", "3")]]

    def joined() -> object:
        if not answers:
            cluster._stop.set()
            return []
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("tuneoff_adapters.ray_tune.cluster.BEAT_SECONDS", 0.0)
    monkeypatch.setattr(cluster, "_joined", joined)
    cluster._look()  # ends by `_stop` alone
    cluster._contact.end(0.0)
    lines = [line for line in next(tmp_path.rglob("coordinator-*.jsonl")).read_text().splitlines() if "host_unchecked" in line]
    assert ["node h2 joined late, and Ray starts trials there, but node h2: No module named" in line for line in lines] == [
        True,
        False,
    ]
