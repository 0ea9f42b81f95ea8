"""Kill `tuneoff compare` with SIGKILL at random moments, resume it each time, and check what must hold.

Processes are followed by pid and parent, whatever they do to their environment: this process adopts all that lose their
parent. After each kill every process of the matrix is gone within 5 s, and so are its ports, shared memory and temporary folders;
where its guardian is killed too, when the next `compare --resume` begins a run. At the end: every planned run is done, no
finished run was repeated, no event of a finished run was lost. Prints one line per kill and the counts; exit code 0 if all held.

    python tests/e2e/random_kills.py --kills 20 --seed 1 [FILE]
    python tests/e2e/random_kills.py --kills 30 --guardian-too 10 --adapters ray-tune --in-trials
    python tests/e2e/random_kills.py --kills 20 --adapters serial optuna syne-tune katib@emulated --in-trials
    python tests/e2e/random_kills.py --control
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuneoff.base.processes import GUARDIAN, command_line, descendants, end_all, kill
from tuneoff.run.run_ends import run_ends
from tuneoff.run.supervisor.leftovers import shared_memory

sys.path.insert(0, str(Path(__file__).parents[1]))  # as a script it would find its own folder alone

from e2e.following import Following
from e2e.matrix_runs import Broken, check_finished_runs, finish, finished, has_trained, start

MATRIX = Path(__file__).with_name("kill_matrix.yaml")
GONE_WITHIN_SECONDS = 5.0
SETTLE_SECONDS = 1.0  # of a resumed command, whose own processes come and go
LONGEST_SECONDS = 300.0
MOST_TOO_LATE = 3  # kills that come too late, beyond as many as are asked for

PLANTED = """
import mmap, os, socket, sys, time
if len(sys.argv) == 1:
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:], "again"], {})
file = os.open(f"/dev/shm/planted-{os.getpid()}", os.O_RDWR | os.O_CREAT, 0o600)
os.truncate(file, 4096)
memory = mmap.mmap(file, 4096)
server = socket.create_server(("127.0.0.1", 0))
print(os.getpid(), flush=True)
time.sleep(600)
"""


@dataclass(frozen=True)
class Kill:
    """One kill: when, how long until all was gone, how many runs were done by then."""

    after_seconds: float
    gone_seconds: float
    runs_done: int
    ended_before: bool
    adapter: str = "none"  # whose run was under way
    held: str = ""
    left: Following | None = None  # what the next command has to end: the guardian was killed too


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=MATRIX, help="matrix file (default: a short one)")
    parser.add_argument("--kills", type=int, default=20, help="how many times to kill (default: 20)")
    parser.add_argument("--guardian-too", type=int, default=0, help="in how many of them the guardian too (default: 0)")
    parser.add_argument("--adapters", nargs="+", default=(), help="instead of the file's, kills in turn: NAME[@PLATFORM]")
    parser.add_argument("--in-trials", action="store_true", help="count a kill's moment from the first epoch, in longer runs")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random moments (default: 0)")
    parser.add_argument("--longest", type=float, help="latest moment of a kill in seconds (default: 25, or 6 with --in-trials)")
    parser.add_argument("--control", action="store_true", help="plant a daemon that nobody ends: exit code 0 if it is noticed")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="kills-", dir="/var/tmp"))
    files = derived(options.file, folder, options.adapters, longer=options.in_trials)
    longest = options.longest or (6.0 if options.in_trials else 25.0)
    generator = random.Random(options.seed)
    try:
        if options.control:
            print(f"noticed: {control(files[0], folder / 'results')}")
        for place, file in enumerate(files if not options.control else ()):
            kills, both = (len(range(place, count, len(files))) for count in (options.kills, options.guardian_too))
            kill_many(file, folder / f"{file.stem}-results", kills, generator, longest, both, options.in_trials)
    except Broken as broken:
        print(f"BROKEN: {broken} (kept: {folder})")
        return 1
    finally:
        end_all(lambda: descendants(os.getpid()))
    shutil.rmtree(folder)
    return 0


def derived(file: Path, folder: Path, adapters: Sequence[str], *, longer: bool) -> list[Path]:
    """Return a file for each adapter, or one with those of `file`; `longer`: with runs that can be killed in their trials."""
    paths = []
    for adapter in adapters or [""]:
        lines = [f"include: {file.resolve()}"]
        if adapter:
            name, _, platform = adapter.partition("@")
            lines.append(f"adapters: [{{name: {name}, platform: {platform or 'local'}}}]")
        if longer:
            lines.append("budget: {trials: 24, epochs_per_trial: 3}")
        paths.append(folder / f"{adapter or file.stem}.yaml")
        paths[-1].write_text("\n".join(lines) + "\n")
    return paths


def kill_many(
    file: Path,
    results: Path,
    kills: int,
    generator: random.Random,
    longest: float,
    guardian_too: int = 0,
    in_trials: bool = False,
) -> None:
    """Kill and resume until `kills` commands were killed, then run to the end and check; new folders follow finished ones.

    A command that had ended before its kill counts for nothing. `guardian_too`: in how many kills.

    Raises:
        Broken: something that must hold did not, or most kills would come too late.
    """
    killed = done = 0
    counts: Counter[str] = Counter()
    both = set(generator.sample(range(kills), guardian_too))
    earlier: Following | None = None
    while killed < kills:
        folder = results.with_name(f"{results.name}-{done}")
        made = kill_once(file, folder, generator.uniform(0.05, longest), in_trials, killed in both, earlier)
        earlier = made.left
        check_finished_runs(folder)
        if made.ended_before:
            done += 1
            print(f"too late: it had ended before {made.after_seconds:.2f} s", flush=True)
            if done > MOST_TOO_LATE + kills:
                raise Broken(f"{done} kills came too late and {killed} in time; shorten --longest")
            continue
        killed += 1
        victims = "command" if earlier is None else "command and guardian"
        counts[f"{victims} in {made.adapter}"] += 1
        gone = f"all gone after {made.gone_seconds:.2f} s" if earlier is None else "the next command has to end all"
        note = f"{victims} in {made.adapter} with {made.held}, {made.runs_done} runs done, {gone}"
        print(f"kill {killed:2d}: after {made.after_seconds:5.2f} s, {note}", flush=True)
    for part in range(done + 1):
        folder = results.with_name(f"{results.name}-{part}")
        finish(file, folder)
        if part == done and earlier is not None:
            check_left(earlier, None, "after the next command")
        print(f"folder {part}: all {len(run_ends(folder))} planned runs are done, none was repeated, no record lost")
    print(f"{killed} kills, nothing was left: {'; '.join(f'{count} of {name}' for name, count in sorted(counts.items()))}")


def kill_once(
    file: Path,
    results: Path,
    after_seconds: float,
    in_trials: bool = False,
    guardian_too: bool = False,
    earlier: Following | None = None,
    planted: str = "",
) -> Kill:
    """Start or resume, kill after `after_seconds`, and wait until nothing is left.

    `in_trials`: so many seconds after the first epoch. `earlier`: what the killed command before this one has left. `planted`: a
    program that becomes a daemon beside it, and prints a line when it is there.

    Raises:
        Broken: something was left after 5 s, or of `earlier` when a run begins.
    """
    before, known = finished(results), set(results.glob("runs/*/*/events"))
    following, guardians = Following(), list[int]()
    process = start(file, results)
    try:
        ended = False
        if planted:
            with subprocess.Popen([sys.executable, "-c", planted], stdout=subprocess.PIPE) as daemon:
                assert daemon.stdout is not None
                daemon.stdout.readline()
        if earlier is not None:
            ended = not _comes(process, lambda: bool(set(results.glob("runs/*/*/events")) - known))
            if not process.poll():
                check_left(earlier, None if ended else process, "when the next command began a run")
        if in_trials and not ended:
            ended = not _comes(process, lambda: has_trained(results, besides=known))
        if not ended:
            deadline = time.monotonic() + after_seconds
            ended = not _comes(process, lambda: time.monotonic() >= deadline)
        if ended and process.returncode:
            raise Broken(f"the command ended before its kill, with exit code {process.returncode}")
        adapter, held = _under_way(results), following.look(results)
        if guardian_too:
            guardians = [pid for pid in descendants(process.pid) if GUARDIAN in command_line(pid, None)]
    finally:
        for pid in (process.pid, *guardians) if process.poll() is None else ():
            kill(pid)
        process.wait()
    killed = time.monotonic()
    while not guardians and (left := following.left()):
        if time.monotonic() - killed > GONE_WITHIN_SECONDS:
            raise Broken(f"left {GONE_WITHIN_SECONDS:g} s after a kill at {after_seconds:.2f} s, {held}: {', '.join(left)}")
        time.sleep(0.05)
    gone = time.monotonic() - killed
    now = finished(results)
    for run_id, execution in before.items():
        if now.get(run_id) != execution:
            raise Broken(f"finished run {run_id} was repeated: execution {execution} became {now.get(run_id)}")
    return Kill(
        after_seconds=after_seconds,
        gone_seconds=gone,
        runs_done=len(now),
        ended_before=ended,
        adapter=adapter,
        held=held,
        left=following if guardians else None,
    )


def control(file: Path, results: Path) -> str:
    """Plant a daemon that nobody ends, and return how it was noticed.

    Raises:
        Broken: it was not, or not all that it holds.
    """
    try:
        kill_once(file, results, 1.0, planted=PLANTED)
    except Broken as broken:
        if all(kind in str(broken) for kind in ("process ", "port ", "shared memory planted-")):
            return str(broken)
        raise
    finally:
        for name in shared_memory():
            if name.startswith("planted-"):
                os.unlink(f"/dev/shm/{name}")
    raise Broken("a planted daemon, its port and its shared memory were not noticed")


def check_left(earlier: Following, resumed: subprocess.Popen[bytes] | None, when: str) -> None:
    """Raise Broken if something of a killed command is left; processes of the one that resumes it come and go meanwhile."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while left := earlier.left(resumed):
        if time.monotonic() > deadline:
            raise Broken(f"left {when}: {', '.join(left)}")
        time.sleep(0.05)


def _comes(process: subprocess.Popen[bytes], is_there: Callable[[], bool]) -> bool:
    """Wait for something; False: the process ended before it came."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while not is_there():
        if process.poll() is not None:
            return False
        if time.monotonic() > deadline:
            raise Broken(f"what a kill waits for did not come within {LONGEST_SECONDS:g} s")
        time.sleep(0.02)
    return True


def _under_way(results: Path) -> str:
    """Return the adapter whose run has not ended yet, or `no run`."""
    for path in results.glob("runs/*/*/spec.json"):
        if not (path.parent / "end.json").exists():
            run = json.loads(path.read_text())["run"]
            return f"{run['adapter']}@{run['platform']}" if run["platform"] != "local" else str(run["adapter"])
    return "no run"


if __name__ == "__main__":
    sys.exit(main())
