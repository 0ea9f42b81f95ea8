"""Kill `tuneoff compare` with SIGKILL at random moments, resume it each time, and check what must hold.

After each kill: every process of the matrix is gone within 5 s, and so are its temporary folders. At the end: every planned
run is done, no finished run was repeated, no event of a finished run was lost. Prints one line per kill; exit code 0 if all held.

    python tests/e2e/random_kills.py --kills 20 --seed 1 [FILE]
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tuneoff.matrix.folder import run_ends
from tuneoff.records.model import RunRecord
from tuneoff.records.seal import broken_seals
from tuneoff.records.store import read_runs
from tuneoff.supervisor.leftovers import RESULTS_MARK, remembered
from tuneoff.supervisor.processes import with_mark

MATRIX = Path(__file__).with_name("kill_matrix.yaml")
GONE_WITHIN_SECONDS = 5.0
MOST_TOO_LATE = 3  # kills that come too late, beyond as many as are asked for


@dataclass(frozen=True)
class Kill:
    """One kill: after how long, in how many seconds all was gone, and how many runs were done by then."""

    after_seconds: float
    gone_seconds: float
    runs_done: int
    ended_before: bool


class Broken(Exception):
    """Something that must hold did not."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=MATRIX, help="matrix file (default: a short one)")
    parser.add_argument("--kills", type=int, default=20, help="how many times to kill (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random moments (default: 0)")
    parser.add_argument("--longest", type=float, default=25.0, help="latest moment of a kill in seconds (default: 25)")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="kills-", dir="/var/tmp"))
    try:
        kill_many(options.file, folder / "results", options.kills, random.Random(options.seed), options.longest)
    except Broken as broken:
        print(f"BROKEN: {broken} (kept: {folder})")
        return 1
    shutil.rmtree(folder)
    return 0


def kill_many(file: Path, results: Path, kills: int, generator: random.Random, longest: float) -> None:
    """Kill and resume until `kills` commands were killed, then run to the end and check; new folders follow finished ones.

    A command that had ended before its kill counts for nothing.

    Raises:
        Broken: something that must hold did not, or most kills would come too late.
    """
    killed = done = 0
    while killed < kills:
        folder = results.with_name(f"{results.name}-{done}")
        kill = kill_once(file, folder, generator.uniform(0.05, longest))
        check_finished_runs(folder)
        if kill.ended_before:
            done += 1
            print(f"too late: it had ended before {kill.after_seconds:.2f} s", flush=True)
            if done > MOST_TOO_LATE + kills:
                raise Broken(f"{done} kills came too late and {killed} in time; shorten --longest")
            continue
        killed += 1
        note = f"{kill.runs_done} runs done, all gone after {kill.gone_seconds:.2f} s"
        print(f"kill {killed:2d}: after {kill.after_seconds:5.2f} s, {note}", flush=True)
    for part in range(done + 1):
        folder = results.with_name(f"{results.name}-{part}")
        finish(file, folder)
        print(f"folder {part}: all {len(run_ends(folder))} planned runs are done, none was repeated, no record lost")


def kill_once(file: Path, results: Path, after_seconds: float) -> Kill:
    """Start or resume, kill after `after_seconds`, and wait until nothing is left.

    Raises:
        Broken: something was left after 5 s.
    """
    before = finished(results)
    process = start(file, results)
    try:
        process.wait(after_seconds)
        ended = True
    except subprocess.TimeoutExpired:
        ended = False
        process.send_signal(signal.SIGKILL)
        process.wait()
    killed = time.monotonic()
    while left := leftovers(results):
        if time.monotonic() - killed > GONE_WITHIN_SECONDS:
            raise Broken(f"left {GONE_WITHIN_SECONDS:g} s after a kill at {after_seconds:.2f} s: {', '.join(left)}")
        time.sleep(0.05)
    gone = time.monotonic() - killed
    now = finished(results)
    for run_id, execution in before.items():
        if now.get(run_id) != execution:
            raise Broken(f"finished run {run_id} was repeated: execution {execution} became {now.get(run_id)}")
    return Kill(after_seconds=after_seconds, gone_seconds=gone, runs_done=len(now), ended_before=ended)


def finish(file: Path, results: Path) -> None:
    """Resume to the end.

    Raises:
        Broken: it failed, a run is not done, or a finished run was repeated.
    """
    before = finished(results)
    process = start(file, results)
    _, errors = process.communicate()
    if process.returncode != 0:
        raise Broken(f"the resumed matrix ended with exit code {process.returncode}: {errors.decode()[-300:]}")
    after = finished(results)
    repeated = [run_id for run_id, execution in before.items() if after.get(run_id) != execution]
    unfinished = [end.run_id for end in run_ends(results) if end.status != "done"]
    if repeated or unfinished:
        raise Broken(f"repeated: {repeated}; not done: {unfinished}")
    check_finished_runs(results)


def start(file: Path, results: Path) -> subprocess.Popen[bytes]:
    resume = ["--resume"] if (results / "matrix.json").exists() else []
    command = [sys.executable, "-m", "tuneoff", "compare", "--no-report", str(file), "--output", str(results), *resume]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE if resume else subprocess.DEVNULL)


def finished(results: Path) -> dict[str, str]:
    """Return the execution that is done, by run; warm-ups left out.

    Raises:
        Broken: a run was done twice.
    """
    found: dict[str, str] = {}
    for record in read_runs(results) if results.is_dir() else ():
        if record.status != "done" or record.run_spec().warm_up:
            continue
        if record.run_id in found:
            raise Broken(f"run {record.run_id} was done twice: {found[record.run_id]} and {record.execution_id}")
        found[record.run_id] = record.execution_id
    return found


def check_finished_runs(results: Path) -> None:
    """Check that each recorded run has all its trials and its event files as they were sealed.

    Raises:
        Broken: they are not.
    """
    for record in read_runs(results) if results.is_dir() else ():
        problems = [str(seal) for seal in broken_seals(results / "runs" / record.run_id / record.execution_id, record.sealed)]
        problems += _missing_trials(record)
        if problems:
            raise Broken(f"run {record.run_id}, {record.execution_id}: {'; '.join(problems)}")


def _missing_trials(record: RunRecord) -> list[str]:
    trials = record.run_spec().experiment.budget.trials
    if record.status == "done" and len(record.trials) != trials:
        return [f"{len(record.trials)} of {trials} trials"]
    return []


def leftovers(results: Path) -> list[str]:
    found = [f"process {pid}" for pid in with_mark(RESULTS_MARK, str(results.resolve()))]
    for execution in results.glob("runs/*/*"):
        found += [f"{kind} {value}" for kind, value in remembered(execution) if os.path.exists(value)]
    return found


if __name__ == "__main__":
    sys.exit(main())
