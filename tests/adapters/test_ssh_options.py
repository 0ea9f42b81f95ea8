"""Options of platform `ssh`, what it says before anything is started, and what an agent without a worker ends: nothing."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import Any

import pytest

from builders.specs import toy_spec
from tuneoff.errors import ExperimentError
from tuneoff.experiment.spec import Budget, RunSpec, Workers
from tuneoff.registry import adapter_class
from tuneoff_platforms.remote import job
from tuneoff_platforms.remote.job import Endpoint, Job, JobAgent

HOSTS: dict[str, Any] = {"hosts": ["h1", "h2"]}
A_LIST = "option `hosts` must be a list of different names"


def spec_of(adapter: str = "serial", options: dict[str, Any] | None = None, **fields: Any) -> RunSpec:
    given = {"workers": Workers(count=2), **fields}
    return replace(toy_spec(adapter, **given), platform="ssh", options=HOSTS if options is None else options)


def reason(adapter: str = "serial", options: dict[str, Any] | None = None, **fields: Any) -> str | None:
    return adapter_class(adapter).refuse(spec_of(adapter, options, **fields))


@pytest.mark.parametrize("adapter", ["serial", "optuna", "nevergrad", "rustuna"])
def test_each_adapter_with_cores_pool_is_served(adapter: str) -> None:
    assert "ssh" in adapter_class(adapter).platforms()
    assert reason(adapter) is None


def test_the_plan_says_what_is_started_where() -> None:
    said = adapter_class("serial").placement(spec_of(workers=Workers(count=3)))
    assert said == "starts workers on h1 2, h2 1; reached by `ssh {host}`"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs option `hosts`"),
        ({"hosts": "h1"}, A_LIST),
        ({"hosts": ["h1", "h1"]}, A_LIST),
        ({"hosts": ["-oProxyCommand=x"]}, A_LIST),
        ({"hosts": ["ssh://root@n1:2222"]}, "a port belongs into `host_command`"),
        *(
            ({"hosts": ["h1", host]}, f"but got {host}; write localhost in its place")
            for host in ("127.0.0.1", "me@127.0.0.1", "me@localhost", f"me@{socket.gethostname()}")
        ),
        ({**HOSTS, "host_command": "ssh"}, "must have {host} in it"),
        ({**HOSTS, "host_command": "ssh '{host}"}, "must be words as a shell takes them, but got "),
        ({**HOSTS, "host_python": ""}, "must be the path of a Python"),
        ({**HOSTS, "submit_host": "a b"}, "option `submit_host`"),
        ({**HOSTS, "lost_seconds": 9}, "option `lost_seconds` must be a number >= 10"),
        ({**HOSTS, "partition": "short"}, "platform 'ssh' has no option 'partition'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        reason(options=options)
    assert words in str(refused.value)


def test_what_hosts_cannot_serve_is_refused() -> None:
    assert "share no budget of seconds" in (reason(budget=Budget(trials=2, epochs_per_trial=2, wall_clock_seconds=9.0)) or "")
    assert "remove workers.cpu_limit" in (reason(workers=Workers(count=2, cpu_limit="quota")) or "")
    assert "name fewer hosts" in (reason(workers=Workers(count=1)) or "")
    assert "a journal in the shared results folder" in (reason("optuna", {**HOSTS, "storage": "sqlite"}) or "")


def test_where_and_how_patiently_it_is_run_is_no_part_of_the_run() -> None:
    assert adapter_class("serial").local_options_on("ssh") >= {"hosts", "host_command", "lost_seconds"}
    assert adapter_class("serial").local_options_on("local") == frozenset()


def test_an_agent_whose_worker_has_ended_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[Any] = []
    monkeypatch.setattr(job, "kill_tree", ended.append)
    monkeypatch.setattr(job, "end_all", ended.append)
    agent = JobAgent(Job(Endpoint("localhost", 1, b"key"), 0, 1))
    assert agent.clean() == []
    assert ended == []
    agent._worker = 2**22 + 1
    agent.clean()
    assert len(ended) == 2
