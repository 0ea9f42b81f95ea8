"""Environments of an adapter's own are made whole or not at all, used again without a network, and each failure is one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

import tuneoff
from builders.specs import NULL, make_spec
from builders.wheels import stub_index, write_source, write_wheel
from command_line import Call, write_file
from tuneoff.errors import MissingPackageError
from tuneoff.experiment.environments import cache, recipe_of
from tuneoff.experiment.spec import EnvironmentSpec, RunSpec
from tuneoff.run import environments
from tuneoff.run.environments import all_built, read_built, ready
from tuneoff_faults.small_disk import CANNOT
from waiting import until

FILE = "workload: 'null'\nbudget: {trials: 2}\nadapters: [optuna==4.5.0]\nwarm_up: false\n"


def optuna(version: str = "4.5.0", **environment: object) -> RunSpec:
    """Return a run of a release of Optuna."""
    own = EnvironmentSpec(version=version, **environment)  # type: ignore[arg-type]
    return replace(make_spec("optuna", target="tuneoff_adapters.optuna.adapter:OptunaAdapter", workload=NULL), environment=own)


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow) for name in ("uv", "pip")])
def index(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of stub wheels, which is all that uv, and in its absence pip, know."""
    if request.param == "pip":
        monkeypatch.setattr(environments, "_uv", lambda: None)
    elif environments._uv() is None:
        pytest.skip("uv is not installed; run: pip install uv")
    return stub_index(tmp_path, monkeypatch)


@pytest.fixture
def only_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of stub wheels, for what does not depend on the installer."""
    return stub_index(tmp_path, monkeypatch)


def made(spec: RunSpec) -> list[str]:
    """Make the environment of a run, and return what was told."""
    told: list[str] = []
    with ready([spec], told.append):
        return told


def refused(spec: RunSpec, *, offline: bool = False) -> str:
    """Return why an environment cannot be made; nothing of it may be left."""
    with pytest.raises(MissingPackageError) as error, ready([spec], offline=offline):
        pass
    assert all_built() == []
    return str(error.value)


def test_it_is_made_once_has_its_lock_and_is_used_again_without_an_index(index: Path) -> None:
    began, ended = made(optuna())
    assert began.startswith("environment optuna==4.5.0: cmaes>=0.11, optuna==4.5.0 for Python 3.")
    assert ended.startswith("environment optuna==4.5.0: made in ")
    built = environments.built_for(optuna())
    assert built is not None
    assert {name: built.packages[name] for name in ("optuna", "cmaes")} == {"optuna": "4.5.0", "cmaes": "0.13.1"}
    for wheel in index.iterdir():
        wheel.unlink()
    with ready([optuna()], pytest.fail, offline=True):
        pass
    words = "import optuna, tuneoff, sys; print(optuna.__version__, tuneoff.__file__, sys.prefix)"
    python = recipe_of(optuna()).folder / "bin/python"
    printed = subprocess.run([python, "-c", words], capture_output=True, text=True, check=True).stdout.split()
    assert printed == ["4.5.0", tuneoff.__file__, str(recipe_of(optuna()).folder)]
    assert not list(cache().glob("*.log"))


def test_the_files_of_two_environments_are_the_same_ones(index: Path) -> None:
    made(optuna("4.5.0"))
    made(optuna("5.0.0"))
    sites = [next(folder.glob("lib/*/site-packages")) for folder, _ in all_built()]
    assert len({(site / "cmaes/__init__.py").stat().st_ino for site in sites}) == 1
    assert len({(site / "optuna/__init__.py").stat().st_ino for site in sites}) == 2  # of two releases


def test_a_release_that_does_not_exist_is_told_with_the_nearest(index: Path) -> None:
    assert refused(optuna("4.5.7")) == (
        "the environment of optuna==4.5.7 cannot be made: optuna 4.5.7 does not exist for this Python; "
        "the nearest that do: 4.5.0 and 4.6.0"
    )
    assert refused(optuna("5.0.1")).endswith("the nearest that do: 5.0.0")


def test_a_package_that_does_not_build_is_named(index: Path) -> None:
    write_source(index, "knotty", "raise SystemExit('no compiler')")
    text = refused(optuna(packages=("knotty==1.0",)))
    assert "cannot be made: knotty has no wheel for this Python and cannot be built here; " in text
    log = Path(text.partition("see ")[2])
    assert "no compiler" in log.read_text()


def test_constraints_that_pins_refuse_are_dropped_and_said(index: Path) -> None:
    """Of the versions that all have in common, the others stay."""
    write_wheel(index, "numpy", "1.26.0")
    write_wheel(index, "optuna", "4.4.0", ["numpy<2"])
    told = made(optuna("4.4.0"))
    built = environments.built_for(optuna("4.4.0"))
    assert built is not None
    assert built.packages["numpy"] == "1.26.0"
    assert [text.partition("==")[0] for text in built.dropped] == ["numpy"]
    assert told[-1].endswith(f"its pins refuse the versions of this environment: {built.dropped[0]}")


def test_without_a_network_it_is_one_line(only_uv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nobody listens
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    for wheel in only_uv.iterdir():
        wheel.unlink()
    assert refused(optuna()).endswith(
        "the package index cannot be reached; try again with a network, or set PIP_INDEX_URL or PIP_FIND_LINKS"
    )


def test_offline_makes_none(only_uv: Path) -> None:
    assert refused(optuna(), offline=True) == (
        "optuna==4.5.0 needs an environment that is not there, and --offline makes none; with a network run the same without it"
    )


@pytest.mark.parametrize("words", [("compare", "--no-report"), ("faults", "--by", "adapter", "--fault", "raise")])
def test_a_command_that_lacks_one_says_so_and_leaves_no_results(
    words: tuple[str, ...], only_uv: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = [str(write_file(tmp_path / "file.yaml", FILE))] if words[0] == "compare" else []
    answer = call(words[0], *file, *words[1:], "--adapter", "optuna==4.5.0", "--offline")
    assert answer.code == MissingPackageError.exit_code
    assert "and --offline makes none" in answer.err.splitlines()[-1]
    assert not list(tmp_path.glob("results/*"))


@pytest.mark.slow
def test_one_that_was_altered_is_refused_with_the_command_that_removes_it(only_uv: Path, call: Call) -> None:
    made(optuna())
    recipe = recipe_of(optuna())
    with next(recipe.folder.glob("lib/*/site-packages/cmaes")).joinpath("more.py").open("w"):
        pass
    with pytest.raises(MissingPackageError, match=r"was altered; remove it: .*environments --remove") as error, ready([optuna()]):
        pass
    words = str(error.value).partition("remove it: ")[2].split()[1:]
    assert call(*words).code == 0
    assert all_built() == []
    assert len(made(optuna())) == 2  # made anew


@pytest.mark.slow
def test_compiled_files_alter_nothing(only_uv: Path) -> None:
    made(optuna())
    next(recipe_of(optuna()).folder.glob("lib/*/site-packages/cmaes/__pycache__/*")).unlink()
    with ready([optuna()], pytest.fail):
        pass


@pytest.mark.parametrize("whose", ["anybody's", "another user's"])
def test_a_cache_that_others_can_write_is_not_used(whose: str, only_uv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache().mkdir(parents=True)
    if whose == "anybody's":
        cache().chmod(0o777)
    else:
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert "must be a folder of this user into which nobody else can write" in refused(optuna())
    assert "set TUNEOFF_CACHE_DIR" in refused(optuna())


@pytest.mark.slow
def test_two_at_once_make_one(only_uv: Path) -> None:
    told: list[str] = []
    threads = [threading.Thread(target=lambda: told.extend(made(optuna()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum("made in" in line for line in told) == 1
    assert len(all_built()) == 1
    assert read_built(recipe_of(optuna()).folder) is not None


@pytest.mark.slow
def test_one_that_is_used_is_not_removed(only_uv: Path, call: Call) -> None:
    with ready([optuna()]):
        answer = call("environments", "--remove", "all")
    assert answer.line == f"tuneoff: environment {recipe_of(optuna()).folder.name} is used by another command; wait for its end"
    assert call("environments", "--remove", "all").code == 0
    assert all_built() == []


@pytest.mark.slow
def test_a_command_killed_while_it_makes_one_leaves_none(only_uv: Path, tmp_path: Path) -> None:
    """Its installer dies with it, and the next command makes the environment anew."""
    mark = tmp_path / "building"
    write_source(only_uv, "slow", f"import pathlib, time; pathlib.Path({str(mark)!r}).touch(); time.sleep(600)")
    file = tmp_path / "file.yaml"
    file.write_text(FILE.replace("optuna==4.5.0", "{name: optuna, environment: {version: 4.5.0, packages: [slow]}}"))
    command = subprocess.Popen([sys.executable, "-m", "tuneoff", "environments", "--make", file], stderr=subprocess.DEVNULL)
    until(mark.exists)
    building = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if b"building" in path.read_bytes()]
    command.send_signal(signal.SIGKILL)
    command.wait()
    for pid in building:  # uv's own child, which it does not take along
        os.kill(pid, signal.SIGKILL)
    spec = optuna(packages=("slow",))
    assert [built for _, built in all_built()] == [None]
    next(only_uv.glob("slow*")).unlink()
    write_wheel(only_uv, "slow", "1.0")
    assert "made in" in made(spec)[-1]


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_leaves_none(only_uv: Path, tmp_path: Path) -> None:
    write_wheel(only_uv, "optuna", "4.5.0", ["numpy"], megabytes=9)
    file, disk, kept = tmp_path / "file.yaml", tmp_path / "disk", tmp_path / "kept"
    file.write_text(FILE)
    disk.mkdir()
    command = [sys.executable, "-m", "tuneoff_faults.small_disk", str(disk), str(kept), "6"]
    command += [sys.executable, "-m", "tuneoff", "environments", "--make", str(file)]
    ended = subprocess.run(
        command, env={**os.environ, "TUNEOFF_CACHE_DIR": str(disk / "cache")}, capture_output=True, text=True, check=False
    )
    if ended.returncode == CANNOT:
        pytest.skip("no small disk can be made here; run as root")
    assert ended.returncode == MissingPackageError.exit_code
    assert "cannot be made: the disk is full; free space, or set TUNEOFF_CACHE_DIR" in ended.stderr.splitlines()[-1]
    assert [path.suffix for path in kept.glob("cache/environments/*") if path.is_dir()] == []
    assert list(kept.glob("cache/environments/*.lock"))


@pytest.mark.slow
def test_the_list_has_sizes_and_locks(only_uv: Path, call: Call, tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(FILE)
    assert call("environments", "--make", "file.yaml", "--adapter", "optuna==4.5.0", "optuna==5.0.0").code == 0
    listing = json.loads(call("environments", "--json").out)
    assert sorted(entry["made"]["packages"]["optuna"] for entry in listing) == ["4.5.0", "5.0.0"]
    assert all(entry["is_complete"] and entry["made"]["bytes"] > 0 for entry in listing)
    plan = call("plan", "file.yaml", "--adapter", "optuna==4.5.0", "optuna==4.6.0").out
    assert "environment optuna==4.5.0: there, " in plan
    assert "environment optuna==4.6.0: would be made of " in plan
