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
from tuneoff.base.processes import become_subreaper, with_mark
from tuneoff.errors import StepError
from tuneoff.experiment.spec import Timeouts
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.katib import platforms
from tuneoff_adapters.katib.options import EMULATION
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


def test_it_serves_when_start_returns_also_a_second_object_and_is_gone_after_end(
    context: RunContext, server: EmulatedServer
) -> None:
    before = os.umask(0)
    try:
        host = Connection(server.start()).host
    finally:
        os.umask(before)
    assert server.folder.stat().st_mode & 0o777 == 0o700
    server.check()
    other = EmulatedServer(context)  # in the same process
    assert Connection(other.start()).host == host
    for _ in range(2):
        other.end()
        assert (marked(context), server.kubeconfig.exists()) == ([], False)
    with pytest.raises(StepError, match="the emulated API server ended"):
        server.check()


def test_one_of_another_process_is_replaced(context: RunContext, server: EmulatedServer) -> None:
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
            first = Connection(server.kubeconfig).host
        finally:
            parent.kill()  # and with it the server begins to end
    assert Connection(server.start()).host != first


def test_killed_one_is_told_and_can_be_started_again_without_its_objects(context: RunContext, server: EmulatedServer) -> None:
    Connection(server.start()).create(NAMESPACES, {"metadata": {"name": "gone"}})
    (pid,) = server._running()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(StepError, match=r"the emulated API server ended \(killed by SIGKILL\)") as caught:
        until(lambda: server.check() is not None)  # type: ignore[func-returns-value]
    assert "\n" not in str(caught.value)
    assert "it printed nothing" in str(caught.value)  # its line that it serves is no reason
    assert server.log.read_text().startswith("serving ")
    fresh = EmulatedServer(context)
    assert Connection(fresh.start()).find(NAMESPACES, "gone") is None
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
