"""The archive: the same bytes for the same files, and nothing but what its manifest says is ever unpacked."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import tarfile
from collections import namedtuple
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders.bundles import FILES, LIMIT, by_hand, manifest_of, member, members_of, small
from tuneoff.errors import ResultsError
from tuneoff.trust.bundle import archive
from tuneoff.trust.bundle.archive import describe, unpack, write_archive
from tuneoff.trust.bundle.manifest import MANIFEST, BundledFile, is_safe, top_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "unpacked").mkdir()
    return tmp_path / "unpacked"


def refusal(path: Path, folder: Path, limit: int = LIMIT) -> str:
    """Return why a bundle is refused: one line."""
    with pytest.raises(ResultsError) as caught:
        unpack(path, folder, limit)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    return text


def full(*arguments: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_packed_is_unpacked(tmp_path: Path, folder: Path) -> None:
    manifest = unpack(small(tmp_path / "b.tar.gz"), folder, LIMIT)
    assert files_in(folder) == FILES
    assert (manifest, manifest.size_bytes) == (manifest_of(FILES), sum(map(len, FILES.values())))


def test_the_same_files_give_the_same_bytes_at_any_time_and_place(tmp_path: Path) -> None:
    digests = set()
    for place, moment in (("one", 1), ("two", 2_000_000_000)):
        folder = tmp_path / place
        for path, content in FILES.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
            os.utime(folder / path, (moment, moment))
            (folder / path).chmod(0o600 if place == "one" else 0o755)
        write_archive(tmp_path / f"{place}.tar.gz", manifest_of(FILES), {path: folder / path for path in reversed(list(FILES))})
        digests.add(describe("", tmp_path / f"{place}.tar.gz").sha256)
    assert len(digests) == 1
    with tarfile.open(tmp_path / "one.tar.gz") as tar:
        entries = tar.getmembers()
    assert [entry.name for entry in entries] == [f"small/{path}" for path in (MANIFEST, *sorted(FILES))]
    assert {(entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname, entry.mode) for entry in entries} == {
        (0, 0, 0, "", "", 0o644)
    }


def test_long_names_survive(tmp_path: Path, folder: Path) -> None:
    files = {f"results/{'d' * 90}/{'f' * 120}.jsonl": b"x", "results/ä.txt": b"y"}
    unpack(small(tmp_path / "b.tar.gz", files), folder, LIMIT)
    assert files_in(folder) == files


ENTRIES: dict[str, tuple[dict[str, Any], str]] = {
    "a symbolic link": ({"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, "is not a plain file"),
    "a hard link": ({"type": tarfile.LNKTYPE, "linkname": "small/README.txt"}, "is not a plain file"),
    "a device": ({"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}, "is not a plain file"),
    "a block device": ({"type": tarfile.BLKTYPE}, "is not a plain file"),
    "a pipe": ({"type": tarfile.FIFOTYPE}, "is not a plain file"),
    "a folder": ({"type": tarfile.DIRTYPE}, "is not a plain file"),
    "a path upwards": ({"name": "small/../../evil.txt"}, "is not in its manifest"),
    "an absolute path": ({"name": "/tmp/evil.txt"}, "is not in its manifest"),
    "a path in the path": ({"name": "small/./README.txt"}, "is not in its manifest"),
    "a drive": ({"name": "small/C:evil.txt"}, "is not in its manifest"),
    "a backslash": ({"name": "small\\..\\evil.txt"}, "is not in its manifest"),
    "an unlisted file": ({"name": "small/other.txt"}, "is not in its manifest.json"),
    "another top folder": ({"name": "large/README.txt"}, "is not in its manifest.json"),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_member_that_no_bundle_has_is_refused(tmp_path: Path, folder: Path, entry: str) -> None:
    fields, expected = ENTRIES[entry]
    honest = members_of(manifest_of(FILES), FILES)
    planted = by_hand(tmp_path / "b.tar.gz", [honest[0], member(**{"name": "small/README.txt", **fields}), *honest[1:]])
    assert expected in refusal(planted, folder)
    assert files_in(folder) == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.tar.gz", "unpacked"]


PATHS = ("../evil", "/evil", "a/../../evil", "a//b", "a\\b", "c:d", "", "a\nb", MANIFEST)


@pytest.mark.parametrize(
    ("path", "size", "expected"),
    [*((path, 1, "may not be in a bundle") for path in PATHS), ("a", -1, "size_bytes"), ("a", 10**400, "size_bytes")],
    ids=[*PATHS, "negative", "huge"],
)
def test_a_manifest_that_lists_such_a_file_is_refused(tmp_path: Path, folder: Path, path: str, size: int, expected: str) -> None:
    listed = BundledFile(path=path, size_bytes=size, sha256="0" * 64)
    manifest = msgspec.structs.replace(manifest_of({}), files=(listed,))
    assert expected in refusal(by_hand(tmp_path / "b.tar.gz", members_of(manifest, {})), folder)


def test_a_path_is_safe_only_below_its_folder() -> None:
    assert is_safe("results/runs/a-b_c.1/events/worker-1.jsonl")
    assert not any(map(is_safe, ("..", "a/..", "./a", "a/./b", "/a", "a/", "~\\x", "x\x00y")))
    assert [top_folder(name) for name in ("digits", "../a b", "..", "ä")] == ["digits", "a-b", "bundle", "bundle"]


HONEST = members_of(manifest_of(FILES), FILES)
CHANGED = {
    "other bytes": ([*HONEST[:2], member("small/results/a.txt", b"a" * 2999 + b"b")], "results/a.txt has SHA-256"),
    "fewer bytes": ([*HONEST[:2], member("small/results/a.txt", b"a" * 2999)], "results/a.txt has 2999 bytes, not 3000"),
    "a file that is missing": (HONEST[:-1], "1 of its files are missing, first results/deep/b.bin"),
    "a file that comes twice": ([*HONEST, HONEST[1]], "or twice"),
}


@pytest.mark.parametrize(("members", "expected"), CHANGED.values(), ids=CHANGED)
def test_a_changed_file_is_named(tmp_path: Path, folder: Path, members: list[Any], expected: str) -> None:
    assert expected in refusal(by_hand(tmp_path / "b.tar.gz", members), folder)


def test_a_bundle_cut_or_with_a_flipped_bit_anywhere_is_refused(tmp_path: Path, folder: Path) -> None:
    whole = small(tmp_path / "b.tar.gz").read_bytes()
    cut = [whole[:length] for length in range(0, len(whole), 7)]
    flipped = [whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :] for place in range(10, len(whole), 11)]
    for content in (*cut, *flipped):
        damaged = tmp_path / "damaged.tar.gz"
        damaged.write_bytes(content)
        shutil.rmtree(folder)
        folder.mkdir()
        refusal(damaged, folder)


@pytest.mark.parametrize("content", [b"", b"no archive", gzip.compress(b"no tar", mtime=0), gzip.compress(bytes(20480), mtime=0)])
def test_what_is_no_bundle_is_said_to_be_none(tmp_path: Path, folder: Path, content: bytes) -> None:
    path = tmp_path / "b.tar.gz"
    path.write_bytes(content)
    refusal(path, folder)


def test_an_archive_of_something_else_is_no_bundle(tmp_path: Path, folder: Path) -> None:
    assert "does not begin with its manifest.json" in refusal(by_hand(tmp_path / "b", [member("other/file", b"x")]), folder)
    other = by_hand(tmp_path / "c", [member("small/manifest.json", b'{"kind": "chart", "format_version": 1}')])
    assert "another kind of file ('chart')" in refusal(other, folder)
    assert "cannot be read" in refusal(by_hand(tmp_path / "d", [member("small/manifest.json", b"{")]), folder)
    assert "Is a directory" in refusal(tmp_path / "unpacked", folder)
    assert "No such file" in refusal(tmp_path / "none.tar.gz", folder)


def test_a_newer_format_is_refused_by_its_number(tmp_path: Path, folder: Path) -> None:
    newer = json.dumps({"kind": "tuneoff bundle", "format_version": 2, "new": "field"}).encode()
    line = refusal(by_hand(tmp_path / "b.tar.gz", [member("small/manifest.json", newer)]), folder)
    assert "has bundle format version 2, but this tuneoff reads version 1; use the tuneoff that made it" in line


def test_what_unpacks_to_more_than_it_announces_is_refused(tmp_path: Path, folder: Path) -> None:
    manifest = manifest_of(FILES)
    bomb = by_hand(tmp_path / "b.tar.gz", [*members_of(manifest, FILES)[:2], member("small/results/a.txt", bytes(50_000_000))])
    assert bomb.stat().st_size < 100_000
    assert "has 50000000 bytes, not 3000" in refusal(bomb, folder)
    path = tmp_path / "c.tar.gz"
    path.write_bytes(small(tmp_path / "d.tar.gz").read_bytes() + gzip.compress(bytes(50_000_000)))
    shutil.rmtree(folder)
    folder.mkdir()
    assert "unpacks to more than its manifest.json announces" in refusal(path, folder)


def test_a_header_that_announces_terabytes_is_refused(tmp_path: Path, folder: Path) -> None:
    entry, _ = member("small/manifest.json")
    entry.size = 1 << 40
    path = tmp_path / "b.tar.gz"
    path.write_bytes(gzip.compress(entry.tobuf(tarfile.GNU_FORMAT)))
    assert "has 1099511627776 bytes" in refusal(path, folder)


def test_a_disk_that_fills_while_unpacking_is_one_line(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small(tmp_path / "b.tar.gz")
    monkeypatch.setattr("shutil.copyfileobj", full)
    assert "has no space for" in refusal(path, folder)


def test_a_target_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ResultsError, match=r"cannot be written: No such file.*choose another --output"):
        small(tmp_path / "none" / "b.tar.gz")
    before = small(tmp_path / "b.tar.gz").read_bytes()

    monkeypatch.setattr(archive, "_add", full)
    with pytest.raises(ResultsError, match="cannot be written: No space left on device; free space"):
        small(tmp_path / "b.tar.gz", {"other": b"x"})
    assert [path.name for path in tmp_path.iterdir()] == ["b.tar.gz"]
    assert (tmp_path / "b.tar.gz").read_bytes() == before


@pytest.mark.parametrize("after", [b"first and more", b"a longer text", b"other", b""])
def test_a_file_that_changes_while_it_is_packed_is_named(tmp_path: Path, after: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"first")
    manifest = manifest_of({"file": b"first"})
    path.write_bytes(after)
    with pytest.raises(ResultsError, match="changed while it was packed"):
        write_archive(tmp_path / "b.tar.gz", manifest, {"file": path})
    assert not (tmp_path / "b.tar.gz").exists()


def test_folders_and_empty_files_count_against_limit_and_space(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = "/".join("abcdefghijkl")
    files = {f"{number}/{deep}/f": b"" for number in range(200)}  # of no byte, in 2600 folders
    path = small(tmp_path / "b.tar.gz", files)
    assert path.stat().st_size < 20_000
    assert manifest_of(files).disk_bytes > LIMIT
    assert "unpacks to 11 MB, but the limit is 10 MB" in refusal(path, folder)
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda where: usage(10_000_000))
    assert "needs 11 MB in" in refusal(path, folder, 10 * LIMIT)
    assert not list(folder.iterdir())


def test_a_path_of_many_folders_is_refused(tmp_path: Path, folder: Path) -> None:
    sixteen = "/".join("a" * 16)
    unpack(small(tmp_path / "b.tar.gz", {sixteen: b"x"}), folder, LIMIT)
    assert "has more than 16 parts" in refusal(small(tmp_path / "c.tar.gz", {f"{sixteen}/a": b"x"}), folder)


@pytest.mark.parametrize("field", ["new", "files"])
def test_a_manifest_nested_without_end_is_one_line(tmp_path: Path, folder: Path, field: str) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    text = b'{"kind": "tuneoff bundle", "format_version": 1, "%s": %s}' % (field.encode(), deep)
    refusal(by_hand(tmp_path / "b.tar.gz", [member("small/manifest.json", text)]), folder)


HEADERS: dict[str, dict[str, str]] = {
    "a sparse map": {"GNU.sparse.map": "a,b"},
    "a sparse size": {"GNU.sparse.size": "x"},
    "a real size": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "x"},
    "a sparse block": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"},
    "a negative size": {"size": "-1024"},
    "a size beyond all": {"size": "9" * 4000},
    "a long name": {"path": "small/" + "a" * 9000},
}


@pytest.mark.parametrize("headers", HEADERS)
@pytest.mark.parametrize("place", [0, 1])
def test_an_extended_header_made_up_is_one_line(tmp_path: Path, folder: Path, headers: str, place: int) -> None:
    members = members_of(manifest_of(FILES), FILES)
    members[place][0].pax_headers = HEADERS[headers]
    refusal(by_hand(tmp_path / "b.tar.gz", members), folder)
    assert files_in(folder) == {}


def extended(size: int, content: bytes = b"") -> bytes:
    """Return the extended header of a member that does not follow."""
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = tarfile.XHDTYPE, size
    return entry.tobuf(tarfile.USTAR_FORMAT) + content.ljust(-(-len(content) // 512) * 512, b"\0")


def test_extended_headers_one_in_the_other_or_too_long_are_one_line(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "b.tar.gz"
    path.write_bytes(gzip.compress(extended(11, b"11 a=bbbbb\n") * 5000))
    assert "is damaged (maximum recursion depth" in refusal(path, folder)
    # each of its records is read to the only `=`, at the end: hours in tarfile, were it not refused by its size
    path.write_bytes(gzip.compress(extended(6_000_000, b"2 " * 2_999_999 + b"a=")))
    assert "an extended header has 6000000 bytes" in refusal(path, folder)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, folder: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "it is a pipe, a socket or a device" in refusal(tmp_path / "pipe", folder)
