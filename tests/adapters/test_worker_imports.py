"""What a worker of a pool imports before its first trial: nothing of the coordinator, whose imports would be each worker's."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.lifecycle_run import run_lifecycle

SERIAL = "tuneoff_adapters.serial:SerialAdapter"
OPTUNA = "tuneoff_adapters.optuna.adapter:OptunaAdapter"
OF_OPTUNA = (
    *("", ".distributions", ".journal_lock", ".note", ".plan", ".pruners", ".samplers", ".server_errors", ".storages", ".study"),
    ".worker",
)


@pytest.mark.slow
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
    assert found & {"tuneoff.adapter", "tuneoff.run.lifecycle", "msgspec", "sysconfig"} == set()
