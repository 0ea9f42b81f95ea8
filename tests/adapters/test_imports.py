"""What is imported by adapters, and what by their workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adapters.lifecycle_run import run_lifecycle

pytestmark = pytest.mark.slow

SYNE_TUNE = {"syne_tune", "pandas", "torch"}
RECORD = {"tuneoff.record.events.schema", "multiprocessing"}  # events, workers: `list adapters` has neither


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        ("tuneoff_adapters.serial", RECORD),
        ("tuneoff_adapters.optuna.adapter", {"optuna", "sqlalchemy", "numpy", *RECORD}),
        ("tuneoff_adapters.ray_tune.adapter", {"ray", "numpy", *RECORD}),
        ("tuneoff_adapters.ray_tune.trainable", {"msgspec", "tuneoff.adapter", "tuneoff.record.run_context"}),  # in every actor
        ("tuneoff_adapters.syne_tune.adapter", {*SYNE_TUNE, *RECORD}),
        ("tuneoff_adapters.syne_tune.reporter", {*SYNE_TUNE, "tuneoff_adapters.syne_tune.adapter"}),  # in every trial
        ("tuneoff_adapters.katib.adapter", {"kubernetes", "kubeflow", "subprocess", "tuneoff_adapters.katib.follow"}),
        ("tuneoff_adapters.katib.offers", {"kubernetes", "kubeflow", "optuna", "pydantic", "urllib3"}),
        (
            "katib_emulation.node, katib_emulation.controllers, katib_emulation.server, katib_emulation.__main__",
            {"tuneoff", "kubernetes", "kubeflow", "optuna", "numpy"},
        ),
    ],
)
def test_nothing_is_imported_that_is_not_needed_yet(modules: str, heavy: set[str]) -> None:
    command = [sys.executable, "-c", f"import sys, {modules}; print(*sys.modules)"]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert loaded >= set(modules.split(", "))
    assert loaded & heavy == set()


SERIAL = "tuneoff_adapters.serial:SerialAdapter"
OPTUNA = "tuneoff_adapters.optuna.adapter:OptunaAdapter"
OF_OPTUNA = (
    *("", ".plan", ".pruners", ".search", ".server_errors", ".study"),
    *(".worker", ".worker_state"),
)


@pytest.mark.parametrize(
    ("adapter", "expected"),
    [(SERIAL, set[str]()), (OPTUNA, {"tuneoff_adapters", *(f"tuneoff_adapters.optuna{name}" for name in OF_OPTUNA)})],
    ids=["serial", "optuna"],
)
def test_a_worker_imports_no_adapter(adapter: str, expected: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "listing.py").write_text(
        "import sys\nfrom tuneoff_workloads.null import Null\n"
        "class Listing(Null):\n"
        "    def load(self, configuration, seeds):\n"
        f"        with open({str(tmp_path / 'modules')!r}, 'a') as file: print(*sys.modules, file=file)\n"
        "        super().load(configuration, seeds)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "run").mkdir()
    run = run_lifecycle(tmp_path / "run", adapter, trials=1, workload="listing:Listing")
    assert run.exit_code == 0, run.log
    found = set(
        (tmp_path / "modules").read_text().splitlines()[0].split()
    )  # the last line is the test's, whose process is another
    assert "tuneoff.run.trial.run_trial" in found
    assert {name for name in found if name.startswith("tuneoff_adapters")} == expected
    not_needed = {"tuneoff.adapter", "tuneoff.run.lifecycle", "sysconfig"}
    assert found & (not_needed | ({"msgspec"} if adapter == SERIAL else set())) == set()  # Optuna's worker reads a strategy
