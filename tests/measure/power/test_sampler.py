"""The sampler's loop, its pace, and its file."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from measure.power.meters import Counter, Database, plan_of
from tuneoff.base import clock
from tuneoff.measure.power.metering import NO_POWER, Baseline, PowerPlan
from tuneoff.measure.power.reading import FILE_BYTES, LONGEST_SECONDS, Pace
from tuneoff.measure.power.sampler import Sampler
from tuneoff.meter import MeterError
from tuneoff.record.samples.reader import Samples, read_samples
from tuneoff.record.samples.schema import LATE
from waiting import until

RUN = "run-of-this-test"


def samples_of(folder: Path) -> Samples:
    samples = read_samples(folder)
    assert samples is not None
    return samples


def sampled(folder: Path, power: PowerPlan) -> Samples:
    """Return the samples of a moment in which nothing runs."""
    with Sampler(folder, RUN, power):
        pass
    return samples_of(folder)


@pytest.mark.parametrize(("declared_seconds", "interval_seconds"), [(30.0, 0.5), (0.1, 5.0)])
def test_the_longest_gap_is_the_meter_s_or_that_of_its_interval(
    declared_seconds: float, interval_seconds: float, tmp_path: Path
) -> None:
    meter = Counter()
    meter.description = replace(meter.description, longest_gap_seconds=declared_seconds)
    header = sampled(tmp_path, replace(plan_of(meter), interval_seconds=interval_seconds)).header
    assert header.longest_gap_ns == round(max(declared_seconds, LATE * interval_seconds) * clock.NANOSECONDS)


@pytest.mark.parametrize(("slept_seconds", "is_noted"), [(0.0, False), (90.0, True)])
def test_a_machine_that_slept_is_noted(
    slept_seconds: float, is_noted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sampler(tmp_path, RUN, NO_POWER):
        before = clock.slept_ns()
        monkeypatch.setattr(clock, "slept_ns", lambda: before + round(slept_seconds * 1e9))
    notes = samples_of(tmp_path).notes
    assert any(note.startswith("the machine was suspended for 90.0 s in this run") for note in notes) == is_noted


def test_what_fails_is_noted_beside_what_was_known_before_and_the_rest_goes_on(tmp_path: Path) -> None:
    meter = Counter(failures=[MeterError("package-0 vanished")], domains=("package-0", "package-0"))
    meter.description = replace(meter.description, domains=("package-0", "dram-0"))
    with Sampler(tmp_path, RUN, replace(plan_of(meter), baseline=Baseline(problems=("the host was not idle",)))):
        until(lambda: meter.readings >= 1)
    samples = samples_of(tmp_path)
    silent = "the power meter test gave no sample of dram-0 in this run"
    assert samples.notes[:3] == ("the host was not idle", "package-0 vanished", silent)
    assert samples.power_samples >= 1
    assert len(samples.usage) >= 1
    with Sampler(tmp_path / "nowhere", RUN, plan_of(Counter())) as sampler:  # a file that cannot be made ends no run
        sampler.stop()


def test_a_database_that_answers_with_a_problem_is_noted(tmp_path: Path) -> None:
    meter = Database()
    meter.problem = "the database cannot be reached"
    samples = sampled(tmp_path, plan_of(meter))
    assert samples.notes == (meter.problem, "the power meter test gave no sample of package-0 in this run")


def test_a_database_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    meter = Database()
    meter.released.clear()
    sampler = Sampler(tmp_path, RUN, plan_of(meter))
    sampler.start()
    sampler.stop(collect_seconds=0.05)
    assert "did not answer within 0.05 s after the run" in samples_of(tmp_path).notes[0]
    meter.released.set()


def test_a_disk_that_is_full_for_a_while_costs_samples_and_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, meter = os.write, Counter()
    with Sampler(tmp_path, RUN, plan_of(meter)):
        until(lambda: meter.readings >= 2)

        def full(descriptor: int, text: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr("tuneoff.base.files.os.write", full)
            before = meter.readings
            until(lambda: meter.readings >= before + 3)
        assert os.write is write
    samples = samples_of(tmp_path)
    assert samples.notes[0].endswith("samples could not be written: No space left on device")
    assert samples.torn_lines == 0


def test_a_host_without_proc_gives_a_note_and_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(**_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "/proc/stat")

    monkeypatch.setattr("tuneoff.measure.power.sampler.HostClock", absent)
    samples = sampled(tmp_path, NO_POWER)
    assert (samples.usage, len(samples.notes)) == ((), 1)
    assert "/proc/stat" in samples.notes[0]


def test_a_look_that_is_dear_is_taken_more_rarely_but_for_the_first_which_meets_everything_as_new() -> None:
    pace = Pace(0.2, 0.01)
    pace.spent(1.0)
    assert pace.interval(0) == 0.2
    for _ in range(100):
        pace.spent(0.004)
    assert pace.interval(0) == pytest.approx(0.4)
    assert Pace(0.2, 0.01).interval(100 * FILE_BYTES) == LONGEST_SECONDS
    assert Pace(8.0, 0.01).interval(0) == 8.0, "never below what was asked for"


@pytest.mark.parametrize(("line_bytes", "hours"), [(200, 24), (1500, 3)])
def test_a_file_of_a_long_run_stays_below_its_size(line_bytes: int, hours: float) -> None:
    pace, written, elapsed = Pace(0.2, 0.01), 0, 0.0
    while elapsed < hours * 3600:
        written += line_bytes
        elapsed += pace.interval(written)
    assert written < FILE_BYTES
