"""Small real results, made once: runs that are done, pruned, failed, retried, interrupted, killed and repeated.

Each source is a folder with `experiment.yaml` and `results`, of which `tuneoff verify` says VERIFIED.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from builders.results_folders import write_examples
from tuneoff.trust.verify.results import verify

FILE, RESULTS = "experiment.yaml", "results"
COMPARE = ("compare", "--no-report", FILE, "--output", RESULTS)
COMMON: dict[str, Any] = {
    "warm_up": False,
    "workers": {"count": 2},
    "power": {"meter": "constant", "options": {"watts": 50}, "interval_seconds": 0.05},
    "carbon": {"g_per_kwh": 250, "source": "a supplier", "date": "2025"},
}
DONE = {
    **COMMON,
    "workload": {"name": "surrogate", "options": {"noise": 0.1}},
    "adapters": ["serial", "optuna"],
    "budget": {"trials": 4, "epochs_per_trial": 3},
    "matrix": {"sampler": ["random", "default", "tpe"]},
}
PRUNED = {
    **COMMON,
    "workload": {"name": "surrogate", "options": {"noise": 0.3}},
    "adapters": ["optuna"],
    "budget": {"trials": 9, "epochs_per_trial": 9},
    "matrix": {"pruner": ["none", "median", "asha"]},
    "warm_up": True,
}
FAILED = {
    **COMMON,
    "workload": {"name": "faulty", "options": {"kinds": ["raise", "exit_code", "nan", "no_report"], "rate": 0.6}},
    "adapters": ["serial", "optuna"],
    "budget": {"trials": 8, "epochs_per_trial": 3},
    "failures": {"retries": 1},
    "zip": [{"failures.max_failed_trials": [1, 8]}],
}
SLOW = {
    **COMMON,
    "workload": {"name": "sleep", "options": {"epoch_seconds": 0.3}},
    "adapters": ["serial", "optuna"],
    "budget": {"trials": 6, "epochs_per_trial": 3},
}


def make_sources(folder: Path, *, small: bool = False) -> list[Path]:
    """Return the sources in `folder`, made where it lacks them; `small`: the one that needs no run."""
    makers: dict[str, Callable[[Path], None]] = {"examples": _examples}
    if not small:
        makers |= {
            "done": partial(_compared, DONE),
            "pruned": partial(_compared, PRUNED),
            "failed": partial(_compared, FAILED),
            "interrupted": partial(_ended_early, signal.SIGINT),
            "repeated": _repeated,
            "killed": partial(_ended_early, signal.SIGKILL),
        }
    for name, make in makers.items():
        if (folder / name).exists():
            continue
        (folder / name).mkdir(parents=True)
        make(folder / name)
    sources = sorted(path for path in folder.iterdir() if path.is_dir())
    for source in sources:
        found = verify(source / RESULTS)
        if not found.is_verified:
            raise RuntimeError(f"{source} must be in order, but: {found.problems[0].line}; made by another tuneoff? remove it")
    return sources


def _examples(source: Path) -> None:
    """The worked examples of the metrics: not from a run, and the same on each machine."""
    write_examples(source / RESULTS)
    (source / FILE).write_text(json.dumps(DONE))


def _compared(experiment: Mapping[str, Any], source: Path) -> None:
    (source / FILE).write_text(json.dumps(experiment))
    _tuneoff(source, *COMPARE)


def _repeated(source: Path) -> None:
    """Interrupt it and go on: one run has two executions."""
    _ended_early(signal.SIGINT, source)
    _tuneoff(source, *COMPARE, "--resume")


def _ended_early(number: signal.Signals, source: Path) -> None:
    (source / FILE).write_text(json.dumps(SLOW))
    process = subprocess.Popen(_command(*COMPARE), cwd=source, **_silent())
    while process.poll() is None and not _has_finished_a_trial(source / RESULTS):
        time.sleep(0.05)
    process.send_signal(number)
    process.wait()
    time.sleep(3.0)  # a killed command's guardian ends what it left


def _has_finished_a_trial(results: Path) -> bool:
    return any('"trial_ended"' in path.read_text(errors="replace") for path in results.glob("runs/*/*/events/*.jsonl"))


def _tuneoff(source: Path, *argv: str) -> None:
    code = subprocess.run(_command(*argv), cwd=source, **_silent()).returncode
    if code not in (0, 1):  # 1: a run failed, as some are meant to
        raise RuntimeError(f"`tuneoff {' '.join(argv)}` must make results in {source}, but ended with {code}")


def _command(*argv: str) -> list[str]:
    return [sys.executable, "-m", "tuneoff", *argv]


def _silent() -> dict[str, Any]:
    return {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def copy_source(source: Path, folder: Path, temporary: Path) -> None:
    """Copy a source into a case's folder, as if its temporary folders were the case's."""
    shutil.copytree(source / RESULTS, folder / RESULTS, symlinks=True)
    for path in folder.glob(f"{RESULTS}/runs/*/*/leftovers.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            line["value"] = str(temporary / Path(line["value"]).name)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shutil.copy(source / FILE, folder)
