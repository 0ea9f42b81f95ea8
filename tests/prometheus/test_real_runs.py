"""Whole runs that are metered through the real Prometheus: their energy, and what is left of them when it goes away."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from prometheus.conftest import Take
from prometheus.real_servers import Powercap, free_port, needs_servers, node_exporter, query
from prometheus.test_real_meter import ZONES, burning
from tuneoff.cli.selection import overridden_plan
from tuneoff.run.execute import PlanRequest, execute
from tuneoff.run.progress import Listener, LiveRun
from waiting import until

pytestmark = [pytest.mark.slow, needs_servers]

MATRIX = {
    "name": "metered",
    "workload": {"name": "sleep", "options": {"epoch_seconds": 0.2}},
    "search_space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
    "sampler": "random",
    "budget": {"trials": 5, "epochs_per_trial": 3},
    "workers": {"count": 2},
    "adapters": ["serial"],
    "warm_up": False,
}
WATTS = 100.0
IDLE = {"node-a/package-0": 30.0, "node-a/dram-0": 5.0}
ENOUGH = "count_over_time(node_rapl_dram_joules_total[9s]) > 2"


class WhenATrialHasEnded(Listener):
    """Does something once, in the middle of a run."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def run_progress(self, live: LiveRun) -> None:
        if live.completed:
            self._stack.close()


def write(folder: Path, options: dict[str, Any]) -> Path:
    path = folder / "matrix.yaml"
    path.write_text(json.dumps({**MATRIX, "power": {"meter": "prometheus", "options": options}}))  # JSON is YAML
    return path


def run(folder: Path, url: str, listener: Listener) -> dict[str, Any]:
    """Return the record of a small real run that is metered by the server."""
    plan = overridden_plan(write(folder, {"url": url, "idle_watts": IDLE}))
    (end,) = execute(PlanRequest(plan=plan, results=folder / "results", listener=listener))
    assert end.status == "done"
    assert end.folder is not None
    record: dict[str, Any] = json.loads((end.folder / "run.json").read_text())
    return record


def test_a_runs_energy_comes_from_the_real_server(tmp_path: Path, take: Take) -> None:
    node = Powercap(tmp_path / "sys", ZONES)
    server = take("run")
    with ExitStack() as stack:
        stack.enter_context(node_exporter(node.root, *server.addresses, "--collector.meminfo"))
        url = stack.enter_context(server.ready())
        stack.enter_context(burning({node: WATTS}, {node: 10.0}))
        until(lambda: query(url, ENOUGH))
        record = run(tmp_path, url, Listener())
    metrics = record["metrics"]
    seconds = metrics["time.jct"]["value"] / 1000
    energy = metrics["energy.node"]
    assert (energy["kind"], energy["coverage"]) == ("measured", 1.0)
    assert energy["value"] == pytest.approx(1.1 * WATTS * seconds, rel=0.2)  # package and a tenth of it as DRAM
    assert metrics["energy.job"]["kind"] == "derived"
    assert 0 < metrics["energy.job"]["value"] < energy["value"]


def test_a_server_that_goes_away_in_mid_run_costs_the_energy_alone(tmp_path: Path, take: Take) -> None:
    node = Powercap(tmp_path / "sys", ZONES)
    server = take("gone")
    with ExitStack() as stack, node_exporter(node.root, *server.addresses):
        url = stack.enter_context(server.ready())
        until(lambda: query(url, ENOUGH))
        record = run(tmp_path, url, WhenATrialHasEnded(stack))
    (flag,) = [flag for flag in record["flags"] if flag["name"] == "power_problem"]
    assert f"Prometheus must be reachable at {url}, but: Connection refused" in flag["text"]
    metrics = record["metrics"]
    assert metrics["time.jct"]["value"] > 0
    assert metrics["energy.node"]["value"] is None
    assert metrics["energy.node"]["reason_if_null"]


def test_a_server_that_is_not_there_ends_the_command_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tuneoff.cli.main import main

    url = f"http://127.0.0.1:{free_port()}"
    file = write(tmp_path, {"url": url})
    assert main(["compare", str(file), "--output", str(tmp_path / "results")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"Prometheus must be reachable at {url}, but: Connection refused" in line
    assert not list(tmp_path.glob("results/runs/*"))
