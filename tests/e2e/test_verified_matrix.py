"""A matrix that was interrupted or killed, and resumed, verifies; one that is done: test_same_configurations."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from command_line import Call, caller
from e2e.matrix_runs import errors_of, finish, has_trained, start, write_matrix
from tuneoff.base.processes import with_mark
from tuneoff.run.supervisor.leftovers import RESULTS_MARK
from waiting import until

pytestmark = pytest.mark.slow(first=True)

CONTENT: dict[str, Any] = {
    "workload": {"name": "sleep", "options": {"epoch_seconds": 0.1}},
    "budget": {"trials": 6, "epochs_per_trial": 4},
    "seeds": [0, 1],
}


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs a command of which no process is killed."""
    return caller(capsys)


def verified(call: Call, results: Path) -> dict[str, Any]:
    """Verify a folder, and return what was checked and told."""
    answer = call("verify", results, "--json")
    assert answer.err == ""
    found: dict[str, Any] = json.loads(answer.out)
    assert found["problems"] == []
    assert (answer.code, found["verified"]) == ((0, True) if found["checked"]["executions"] else (7, None))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_matrix_that_was_ended_and_resumed_is_verified(call: Call, tmp_path: Path, number: signal.Signals) -> None:
    file, results = write_matrix(tmp_path, **CONTENT)
    process = start(file, results)
    until(lambda: has_trained(results))
    process.send_signal(number)
    began = time.monotonic()
    process.wait(60)
    if number == signal.SIGINT:
        assert time.monotonic() - began < 15
        assert process.returncode == 130
        errors = errors_of(results).read_text()
        assert ("Traceback" in errors, "--resume" in errors) == (False, True)
        assert with_mark(RESULTS_MARK, str(results.resolve())) == []
        found = verified(call, results)
        assert len(found["not_begun"]) == 1
        assert "interrupted by the user" in next(iter(found["not_recomputable"]["executions"].values()))[0]
    else:
        until(lambda: "works in this folder now" not in verified(call, results)["notes"][0]["text"])  # its guardian cleans
        assert "no end.json, as its command was killed" in verified(call, results)["notes"][0]["text"]
    finish(file, results)
    found = verified(call, results)
    assert (found["checked"]["runs"], found["checked"]["executions"], found["not_begun"]) == (2, 3, [])
    last = json.loads((results / "matrix.json").read_text())["runs"][-1]["run_id"]
    shutil.rmtree(results / "runs" / last)  # control: the command came to its end, so all runs must be there
    assert f"runs/{last}: planned " in call("verify", results).out
