"""Plant each defect in a copy of the source tree and see which tests catch it, the corpus and the contracts first.

    python tests/planted/run.py                    all plants
    python tests/planted/run.py judge cli-3        these lists and plants

A test counts if it passes alone without the defect; one outside the corpus, where processes and times are real, must also fail
again. Prints one line per plant: the stage and the test that caught it, or SURVIVED. Exit code 0 if at least 95 % are caught.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as a script it would find its own folder alone

from planted.plants import ROOT, Plant, plants

FAST, SLOW = ("-m", "not slow and not multihost"), ("-m", "slow and not multihost")
CORPUS = "tests/corpus"
FIRST: Mapping[str, str] = {  # of the files below a path: which tests of the corpus come first, as they catch the most
    "": "tests/corpus/test_figures.py",
    "core/tuneoff/cli/": "tests/corpus/test_plugins.py",
    "core/tuneoff/judge/": "tests/corpus/test_scenarios.py",
    "core/tuneoff/tell/": "tests/corpus/test_texts.py",
}
ALL_ADAPTERS = (
    *("tests/e2e/test_early_ends.py", "tests/e2e/test_training_abilities.py", "tests/adapters/test_noisy_training.py"),
    "tests/trust/space_test/test_adapters.py",
)
LIMIT_SECONDS = 900
LEAST_SHARE = 0.95
LAST_FAILED = ".pytest_cache/v/cache/lastfailed"
_NO_TESTS = 5  # pytest's exit code
PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:xdist", "--ignore=tests/planted")


class Tree:
    """A copy of the source tree, in which one defect at a time is planted.

    Its Python is of an environment of its own, which has the packages of ours, but not the editable installation: whatever a
    test starts, with whatever PYTHONPATH, imports the copy.
    """

    def __init__(self, path: Path) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
        ).stdout
        for name in filter(None, listed.decode().split("\0")):
            if (ROOT / name).is_file():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, path / name)
        self.path = path
        self._without_plant: dict[str, str] = {}  # by test: which one fails
        venv.create(path / ".venv", symlinks=True)
        packages = Path(os.__file__).parent.relative_to(sys.base_prefix) / "site-packages"
        paths = (*(path / name for name in ("core", "adapters", "workloads")), Path(sys.prefix) / packages)
        (path / ".venv" / packages / "copy.pth").write_text("".join(f"{path}\n" for path in paths))
        for script in Path(sys.prefix, "bin").iterdir():  # tests call commands that lie beside their Python
            if not (own := path / ".venv/bin" / script.name).exists() and script.read_bytes().startswith(b"#!"):
                own.write_text(script.read_text().replace(sys.prefix, str(path / ".venv")))
                own.chmod(0o755)

    def caught_by(self, plant: Plant, stages: Iterable[tuple[str, Sequence[str]]]) -> tuple[str, str]:
        """Return the first stage and test that catch a defect, ("", "") if none does."""
        for stage, tests in stages:
            while test := self.failing(tests, plant):
                if test not in self._without_plant:
                    self._without_plant[test] = self.failing((test,))
                if not self._without_plant[test] and (stage == "corpus" or self.failing((test,), plant)):
                    return stage, test
                tests = (*tests, f"--deselect={test}", f"--ignore={test}")  # it fails without the defect too, or not always
        return "", ""

    def failing(self, tests: Sequence[str], plant: Plant | None = None) -> str:
        """Return the first test that fails, "" if none does; of what takes too long nothing is known."""
        if plant is None:
            return self._failing(tests)
        sound = (self.path / plant.file).read_text()
        self._write(plant.file, plant.planted(self.path))
        try:
            return self._failing(tests)
        finally:
            self._write(plant.file, sound)

    def _write(self, file: str, text: str) -> None:
        path = self.path / file
        path.write_text(text)
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):  # it may have the same size and second
            compiled.unlink()

    def _failing(self, tests: Sequence[str]) -> str:
        scratch = self.path.with_name(f"{self.path.name}-tmp")  # what a defect leaves there goes with it
        scratch.mkdir(exist_ok=True)
        (self.path / LAST_FAILED).unlink(missing_ok=True)
        process = subprocess.Popen(
            [self.path / ".venv/bin/python", *PYTEST, *tests],
            cwd=self.path,
            env={**os.environ, "TMPDIR": str(scratch)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            print(f"not ended after {LIMIT_SECONDS} s: {' '.join(tests)}", file=sys.stderr)
            return ""
        if code in (0, _NO_TESTS):
            return ""
        failed = self.path / LAST_FAILED
        return str(next(iter(json.loads(failed.read_text())))) if failed.exists() else tests[0]


def stages_of(plant: Plant) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield what is run one after the other: the name of a stage, and its tests."""
    first, room = FIRST[max(filter(plant.file.startswith, FIRST), key=len)], room_of(plant)
    framework = Path(plant.file).parts[2].removesuffix(".py") if plant.file.startswith("adapters/tuneoff_adapters/") else ""
    contracts = [str(path.relative_to(ROOT)) for path in (ROOT / "tests/contract").glob(f"test_{framework or 'serial'}*.py")]
    yield "corpus", (first, *FAST)
    yield "corpus", (CORPUS, *FAST, f"--ignore={first}")
    yield "room", (*room, *FAST)
    yield "contract", contracts or ("tests/contract/test_serial.py",)
    if framework:
        yield "all adapters", ALL_ADAPTERS
    yield "all fast", ("tests", *FAST, f"--ignore={CORPUS}")
    yield "slow corpus", (CORPUS, *SLOW)
    yield "slow room", (*room, *SLOW)


def room_of(plant: Plant) -> list[str]:
    """Return the folder of tests/ that mirrors a file's package, and the files of tests that name its module.

    Of a package without such a folder: the files that name the package.
    """
    path = Path(plant.file).with_suffix("")
    module = ".".join(path.parts[1:]).removesuffix(".__init__")
    package = [part.removeprefix("tuneoff_") for part in path.parts[2 if path.parts[0] == "core" else 1 : -1]]
    folders = ("/".join(("tests", *package[:depth])) for depth in range(len(package), 0, -1))
    mirror = next((folder for folder in folders if (ROOT / folder).is_dir()), None)
    above, _, name = module.rpartition(".")
    named = rf"\b{module}\b|from {above} import .*\b{name}\b" if mirror or not package else rf"\b{path.parts[1]}\b"
    files = sorted(file for file in (ROOT / "tests").rglob("test_*.py") if re.search(named, file.read_text()))
    names = [str(file.relative_to(ROOT)) for file in files]
    return [*([mirror] if mirror else []), *(name for name in names if not mirror or not name.startswith(f"{mirror}/"))]


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

        def answer(plant: Plant) -> str:
            tree = trees.get()
            try:
                stages = (stage for stage in stages_of(plant) if not arguments.fast or stage[0] == "corpus")
                stage, test = tree.caught_by(plant, stages)
            finally:
                trees.put(tree)
            print(f"{plant.name}: {f'{stage}: {test}' if stage else 'SURVIVED'}: {plant.breaks} ({plant.file})", flush=True)
            return stage

        answers = Counter(pool.map(answer, chosen))
    caught = sum(count for stage, count in answers.items() if stage)
    print(f"{caught} of {len(chosen)} plants were caught: {', '.join(f'{stage} {n}' for stage, n in answers.items() if stage)}")
    return 0 if caught >= LEAST_SHARE * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(run())
