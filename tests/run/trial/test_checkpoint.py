"""Checkpoints: round trip, atomicity, honest errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuneoff.errors import CheckpointError
from tuneoff.run.trial.checkpoint import read_checkpoint, write_checkpoint
from tuneoff.workload import StateTensor

TENSORS = {
    "weights": StateTensor(dtype="F32", shape=(2, 3), data=bytes(range(24))),
    "generator": StateTensor(dtype="U8", shape=(5,), data=b"12345"),
    "step": StateTensor(dtype="I64", shape=(), data=(7).to_bytes(8, "little")),
}


def write(path: Path, epoch: int = 4) -> None:
    write_checkpoint(path, TENSORS, {"optimizer": "adam"}, epoch=epoch, configuration={"x": 1})


def test_a_checkpoint_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path / "c" / "t0.safetensors")
    checkpoint = read_checkpoint(tmp_path / "c" / "t0.safetensors")
    assert dict(checkpoint.tensors) == TENSORS
    assert (checkpoint.texts, checkpoint.epoch) == ({"optimizer": "adam"}, 4)


def test_equal_content_has_an_equal_digest_and_no_temporary_file_stays(tmp_path: Path) -> None:
    write(tmp_path / "a.safetensors")
    write(tmp_path / "b.safetensors")
    assert read_checkpoint(tmp_path / "a.safetensors").sha256 == read_checkpoint(tmp_path / "b.safetensors").sha256
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.safetensors", "b.safetensors"]


@pytest.mark.parametrize("damage", ["missing", "truncated", "garbage", "empty"])
def test_an_unreadable_checkpoint_is_an_error_and_never_a_restart(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "t0.safetensors"
    write(path)
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"truncated": content[:-3], "garbage": b"x" * 40, "empty": b""}[damage])
    with pytest.raises(CheckpointError, match="must be readable"):
        read_checkpoint(path)
