"""`--metrics-port`: refused before anything runs, served while it does, and said on standard error."""

from __future__ import annotations

import re
import socket
import urllib.request
from pathlib import Path

import pytest

from command_line import Call, File
from tuneoff.record.run_ends import RunEnd
from tuneoff.run import execute as execution
from tuneoff.tell.prometheus import exporter


@pytest.mark.parametrize("command", [("compare",), ("run", "--adapter", "plain")])
def test_a_port_in_use_ends_the_command_before_anything_runs(
    call: Call, file: File, fakes: None, command: tuple[str, ...]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = call(command[0], file(), *command[1:], "--metrics-port", str(port))
    assert answer.code == 2
    assert f"but {port} is in use; take another one" in answer.line
    assert not Path("results").exists()


def test_a_missing_package_has_its_own_exit_code(call: Call, file: File, fakes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "module_exists", lambda name: False)
    answer = call("compare", file(), "--metrics-port", "0")
    assert answer.code == 3
    assert answer.line.endswith("run: pip install prometheus-client")


def test_metrics_are_served_while_the_matrix_runs(
    call: Call, file: File, fakes: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages: list[str] = []

    def execute(request: execution.PlanRequest) -> list[RunEnd]:
        plan = request.plan
        request.listener.run_started(1, 1, "plain", plan.runs[0].run_id)
        address = re.search(r"live metrics: (\S+)", capsys.readouterr().err)
        assert address is not None
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(address[1], timeout=10) as answer:
            pages.append(answer.read().decode())
        return [RunEnd(run_id=plan.runs[0].run_id, label="plain", status="done")]

    monkeypatch.setattr(execution, "execute", execute)
    monkeypatch.setattr("tuneoff.judge.results.read_results", lambda results: None)
    monkeypatch.setattr("tuneoff.judge.choice.choose.answered", lambda results: object())
    monkeypatch.setattr("tuneoff.cli.matrix.shown_ending", lambda found: "")
    assert call("compare", file(), "--metrics-port", "0").code == 0
    assert "tuneoff_runs_running 1.0" in pages[0]
    assert 'adapter="plain"' in pages[0]
