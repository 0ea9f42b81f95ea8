"""Only regular files of a size are read: whatever else is refused at once, with its reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tuneoff.base.files import append_line, open_regular, open_to_change, pinned, read_regular, reason_of


def test_a_pipe_that_nobody_writes_to_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(tmp_path / "pipe")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_refused_by_its_link_too(tmp_path: Path, device: str) -> None:
    (tmp_path / "link").symlink_to(device)
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(tmp_path / "link", follow=True)


def test_a_folder_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path)


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(OSError, match="it has more than 1000 bytes"):
        read_regular(path, 1000)


def test_a_file_that_says_it_has_no_byte_is_bounded_too() -> None:
    with pytest.raises(OSError, match="it has more than 10 bytes"):
        read_regular(Path("/proc/self/status"), 10, follow=True)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError("it failed")])
def test_an_error_that_names_no_file_keeps_its_text(tmp_path: Path, error: OSError) -> None:
    text = str(error)
    with pytest.raises(OSError) as caught, pinned(tmp_path):
        raise error
    assert str(caught.value) == text


def test_an_error_of_a_pinned_folder_has_the_folder_s_own_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, pinned(tmp_path) as place:
        (place / "none").read_bytes()
    assert caught.value.filename == str(tmp_path / "none")


def test_links_in_a_circle_have_a_reason(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError) as caught:
        read_regular(tmp_path / "circle", follow=True)
    assert reason_of(caught.value) == reason_of(RuntimeError("Symlink loop")) == "Too many levels of symbolic links"


def test_a_line_of_which_the_disk_took_a_part_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "lines", os.write
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    append_line(descriptor, b"one\n")
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda descriptor, line: write(descriptor, line[:2]))
        with pytest.raises(OSError, match="full"):
            append_line(descriptor, b"two\n")
    append_line(descriptor, b"three\n")
    os.close(descriptor)
    assert path.read_text() == "one\nthree\n"


@pytest.mark.parametrize("shared", [False, True])
def test_what_is_changed_in_place_is_not_changed_under_another_name_unless_it_is_shared(tmp_path: Path, shared: bool) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    original.write_text("one\n")
    os.link(original, copy)
    descriptor = open_to_change(copy, os.O_WRONLY | os.O_APPEND, shared=shared)
    append_line(descriptor, b"two\n")
    os.close(descriptor)
    assert (original.read_text(), copy.read_text()) == ("one\ntwo\n" if shared else "one\n", "one\ntwo\n")
