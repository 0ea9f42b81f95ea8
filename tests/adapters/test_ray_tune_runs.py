"""What happens while a real Ray starts, beyond what the contract of all adapters asks."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from adapters.lifecycle_run import start_lifecycle
from tuneoff.base.processes import MARK, command_line, with_mark
from tuneoff.record.events.schema import StepEnded
from tuneoff_adapters.ray_tune.start import patient_start
from waiting import until


def test_ray_s_look_for_its_node_waits_as_long_as_deploy_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray itself gives up after 30 s."""
    node, services = pytest.importorskip("ray._private.node"), pytest.importorskip("ray._private.services")
    assert "ray._private.services.get_node(" in inspect.getsource(node.Node.__init__)
    looks: list[str] = []

    def look(address: str) -> str:
        looks.append(address)
        if len(looks) < 3:
            raise RuntimeError("it has not joined yet")
        return "the node"

    monkeypatch.setattr(services, "get_node", look)
    with patient_start(60.0):
        assert services.get_node("gcs") == "the node"
    assert looks == ["gcs"] * 3
    looks.clear()
    with patient_start(0.0), pytest.raises(RuntimeError):
        services.get_node("gcs")
    assert services.get_node is look


@pytest.mark.slow
def test_an_interruption_while_ray_starts_leaves_nothing(tmp_path: Path) -> None:
    running = start_lifecycle(tmp_path, "tuneoff_adapters.ray_tune.adapter:RayTuneAdapter", trials=2)
    until(lambda: any("gcs_server" in command_line(pid) for pid in with_mark(MARK, running.folder.name)), 60.0)
    running.interrupt()
    run = running.wait(60)
    assert run.exit_code == 3
    assert (run.left_in_home, run.left_in_temporary) == ([], [])
    assert with_mark(MARK, running.folder.name) == []
    assert [event.step for event in run.of(StepEnded)][-1] == "undeploy"
