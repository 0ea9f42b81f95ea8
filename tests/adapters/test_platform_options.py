"""Options of platforms beyond this machine: what is refused before anything is started, and what a plan says of it."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from builders.specs import toy_spec
from tuneoff.errors import ExperimentError
from tuneoff.experiment.spec import Budget, RunSpec, Workers
from tuneoff.registry import adapter_class

pytest.importorskip("submitit", reason="needs submitit")

HERE = socket.gethostname()
HOSTS: Mapping[str, Any] = {"hosts": ["h1", "h2"]}
SERVED: Mapping[str, Mapping[str, Any]] = {"ssh": HOSTS, "cluster": HOSTS, "slurm": {}}  # least options by platform
A_LIST = "option `hosts` must be a list of different names"


@pytest.fixture(autouse=True)
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SLURM's commands are looked up, and not run: stand-ins of the test's own."""
    for name in ("sbatch", "srun", "scontrol"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def spec_of(platform: str, options: Mapping[str, Any] | None = None, adapter: str = "", **fields: Any) -> RunSpec:
    name = adapter or ("ray-tune" if platform == "cluster" else "serial")
    given = {"workers": Workers(count=2), **fields}
    return toy_spec(name, platform=platform, options=SERVED[platform] if options is None else options, **given)


def reason(platform: str, options: Mapping[str, Any] | None = None, **about: Any) -> str:
    spec = spec_of(platform, options, **about)
    return adapter_class(spec.adapter).refuse(spec) or ""


@pytest.mark.parametrize("adapter", ["serial", "optuna", "nevergrad", "rustuna"])
@pytest.mark.parametrize("platform", ["ssh", "slurm"])
def test_each_adapter_with_cores_pool_is_served(platform: str, adapter: str) -> None:
    assert platform in adapter_class(adapter).platforms()
    assert reason(platform, adapter=adapter) == ""


@pytest.mark.parametrize("options", [HOSTS, {"hosts": ["a"], "lost_seconds": 10}, {"address": "10.0.0.1:6379"}])
def test_ray_is_served_on_hosts_or_at_an_address(options: dict[str, Any]) -> None:
    assert reason("cluster", options) == ""


@pytest.mark.parametrize(
    ("platform", "options", "words"),
    [
        ("ssh", {}, "needs option `hosts`"),
        ("ssh", {"hosts": "h1"}, A_LIST),
        ("ssh", {"hosts": ["h1", "h1"]}, A_LIST),
        ("ssh", {"hosts": ["-oProxyCommand=x"]}, A_LIST),
        ("ssh", {"hosts": ["ssh://root@n1:2222"]}, "a port belongs into `host_command`"),
        *(
            ("ssh", {"hosts": ["h1", host]}, f"but got {host}; write localhost in its place")
            for host in ("127.0.0.1", "me@127.0.0.1", "me@localhost", f"me@{HERE}")
        ),
        ("ssh", {**HOSTS, "host_command": "ssh"}, "must have {host} in it"),
        ("ssh", {**HOSTS, "host_command": "ssh '{host}"}, "must be words as a shell takes them, but got "),
        ("ssh", {**HOSTS, "host_python": ""}, "must be the path of a Python"),
        ("ssh", {**HOSTS, "submit_host": "a b"}, "option `submit_host`"),
        ("ssh", {**HOSTS, "lost_seconds": 9}, "option `lost_seconds` must be a number >= 10"),
        ("ssh", {**HOSTS, "partition": "short"}, "platform 'ssh' has no option 'partition'"),
        ("cluster", {}, "needs option `hosts`"),
        ("cluster", {"hosts": ["a"], "address": "a:1"}, "needs option `hosts`"),
        ("cluster", {"hosts": ["a"], "host": "b"}, "has no option 'host'; did you mean 'hosts'"),
        ("cluster", {"address": "h1"}, "must be HOST:PORT"),
        ("slurm", {"sbatch": {"partition": None}}, "option `sbatch`"),
        ("slurm", {"sbatch": {"time": "1:00:00"}}, "time in whole minutes"),
        ("slurm", {"sbatch": {"comment": "a\n#SBATCH --uid=0"}}, "option `sbatch`"),
        ("slurm", {"sbatch": {"job-name": "mine"}}, "must leave job-name to tuneoff"),
        ("slurm", {"setup": "module load"}, "option `setup`"),
        ("slurm", {"submit_host": "a b"}, "option `submit_host`"),
        ("slurm", {"host_python": "-c"}, "option `host_python`"),
        ("slurm", {"pending_seconds": 0}, "option `pending_seconds`"),
        ("slurm", {"lost_seconds": 1}, "option `lost_seconds`"),
        ("slurm", {"partition": "short"}, "has no option 'partition'"),
    ],
)
def test_wrong_options_are_the_users_mistake(platform: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        reason(platform, options)
    assert words in str(refused.value)


@pytest.mark.parametrize("platform", SERVED)
def test_what_hosts_cannot_serve_is_refused(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget(trials=2, epochs_per_trial=2, wall_clock_seconds=9.0)
    assert "share no budget of seconds" in reason(platform, budget=budget)
    assert "remove workers.cpu_limit" in reason(platform, workers=Workers(count=2, cpu_limit="quota"))
    if platform != "slurm":
        told = "each of the 2 hosts must get a slot, but workers.count is 1; name fewer hosts"
        assert reason(platform, workers=Workers(count=1)) == told
    if platform != "cluster":
        for storage in ("sqlite", {"kind": "postgresql", "managed": True}):
            options = {**SERVED[platform], "storage": storage}
            assert "a journal in the shared results folder" in reason(platform, options, adapter="optuna")
    monkeypatch.setenv("PATH", "/nowhere")
    assert ("sbatch is not here" in reason(platform)) == (platform == "slurm")


@pytest.mark.parametrize(
    ("platform", "options", "said"),
    [
        ("ssh", HOSTS, "starts workers on h1 2, h2 1; reached by `ssh {host}`"),
        ("cluster", {"hosts": [HERE, "b"]}, f"starts Ray on {HERE} 2 slots and Ray head, b 1 slots; reached by `ssh {{host}}`"),
        ("cluster", HOSTS, "starts Ray on this machine Ray's head, h1 2 slots, h2 1 slots; reached by `ssh {host}`"),
        ("cluster", {"address": "a:1"}, "Ray's cluster at a:1: 3 slots where it puts them; starts no node"),
        (
            "slurm",
            {"sbatch": {"partition": "short", "time": 30, "exclusive": True}},
            "submits 3 jobs to SLURM, a worker each: --cpus-per-task=2 --mem=488282K --exclusive --partition=short --time=30",
        ),
    ],
)
def test_the_plan_says_what_is_started_where(platform: str, options: dict[str, Any], said: str) -> None:
    spec = spec_of(platform, options, workers=Workers(count=3, cpus=1.5, memory_mb=500))
    assert adapter_class(spec.adapter).placement(spec) == said


def test_where_and_how_patiently_it_is_run_is_no_part_of_the_run() -> None:
    ray = adapter_class("ray-tune")
    assert {"hosts", "host_command", "host_python", "lost_seconds", "address"} == ray.local_options
    assert ray.placement(toy_spec("ray-tune")) is None
    assert "has no options, but got" in (ray.refuse(toy_spec("ray-tune", options=dict(HOSTS))) or "")
    assert adapter_class("serial").local_options_on("ssh") >= {"hosts", "host_command", "lost_seconds"}
    assert adapter_class("serial").local_options_on("local") == frozenset()
