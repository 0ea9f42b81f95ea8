"""A worker's input: a task reaches one worker, whatever becomes of the connection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.katib.pod_lines import epoch, header, own_end, started
from builders.specs import make_context, toy_spec
from tuneoff.base import clock
from tuneoff.base.layout import POD_WORKER
from tuneoff.errors import UserError
from tuneoff.platform import Death, Message, News, PoolWork, Ready
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import TrialEnded
from tuneoff.record.events.stream import framed
from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff_adapters.kubernetes.api_errors import Unreachable
from tuneoff_adapters.kubernetes.connection import Limits
from tuneoff_adapters.kubernetes.layout import CONTAINER
from tuneoff_adapters.kubernetes.messages import answer_line, unpacked
from tuneoff_adapters.kubernetes.platform import KubernetesPlatform
from tuneoff_adapters.kubernetes.pool import PodPool, obstacles
from tuneoff_adapters.kubernetes.resources import PODS
from tuneoff_adapters.kubernetes.transport import NoAnswer
from waiting import until

TASK = ("t00000", {"x": 0.5}, 1)


class FakeInput:
    def __init__(self) -> None:
        self.got: list[str] = []
        self.is_cut = self.is_closed = False

    def write(self, text: str) -> None:
        if self.is_cut:
            raise NoAnswer("the connection was cut")
        self.got.append(text)

    def close(self) -> None:
        self.is_closed = True

    @property
    def tasks(self) -> list[Any]:
        return [unpacked(line) for line in self.got if line.strip()]


class EmptyLog:
    is_complete, was_rotated = True, False

    def __iter__(self) -> Iterator[bytes]:
        return iter(())

    def close(self) -> None:
        pass


class FakeConnection:
    """Makes Jobs and inputs, and asks no server."""

    limits = Limits()

    def __init__(self) -> None:
        self.jobs: list[dict[str, Any]] = []
        self.inputs: list[FakeInput] = []
        self.deleted: list[str] = []
        self.is_refusing = False

    def once(self) -> FakeConnection:
        return self

    def create(self, resource: Any, obj: dict[str, Any], namespace: str) -> None:
        self.jobs.append(obj)

    def delete(self, resource: Any, name: str, namespace: str) -> None:
        self.deleted.append(name)

    def follow_log(self, *arguments: Any) -> Any:
        return EmptyLog()

    def attach(self, namespace: str, pod: str, container: str) -> FakeInput:
        if self.is_refusing:
            raise Unreachable("no way to it", "no way")
        self.inputs.append(FakeInput())
        return self.inputs[-1]


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.context = context = make_context(toy_spec("serial", platform="kubernetes", options={"image": "any"}), folder)
        self.connection = FakeConnection()
        owner = {"metadata": {"name": "owner", "uid": "1"}}
        plan = KubernetesPlatform(context)._pod_plan
        self.pool = PodPool(
            context,
            plan,
            self.connection,  # type: ignore[arg-type]
            owner,
            60.0,
            PoolWork(
                target="",
                arguments=(),
                preload=(),
                package="",
                answers=(TrialOutcome,),
                observe=lambda worker, event: None,
            ),
        )

    def job(self, number: int) -> str:
        """Return a Job's name."""
        name: str = self.connection.jobs[number]["metadata"]["name"]
        return name

    def dies(self, code: int) -> Death:
        """End the first worker's pod and its log."""
        self.see(0, {"terminated": {"exitCode": code, "reason": "Error"}})
        self.pool.take_log_end(self.job(0), True, False)
        slot = self.pool._slots[0]
        assert slot.is_over
        death = self.pool._end(slot, clock.monotonic_ns())
        assert isinstance(death, Death)
        return death

    def see(self, number: int, state: dict[str, Any]) -> None:
        """Have the pool see the pod of the Job of a number."""
        job = self.job(number)
        labels = {"job-name": job}
        status = {"phase": "Running", "containerStatuses": [{"name": CONTAINER, "state": state}]}
        thing = {"metadata": {"name": f"{job}-pod", "labels": labels}, "status": status}
        self.pool.take_seen(PODS, "MODIFIED", thing, clock.monotonic_ns())

    def say(self, number: int, line: bytes) -> list[News]:
        for text in framed(line, self.context.execution_id).rstrip().split(b"\n"):
            self.pool.take_line(self.job(number), text, clock.monotonic_ns())
        news, self.pool._news = self.pool._news, []
        return news


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    cluster = Cluster(tmp_path)
    cluster.pool.start_worker(0)
    return cluster


def test_a_task_waits_for_its_workers_input_and_the_answer_comes_back(cluster: Cluster) -> None:
    cluster.pool.send(0, TASK)
    assert cluster.connection.inputs == []
    cluster.see(0, {"running": {}})
    assert [one.tasks for one in cluster.connection.inputs] == [[TASK]]
    assert cluster.say(0, answer_line(Ready(0))) == []
    outcome = TrialOutcome(state="completed", epochs=3, value=0.5)
    assert cluster.say(0, answer_line(outcome)) == [Message(0, outcome)]


def test_a_task_that_does_not_reach_a_worker_goes_to_another_one(cluster: Cluster) -> None:
    cluster.see(0, {"running": {}})
    cluster.connection.inputs[0].is_cut = True
    cluster.pool.send(0, TASK)
    assert len(cluster.connection.jobs) == 2
    cluster.see(1, {"running": {}})
    assert [one.tasks for one in cluster.connection.inputs] == [[], [TASK]]
    assert cluster.connection.inputs[0].is_closed


def test_a_trial_that_runs_goes_on_when_its_workers_input_is_cut(cluster: Cluster) -> None:
    cluster.see(0, {"running": {}})
    cluster.pool.send(0, TASK)
    place = cluster.pool._slots[0]
    place.trial, place.beat_ns = "t00000", 0  # it was begun, and a sign of life is due
    cluster.connection.inputs[0].is_cut = True
    cluster.see(0, {"running": {}})
    assert cluster.pool._slots[0] is place
    outcome = TrialOutcome(state="completed", epochs=3, value=0.5)
    place.trial = None
    assert cluster.say(0, answer_line(outcome)) == [Message(0, outcome)]
    cluster.pool.send(0, TASK)
    assert len(cluster.connection.jobs) == 2


def test_a_worker_that_ends_without_an_answer_is_dead(cluster: Cluster) -> None:
    cluster.see(0, {"running": {}})
    cluster.pool.send(0, TASK)
    death = cluster.dies(137)
    assert (death.exit_code, "was ended by SIGKILL" in (death.cause or "")) == (-9, True)


def test_an_image_that_lacks_a_package_ends_deploy_and_is_the_user_s(cluster: Cluster) -> None:
    cluster.see(0, {"running": {}})
    cluster.pool.take_line(cluster.job(0), b"ModuleNotFoundError: No module named 'optuna'", clock.monotonic_ns())
    error = cluster.dies(1).at_start()
    assert isinstance(error, UserError)
    assert "a worker must start, but" in str(error)
    assert "the image lacks optuna: make image ARGS='--build-arg EXTRAS=optuna,kubernetes'" in str(error)


OUTCOME = TrialOutcome(state="completed", epochs=1, value=0.5)


def begin(cluster: Cluster) -> None:
    """Have the worker begin a trial of one epoch."""
    cluster.see(0, {"running": {}})
    cluster.pool.send(0, TASK)
    for record in (header(cluster.context.execution_id, role=POD_WORKER), started("t00000")):
        assert cluster.say(0, record) == []


@pytest.mark.parametrize(
    "records",
    [
        [own_end("t00000", 3)],  # without the epoch before it
        [epoch("t00000", 1, 0.5)[:-20]],  # cut
        [epoch("t00000", 1, 0.5), answer_line(OUTCOME)],  # without its end
    ],
)
def test_a_worker_whose_events_are_missing_is_given_up_and_nobody_is_charged_but_the_infrastructure(
    cluster: Cluster, records: list[bytes]
) -> None:
    begin(cluster)
    (death,) = [news for record in records for news in cluster.say(0, record)]
    assert isinstance(death, Death)
    assert "events are missing in its log" in (death.cause or "")
    assert until(lambda: bool(cluster.connection.deleted))
    assert cluster.connection.deleted == [f"{cluster.job(0)}-pod"]
    ends = [event for _, event in EventLog(cluster.context.run_dir / "events") if isinstance(event, TrialEnded)]
    assert [(end.trial, end.state, end.charged) for end in ends] == [("t00000", "failed", "infrastructure")]
    assert cluster.pool._slots == {}


def test_what_a_trial_prints_is_no_answer(cluster: Cluster) -> None:
    begin(cluster)
    job = cluster.job(0)
    for text in (answer_line(OUTCOME), b"." + answer_line(Ready(0)), epoch("t00000", 1, 0.5)):
        cluster.pool.take_line(job, text.rstrip(), clock.monotonic_ns())
    assert cluster.pool._news == []
    for record in (epoch("t00000", 1, 0.5), own_end("t00000", 3, epochs=1)):
        cluster.pool.take_line(job, b"\r100%|###|" + framed(record, cluster.context.execution_id)[1:], clock.monotonic_ns())
    assert cluster.say(0, answer_line(OUTCOME)) == [Message(0, OUTCOME)]


def test_an_input_that_cannot_be_had_is_told_and_tried_again(cluster: Cluster) -> None:
    cluster.connection.is_refusing = True
    cluster.see(0, {"running": {}})
    (found,) = obstacles(cluster.pool._slots.values(), ())
    assert "NoInput: no way to it" in found.line
    cluster.connection.is_refusing = False
    cluster.pool._look(clock.monotonic_ns())
    assert len(cluster.connection.inputs) == 1
    assert obstacles(cluster.pool._slots.values(), ()) == []


def test_a_job_is_owned_by_the_config_map_and_runs_one_pod_once(cluster: Cluster) -> None:
    (job,) = cluster.connection.jobs
    assert [owner["uid"] for owner in job["metadata"]["ownerReferences"]] == ["1"]
    assert (job["spec"]["backoffLimit"], job["spec"]["completions"]) == (0, 1)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert (container["stdin"], container["stdinOnce"]) == (True, True)
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert "password" not in json.dumps(job).lower()
