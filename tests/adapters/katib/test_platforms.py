"""The emulated API server as a process of a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.katib_specs import spec_of
from builders.specs import make_context
from katib_emulation.node import Capacity, requests_of
from tuneoff.base.processes import become_subreaper, with_mark
from tuneoff.errors import StepError
from tuneoff.experiment.spec import Timeouts, Workers
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.katib import platforms
from tuneoff_adapters.katib.manifest import experiment_manifest
from tuneoff_adapters.katib.options import EMULATION
from tuneoff_adapters.katib.plan import katib_plan
from tuneoff_adapters.katib.platforms import EMULATED_MARK, EmulatedServer
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.resources import NAMESPACES
from tuneoff_platforms.time_limits import SETUP_SHARE
from waiting import until

pytestmark = pytest.mark.slow  # processes, or faults that have to last


@pytest.fixture
def context(tmp_path: Path) -> RunContext:
    return make_context(spec_of(platform="emulated"), tmp_path)


@pytest.fixture
def server(context: RunContext) -> Iterator[EmulatedServer]:
    server = EmulatedServer(context)
    yield server
    server.end()


class Program(EmulatedServer):
    """Runs something else in the server's place."""

    text = ""

    def command(self) -> list[str]:
        return [sys.executable, "-c", self.text, "-m", EMULATION]


def marked(context: RunContext) -> list[int]:
    return with_mark(EMULATED_MARK, context.execution_id)


def test_node_is_as_large_as_the_workers_need(tmp_path: Path) -> None:
    spec = spec_of(platform="emulated", workers=Workers(count=3, cpus=0.1, memory_mb=500))
    command = list(EmulatedServer(make_context(spec, tmp_path)).command())
    assert float(command[command.index("--cpus") + 1]) == 0.3
    assert command[command.index("--memory") + 1] == "1500000000"
    assert command[command.index("--image") + 1] == platforms.EMULATED_IMAGE
    spec = spec_of(platform="emulated", workers=Workers(count=1))
    assert "--memory" not in EmulatedServer(make_context(spec, tmp_path)).command()


def test_its_folder_is_for_this_user_alone_whatever_the_umask(server: EmulatedServer) -> None:
    before = os.umask(0)
    try:
        assert server.start().exists()
    finally:
        os.umask(before)
    assert server.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("cpus", "memory_mb"), [(0.3333, 0.1234567), (0.0001, 100.0), (1 / 3, 1 / 3), (1.1, 1.1), (4.35, 0.29)])
def test_node_has_room_for_the_requests_of_all_workers(tmp_path: Path, cpus: float, memory_mb: float) -> None:
    spec = spec_of(platform="emulated", workers=Workers(count=3, cpus=cpus, memory_mb=memory_mb))
    context = make_context(spec, tmp_path)
    command = list(EmulatedServer(context).command())
    size = Capacity(float(command[command.index("--cpus") + 1]), int(command[command.index("--memory") + 1]))
    pod = experiment_manifest(katib_plan(context))["spec"]["trialTemplate"]["trialSpec"]["spec"]["template"]
    wanted = requests_of(pod)
    for worker in range(3):
        assert size.lacking(wanted) == []
        size.held[str(worker)] = wanted
    assert size.lacking(wanted) == ["cpu", "memory"]


def test_it_serves_when_start_returns_and_is_gone_after_end(context: RunContext, server: EmulatedServer) -> None:
    connection = Connection(server.start())
    assert connection.read("/version")["gitVersion"]
    assert len(marked(context)) >= 1
    server.check()
    server.end()
    assert marked(context) == []
    assert not server.kubeconfig.exists()
    server.end()


def test_second_object_in_the_same_process_finds_the_running_one(context: RunContext, server: EmulatedServer) -> None:
    host = Connection(server.start()).host
    other = EmulatedServer(context)
    assert Connection(other.start()).host == host
    other.end()
    assert marked(context) == []
    with pytest.raises(StepError, match="the emulated API server ended"):
        server.check()


def test_one_of_another_process_is_replaced_and_its_objects_are_kept(context: RunContext, server: EmulatedServer) -> None:
    become_subreaper()  # then the orphan is a child of this process, and no less another one's
    server.folder.mkdir()
    program = (
        "import os, subprocess, sys, time\n"
        f"command = {list(server.command())!r}\n"
        f"subprocess.Popen(command, env={{**os.environ, {EMULATED_MARK!r}: {context.execution_id!r}}}, start_new_session=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as parent:
        try:
            until(server.kubeconfig.exists)
            first = Connection(server.kubeconfig)
            first.create(NAMESPACES, {"metadata": {"name": "kept"}})
        finally:
            parent.kill()  # and with it the server begins to end
    second = Connection(server.start())
    assert second.host != first.host
    assert second.find(NAMESPACES, "kept") is not None


def test_killed_one_is_told_and_can_be_started_again_over_its_objects(context: RunContext, server: EmulatedServer) -> None:
    Connection(server.start()).create(NAMESPACES, {"metadata": {"name": "kept"}})
    (pid,) = server._running()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(StepError, match=r"the emulated API server ended \(killed by SIGKILL\)") as caught:
        until(lambda: server.check() is not None)  # type: ignore[func-returns-value]
    assert "\n" not in str(caught.value)
    assert "it printed nothing" in str(caught.value)  # its line that it serves is no reason
    assert server.log.read_text().startswith("serving ")
    fresh = EmulatedServer(context)
    assert Connection(fresh.start()).find(NAMESPACES, "kept") is not None
    fresh.end()


def test_one_that_ends_at_once_is_told_with_its_last_words(context: RunContext) -> None:
    server = Program(context)
    server.text = "import sys; print('one'); sys.exit('error: no space left')"
    with pytest.raises(StepError, match=r"ended \(exit code 1\): error: no space left; see .*emulated.log"):
        server.start()


def test_one_that_never_gets_ready_is_ended_before_the_step_s_limit(tmp_path: Path) -> None:
    context = make_context(spec_of(platform="emulated", timeouts=Timeouts(deploy_seconds=0.5 / SETUP_SHARE)), tmp_path)
    server = Program(context)
    server.text = "import time; time.sleep(60)"
    with pytest.raises(StepError, match=r"not ready after 0.5 s"):
        server.start()
    assert marked(context) == []


def test_one_that_does_not_end_is_killed_with_what_it_started(context: RunContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "END_SECONDS", 0.3)
    monkeypatch.setattr(platforms, "KILLED_SECONDS", 0.1)
    server = Program(context)
    server.text = (
        "import pathlib, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
        f"pathlib.Path({str(server.kubeconfig)!r}).touch()\n"
        "time.sleep(60)\n"
    )
    server.start()
    assert len(marked(context)) == 2
    server.end()
    assert marked(context) == []


def test_server_of_another_run_is_left_alone(context: RunContext, tmp_path: Path) -> None:
    environment = {**os.environ, EMULATED_MARK: "another"}
    command = [sys.executable, "-c", "import time; time.sleep(60)", "-m", EMULATION]
    with subprocess.Popen(command, env=environment) as other:
        try:
            EmulatedServer(context).end()
            assert other.poll() is None
        finally:
            other.kill()
