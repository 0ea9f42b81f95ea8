"""Each trial finds its process as a fresh `python file.py` does, whatever the trial before it and the framework have done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trial_runs import default_signals, events_of, trial_context
from tuneoff.record.events import schema

TESTS = Path(__file__).parent.parent.parent
WORKLOAD = "changing_workload:train"
TRIALS = """
import os, signal, sys, multiprocessing, tuneoff.run.trial.run_trial
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.trial.run_trial import Decision, run_trial
from tuneoff.run.trial.trial_process import trial_process
multiprocessing.set_start_method("fork")  # as a framework may have left it
signal.signal(signal.SIGTERM, mine := lambda number, frame: None)
sys.argv, before = ["framework", "--its=own"], os.getcwd()
os.umask(0o027)
context = TrialContext.read(sys.stdin.read())
layers = [[64], [64], [32]]
for number, kind in enumerate(("fine", *{kinds}, "fine")):
    configuration = {{"kind": kind, "layers": layers[0]}}
    outcome = run_trial(context, f"t{{number}}", configuration, lambda epoch, metrics: Decision.CONTINUE)
    print(kind, outcome.state, outcome.value, outcome.cause)
    assert configuration == {{"kind": kind, "layers": [64]}}
    assert (sys.argv, os.getcwd(), signal.getsignal(signal.SIGTERM)) == (["framework", "--its=own"], before, mine)
    assert multiprocessing.get_start_method() == "fork"
"""


def run_trials(tmp_path: Path, *kinds: str) -> tuple[list[str], list[dict[str, Any]], int]:
    """Return what trials of one process gave, what each noted, and how the process ended."""
    here = tmp_path / "experiment"
    here.mkdir()
    (tmp_path / "run").mkdir()
    notes = tmp_path / "notes.jsonl"
    context = trial_context(
        tmp_path / "run",
        workload=WORKLOAD,
        workload_options={"notes": str(notes)},
        metric="value",
        epochs=2,
        folder=str(here),
        umask=0o022,
    )
    program = TRIALS.format(kinds=kinds)
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-c", program], input=str(context.path), env=environment, capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    assert lines, done.stderr
    return lines, [json.loads(line) for line in notes.read_text().splitlines()], done.returncode


def fresh(folder: Path) -> dict[str, Any]:
    """Return what the file sees that is run as a program in a folder."""
    command = [sys.executable, str(TESTS / "changing_workload.py")]
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True, umask=0o022, preexec_fn=default_signals
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_trial_sees_what_the_file_sees_as_a_program(tmp_path: Path) -> None:
    lines, notes, code = run_trials(tmp_path, "exit", "base", "interrupt", "mute")
    assert code == 0
    expected = fresh(tmp_path / "experiment")
    assert [note["seen"] for note in notes] == [expected] * 6
    assert [note["layers"] for note in notes] == [[64]] * 6
    assert [line.partition(" (")[0] for line in lines] == [
        "fine completed 2.0 None",
        "exit failed 9.0 SystemExit: 0",
        "base failed 9.0 Stop: the end",
        "interrupt failed 9.0 KeyboardInterrupt",
        "mute failed 9.0 Mute",
        "fine completed 2.0 None",
    ]
    assert all("(changing_workload.py:" in line for line in lines[1:5])
    assert {event.configuration["layers"][0] for event in events_of(tmp_path / "run", schema.TrialStarted)} == {64}


@pytest.mark.parametrize(
    ("kind", "code", "text"),
    [
        ("terminate", -signal.SIGTERM, "SIGTERM"),
        ("abort", -signal.SIGABRT, "SIGABRT"),
        ("leave", 3, "exit code 3"),
    ],
)
def test_a_process_that_its_training_ends_is_charged_to_the_training_with_the_line(
    tmp_path: Path, kind: str, code: int, text: str
) -> None:
    lines, _, ended = run_trials(tmp_path, kind)
    assert (len(lines), ended) == (1, code)
    (killed,) = events_of(tmp_path / "run", schema.TrialKilled)
    assert (killed.trial, killed.charged, killed.limit) == ("t1", "workload", None)
    assert killed.cause.startswith(f"its own code ended its process: {text} (changing_workload.py:")


@pytest.mark.slow
def test_torch_is_restored_without_its_compiler_which_takes_a_second_to_import() -> None:
    program = (
        "import sys\n"
        "from tuneoff.base.process_state import TrainingState\n"
        "state = TrainingState('tuneoff_workloads.null:Null', None, None)\n"
        "for _ in range(2):\n"
        "    with state.entered():\n"
        "        import torch\n"
        "        torch.set_grad_enabled(False)\n"
        "assert torch.is_grad_enabled()\n"
        "print('torch._dynamo' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


STATES = """
import importlib, logging, random, sys
from tuneoff.base.process_state import TrainingState

class Equal:
    def __eq__(self, other): return True

{framework}
state, seen, drawn = TrainingState("module:Class", None, None), [], []
with state.entered():
    import numpy.random{imported}
for number in range(3):
    with state.entered():
        {training}
    {between}
assert {holds}, (seen, drawn)
"""


@pytest.mark.parametrize(
    ("framework", "imported", "training", "between", "holds"),
    [
        pytest.param(
            "import numpy; numpy.random.seed(3); expected = numpy.random.randn(9).tolist(); numpy.random.seed(3)",
            "",
            "numpy.random.seed(9); numpy.random.randn(3)",
            "drawn.extend(numpy.random.randn(3).tolist())",
            "drawn == expected",
            id="a framework that seeded NumPy draws as if there were no training",
        ),
        pytest.param(
            "import numpy.random",
            "",
            "numpy.random.seed(9)",
            "drawn.append(numpy.random.rand())",
            "len(set(drawn)) == 3",
            id="a framework that seeds nothing never draws what a training's seed gives",
        ),
        pytest.param(
            "",
            "",
            "kept = numpy.random.get_state(); seen.append(numpy.random.rand()); numpy.random.set_state(kept)",
            "",
            "len(set(seen)) == 3",
            id="a training that puts NumPy's state back gives it to no other",
        ),
        pytest.param(
            "", "", "kept = random.getstate(); seen.append(random.random()); random.setstate(kept)", "", "len(set(seen)) == 3"
        ),
        pytest.param(
            "import numpy.random",
            "; numpy.random.seed(5); random.seed(5)",
            "seen.append((numpy.random.randn(), random.random()))",
            "numpy.random.rand()",
            "len(set(seen)) == 1",
            id="what the import seeded is so in each",
        ),
        pytest.param(
            "",
            "",
            "seen.append(sys.excepthook is sys.__excepthook__); sys.excepthook = Equal()",
            "drawn.append(sys.excepthook is sys.__excepthook__)",
            "all(seen) and all(drawn)",
            id="a hook that says it is equal to anything",
        ),
        pytest.param(
            "log = logging.getLogger('framework')",
            "; log.setLevel('INFO'); log.isEnabledFor(10)",
            "seen.append((log.isEnabledFor(20), log.isEnabledFor(10))); log.setLevel('DEBUG'); log.isEnabledFor(10)",
            "drawn.append(log.isEnabledFor(20)); log.setLevel('ERROR')",
            "seen == [(True, False)] * 3 and drawn == [False] * 3",
            id="loggers forget for which levels they were enabled",
        ),
        pytest.param(
            "",
            "",
            "seen.append('A' in sys.path); sys.path = [*sys.path]; sys.path.append('A')",
            "",
            "not any(seen)",
            id="a new list",
        ),
    ],
)
def test_states_of_training_and_framework_are_two(framework: str, imported: str, training: str, between: str, holds: str) -> None:
    program = STATES.format(framework=framework, imported=imported, training=training, between=between or "pass", holds=holds)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_torch_draws_anew_in_each_training_also_where_its_state_was_put_back() -> None:
    program = (
        "from tuneoff.base.process_state import TrainingState\n"
        "state, seen = TrainingState('tuneoff_workloads.null:Null', None, None), []\n"
        "for is_seeding in (False, False, True, False):\n"
        "    with state.entered():\n"
        "        import torch\n"
        "        kept = torch.get_rng_state()\n"
        "        seen.append(torch.rand(1).item())\n"
        "        torch.set_rng_state(kept)\n"
        "        torch.manual_seed(1) if is_seeding else None\n"
        "seen.append(torch.rand(1).item())\n"
        "torch.manual_seed(1)\n"
        "assert len({*seen, torch.rand(1).item()}) == 6, seen\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
