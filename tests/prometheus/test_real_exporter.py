"""The real Prometheus scrapes the exporter while a small matrix runs, and is asked what it saw."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from prometheus.conftest import Take
from prometheus.real_servers import Server, get, needs_servers, query
from tuneoff.cli.selection import overridden_plan
from tuneoff.run.execute import PlanRequest, execute
from tuneoff.run.progress import Listener
from tuneoff.tell.prometheus.exporter import exported
from tuneoff.trust.check.footprint import all_listeners
from waiting import until

pytestmark = [pytest.mark.slow, needs_servers]

MATRIX = {
    "name": "scraped",
    "workload": {"name": "sleep", "options": {"epoch_seconds": 0.2}},
    "search_space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
    "sampler": "random",
    "budget": {"trials": 5, "epochs_per_trial": 3},
    "workers": {"count": 2},
    "adapters": ["serial"],
    "warm_up": False,
}


def write(folder: Path, **replaced: object) -> Path:
    path = folder / "matrix.yaml"
    path.write_text(json.dumps({**MATRIX, **replaced}))  # JSON is YAML
    return path


def port_of(server: Server) -> int:
    return int(server.addresses[0].rpartition(":")[2])


def test_the_real_server_has_seen_every_trial_of_a_real_run(tmp_path: Path, take: Take) -> None:
    plan = overridden_plan(write(tmp_path))
    server = take("bench")
    port = port_of(server)
    with exported(plan, Listener(), port, "127.0.0.1") as (metrics, _), server.ready() as url:
        until(lambda: query(url, "tuneoff_runs_planned"))  # a new server looks for its targets every five seconds
        (end,) = execute(PlanRequest(plan=plan, results=tmp_path / "results", listener=metrics))
        assert end.status == "done"

        def value(text: str) -> float | None:
            found = query(url, text)
            return found[0][1] if found else None

        until(lambda: value('tuneoff_runs_ended_total{status="done"}') == 1)
        assert value('tuneoff_run_trials{instance="bench",state="completed"}') == 5
        assert value("sum(tuneoff_run_trials)") == 5
        assert value("tuneoff_epochs_total") == 15
        assert value("tuneoff_run_info * on(instance) tuneoff_runs_planned") == 1
        ((labels, _),) = query(url, "tuneoff_run_info")
        assert {"adapter": "serial", "sampler": "random", "seed": "0", "emulated": "false"}.items() <= labels.items()
        assert value('max_over_time(tuneoff_run_trials{state="running"}[1m])') in (1, 2)  # it looked while trials ran
        assert value("max_over_time(tuneoff_tree_processes[1m])") > 2  # type: ignore[operator]
        until(lambda: value("count(up == 1)") == 1)  # the page is well formed to the last


def test_an_interrupted_command_serves_until_its_end_and_leaves_no_port(tmp_path: Path, take: Take) -> None:
    file, server = write(tmp_path, budget={"trials": 200, "epochs_per_trial": 3}), take("interrupted")
    port = port_of(server)
    command = [
        sys.executable,
        "-m",
        "tuneoff",
        "compare",
        "--no-report",
        "--json",
        str(file),
        "--output",
        str(tmp_path / "results"),
    ]
    with server.ready() as url:
        process = subprocess.Popen(
            [*command, "--metrics-port", str(port)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=os.environ
        )
        try:
            until(lambda: query(url, 'tuneoff_run_trials{state="completed"} > 0') or process.poll() is not None)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
            process.wait()
        assert process.returncode == 130
        assert f"live metrics: http://127.0.0.1:{port}/metrics" in errors
        assert f"--metrics-port {port}" in errors  # of the command that goes on
        assert port not in {one.port for one in all_listeners()}
        assert get(f"http://127.0.0.1:{port}/metrics") is None
