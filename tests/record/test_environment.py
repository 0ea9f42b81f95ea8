"""The environment of a run: complete, quick, and never a failure."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import tuneoff
from tuneoff.record import environment


def test_the_environment_is_json_and_has_what_a_record_needs() -> None:
    captured = environment.capture(["PyYAML", "no-such-package"])
    assert json.loads(json.dumps(captured)) == captured
    assert captured["versions"]["tuneoff"] == tuneoff.__version__
    assert captured["versions"]["PyYAML"]
    assert captured["versions"]["no-such-package"] is None
    assert captured["cpu"]["logical_count"] == os.cpu_count()
    assert captured["memory_total_bytes"] > captured["memory_available_bytes"] > 0
    assert {"python", "kernel", "boot_id", "threads", "git", "container", "virtual_machine", "niceness"} <= set(captured)


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _repository(folder: Path, head: str, path: str = "x", text: str = "") -> Path:
    for name, content in {"HEAD": head, path: text}.items():
        (folder / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / ".git" / name).write_text(content)
    return folder


@pytest.mark.parametrize(
    ("git", "expected"),
    [
        (("ref: refs/heads/main\n", "refs/heads/main", f"{COMMIT}\n"), {"commit": COMMIT, "branch": "main"}),
        (("ref: refs/heads/a/b\n", "packed-refs", f"# x\n{COMMIT} refs/heads/a/b\n"), {"commit": COMMIT, "branch": "a/b"}),
        ((f"{COMMIT}\n",), {"commit": COMMIT, "branch": None}),
        (("ref: refs/heads/new\n",), {"commit": None, "branch": "new"}),
        (("",), None),
    ],
)
def test_the_commit_is_read_from_every_form_of_repository(
    tmp_path: Path, git: tuple[str, ...], expected: dict[str, str | None] | None
) -> None:
    below = _repository(tmp_path, *git) / "src" / "deep"
    below.mkdir(parents=True)
    assert environment.git_state(below) == expected


def test_a_linked_work_tree_finds_the_common_references(tmp_path: Path) -> None:
    main = tmp_path / "main"
    main.mkdir()
    _repository(main, "ref: refs/heads/main\n", "refs/heads/side", COMMIT)
    linked = main / ".git" / "worktrees" / "side"
    linked.mkdir(parents=True)
    (linked / "HEAD").write_text("ref: refs/heads/side\n")
    (linked / "commondir").write_text("../..\n")
    tree = tmp_path / "side"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {linked}\n")
    assert environment.git_state(tree) == {"commit": COMMIT, "branch": "side"}


def test_a_folder_that_was_removed_has_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert environment.capture()["git"] is None


def test_the_processor_is_read_by_vendor_family_and_model(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(
        "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\n"
    )
    found = environment.cpu(path)
    assert (found["vendor"], found["family"], found["model"], found["name"]) == ("AuthenticAMD", 25, 17, "AMD EPYC")
    assert environment.cpu(tmp_path / "none")["vendor"] is None


@pytest.mark.parametrize("head", ["ref: ../secret\n", "secret\n", "ref: refs/heads/secret\n"])
def test_no_file_of_mine_that_a_folder_s_own_git_leads_to_is_told(tmp_path: Path, head: str) -> None:
    (tmp_path / "secret").write_text("a password\n")
    _repository(tmp_path, head)
    if "heads" in head:
        (tmp_path / ".git" / "refs" / "heads").mkdir(parents=True)
        (tmp_path / ".git" / "refs" / "heads" / "secret").symlink_to(tmp_path / "secret")
    assert "password" not in json.dumps(environment.git_state(tmp_path))
    assert (environment.git_state(tmp_path) or {"commit": None})["commit"] is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "endless"])
@pytest.mark.parametrize("name", ["HEAD", "packed-refs", "config", "commondir"])
def test_a_pipe_or_an_endless_file_is_not_waited_for(tmp_path: Path, name: str, plant: Callable[[Path], None]) -> None:
    _repository(tmp_path, "ref: refs/heads/none\n")
    path = tmp_path / ".git" / name
    path.unlink(missing_ok=True)
    plant(path)
    environment.git_state(tmp_path)
    environment.git_remote(tmp_path)
    assert environment.first_processor(path) == {}
