"""Missing, truncated, corrupted and foreign data files give one clear line; the cache is made whole again."""

from __future__ import annotations

import fcntl
import gzip
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tuneoff.errors import DataError, MissingPackageError
from tuneoff_workloads.mnist_mlp import MnistMlp, prepare
from tuneoff_workloads.mnist_mlp.catalog import DIGITS, MNIST, header

TRAIN_IMAGES = "train-images-idx3-ubyte"
Load = Callable[..., MnistMlp]


def refused(act: Callable[[], object], words: str) -> str:
    """Return what an act is refused with, in one line."""
    with pytest.raises(DataError, match=words) as error:
        act()
    assert "\n" not in str(error.value)
    return str(error.value)


def small_mnist(folder: Path, monkeypatch: pytest.MonkeyPatch, packed: bool = True) -> Path:
    """Put the four digits files under MNIST's names into `folder`, and let MNIST mean these; return the training images' file."""
    contents = prepare.digits_files()
    folder.mkdir(parents=True, exist_ok=True)
    for role, file in DIGITS.files.items():
        name, content = (f"{file.name}.gz", gzip.compress(contents[role])) if packed else (file.name, contents[role])
        (folder / name).write_bytes(content)
        monkeypatch.setitem(MNIST.files, role, file)
    return folder / f"{TRAIN_IMAGES}.gz"


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TUNEOFF_CACHE_DIR", str(tmp_path / "fresh"))
    monkeypatch.delenv("TUNEOFF_DATA_DIR", raising=False)
    return tmp_path / "fresh"


@pytest.mark.usefixtures("fresh_cache")
@pytest.mark.parametrize(("place", "packed"), [("", True), ("mnist", False), ("MNIST/raw", True)])
def test_files_are_found_in_the_data_folder(place: str, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_mnist(tmp_path / "data" / place, monkeypatch, packed)
    monkeypatch.setenv("TUNEOFF_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(prepare, "download", lambda *_: pytest.fail("nothing has to be downloaded"))
    folder = prepare.prepare(MNIST)
    assert (folder / TRAIN_IMAGES).stat().st_size == DIGITS.files["train_images"].size_bytes


@pytest.mark.usefixtures("fresh_cache")
def test_damaged_files_of_the_data_folder_are_refused_even_where_the_cache_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small_mnist(tmp_path, monkeypatch)
    monkeypatch.setenv("TUNEOFF_DATA_DIR", str(tmp_path))
    prepare.prepare(MNIST)
    whole = path.read_bytes()
    content = gzip.decompress(whole)
    for damaged, words in (
        (whole[:-100], "the gzip data are truncated or corrupted"),
        (whole[:200] + b"xxxx" + whole[204:], "the gzip data are truncated or corrupted"),
        (gzip.compress(content[:-1]), "SHA-256 of mnist's train-images-idx3-ubyte must be"),
        (content[:-1] + bytes([content[-1] ^ 1]), "SHA-256 of mnist's train-images-idx3-ubyte must be"),
    ):
        path.write_bytes(damaged)
        assert str(path) in refused(lambda: prepare.prepare(MNIST), words)
    path.unlink()
    refused(lambda: prepare.prepare(MNIST), f"{TRAIN_IMAGES}.gz of mnist is missing")


def test_a_data_folder_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEOFF_DATA_DIR", str(tmp_path / "nowhere"))
    refused(lambda: prepare.data_folder(MNIST), "must name a folder")


def test_a_failed_download_names_the_way_out_and_one_that_takes_too_long_is_ended(
    tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "_DOWNLOAD", "raise OSError('no network')")
    refused(lambda: prepare.prepare(MNIST), r"download failed .*no network.*TUNEOFF_DATA_DIR")
    assert not list(fresh_cache.glob("*/download-*"))
    monkeypatch.setattr(prepare, "_DOWNLOAD", "import time; time.sleep(60)")
    refused(lambda: prepare.download(MNIST, tmp_path, timeout_seconds=0.2), "no end after")


@pytest.mark.usefixtures("fresh_cache")
def test_a_downloaded_file_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small_mnist(tmp_path / "good", monkeypatch)
    monkeypatch.setattr(prepare, "download", lambda _dataset, _target: tmp_path / "good")
    good = path.read_bytes()
    path.write_bytes(gzip.compress(gzip.decompress(good)[:-1] + b"\xff"))
    refused(lambda: prepare.prepare(MNIST), "SHA-256")
    path.write_bytes(good)
    assert (prepare.prepare(MNIST) / TRAIN_IMAGES).is_file()


@pytest.mark.usefixtures("fresh_cache")
def test_digits_without_scikit_learn_name_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(MissingPackageError, match=r"pip install scikit-learn"):
        prepare.prepare(DIGITS)


def test_a_changed_cached_file_is_made_again(own_digits: Path) -> None:
    path = own_digits / TRAIN_IMAGES
    good = path.read_bytes()
    for bad in (good[:-1], good[:-1] + bytes([good[-1] ^ 1]), b""):
        path.write_bytes(bad)
        prepare.prepare(DIGITS)
        assert path.read_bytes() == good


@pytest.mark.parametrize("damage", [None, b"", header((1497, 8, 8)) + b"x", b"x" * 95824])
def test_a_trial_with_a_damaged_cache_says_so(own_digits: Path, load: Load, damage: bytes | None) -> None:
    path = own_digits / TRAIN_IMAGES
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    words = "must be 95824 bytes for" if damage else "cannot be read"
    assert refused(load, words).startswith(str(path))


def test_a_cache_that_cannot_be_written_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TUNEOFF_CACHE_DIR", str(tmp_path / "file" / "cache"))
    refused(lambda: prepare.prepare(DIGITS), "set TUNEOFF_CACHE_DIR to a writable folder")


@pytest.mark.usefixtures("fresh_cache")
def test_a_full_disk_leaves_no_half_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    refused(lambda: prepare.prepare(DIGITS), "No space left on device")
    assert list(prepare.dataset_folder(DIGITS).iterdir()) == []


@pytest.mark.usefixtures("fresh_cache")
def test_several_at_once_prepare_the_same_folder_one_after_another() -> None:
    folders: list[Path] = []
    folder = prepare.dataset_folder(DIGITS)
    with prepare.locked(folder), Path(f"{folder}.lock").open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    threads = [threading.Thread(target=lambda: folders.append(prepare.prepare(DIGITS))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert folders == folders[:1] * 3
    assert all(prepare.is_intact(folders[0] / file.name, file) for file in DIGITS.files.values())
    assert not list(folders[0].glob(".*.tmp"))


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"TUNEOFF_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/tuneoff"),
        ({"HOME": "/c"}, "/c/.cache/tuneoff"),
    ],
    ids=["own", "xdg", "home"],
)
def test_the_cache_folder_follows_the_environment(
    variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TUNEOFF_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert prepare.cache_root() == Path(expected)


def test_the_description_lists_what_was_checked(digits: Path) -> None:
    description = MnistMlp({}).prepare()
    assert description.name == "digits"
    assert description.sha256 == {file.name: file.sha256 for file in DIGITS.files.values()}
    assert description.size_bytes == sum((digits / file.name).stat().st_size for file in DIGITS.files.values())
