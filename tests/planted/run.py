"""Plant each defect in a copy of the source tree and see whether the seam and the contracts catch it.

    python tests/planted/run.py                    all plants
    python tests/planted/run.py judge cli-3        these lists and plants

Prints one line per plant: the test that caught it, or SURVIVED. Exit code 0 if at least 95 % are caught.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as a script it would find its own folder alone

from planted.plants import ROOT, Plant, plants

SEAM = ("tests/corpus", "-m", "not slow"), ("tests/corpus", "-m", "slow")
CONTRACTS: Mapping[
    str, Sequence[str]
] = {  # of the files below a path: what is run where the seam finds nothing, the longest path that fits
    "core/tuneoff/": ("tests/contract/test_serial.py",),
    "core/tuneoff/ask_tell.py": ("tests/contract/test_nevergrad.py",),
    "core/tuneoff/tell/live/": ("tests/tell/live", "-m", "not slow"),
    "core/tuneoff/trust/": ("tests/trust", "-m", "not slow"),
    **{
        f"core/tuneoff/trust/check/checks/{checks}.py": ("tests/trust/check", "-k", f"judgements or {planted}")
        for checks, planted in {
            "best": "choosing",
            "budget": "spending",
            "careless": "careless",
            "ending": "leaving or working",
            "failures": "failing",
            "records": "recording",
            "refusal": "refusing",
            "seeds": "proposing",
            "space": "proposing",
            "steps": "stepping or undeploying",
            "workers": "working",
        }.items()
    },
    "workloads/": ("tests/workloads", "tests/contract/test_serial.py"),
    "adapters/tuneoff_adapters/": ("tests/contract/test_serial.py",),
    "adapters/tuneoff_adapters/optuna/": ("tests/contract/test_optuna.py",),
    "adapters/tuneoff_adapters/ray_tune/": ("tests/contract/test_ray_tune.py",),
    "adapters/tuneoff_adapters/syne_tune/": ("tests/contract/test_syne_tune.py",),
    "adapters/tuneoff_adapters/katib/": ("tests/contract/test_katib.py",),
    "adapters/tuneoff_adapters/nevergrad.py": ("tests/contract/test_nevergrad.py",),
    "adapters/tuneoff_adapters/rustuna.py": ("tests/contract/test_rustuna.py",),
}
FIRST: Mapping[str, str] = {  # of the files below a path: which tests of the corpus come first, as they catch the most
    "": "tests/corpus/test_figures.py",
    "core/tuneoff/cli/": "tests/corpus/test_plugins.py",
    "core/tuneoff/judge/": "tests/corpus/test_scenarios.py",
    "core/tuneoff/tell/": "tests/corpus/test_texts.py",
}
LIMIT_SECONDS = 900
LEAST_SHARE = 0.95
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")


class Tree:
    """A copy of the source tree, in which one defect at a time is planted."""

    def __init__(self, path: Path) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
        ).stdout
        for name in filter(None, listed.decode().split("\0")):
            if (ROOT / name).is_file():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, path / name)
        self.path = path

    def caught_by(self, plant: Plant, tests: Iterable[Sequence[str]]) -> str:
        """Plant a defect, run the tests, and take it out again; return the first test that fails, "" if none does."""
        sound = (self.path / plant.file).read_text()
        self._write(plant.file, plant.planted(self.path))
        try:
            return next(filter(None, map(self.failing, tests)), "")
        finally:
            self._write(plant.file, sound)

    def _write(self, file: str, text: str) -> None:
        path = self.path / file
        path.write_text(text)
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):  # it may have the same size and second
            compiled.unlink()

    def failing(self, tests: Sequence[str]) -> str:
        """Return the first test that fails, "" if none does; what takes too long is stopped, and counts as failing."""
        roots = [str(self.path / name) for name in ("core", "adapters", "workloads")]
        scratch = self.path.with_name(f"{self.path.name}-tmp")  # what a defect leaves there goes with it
        scratch.mkdir(exist_ok=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(roots), "TMPDIR": str(scratch)}
        process = subprocess.Popen(
            [sys.executable, *PYTEST, *tests],
            cwd=self.path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"{tests[0]}: not ended after {LIMIT_SECONDS} s"
        if process.returncode == 0:
            return ""
        failed = _FAILED.search(out)
        return failed[1] if failed is not None else f"{tests[0]}: {out.strip()[-200:]}"


def nearest(paths: Iterable[str], plant: Plant) -> str:
    """Return the longest of the paths that a plant's file lies below."""
    return max((path for path in paths if plant.file.startswith(path)), key=len)


def run() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a list, as judge, or a plant, as judge-3; default: all")
    parser.add_argument("--fast", action="store_true", help="run the fast tests of the corpus alone")
    parser.add_argument("--jobs", type=int, default=2, help="plants at a time; default: 2")
    arguments = parser.parse_args()
    wanted = set(arguments.names)
    chosen = [plant for plant in plants() if not wanted or wanted & {plant.name, plant.name.rpartition("-")[0]}]
    with tempfile.TemporaryDirectory(prefix="planted-") as scratch, ThreadPoolExecutor(arguments.jobs) as pool:
        trees: queue.SimpleQueue[Tree] = queue.SimpleQueue()
        for number in range(arguments.jobs):
            trees.put(Tree(Path(scratch, str(number))))
        if failing := (tree := trees.get()).failing(SEAM[0]):
            print(f"nothing was planted: without a defect {failing} fails", file=sys.stderr)
            return 2
        trees.put(tree)

        def answer(plant: Plant) -> str:
            tree = trees.get()
            try:
                first = FIRST[nearest(FIRST, plant)]
                fast = (first, *SEAM[0][1:]), (*SEAM[0], f"--ignore={first}")
                slow = () if arguments.fast else (SEAM[1], CONTRACTS[nearest(CONTRACTS, plant)])
                found = tree.caught_by(plant, (*fast, *slow))
            finally:
                trees.put(tree)
            print(f"{plant.name}: {found or 'SURVIVED'}: {plant.breaks} ({plant.file})", flush=True)
            return found

        answers = list(pool.map(answer, chosen))
    caught = sum(map(bool, answers))
    print(f"{caught} of {len(answers)} plants were caught")
    return 0 if caught >= LEAST_SHARE * len(answers) else 1


if __name__ == "__main__":
    sys.exit(run())
