"""A checkpoint passes through a pod's log bit for bit, or says why it cannot."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneoff.errors import CheckpointError
from tuneoff_adapters.kubernetes.checkpoint_lines import LOG_BYTES, PART_BYTES, CheckpointLines, encode

LINE_BYTES = 16_384  # a container's runtime splits lines beyond this


def collected(lines: list[bytes]) -> CheckpointLines:
    collector = CheckpointLines()
    assert all(collector.add(line) for line in lines)
    return collector


@given(content=st.binary(max_size=200), size=st.integers(0, 3 * PART_BYTES))
def test_a_checkpoint_arrives_bit_for_bit_in_any_order_and_more_than_once(content: bytes, size: int) -> None:
    content = (content * (size // max(1, len(content)) + 1))[:size] if content else b""
    lines = list(encode(content))
    assert collected(lines).content() == content
    assert collected([*reversed(lines), *lines]).content() == content


def test_no_line_is_longer_than_a_runtime_keeps_whole_and_each_is_json() -> None:
    lines = list(encode(random.Random(1).randbytes(5 * PART_BYTES + 1)))
    assert len(lines) == 6
    for line in lines:
        assert (line.endswith(b"\n"), line.count(b"\n"), len(line) < LINE_BYTES) == (True, 1, True)
        json.loads(line)
    assert sum(map(len, encode(bytes(LOG_BYTES)))) < 10 * 2**20 - 10**6  # where a log is thrown away; the rest needs some


def test_a_checkpoint_that_is_too_large_says_its_size_and_the_limit() -> None:
    with pytest.raises(CheckpointError, match="at most 100 bytes, but this one has 101"):
        collected(list(encode(bytes(101), most_bytes=100))).content()
    assert collected(list(encode(bytes(100), most_bytes=100))).content() == bytes(100)


@pytest.fixture
def lines() -> list[bytes]:
    return list(encode(random.Random(2).randbytes(3 * PART_BYTES)))


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_missing_line_is_found(lines: list[bytes], missing: int) -> None:
    del lines[missing]
    with pytest.raises(CheckpointError, match="2 of its 3 lines"):
        collected(lines).content()


def test_a_changed_byte_is_found(lines: list[bytes]) -> None:
    fields = json.loads(lines[1])
    data = fields["checkpoint"]["data"]
    fields["checkpoint"]["data"] = ("A" if data[0] != "A" else "B") + data[1:]
    lines[1] = json.dumps(fields, separators=(",", ":")).encode()
    with pytest.raises(CheckpointError, match="SHA-256 differs"):
        collected(lines).content()


@pytest.mark.parametrize(
    "broken",
    [
        b'{"checkpoint":{"part":1,"of":3,"da',
        b'{"checkpoint":{"part":1,"of":3,"data":"@@"}}',
        b'{"checkpoint":{"part":7,"of":3,"data":""}}',
        b'{"checkpoint":{"part":1,"of":9,"data":""}}',
        b'{"checkpoint":[]}',
    ],
)
def test_a_broken_line_is_told_when_the_checkpoint_is_asked_for(lines: list[bytes], broken: bytes) -> None:
    lines[1] = broken
    with pytest.raises(CheckpointError, match="must arrive in whole") as caught:
        collected(lines).content()
    assert "\n" not in str(caught.value)


def test_a_broken_line_that_is_read_again_whole_does_no_harm(lines: list[bytes]) -> None:
    collector = collected([lines[0], lines[1][:500], *lines])
    assert len(collector.content()) == 3 * PART_BYTES
