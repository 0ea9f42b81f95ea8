"""Whatever is damaged, verifying ends with an answer; and where a raw file is, never with VERIFIED."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from builders.results_folders import lines
from tuneoff.errors import ResultsError

pytestmark = pytest.mark.slow

TIMES = 12


def damage(content: bytes, chance: random.Random) -> bytes:
    """Return other bytes: one changed, some removed, some doubled, or some others put in."""
    start = chance.randrange(len(content))
    end = min(len(content), start + chance.choice([1, 10, 1000]))
    kind = chance.choice(["flip", "remove", "double", "put"])
    if kind == "flip":
        return content[:start] + bytes([content[start] ^ chance.randrange(1, 256)]) + content[start + 1 :]
    if kind == "remove":
        return content[:start] + content[end:]
    if kind == "double":
        return content[:end] + content[start:]
    return content[:start] + chance.choice([b"null", b"-1", b"1e999", b'""', b"[]", b"{}", b"\n", b"\xff"]) + content[end:]


@pytest.mark.parametrize("seed", range(10))
def test_damaged_files_give_problems_and_never_a_fault(results: Path, seed: int) -> None:
    chance = random.Random(seed)
    files = sorted(path for path in results.rglob("*.json*"))
    for _ in range(TIMES):
        path = chance.choice(files)
        before = path.read_bytes()
        after = damage(before, chance)
        path.write_bytes(after)
        try:
            found = lines(results)
        except ResultsError:
            found = ["it is not a results folder"]
        if path.suffix == ".jsonl" or path.name == "accounting.json":
            assert found or after == before, path
        path.write_bytes(before)
    assert lines(results) == []
