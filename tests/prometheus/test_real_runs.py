"""A whole run that is metered through the real Prometheus, and one that is not begun as it is not there."""

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
from tuneoff.run.progress import Listener
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


def write(folder: Path, options: dict[str, Any]) -> Path:
    path = folder / "matrix.yaml"
    path.write_text(json.dumps({**MATRIX, "power": {"meter": "prometheus", "options": options}}))  # JSON is YAML
    return path


def test_a_runs_energy_comes_from_the_real_server(tmp_path: Path, take: Take) -> None:
    node = Powercap(tmp_path / "sys", ZONES)
    server = take("run")
    with ExitStack() as stack:
        stack.enter_context(node_exporter(node.root, *server.addresses, "--collector.meminfo"))
        url = stack.enter_context(server.ready())
        stack.enter_context(burning({node: WATTS}, {node: 10.0}))
        until(lambda: query(url, ENOUGH))
        plan = overridden_plan(write(tmp_path, {"url": url, "idle_watts": IDLE}))
        (end,) = execute(PlanRequest(plan=plan, results=tmp_path / "results", listener=Listener()))
    assert end.status == "done"
    assert end.folder is not None
    metrics = json.loads((end.folder / "run.json").read_text())["metrics"]
    seconds = metrics["time.jct"]["value"] / 1000
    energy = metrics["energy.node"]
    assert (energy["kind"], energy["coverage"]) == ("measured", 1.0)
    assert energy["value"] == pytest.approx(1.1 * WATTS * seconds, rel=0.2)  # package and a tenth of it as DRAM
    assert metrics["energy.job"]["kind"] == "derived"
    assert 0 < metrics["energy.job"]["value"] < energy["value"]


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
