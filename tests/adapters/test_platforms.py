"""What SLURM's words mean, and what happens to hosts that are not there. Starts nothing."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from builders.specs import make_context, toy_spec
from tuneoff.errors import InfrastructureError
from tuneoff_adapters.ray_tune.adapter import RayTuneAdapter
from tuneoff_adapters.ray_tune.cluster import RayAddress, RayHosts
from tuneoff_platforms.remote import job
from tuneoff_platforms.remote.host import Timed
from tuneoff_platforms.remote.job import Endpoint, Job, JobAgent
from tuneoff_platforms.slurm import jobs


@pytest.mark.parametrize(
    ("name", "why", "phase"),
    [
        ("RUNNING", "None", "running"),
        ("PENDING", "BeginTime", "waiting"),
        ("PENDING", "JobHeldUser", "held"),
        ("TIMEOUT", "None", "ended"),
        ("UNKNOWN", "", "ended"),
        (jobs.AWAY, "", "unknown"),
    ],
)
def test_states_of_jobs(name: str, why: str, phase: str) -> None:
    assert jobs.launch_state(name, why).phase == phase


def test_slurm_is_asked_once_for_all_jobs_and_by_itself_for_one_that_has_left_its_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    is_away = False

    def answer(*command: str) -> str:
        asked.append(command[0])
        if is_away:
            raise InfrastructureError("away")
        if command[0] == "squeue":
            return "1|RUNNING|None\n2|PENDING|launch failed requeued held\n"
        assert command[-1] == "3"
        return "JobId=3 JobState=TIMEOUT Reason=TimeLimit"

    monkeypatch.setattr(jobs, "call", answer)
    assert [state.phase for state in jobs.states("run", ["1", "2", "3"]).values()] == ["running", "held", "ended"]
    assert asked == ["squeue", "scontrol"]
    is_away = True  # then no job has ended
    assert [state.phase for state in jobs.states("run", ["1", "2"]).values()] == ["unknown"] * 2
    assert asked[2:] == ["squeue"]


def test_an_agent_whose_worker_has_ended_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[Any] = []
    monkeypatch.setattr(job, "kill_tree", ended.append)
    monkeypatch.setattr(job, "end_all", ended.append)
    agent = JobAgent(Job(Endpoint("localhost", 1, b"key"), 0, 1))
    assert (agent.clean(), ended) == ([], [])
    agent._worker = 2**22 + 1
    agent.clean()
    assert len(ended) == 2


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
    events = next(tmp_path.rglob("coordinator-*.jsonl")).read_text()
    for name in ("h2", "h3"):
        assert f"node {name} joined late, and Ray starts trials there, but node {name}: No module named" in events
