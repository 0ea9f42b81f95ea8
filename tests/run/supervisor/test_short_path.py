"""A temporary folder whose path is too long for sockets, or odd, is not a trouble: its processes get a short, plain one."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tuneoff.run.supervisor.run import LONGEST_BYTES, short_path


def long_folder(tmp_path: Path) -> Path:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", ["a,b", "a b", "ä", 'a"b', "a'b", "a$b"])
def test_a_path_that_a_program_may_read_otherwise_becomes_a_plain_one(name: str) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp", suffix=name) as folder, short_path(Path(folder)) as path:
        assert re.fullmatch(r"/proc/\d+/fd/\d+", str(path))
        assert path.samefile(folder)


def test_a_short_path_stays_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with short_path(Path("/tmp")) as path:
        assert path == Path("/tmp")


def test_a_socket_below_a_long_path_is_bound_by_a_short_one_in_other_processes_too(tmp_path: Path) -> None:
    folder = long_folder(tmp_path)
    with pytest.raises(OSError, match="too long"), socket.socket(socket.AF_UNIX) as refused:
        refused.bind(str(folder / "s"))
    bind = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
    with short_path(folder) as path:
        assert len(os.fsencode(path)) <= LONGEST_BYTES
        subprocess.run([sys.executable, "-c", bind, str(path / "s")], check=True)
    assert (folder / "s").is_socket()
    assert not path.exists()
