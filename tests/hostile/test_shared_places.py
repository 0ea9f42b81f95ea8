"""Folders in places that others can write to: what another user puts there is neither used, nor searched, nor removed."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builders.specs import make_context, toy_spec
from builders.waiting_processes import waiting
from tuneoff.base.private_folder import PrivateFolder
from tuneoff.base.processes import is_alive
from tuneoff.errors import InfrastructureError
from tuneoff.record.run_context import remember
from tuneoff.run.supervisor.execution import new_execution
from tuneoff.run.supervisor.leftovers import clean_execution, clean_results
from tuneoff.run.supervisor.run import make_temporary_folder
from tuneoff_adapters.ray_tune.cluster import RayHosts, new_folder
from tuneoff_adapters.ray_tune.session import RECORD
from tuneoff_platforms.remote.contact import Contact
from tuneoff_platforms.remote.host import Host

STRANGER = 65534
HOLD = "import sys; file = open(sys.argv[1], 'w'); print('up', flush=True); sys.stdin.read()"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder in which everybody may make files, as /tmp is; and not sticky."""
    tmp_path.chmod(0o777)
    return tmp_path


@pytest.fixture
def victim(place: Path) -> Iterator[subprocess.Popen[str]]:
    """A process of mine that writes a file in a folder of mine."""
    (place / "mine").mkdir()
    with waiting(HOLD, str(place / "mine/file"), start_new_session=True) as process:
        yield process


def given_away(path: Path) -> None:
    """Let a path be another user's, where this one may say so."""
    if os.geteuid() == 0:
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)


def a_link(path: Path) -> str:
    path.symlink_to(path.parent / "mine")
    given_away(path)
    return "a link"


def a_folder(path: Path) -> str:
    path.mkdir()
    path.chmod(0o777)
    given_away(path)
    return "a folder"


def a_file(path: Path) -> str:
    path.touch()
    given_away(path)
    return "a file"


Taken = Callable[[Path], str]
ALL = pytest.mark.parametrize("taken", [a_link, a_folder, a_file])


def whose() -> int:
    return STRANGER if os.geteuid() == 0 else os.geteuid()


@ALL
def test_a_folder_is_made_only_where_nothing_is(place: Path, taken: Taken) -> None:
    (place / "mine").mkdir()
    kind = taken(place / "x")
    with pytest.raises(InfrastructureError) as refused:
        PrivateFolder.make(place / "x")
    assert f"{place}/x must be made by this run alone, but {kind} of user {whose()} is there" in str(refused.value)
    assert PrivateFolder.open(place / "x") is None
    assert os.path.lexists(place / "x")
    assert list((place / "mine").iterdir()) == []


def test_a_place_that_keeps_no_modes_is_named_as_that_and_nothing_stays_there(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.mkdir

    def as_there(name: str, mode: int, *, dir_fd: int) -> None:
        real(name, mode, dir_fd=dir_fd)
        os.chmod(name, 0o777, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", as_there)
    with pytest.raises(
        InfrastructureError, match=r"mode 0777: it is not used; .* set TMPDIR to a place that keeps owners and modes"
    ):
        PrivateFolder.make(place / "x")
    assert list(place.iterdir()) == []


@ALL
def test_an_agent_refuses_what_is_at_its_folders_name_and_ends_nothing_for_it(
    place: Path, victim: subprocess.Popen[str], tmp_path: Path, taken: Taken
) -> None:
    kind = taken(place / "taken")
    contact = Contact(make_context(toy_spec("ray-tune"), tmp_path), str(place / "taken"), 60.0)
    problems = contact.add([Host("there", "sh -c", sys.executable, tmp_path / "log")])
    ended = contact.end()
    assert is_alive(victim.pid)
    assert (place / "mine/file").exists()
    assert os.path.lexists(place / "taken")
    (problem,) = problems
    assert problem.startswith(f"host there: {place}/taken must be made by this run alone, but {kind} of user {whose()} is there")
    assert "\n" not in problem
    assert ended == []


def test_what_comes_to_the_name_later_is_left_alone_and_the_folder_is_cleaned_where_it_is(
    place: Path, victim: subprocess.Popen[str], tmp_path: Path
) -> None:
    contact = Contact(make_context(toy_spec("ray-tune"), tmp_path), str(place / "name"), 60.0)
    assert contact.add([Host("there", "sh -c", sys.executable, tmp_path / "log")]) == []
    (place / "name/old").touch()
    (place / "name").rename(place / "moved")
    a_link(place / "name")
    with waiting(HOLD, str(place / "moved/log"), start_new_session=True) as writer:
        assert contact.end() == []
        assert writer.wait(10) == -9
    assert is_alive(victim.pid)
    assert os.path.lexists(place / "name")
    assert (place / "mine/file").exists()
    assert list((place / "moved").iterdir()) == []  # its name is no more known


def test_a_list_of_leftovers_ends_no_process_for_a_link_or_another_users_folder(
    place: Path, victim: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place))
    execution = place / "results/runs/r/e"
    execution.mkdir(parents=True)
    a_link(place / "tuneoff-0123abcd")
    a_folder(place / "tuneoff-fedcba98")
    (place / "way").symlink_to(place)  # the place itself may be reached by a link
    own = place / "tuneoff-0123456789abcdef"
    own.mkdir()
    for name in ("tuneoff-0123abcd", "tuneoff-fedcba98", "way/tuneoff-0123456789abcdef"):
        remember(execution, "folder", str(place / name))
    with waiting(HOLD, str(own / "log"), start_new_session=True) as writer:
        assert clean_results(place / "results") == [writer.pid]
    assert is_alive(victim.pid)
    assert not own.exists()
    assert (place / "tuneoff-0123abcd").is_symlink()
    if os.geteuid() == 0:
        assert (place / "tuneoff-fedcba98").exists()


def test_only_a_process_that_writes_in_the_folder_itself_is_a_writer(place: Path) -> None:
    with PrivateFolder.make(place / "own") as folder, contextlib.ExitStack() as held:
        (place / "own-beside").mkdir()
        assert folder.writers() == set()
        held.enter_context((place / "own-beside/log").open("w"))
        (place / "own/read").touch()
        held.enter_context((place / "own/read").open())
        assert folder.writers() == set()
        with (place / "own/read").open("w"):
            assert folder.writers() == {os.getpid()}
        with (place / "own/gone").open("w"):
            (place / "own/gone").unlink()
            assert folder.writers() == {os.getpid()}
        with tempfile.TemporaryDirectory(dir=place / "own") as below, (Path(below) / "log").open("w"):
            assert folder.writers() == {os.getpid()}


@pytest.mark.slow
@pytest.mark.parametrize("is_own", [True, False])
def test_a_fresh_undeploy_cleans_the_folder_of_its_own_execution_alone(tmp_path: Path, is_own: bool) -> None:
    options = {"hosts": ["there"], "host_command": "env HOST={host} sh -c", "lost_seconds": 10}
    context = make_context(toy_spec("ray-tune", platform="cluster", options=options), tmp_path)
    named = new_folder(context.execution_id if is_own else "another")
    with PrivateFolder.make(Path(named)) as folder, waiting(HOLD, f"{named}/log", start_new_session=True) as writer:
        (context.work_dir / RECORD).write_text(json.dumps({"temporary_folder": named}))
        RayHosts(context).stop(20.0)
        assert is_alive(writer.pid) is not is_own
        assert folder.is_there is not is_own
        folder.remove()


def test_the_name_of_the_folder_on_hosts_cannot_be_told_from_the_execution() -> None:
    assert len({new_folder("execution") for _ in range(100)}) == 100


def test_a_run_takes_another_name_where_something_came_first_and_ends_in_one_line_where_it_always_does(
    place: Path, victim: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place))
    a_link(place / "tuneoff-00000000")
    execution = new_execution(toy_spec("serial"), place / "runs")
    drawn = [bytes(4), bytes(range(4)), *10 * [bytes(4)]]
    monkeypatch.setattr(os, "urandom", lambda _: drawn.pop(0))
    with make_temporary_folder(execution) as folder:
        assert folder.path == place / "tuneoff-00010203"
        folder.remove()
    with pytest.raises(InfrastructureError, match="tuneoff-00000000 must be made by this run alone, but a link of user"):
        make_temporary_folder(execution)
    assert clean_execution(execution.folder) == []  # all names were remembered
    assert is_alive(victim.pid)
    assert (place / "mine/file").exists()
    assert (place / "tuneoff-00000000").is_symlink()
