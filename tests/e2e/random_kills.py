"""Kill `tuneoff compare` with SIGKILL at random moments, resume it each time, and check what must hold.

Processes are followed by pid and parent, whatever they do to their environment: this process adopts all that lose their
parent. After each kill every process of the matrix is gone within 5 s, and so are its ports, shared memory and temporary folders.
At the end: every planned run is done, no finished run was repeated, no event of a finished run was lost. Prints one line per kill
and the counts; exit code 0 if all held.

    python tests/e2e/random_kills.py --kills 20 --seed 1 [FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tuneoff.base.processes import descendants, end_all, kill
from tuneoff.run.run_ends import run_ends

sys.path.insert(0, str(Path(__file__).parents[1]))  # as a script it would find its own folder alone

from e2e.following import Following
from e2e.matrix_runs import Broken, check_finished_runs, finish, finished, start

MATRIX = Path(__file__).with_name("kill_matrix.yaml")
GONE_WITHIN_SECONDS = 5.0
MOST_TOO_LATE = 3  # kills that come too late, beyond as many as are asked for


@dataclass(frozen=True)
class Kill:
    """One kill: when, how long until all was gone, how many runs were done by then."""

    after_seconds: float
    gone_seconds: float
    runs_done: int
    ended_before: bool
    adapter: str = "none"  # whose run was under way
    held: str = ""


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
    finally:
        end_all(lambda: descendants(os.getpid()))
    shutil.rmtree(folder)
    return 0


def kill_many(file: Path, results: Path, kills: int, generator: random.Random, longest: float) -> None:
    """Kill and resume until `kills` commands were killed, then run to the end and check; new folders follow finished ones.

    A command that had ended before its kill counts for nothing.

    Raises:
        Broken: something that must hold did not, or most kills would come too late.
    """
    killed = done = 0
    counts: Counter[str] = Counter()
    while killed < kills:
        folder = results.with_name(f"{results.name}-{done}")
        made = kill_once(file, folder, generator.uniform(0.05, longest))
        check_finished_runs(folder)
        if made.ended_before:
            done += 1
            print(f"too late: it had ended before {made.after_seconds:.2f} s", flush=True)
            if done > MOST_TOO_LATE + kills:
                raise Broken(f"{done} kills came too late and {killed} in time; shorten --longest")
            continue
        killed += 1
        counts[made.adapter] += 1
        note = f"{made.adapter} with {made.held}, {made.runs_done} runs done, all gone after {made.gone_seconds:.2f} s"
        print(f"kill {killed:2d}: after {made.after_seconds:5.2f} s, {note}", flush=True)
    for part in range(done + 1):
        folder = results.with_name(f"{results.name}-{part}")
        finish(file, folder)
        print(f"folder {part}: all {len(run_ends(folder))} planned runs are done, none was repeated, no record lost")
    print(f"{killed} kills, nothing was left: {'; '.join(f'{count} in {name}' for name, count in sorted(counts.items()))}")


def kill_once(file: Path, results: Path, after_seconds: float, planted: str = "") -> Kill:
    """Start or resume, kill after `after_seconds`, and wait until nothing is left.

    `planted`: a program that becomes a daemon beside it, and prints a line when it is there.

    Raises:
        Broken: something was left after 5 s.
    """
    before, following = finished(results), Following()
    process = start(file, results)
    try:
        if planted:
            with subprocess.Popen([sys.executable, "-c", planted], stdout=subprocess.PIPE) as daemon:
                assert daemon.stdout is not None
                daemon.stdout.readline()
        try:
            ended = process.wait(after_seconds) is not None
        except subprocess.TimeoutExpired:
            ended = False
        if process.returncode:
            raise Broken(f"the command ended before its kill, with exit code {process.returncode}")
        adapter, held = _under_way(results), following.look(results)
    finally:
        if process.poll() is None:
            kill(process.pid)
        process.wait()
    killed = time.monotonic()
    while left := following.left():
        if time.monotonic() - killed > GONE_WITHIN_SECONDS:
            raise Broken(f"left {GONE_WITHIN_SECONDS:g} s after a kill at {after_seconds:.2f} s, {held}: {', '.join(left)}")
        time.sleep(0.05)
    gone = time.monotonic() - killed
    now = finished(results)
    for run_id, execution in before.items():
        if now.get(run_id) != execution:
            raise Broken(f"finished run {run_id} was repeated: execution {execution} became {now.get(run_id)}")
    return Kill(after_seconds, gone, len(now), ended, adapter, held)


def _under_way(results: Path) -> str:
    """Return the adapter whose run has not ended yet, or `no run`."""
    for path in results.glob("runs/*/*/spec.json"):
        if not (path.parent / "end.json").exists():
            run = json.loads(path.read_text())["run"]
            return f"{run['adapter']}@{run['platform']}" if run["platform"] != "local" else str(run["adapter"])
    return "no run"


if __name__ == "__main__":
    sys.exit(main())
