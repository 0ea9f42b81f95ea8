"""The sampler of a run, with meters and processes that behave and that do not."""

from __future__ import annotations

import errno
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from builders.waiting_processes import waiting
from measure.power.meters import Counter, Database, Hanging, plan_of
from tuneoff.base import clock
from tuneoff.base.processes import MARK
from tuneoff.measure.power.metering import NO_POWER, Baseline, PowerPlan
from tuneoff.measure.power.sampler import Sampler
from tuneoff.meter import MeterError
from tuneoff.record.events.writer import process_started_ns
from tuneoff.record.samples.reader import Samples, read_samples
from tuneoff.record.samples.schema import ProcessUsage
from waiting import until

RUN = "run-of-this-test"
USE_AND_WAIT = "import time\nwhile time.process_time() < 0.25: pass\nprint('up', flush=True)\ninput()"


def samples_of(folder: Path) -> Samples:
    samples = read_samples(folder)
    assert samples is not None
    return samples


def usage_of(samples: Samples, identity: tuple[int, int]) -> list[ProcessUsage]:
    used = (usage for sample in samples.usage for usage in sample.processes)
    return [usage for usage in used if (usage.pid, usage.started_ns) == identity]


def sampled(folder: Path, power: PowerPlan) -> Samples:
    """Return the samples of a moment in which nothing runs."""
    with Sampler(folder, RUN, power):
        pass
    return samples_of(folder)


def test_a_process_is_seen_with_what_it_used_until_it_is_gone(tmp_path: Path) -> None:
    with Sampler(tmp_path, RUN, plan_of(Counter())) as sampler:
        with waiting(USE_AND_WAIT, env={**os.environ, MARK: RUN}, start_new_session=True) as process:
            identity = process.pid, process_started_ns(process.pid)
            until(lambda: any(usage.cpu_ns > 0.2e9 for usage in usage_of(samples_of(tmp_path), identity)))
        sampler.stop()
    samples = samples_of(tmp_path)
    seen = usage_of(samples, identity)
    assert seen[-1].cpu_ns < 2e9
    assert (seen[0].name, seen[0].parent) == (seen[0].name or "", os.getpid())
    assert [identity in sample.gone for sample in samples.usage].count(True) == 1
    assert samples.notes == ()
    assert max(sample.rss_bytes for sample in samples.usage) > 1_000_000


def test_the_header_names_meter_host_and_idle_power(tmp_path: Path) -> None:
    power = replace(plan_of(Counter()), baseline=Baseline(idle_watts={"package-0": 7.0}, seconds=3.0), reason="why")
    header = sampled(tmp_path, power).header
    assert (header.meter, header.kind, header.source, header.reason) == ("test", "measured", "a test's counter", "why")
    assert (header.domains, header.idle_watts, header.idle_seconds) == (("package-0",), {"package-0": 7.0}, 3.0)
    assert (header.execution_id, header.boot_id, header.interval_ns) == (RUN, clock.boot_id(), 20_000_000)
    assert header.supervisor == f"{os.uname().nodename}:{os.getpid()}:{process_started_ns()}"
    assert header.cpus == os.cpu_count()


def test_power_use_and_the_sampler_s_own_time_are_sampled_to_the_end(tmp_path: Path) -> None:
    meter, started = Counter(watts=80.0), clock.monotonic_ns()
    with Sampler(tmp_path, RUN, plan_of(meter)):
        until(lambda: meter.readings >= 5)
        ended = clock.monotonic_ns()
    samples = samples_of(tmp_path)
    series = samples.power["package-0"]
    assert series.times[-1] >= ended
    assert series.energy(started, series.times[-1]) == pytest.approx(80.0 * (series.times[-1] - series.times[0]) / 1e9)
    assert samples.usage[-1].t >= ended
    own = [sample.own_cpu_ns for sample in samples.usage]
    assert own == sorted(own)
    assert own[-1] > 0


def test_without_a_meter_the_use_of_processors_is_sampled_alone(tmp_path: Path) -> None:
    samples = sampled(tmp_path, NO_POWER)
    assert (samples.header.meter, samples.header.reason, samples.power) == ("none", "no power meter was chosen", {})
    assert len(samples.usage) >= 1


def test_an_idle_power_that_is_known_to_be_wrong_is_in_the_header_and_the_notes(tmp_path: Path) -> None:
    samples = sampled(tmp_path, replace(plan_of(Counter()), baseline=Baseline(busy="it was not idle")))
    assert samples.header.idle_problem == "it was not idle"
    assert samples.notes == ("it was not idle: it is too high, and what is attributed to trials too low",)


def test_the_header_has_the_meters_own_longest_gap_and_kind(tmp_path: Path) -> None:
    slow = Counter(domains=("node",))
    slow.description = replace(slow.description, kind="estimated", longest_gap_seconds=150.0)
    for meter, kind, longest_gap_ns in ((Counter(), "measured", 10_000_000_000), (slow, "estimated", 150_000_000_000)):
        folder = tmp_path / kind
        folder.mkdir()
        header = sampled(folder, plan_of(meter)).header
        assert (header.kind, header.longest_gap_ns) == (kind, longest_gap_ns)


def test_a_meter_that_is_read_rarely_may_be_read_a_little_late(tmp_path: Path) -> None:
    header = sampled(tmp_path, plan_of(Counter(), interval_seconds=10.0)).header
    assert header.longest_gap_ns > header.interval_ns


@pytest.mark.parametrize(("slept_seconds", "is_noted"), [(0.0, False), (90.0, True)])
def test_a_machine_that_slept_is_noted(
    slept_seconds: float, is_noted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sampler(tmp_path, RUN, NO_POWER):
        before = clock.slept_ns()
        monkeypatch.setattr(clock, "slept_ns", lambda: before + round(slept_seconds * 1e9))
    notes = samples_of(tmp_path).notes
    assert any(note.startswith("the machine was suspended for 90.0 s in this run") for note in notes) == is_noted


def test_a_meter_that_fails_is_noted_and_the_rest_goes_on(tmp_path: Path) -> None:
    meter = Counter(failures=[MeterError("package-0 vanished")])
    with Sampler(tmp_path, RUN, plan_of(meter)):
        until(lambda: meter.readings >= 1)
    samples = samples_of(tmp_path)
    assert samples.notes == ("package-0 vanished",)
    assert samples.power_samples >= 1
    assert len(samples.usage) >= 1


def test_a_meter_that_gives_nothing_any_more_is_noted_in_every_run(tmp_path: Path) -> None:
    meter = Counter()
    meter.read = list  # type: ignore[method-assign]
    assert sampled(tmp_path, plan_of(meter)).notes == ("the power meter test gave no sample of package-0 in this run",)


@pytest.mark.slow
def test_a_meter_that_hangs_ends_neither_the_run_nor_the_samples_of_use(tmp_path: Path) -> None:
    meter = Hanging()
    sampler = Sampler(tmp_path, RUN, plan_of(meter))
    sampler.start()
    assert meter.entered.wait(10)
    started = time.monotonic()
    sampler.stop()
    assert time.monotonic() - started < 3.0  # 1 s, on a busy machine
    samples = samples_of(tmp_path)
    assert "did not answer in time" in samples.notes[0]
    assert len(samples.usage) >= 1
    meter.released.set()


def test_a_database_is_asked_for_the_run_s_time_and_its_samples_lie_on_the_run_s_clock(tmp_path: Path) -> None:
    meter, started = Database(), clock.monotonic_ns()
    with Sampler(tmp_path, RUN, plan_of(meter)) as sampler:
        sampler.stop()
        ended = clock.monotonic_ns()
    ((start_wall, end_wall),) = meter.windows
    times = samples_of(tmp_path).power["package-0"].times
    tolerance = 1_000_000_000  # clocks may be set
    assert started - tolerance < times[0] < times[1] < ended + tolerance
    assert times[1] - times[0] == end_wall - start_wall


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


def test_a_file_that_cannot_be_made_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Sampler(tmp_path / "nowhere", RUN, plan_of(Counter())) as sampler:
        sampler.stop()
    assert list(tmp_path.iterdir()) == []


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


def test_problems_that_were_known_before_are_in_every_run(tmp_path: Path) -> None:
    power = replace(NO_POWER, baseline=Baseline(problems=("the host was not idle",)))
    assert sampled(tmp_path, power).notes == ("the host was not idle",)


def test_a_host_without_proc_gives_a_note_and_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(**_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "/proc/stat")

    monkeypatch.setattr("tuneoff.measure.power.sampler.HostClock", absent)
    samples = sampled(tmp_path, NO_POWER)
    assert (samples.usage, len(samples.notes)) == ((), 1)
    assert "/proc/stat" in samples.notes[0]
