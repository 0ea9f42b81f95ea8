"""A training may start processes and change its own, in every adapter alike: equal values, and nothing of it is left."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from contract.few_runs import TICK
from tuneoff.base.processes import is_alive

pytestmark = pytest.mark.slow(first=True)

STARTING = (
    *("process", "pool", "executor", "kept", "kept_again", "kept_once_more", "manager", "loader", "persistent", "program"),
    "start_method",
)
KINDS = (*STARTING, "folder", "umask", "handler", "numbers", "arguments")
MANY_IN_A_PROCESS = ("serial", "ray-tune")  # where one trial could meet what another left: all kinds
FEW = {"process", "kept", "loader", "program", "start_method", *KINDS[len(STARTING) :]}
ADAPTERS: Mapping[str, Any] = {
    "serial": "serial",
    "forked": {"name": "serial", "options": {"start": "forkserver"}},
    "ray-tune": "ray-tune",
    "syne-tune": "syne-tune",
    "katib": "katib@emulated",
}  # the others' pool is that of `serial`


class Run(NamedTuple):
    """The record of a run, and how each of its trials ended, by its configuration."""

    record: dict[str, Any]
    trials: dict[tuple[str, bool], dict[str, Any]]

    def flags(self, name: str) -> list[str]:
        return [flag["text"] for flag in self.record["flags"] if flag["name"] == name]


def run(folder: Path, adapter: Any, configurations: list[dict[str, Any]], **changes: Any) -> Run:
    """Run configurations, of which the `stopped` ones are stopped after their first epoch."""
    shutil.copy(Path(__file__).with_name("abilities.py"), folder / "abilities.py")
    stops = [{"index": index, "after_epoch": 1} for index, values in enumerate(configurations) if values["stopped"]]
    experiment = {
        "workload": "abilities:train",
        "search_space": {
            "kind": {"type": "categorical", "choices": [*KINDS, "hang"]},
            "stopped": {"type": "categorical", "choices": [False, True]},
        },
        "objective": {"metric": "loss", "mode": "min"},
        "sampler": "fixed",
        "configurations": configurations,
        **({"pruner": "scripted", "stops": stops} if stops else {}),
        "budget": {"trials": len(configurations), "epochs_per_trial": 2},
        "workers": {"count": 2},
        "adapters": [adapter],
        "warm_up": False,
        **changes,
    }
    (folder / "experiment.yaml").write_text(yaml.safe_dump(experiment))
    command = [sys.executable, "-m", "tuneoff", "compare", "experiment.yaml", "--output", "out", "--no-report"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, umask=0o022)
    records = [json.loads(path.read_text()) for path in folder.glob("out/runs/*/*/run.json")]
    assert len(records) == 1, done.stderr
    trials = {(trial["configuration"]["kind"], trial["configuration"]["stopped"]): trial for trial in records[0]["trials"]}
    return Run(records[0], trials)


@pytest.mark.parametrize("name", ADAPTERS)
def test_what_a_training_does_to_its_process_is_its_own(name: str, tmp_path: Path) -> None:
    is_shared = name in MANY_IN_A_PROCESS
    kinds = [kind for kind in KINDS if is_shared or kind in FEW]
    configurations = [{"kind": kind, "stopped": False} for kind in kinds]
    configurations += [{"kind": kind, "stopped": True} for kind in (STARTING if is_shared else STARTING[:1])]
    hang = {"kind": "hang", "stopped": False}  # killed at its limit beside the others
    ran = run(tmp_path, ADAPTERS[name], [hang, *configurations], timeouts={"trial_seconds": 20})
    hung = ran.trials.pop(("hang", False))
    assert hung["state"] == "timed_out"
    assert "timed out" in hung["cause"]
    causes = {key: trial.get("cause") for key, trial in ran.trials.items() if trial["state"] not in ("completed", "pruned")}
    assert causes == {}
    assert {key: trial["state"] for key, trial in ran.trials.items()} == {
        (values["kind"], values["stopped"]): "pruned" if values["stopped"] else "completed" for values in configurations
    }
    assert {trial["value"] for (_, stopped), trial in ran.trials.items() if not stopped} == {7.0}
    assert {trial["value"] for (_, stopped), trial in ran.trials.items() if stopped} == {14.0}
    assert ran.flags("left_behind") == []
    noted = [path.name.split("-") for path in (tmp_path / "started").iterdir()]
    assert [pid for *_, pid, ticks in noted if ticks and is_alive(int(pid), int(ticks) * TICK)] == []
    assert ran.record["status"] == "done"
    changed = ran.record["environment"]["adapter"]["changed_defaults"]
    assert any("forked" in text for text in changed) == (name == "forked")
