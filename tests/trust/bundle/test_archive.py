"""The archive: the same bytes for the same files, and nothing but what its manifest says is ever unpacked."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import tarfile
from collections import namedtuple
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders.bundles import FILES, LIMIT, by_hand, manifest_of, member, members_of, small
from tuneoff.errors import ResultsError
from tuneoff.trust.bundle import archive
from tuneoff.trust.bundle.archive import describe, unpack, write_archive
from tuneoff.trust.bundle.manifest import MANIFEST, BundledFile, is_safe, top_folder

HONEST = members_of(manifest_of(FILES), FILES)
Make = Callable[[Path], object]


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


@pytest.mark.parametrize(
    "files", [FILES, {f"results/{'d' * 90}/{'f' * 120}.jsonl": b"x", "results/ä.txt": b"y"}], ids=["files", "long names"]
)
def test_what_is_packed_is_unpacked(tmp_path: Path, folder: Path, files: Mapping[str, bytes]) -> None:
    manifest = unpack(small(tmp_path / "b.tar.gz", files), folder, LIMIT)
    assert files_in(folder) == files
    assert (manifest, manifest.size_bytes) == (manifest_of(files), sum(map(len, files.values())))


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


def beside(**fields: Any) -> Make:
    """Return what writes an honest archive with a member more."""
    return lambda path: by_hand(path, [HONEST[0], member(**{"name": "small/README.txt", **fields}), *HONEST[1:]])


def listing(name: str, size: int = 1) -> Make:
    """Return what writes an archive whose manifest lists such a file."""
    listed = BundledFile(path=name, size_bytes=size, sha256="0" * 64)
    return lambda path: by_hand(path, members_of(msgspec.structs.replace(manifest_of({}), files=(listed,)), {}))


def headed(content: bytes) -> Make:
    """Return what writes an archive with this content as its manifest."""
    return lambda path: by_hand(path, [member("small/manifest.json", content)])


def packed(content: bytes) -> Make:
    return lambda path: path.write_bytes(gzip.compress(content, mtime=0))


def with_header(place: int, headers: dict[str, str]) -> Make:
    """Return what writes an archive of which a member has such extended headers."""

    def make(path: Path) -> None:
        members = members_of(manifest_of(FILES), FILES)
        members[place][0].pax_headers = headers
        by_hand(path, members)

    return make


def extended(size: int, content: bytes = b"") -> bytes:
    """Return the extended header of a member that does not follow."""
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = tarfile.XHDTYPE, size
    return entry.tobuf(tarfile.USTAR_FORMAT) + content.ljust(-(-len(content) // 512) * 512, b"\0")


def huge() -> bytes:
    entry, _ = member("small/manifest.json")
    entry.size = 1 << 40
    return entry.tobuf(tarfile.GNU_FORMAT)


NOT_PLAIN, NOT_LISTED = "is not a plain file", "is not in its manifest.json"
DEEP = b"[" * 100_000 + b"]" * 100_000
MADE_UP: tuple[dict[str, str], ...] = (
    {"GNU.sparse.map": "a,b"},
    {"GNU.sparse.size": "x"},
    {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "x"},
    {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"},
    {"size": "-1024"},
    {"size": "9" * 4000},
    {"path": "small/" + "a" * 9000},
)
REFUSED: dict[str, tuple[Make, str]] = {  # nothing of these is unpacked
    "a symbolic link": (beside(type=tarfile.SYMTYPE, linkname="/etc/passwd"), NOT_PLAIN),
    "a hard link": (beside(type=tarfile.LNKTYPE, linkname="small/README.txt"), NOT_PLAIN),
    "a device": (beside(type=tarfile.CHRTYPE, devmajor=1, devminor=3), NOT_PLAIN),
    "a pipe": (beside(type=tarfile.FIFOTYPE), NOT_PLAIN),
    "a folder": (beside(type=tarfile.DIRTYPE), NOT_PLAIN),
    "a path upwards": (beside(name="small/../../evil.txt"), NOT_LISTED),
    "an absolute path": (beside(name="/tmp/evil.txt"), NOT_LISTED),
    "an unlisted file": (beside(name="small/other.txt"), NOT_LISTED),
    "another top folder": (beside(name="large/README.txt"), NOT_LISTED),
    **{
        f"lists {name!r}": (listing(name), "may not be in a bundle")
        for name in ("../evil", "/evil", "a/../../evil", "a//b", "a\\b", "c:d", "", "a\nb", MANIFEST)
    },
    "a negative size": (listing("a", -1), "size_bytes"),
    "a size beyond all": (listing("a", 10**400), "size_bytes"),
    "no byte": (lambda path: path.write_bytes(b""), "truncated"),
    "no archive": (lambda path: path.write_bytes(b"no archive"), "it is not a gzip file"),
    "no tar": (packed(b"no tar"), "truncated"),
    "an empty tar": (packed(bytes(20480)), "does not begin with its manifest.json"),
    "something else": (lambda path: by_hand(path, [member("other/file", b"x")]), "does not begin with its manifest.json"),
    "another kind": (headed(b'{"kind": "chart", "format_version": 1}'), "another kind of file ('chart')"),
    "half a manifest": (headed(b"{"), "cannot be read"),
    "a newer format": (
        headed(json.dumps({"kind": "tuneoff bundle", "format_version": 2, "new": "field"}).encode()),
        "has bundle format version 2, but this tuneoff reads version 1; use the tuneoff that made it",
    ),
    **{
        f"nested {field}": (headed(b'{"kind": "tuneoff bundle", "format_version": 1, "%s": %s}' % (field.encode(), DEEP)), "")
        for field in ("new", "files")
    },
    "terabytes": (packed(huge()), "has 1099511627776 bytes"),
    "headers in headers": (packed(extended(11, b"11 a=bbbbb\n") * 5000), "is damaged (maximum recursion depth"),
    # each of its records is read to the only `=`, at the end: hours in tarfile, were it not refused by its size
    "a long header": (packed(extended(6_000_000, b"2 " * 2_999_999 + b"a=")), "an extended header has 6000000 bytes"),
    **{f"{header} {place}": (with_header(place, header), "") for header in MADE_UP for place in (0, 1)},
    "a pipe itself": (os.mkfifo, "it is a pipe, a socket or a device"),
    "a folder itself": (os.mkdir, "Is a directory"),
    "nothing": (lambda path: None, "No such file"),
}
CHANGED: dict[str, tuple[Make, str]] = {
    "other bytes": (
        lambda path: by_hand(path, [*HONEST[:2], member("small/results/a.txt", b"a" * 2999 + b"b")]),
        "results/a.txt has SHA-256",
    ),
    "fewer bytes": (
        lambda path: by_hand(path, [*HONEST[:2], member("small/results/a.txt", b"a" * 2999)]),
        "results/a.txt has 2999 bytes, not 3000",
    ),
    "a file that is missing": (lambda path: by_hand(path, HONEST[:-1]), "1 of its files are missing, first results/deep/b.bin"),
    "a file that comes twice": (lambda path: by_hand(path, [*HONEST, HONEST[1]]), "or twice"),
    "more than it announces": (
        lambda path: by_hand(path, [*HONEST[:2], member("small/results/a.txt", bytes(50_000_000))]),
        "has 50000000 bytes, not 3000",
    ),
    "more behind its end": (
        lambda path: path.write_bytes(small(path).read_bytes() + gzip.compress(bytes(50_000_000))),
        "unpacks to more than its manifest.json announces",
    ),
    "a path of many folders": (lambda path: small(path, {"/".join("a" * 17): b"x"}), "has more than 16 parts"),
}


@pytest.mark.parametrize("name", [*REFUSED, *CHANGED])
def test_what_is_no_sound_bundle_is_refused_in_one_line(tmp_path: Path, folder: Path, name: str) -> None:
    make, expected = {**REFUSED, **CHANGED}[name]
    make(path := tmp_path / "b.tar.gz")
    assert expected in refusal(path, folder)
    assert name in CHANGED or files_in(folder) == {}
    assert {entry.name for entry in tmp_path.iterdir()} <= {path.name, folder.name}


def test_a_path_is_safe_only_below_its_folder() -> None:
    assert is_safe("results/runs/a-b_c.1/events/worker-1.jsonl")
    assert not any(map(is_safe, ("..", "a/..", "./a", "a/./b", "/a", "a/", "~\\x", "x\x00y")))
    assert [top_folder(name) for name in ("digits", "../a b", "..", "ä")] == ["digits", "a-b", "bundle", "bundle"]


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
    path.write_bytes(after)
    with pytest.raises(ResultsError, match="changed while it was packed"):
        write_archive(tmp_path / "b.tar.gz", manifest_of({"file": b"first"}), {"file": path})
    assert not (tmp_path / "b.tar.gz").exists()


def test_folders_and_empty_files_count_against_limit_and_space(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"{number}/{'/'.join('abcdefghijkl')}/f": b"" for number in range(200)}  # of no byte, in 2600 folders
    path = small(tmp_path / "b.tar.gz", files)
    assert path.stat().st_size < 20_000
    assert manifest_of(files).disk_bytes > LIMIT
    assert "unpacks to 11 MB, but the limit is 10 MB" in refusal(path, folder)
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda where: usage(10_000_000))
    assert "needs 11 MB in" in refusal(path, folder, 10 * LIMIT)
    assert not list(folder.iterdir())
    monkeypatch.undo()
    unpack(small(tmp_path / "c.tar.gz", {"/".join("a" * 16): b"x"}), folder, LIMIT)  # control: sixteen parts are honest
