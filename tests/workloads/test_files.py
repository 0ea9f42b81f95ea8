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
from tuneoff_workloads.mnist_mlp.catalog import DIGITS, MNIST, DataFile, header

TRAIN_IMAGES = "train-images-idx3-ubyte"
Load = Callable[..., MnistMlp]
CUBE = DataFile(name="x", shape=(2, 2, 2), sha256="")


def one_line(error: pytest.ExceptionInfo[DataError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x00\x00\x08", "an IDX header needs 16 bytes, but the file has 3"),
        (b"\x00\x00\x0d\x03" + header((2, 2, 2))[4:] + bytes(8), r"magic number must be 00000803, but got 00000d03"),
        (b"\x00\x00\x08\x01" + header((2, 2, 2))[4:] + bytes(8), r"magic number must be 00000803, but got 00000801"),
        (header((2, 2, 3)) + bytes(12), r"dimensions must be \(2, 2, 2\), but got \(2, 2, 3\)"),
        (header((2, 2, 2)) + bytes(7), r"must have 24 bytes, but has 23 \(truncated\)"),
        (header((2, 2, 2)) + bytes(9), r"must have 24 bytes, but has 25 \(too long\)"),
    ],
    ids=["short", "type", "dimensions", "shape", "truncated", "long"],
)
def test_a_wrong_idx_file_is_refused_with_rule_and_value(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        CUBE.check_form(content, "x")


def test_a_right_idx_file_is_accepted() -> None:
    CUBE.check_form(header((2, 2, 2)) + bytes(8), "x")


def test_a_broken_gzip_file_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(os.urandom(1000))
    path = tmp_path / "x.gz"
    for content in (whole[:-20], whole[:200] + b"xxxx" + whole[204:]):
        path.write_bytes(content)
        with pytest.raises(DataError, match="truncated or corrupted"):
            prepare.read_bytes(path)


def small_mnist(folder: Path, monkeypatch: pytest.MonkeyPatch, packed: bool = True) -> None:
    """Make `folder` the data folder, with the four digits files under MNIST's names, and let MNIST mean these."""
    contents = prepare.digits_files()
    folder.mkdir(parents=True, exist_ok=True)
    for role, file in DIGITS.files.items():
        name, content = (f"{file.name}.gz", gzip.compress(contents[role])) if packed else (file.name, contents[role])
        (folder / name).write_bytes(content)
    monkeypatch.setitem(MNIST.files, "train_images", DIGITS.files["train_images"])
    for role in ("train_labels", "test_images", "test_labels"):
        monkeypatch.setitem(MNIST.files, role, DIGITS.files[role])


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TUNEOFF_CACHE_DIR", str(tmp_path / "fresh"))
    return tmp_path / "fresh"


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("place", ["", "mnist", "MNIST/raw"])
def test_files_are_found_in_the_data_folder(
    place: str, packed: bool, tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_mnist(tmp_path / "data" / place, monkeypatch, packed)
    monkeypatch.setenv("TUNEOFF_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(prepare, "download", lambda *_: pytest.fail("nothing has to be downloaded"))
    folder = prepare.prepare(MNIST)
    assert (folder / TRAIN_IMAGES).stat().st_size == DIGITS.files["train_images"].size_bytes


def test_damaged_files_of_the_data_folder_are_refused(tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_mnist(tmp_path, monkeypatch)
    monkeypatch.setenv("TUNEOFF_DATA_DIR", str(tmp_path))
    path = tmp_path / f"{TRAIN_IMAGES}.gz"
    packed = path.read_bytes()
    content = gzip.decompress(packed)

    path.write_bytes(packed[:-100])
    with pytest.raises(DataError, match="truncated or corrupted") as error:
        prepare.prepare(MNIST)
    assert str(path) in one_line(error)
    path.write_bytes(gzip.compress(content[:-1]))
    with pytest.raises(DataError, match=r"\(truncated\)") as error:
        prepare.prepare(MNIST)
    one_line(error)
    path.write_bytes(gzip.compress(content[:-1] + bytes([content[-1] ^ 1])))
    with pytest.raises(DataError, match="SHA-256 must be") as error:
        prepare.prepare(MNIST)
    one_line(error)
    path.unlink()
    with pytest.raises(DataError, match=f"{TRAIN_IMAGES}.gz of mnist is missing") as error:
        prepare.prepare(MNIST)
    one_line(error)


def test_a_damaged_data_folder_is_refused_even_where_the_cache_is_whole(
    tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_mnist(tmp_path, monkeypatch)
    monkeypatch.setenv("TUNEOFF_DATA_DIR", str(tmp_path))
    prepare.prepare(MNIST)
    (tmp_path / f"{TRAIN_IMAGES}.gz").write_bytes(b"\x1f\x8b no gzip")
    with pytest.raises(DataError, match="truncated or corrupted"):
        prepare.prepare(MNIST)


def test_a_data_folder_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEOFF_DATA_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="must name a folder"):
        prepare.data_folder(MNIST)


def test_a_failed_download_names_the_way_out(tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TUNEOFF_DATA_DIR", raising=False)
    monkeypatch.setattr(prepare, "_DOWNLOAD", "raise OSError('no network')")
    with pytest.raises(DataError, match=r"download failed .*no network.*TUNEOFF_DATA_DIR") as error:
        prepare.prepare(MNIST)
    one_line(error)
    assert not list(fresh_cache.glob("*/download-*"))


def test_a_download_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "_DOWNLOAD", "import time; time.sleep(60)")
    with pytest.raises(DataError, match="no end after"):
        prepare.download(MNIST, tmp_path, timeout_seconds=0.2)


def test_a_downloaded_file_is_checked(tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TUNEOFF_DATA_DIR", raising=False)
    small_mnist(tmp_path / "good", monkeypatch)
    monkeypatch.setattr(prepare, "download", lambda _dataset, _target: tmp_path / "good")
    path = tmp_path / "good" / f"{TRAIN_IMAGES}.gz"
    good = path.read_bytes()
    path.write_bytes(gzip.compress(gzip.decompress(good)[:-1] + b"\xff"))
    with pytest.raises(DataError, match="SHA-256"):
        prepare.prepare(MNIST)
    path.write_bytes(good)
    assert (prepare.prepare(MNIST) / TRAIN_IMAGES).is_file()


def test_digits_without_scikit_learn_name_the_command(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize(
    ("damage", "message"),
    [(None, "are missing"), (b"", "cannot be read"), (header((1497, 8, 8)) + b"x", "truncated"), (b"x" * 95824, "magic")],
    ids=["missing", "empty", "truncated", "foreign"],
)
def test_a_trial_with_a_damaged_cache_says_so(own_digits: Path, load: Load, damage: bytes | None, message: str) -> None:
    path = own_digits / TRAIN_IMAGES
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    with pytest.raises(DataError, match=message) as error:
        load()
    assert str(path) in one_line(error)


def test_a_cache_that_cannot_be_written_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TUNEOFF_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(DataError, match="set TUNEOFF_CACHE_DIR to a writable folder") as error:
        prepare.prepare(DIGITS)
    one_line(error)


def test_a_full_disk_leaves_no_half_file(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="No space left on device"):
        prepare.prepare(DIGITS)
    assert list(prepare.dataset_folder(DIGITS).iterdir()) == []


def test_a_lock_held_too_long_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with prepare.locked(folder), pytest.raises(DataError, match="another process"), prepare.locked(folder, timeout_seconds=0.1):
        pytest.fail("the lock was given twice")
    with prepare.locked(folder, timeout_seconds=0.1):
        descriptor = os.open(tmp_path / "data.lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)


def test_two_at_once_prepare_the_same_folder(fresh_cache: Path) -> None:
    folders: list[Path] = []
    threads = [threading.Thread(target=lambda: folders.append(prepare.prepare(DIGITS))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(folders) == 3
    assert len(set(folders)) == 1
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


def test_a_data_file_knows_its_size() -> None:
    file = DataFile(name="x", shape=(3, 4, 5), sha256="")
    assert (file.offset, file.size_bytes) == (16, 76)
