"""What a worker of a pool imports before its first trial: nothing of the coordinator, whose imports would be each trial's."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.lifecycle_run import run_lifecycle


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adapter", "others"),
    [
        ("tuneoff_adapters.serial:SerialAdapter", {"tuneoff_adapters", "importlib.metadata"}),
        ("tuneoff_adapters.optuna.adapter:OptunaAdapter", {"tuneoff_adapters.optuna.adapter", "tuneoff_adapters.kubernetes"}),
    ],
)
def test_a_worker_imports_no_adapter(adapter: str, others: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "listing.py").write_text(
        "import sys\nfrom tuneoff_workloads.null import Null\n"
        "class Listing(Null):\n"
        "    def load(self, configuration, seeds):\n"
        f"        open({str(tmp_path / 'modules')!r}, 'w').write(' '.join(sys.modules))\n"
        "        super().load(configuration, seeds)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "run").mkdir()
    run = run_lifecycle(tmp_path / "run", adapter, trials=1, workload="listing:Listing")
    assert run.exit_code == 0, run.log
    found = set((tmp_path / "modules").read_text().split())
    assert "tuneoff.run.trial.run_trial" in found
    assert found & (others | {"tuneoff.run.lifecycle", "tuneoff.record.events.schema", "msgspec"}) == set()
