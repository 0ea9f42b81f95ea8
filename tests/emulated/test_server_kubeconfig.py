"""The server's kubeconfig: a file of somebody else at its path is never lost."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from emulated.program import COMMAND, failure, program
from katib_emulation import kubeconfig
from katib_emulation.errors import StorageError
from katib_emulation.store import Store
from waiting import until

pytestmark = pytest.mark.slow  # processes, or faults that have to last

URL = "http://127.0.0.1:1"
USERS = """\
apiVersion: v1
kind: Config
clusters: [{name: production, cluster: {server: "https://cluster.example:6443"}}]
"""


def test_file_of_the_user_is_refused_and_kept(tmp_path: Path) -> None:
    mine = tmp_path / "config"
    mine.write_text(USERS)
    line = failure(tmp_path / "f", mine)
    assert f"--kubeconfig {mine} is there and was not written by this program, so it stays as it is; give a path" in line
    assert mine.read_text() == USERS
    assert not (tmp_path / "f").exists()


def test_file_of_a_server_that_was_killed_is_replaced(tmp_path: Path) -> None:
    with program(tmp_path / "f") as server:
        server.process.kill()
        server.wait()
    stale = server.kubeconfig.read_text()
    command = [*COMMAND, str(tmp_path / "g"), "--kubeconfig", str(server.kubeconfig)]
    again = subprocess.Popen(command)
    until(lambda: server.kubeconfig.exists() and server.kubeconfig.read_text() != stale)
    again.terminate()
    assert again.wait(20) == 0
    assert not server.kubeconfig.exists()


def test_file_of_a_server_that_runs_is_refused_and_kept(tmp_path: Path) -> None:
    with program(tmp_path / "f") as server:
        for folder in (tmp_path / "f", tmp_path / "g"):
            line = failure(folder, server.kubeconfig)
            assert f"another server uses the folder {tmp_path / 'f'}, and {server.kubeconfig} is its kubeconfig; end it" in line
        assert server.ask("GET", "/version")


def made(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    kubeconfig.claim(path)
    kubeconfig.write(path, URL, "secret", tmp_path / "f")
    return path


def with_another_cluster(path: Path) -> None:
    config = json.loads(path.read_text())
    config["clusters"].append({"name": "production", "cluster": {"server": "https://cluster.example:6443"}})
    path.write_text(json.dumps(config))


def with_another_user(path: Path) -> None:
    config = json.loads(path.read_text())
    config["users"].append({"name": "me", "user": {"token": "mine"}})
    path.write_text(json.dumps(config))


def as_link(path: Path) -> None:
    path.rename(path.with_name("target"))
    path.symlink_to(path.with_name("target"))


def as_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("target"))


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def as_bytes(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")


@pytest.mark.parametrize("change", [with_another_cluster, with_another_user, as_link, as_dangling_link, as_folder, as_bytes])
def test_what_is_not_just_the_servers_own_is_kept(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = made(tmp_path)
    change(path)
    kubeconfig.remove(path, tmp_path / "f")
    with pytest.raises(StorageError, match="is there and was not written by this program"):
        made(tmp_path)
    assert os.path.lexists(path)


def test_its_own_goes_unless_its_server_runs(tmp_path: Path) -> None:
    made(tmp_path)
    store = Store(tmp_path / "f")
    with pytest.raises(StorageError, match="another server uses the folder"):
        made(tmp_path)
    store.close()
    path = made(tmp_path)
    assert path.stat().st_mode & 0o077 == 0
    kubeconfig.remove(path, tmp_path / "f")
    assert not path.exists()
    kubeconfig.remove(path, tmp_path / "f")


def test_file_that_comes_while_the_server_starts_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "config"
    kubeconfig.claim(path)
    path.write_text(USERS)
    with pytest.raises(FileExistsError):
        kubeconfig.write(path, URL, "secret", tmp_path / "f")
    kubeconfig.remove(path, tmp_path / "f")
    assert [path.name for path in tmp_path.iterdir()] == ["config"]
    assert path.read_text() == USERS
