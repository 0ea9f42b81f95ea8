from pathlib import Path

import pytest

from adapters.lifecycle_run import run_lifecycle
from contract.few_runs import ASK_TELL, Framework
from tuneoff.experiment.spec import Strategy
from tuneoff.record.events.schema import Flag

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Test(Framework):
    adapter = "rustuna"
    runs = ASK_TELL | {"failed-trial"}  # planted in its class


def test_tpe_whose_model_is_never_used_is_flagged(tmp_path: Path) -> None:
    target = "tuneoff_adapters.rustuna:RustunaAdapter"
    run = run_lifecycle(tmp_path, target, trials=10, epochs=1, sampler=Strategy(name="tpe"))
    assert run.exit_code == 0, run.log
    assert [flag.name for flag in run.of(Flag)] == ["sampler_without_model"]
