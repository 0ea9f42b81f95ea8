"""What a record says of its samples."""

from __future__ import annotations

from dataclasses import replace

from record.samples.test_writer import rapl
from tuneoff.record.samples.reader import Samples, sample_flags
from tuneoff.record.samples.schema import UsageSample

SECOND = 1_000_000_000


def stolen(percent: float) -> Samples:
    """Return samples over 10 s of one processor."""
    usage = tuple(UsageSample(t=t * SECOND, busy_ns=0, steal_ns=5 + int(percent / 100 * t * SECOND)) for t in range(11))
    return Samples(header=rapl(), usage=usage)


def test_stolen_processor_time_is_flagged() -> None:
    flags = sample_flags(stolen(2.1))
    assert [flag.name for flag in flags] == ["steal"]
    assert "2.1 %" in flags[0].text


def test_notes_become_one_flag_with_their_number() -> None:
    flags = sample_flags(replace(stolen(0), notes=("the counter vanished", "and came back")))
    assert [(flag.name, flag.text, flag.count) for flag in flags] == [("power_problem", "the counter vanished; and came back", 2)]
    many = sample_flags(replace(stolen(0), notes=tuple("abcde")))
    assert (many[0].text, many[0].count) == ("a; b; c; 2 more in power.jsonl", 5)
