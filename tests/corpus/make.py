"""Make the corpus: run each case for real, pack its results folder, and write the figures that commands give of it.

    python tests/corpus/make.py                    everything, about ten minutes
    python tests/corpus/make.py NAME ...           these cases and what is copied from them
    python tests/corpus/make.py --figures          the figures alone, of the folders as they are
    python tests/corpus/make.py --derive           before that each record anew from its raw files: with new fields and metrics

A new recording has other times, so its figures are others too: read what changed before it is committed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as a script it would find its own folder alone

from corpus.cases import CASES, REMOVED, Case
from corpus.figures import EXPECTED, FOLDERS, SUFFIX, figures, unpack, written
from tuneoff.measure.stored import derived_run
from tuneoff.record.end import end_bytes, key_of
from tuneoff.record.results_folder import read_plan
from tuneoff.record.store import ended_executions, write_run
from tuneoff.tell.frames.export import export

LONGEST_SECONDS = 300
LEFT_OUT = {"framework", "report", ".lock"}  # what no command reads, what is derived, and who held the folder: none does here


def environment() -> dict[str, str]:
    """Return the environment of the runs: this interpreter is `python`, and prepared data are kept in the current folder."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "TUNEOFF_CACHE_DIR": str(Path("cache").absolute())}


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """Start a command of tuneoff."""
    command = [sys.executable, "-m", "tuneoff", *arguments]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def begin(case: Case, *options: str, output: str = "") -> subprocess.Popen[bytes]:
    """Start a case."""
    return start("compare", f"{case.name}.yaml", "--no-report", "--output", output or case.name, *options)


def compare(case: Case, *options: str, output: str = "") -> None:
    """Run a case to its end, whatever that is."""
    begin(case, *options, output=output).wait(LONGEST_SECONDS)


def end_in(case: Case, run: int, number: signal.Signals, *options: str) -> None:
    """Start a case and send it a signal when that run of it has trained an epoch."""
    process = begin(case, *options)
    until = time.monotonic() + LONGEST_SECONDS
    while len(_trained(case)) < run:
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit(f"{case.name}: run {run} was not reached")
        time.sleep(0.05)
    process.send_signal(number)
    process.wait(LONGEST_SECONDS)


def _trained(case: Case) -> set[Path]:
    events = Path(case.name).glob("runs/*/*/events/*.jsonl")
    return {path.parent.parent for path in events if b'"type":"epoch"' in path.read_bytes()}


def kill_and_resume(case: Case) -> None:
    end_in(case, 2, signal.SIGKILL)
    compare(case, "--resume")


def add_seed(case: Case) -> None:
    compare(case)
    compare(case, "--resume", "--seeds", f"0-{case.file['seeds']['count']}")


def compare_and_export(case: Case) -> None:
    compare(case)
    start("export", case.name).wait(LONGEST_SECONDS)


def retry_failed(case: Case) -> None:
    compare(case)
    compare(case, "--retry", "failed")


def disturb(case: Case) -> None:
    """Run a case beside programs that only work, until its first two runs have ended."""
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    process = begin(case)
    while process.poll() is None:
        if len(list(Path(case.name).glob("runs/*/*/end.json"))) >= 2:
            for hog in hogs:
                hog.kill()
        time.sleep(0.05)
    for hog in hogs:
        hog.kill()
        hog.wait()


def reproduce(case: Case) -> None:
    """Run a case, bundle it, and run it again from the bundle: that is the folder."""
    original = f"{case.name}-original"
    compare(case, output=original)
    start("bundle", original, "--output", "bundle.tar.gz").wait(LONGEST_SECONDS)
    start("reproduce", "bundle.tar.gz", "--output", case.name).wait(LONGEST_SECONDS)


HOW: dict[str, Callable[[Case], object]] = {
    "compare": compare,
    "export": compare_and_export,
    "add a seed": add_seed,
    "interrupt": lambda case: end_in(case, 3, signal.SIGINT),
    "kill at once": lambda case: end_in(case, 1, signal.SIGKILL),
    "kill": lambda case: end_in(case, 2, signal.SIGKILL),
    "kill and resume": kill_and_resume,
    "retry failed": retry_failed,
    "disturb": disturb,
    "reproduce": reproduce,
}


def change(folder: Path, case: Case) -> None:
    """Damage a copy of a folder as its case says, another run by each change."""
    damaged: set[str] = set()
    for pattern, old, new in case.changes:
        paths = [path for path in sorted(folder.glob(pattern)) if not damaged & set(path.parts)]
        path = next((path for path in paths if old in path.read_text()), None)
        if path is None:
            raise SystemExit(f"{case.name}: no {pattern} has {old!r}")
        damaged.update(path.parts[2:3])
        if old:
            path.write_text(path.read_text().replace(old, new, 1))
        elif new == REMOVED:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make(case: Case) -> None:
    """Make the results folder of a case in the current folder."""
    if case.of:
        unpack(case.of, Path("other"))
        shutil.move(f"other/{case.of}", case.name)
        change(Path(case.name), case)
        return
    case.write(Path())
    HOW[case.how](case)


def derive_anew(folder: Path) -> None:
    """Write each record of a folder as it follows today from its raw files, and the tables where there are any."""
    for execution in ended_executions(folder):
        end = end_bytes(execution)
        write_run(execution, derived_run(execution, end), key_of(end))
    if (folder / "export").exists():
        export(folder, folder / "export", "csv", [run.run_id for run in read_plan(folder).runs])


def pack(folder: Path) -> None:
    """Write a results folder as an archive that is the same for the same files."""
    if not folder.is_dir():
        raise SystemExit(f"{folder.name}: its file is refused: tuneoff plan says why")
    FOLDERS.mkdir(exist_ok=True)
    with tarfile.open(FOLDERS / f"{folder.name}{SUFFIX}", "w:xz", preset=9) as archive:
        archive.add(folder, folder.name, filter=_plain)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if Path(entry.name).name in LEFT_OUT:
        return None
    entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
    entry.mode = 0o755 if entry.isdir() else 0o644
    return entry


def write_figures(case: Case) -> None:
    """Write what commands say of a packed folder."""
    EXPECTED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        found = figures(unpack(case.name, Path(scratch)), Path(scratch, "tables"))
    (EXPECTED / f"{case.name}.json").write_text(f"{written(found)}\n")


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--figures", action="store_true")
    only.add_argument("--derive", action="store_true")
    arguments = parser.parse_args()
    chosen = [case for case in CASES if not arguments.names or {case.name, case.of} & set(arguments.names)]
    for case in chosen:
        if not arguments.figures:
            with tempfile.TemporaryDirectory(prefix="corpus-") as scratch:
                os.chdir(scratch)
                if arguments.derive and not case.of:
                    derive_anew(unpack(case.name, Path()))
                else:
                    make(case)
                pack(Path(case.name))
                os.chdir("/")
        write_figures(case)
        sizes = [path.stat().st_size for path in (FOLDERS / f"{case.name}{SUFFIX}", EXPECTED / f"{case.name}.json")]
        print(f"{case.name}: {sizes[0] / 1000:.0f} kB, {sizes[1] / 1000:.0f} kB of figures", flush=True)


if __name__ == "__main__":
    run()
