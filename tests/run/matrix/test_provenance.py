from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tuneoff.experiment.spec import WorkloadSpec
from tuneoff.record.environment import git_remote
from tuneoff.run.provenance import prepare

WORKLOAD = """
from tuneoff_workloads.null import Null
from tuneoff.workload import DataDescription


class W(Null):
    def prepare(self):
        paths = {"a": "PATH", "b": "PATH.gone"}
        return DataDescription(name="d", version="1", sha256={"a": "declared"}, size_bytes=3, paths=paths)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "repository" / "own_workload"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "w.py").write_text(WORKLOAD.replace("PATH", str(tmp_path / "a")))
    (tmp_path / "a").write_text("abc")
    monkeypatch.syspath_prepend(str(folder.parent))
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "own_workload"]:
        del sys.modules[name]


SPEC = WorkloadSpec(name="own", target="own_workload.w:W")


def test_the_code_is_that_of_the_workloads_package(package: Path) -> None:
    found = prepare(SPEC).environment()
    assert found["workload"]["package"] == "own_workload"
    assert found["workload"]["files"] == 2
    assert found["workload"]["sha256"] is not None
    assert found["after"]["code"] == found["workload"]["sha256"]
    assert found["workload"]["git"] is None


def test_code_that_is_changed_during_the_matrix_has_another_digest_after_it(package: Path) -> None:
    declared = prepare(SPEC)
    with (package / "w.py").open("a") as file:
        file.write("# changed\n")
    found = declared.environment()
    assert found["workload"]["sha256"] != found["after"]["code"]


def test_a_file_that_is_no_code_changes_no_digest(package: Path) -> None:
    declared = prepare(SPEC)
    (package / "notes.txt").write_text("x")
    found = declared.environment()
    assert found["workload"]["sha256"] == found["after"]["code"]


CONFIG = """[core]
	bare = false
[remote "upstream"]
	url = https://example.com/other.git
[remote "origin"]
	fetch = +refs/heads/*:refs/remotes/origin/*
	url = {url}
[branch "main"]
	remote = origin
"""


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://me:secret@example.com/group/code.git?token=x#y", "https://example.com/group/code.git"),
        ("https://token@example.com:8443/code.git", "https://example.com:8443/code.git"),
        ("git@example.com:group/code.git", "git@example.com:group/code.git"),
        ("ssh://git@example.com/code.git", "ssh://example.com/code.git"),
    ],
)
def test_the_remotes_url_comes_without_credentials(tmp_path: Path, url: str, found: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(CONFIG.format(url=url))
    (tmp_path / "below").mkdir()
    assert git_remote(tmp_path / "below") == found


def test_the_repository_of_the_code_has_its_url_and_commit(package: Path) -> None:
    git = package.parent / ".git"
    git.mkdir()
    (git / "config").write_text(CONFIG.format(url="https://example.com/code.git"))
    (git / "HEAD").write_text("a" * 40 + "\n")
    assert prepare(SPEC).code["git"] == {"url": "https://example.com/code.git", "commit": "a" * 40}


def test_data_files_are_read_again_after_a_run(package: Path) -> None:
    found = prepare(SPEC).environment()["after"]
    assert found["data"] == {"a": hashlib.sha256(b"abc").hexdigest(), "b": None}
    assert found["data_bytes"] is None  # one cannot be read
