"""A training of the user's own: what it may look like, and what is refused before anything is run."""

from __future__ import annotations

import os
import signal
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import Answer, Call, File

PARSING = "import argparse, sys\nARGUMENTS = argparse.ArgumentParser().parse_args()\nassert sys.argv == [__file__]\n"
TRAIN = "def train(configuration): return 1.0\n"


@pytest.fixture(autouse=True)
def imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what the commands of a test import, and where they looked for it."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name in set(sys.modules) - before:
        if name.startswith("own_"):
            del sys.modules[name]


def plan(call: Call, file: File, code: str, *, module: str = "own_training", **changes: object) -> Answer:
    """Write a module in the current folder, and plan with its function `train`."""
    Path(f"{module}.py").write_text(code)
    space = {"x": {"type": "float", "low": 0.0, "high": 1.0}}
    values: dict[str, object] = {
        "workload": f"{module}:train",
        "adapters": ["serial"],
        "search_space": space,
        "objective": {"metric": "value", "mode": "min"},
    }
    return call("plan", file(**{**values, **changes}))


def test_a_module_that_parses_its_arguments_gets_none(call: Call, file: File) -> None:
    answer = plan(call, file, f"{PARSING}{TRAIN}")
    assert (answer.code, answer.err) == (0, "")


def test_what_an_import_does_to_its_process_is_undone_in_the_command(call: Call, file: File, tmp_path: Path) -> None:
    code = "import os, signal\nos.chdir('/')\nos.umask(0o777)\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    before = signal.getsignal(signal.SIGINT), os.umask(0o022)
    os.umask(before[1])
    assert plan(call, file, f"{code}{TRAIN}").code == 0
    assert (signal.getsignal(signal.SIGINT), os.umask(before[1]), os.getcwd()) == (*before, str(tmp_path))


@pytest.mark.parametrize(
    "code",
    [
        "def train(configuration, *, seed, **others): return 1.0",
        "def train(*arguments): return 1.0",
        "class Training:\n    def __call__(self, configuration, seed):\n        yield 1.0\ntrain = Training()",
        "import functools\ndef both(scale, configuration): return scale\ntrain = functools.partial(both, 2.0)",
        "train = lambda configuration: 1.0",
    ],
)
def test_functions_of_other_forms_are_taken(call: Call, file: File, code: str) -> None:
    answer = plan(call, file, code)
    assert (answer.code, answer.err) == (0, "")


@pytest.mark.parametrize(
    ("code", "options", "words"),
    [
        ("def train(lr, momentum): return 1.0", {}, "missing a required argument: 'momentum'"),
        ("def train(*, x): return 1.0", {}, "too many positional arguments"),
        ("def train(): return 1.0", {}, "too many positional arguments"),
        ("def train(configuration): return 1.0", {"rate": 2}, "got an unexpected keyword argument 'rate'"),
        ("def train(configuration, seed): return 1.0", {"seed": 2}, "is given `seed` by tuneoff and by `options`"),
        ("def train(configuration, seed, /): return 1.0", {}, "write def train(configuration, seed)"),  # Python words the rest
        ("async def train(configuration): return 1.0", {}, "is asynchronous; call it with asyncio.run(...)"),
        ("async def train(configuration): yield 1.0", {}, "is asynchronous; call it with asyncio.run(...)"),
        ("class T:\n    async def __call__(self, c): pass\ntrain = T()", {}, "is asynchronous"),
        ("import sys\nsys.exit(3)", {}, "ends the process while it is imported (exit code 3)"),
    ],
)
def test_what_cannot_be_called_is_refused_by_plan_in_one_line(
    call: Call, file: File, code: str, options: object, words: str
) -> None:
    answer = plan(call, file, code, workload={"name": "own_training:train", "options": options})
    assert answer.code in (2, 6)
    assert words in answer.line


def test_a_module_that_another_one_hides_is_refused_with_both_files(
    call: Call, file: File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installed := tmp_path / "installed").mkdir()
    (installed / "own_training.py").write_text(TRAIN)
    monkeypatch.syspath_prepend(installed)
    answer = plan(call, file, TRAIN)
    assert answer.code == 6
    files = f"must give {tmp_path / 'own_training.py'}, but gives {installed / 'own_training.py'}; rename the file"
    assert f"`import own_training` {files}" in answer.line
    monkeypatch.syspath_prepend(tmp_path)
    assert plan(call, file, TRAIN).code == 0


def test_a_module_that_one_in_an_archive_hides_is_refused_too(
    call: Call, file: File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "installed.zip", "w") as archive:
        archive.writestr("own_training.py", TRAIN)
    monkeypatch.syspath_prepend(tmp_path / "installed.zip")
    answer = plan(call, file, TRAIN)
    assert (answer.code, "installed.zip/own_training.py; rename the file" in answer.line) == (6, True)


@pytest.mark.parametrize(("module", "other"), [("statistics", "statistics.py"), ("time", "gives time")])
def test_a_module_with_the_name_of_one_of_python_s_is_refused(call: Call, file: File, module: str, other: str) -> None:
    answer = plan(call, file, TRAIN, module=module)
    texts = (f"`import {module}` must give ", f"{other}; rename the file")
    assert (answer.code, [text in answer.line for text in texts]) == (6, [True, True])


def test_a_file_beside_the_experiment_that_would_hide_python_s_own_is_refused(call: Call, file: File, tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("")
    (tmp_path / "antigravity.py").write_text("")  # nobody imports that: it may stay
    answer = plan(call, file, TRAIN)
    assert answer.code == 6
    assert f"{tmp_path / 'random.py'} has" in answer.line
    (tmp_path / "random.py").unlink()
    assert plan(call, file, TRAIN).code == 0
