"""How much of the run's processors other programs used, and whether that disturbed the run.

Other programs are all but the run's own process tree (its framework's services included) and tuneoff's supervision. The
run's processors are those that the command may use: all of the host, or those of its affinity or control group. So it is where
slots are pinned too: no sample tells on which of them others were, and what is not pinned moves to where there is room.
"""

from __future__ import annotations

from typing import NamedTuple

from tuneoff.base.clock import NANOSECONDS
from tuneoff.measure.attribution.account import LEAST_COVERAGE, NO_SAMPLES, EnergyAccount
from tuneoff.measure.attribution.uses import foreign_attempts
from tuneoff.measure.evidence import Evidence
from tuneoff.measure.resumed import RESUMED
from tuneoff.measure.spans import NO_END, jct_ns, partition
from tuneoff.record.metric_value import MetricValue, known, missing
from tuneoff.record.run_record import FlagRecord, RunRecord

DISTURBED = "disturbed"  # flag
SHARE = "host.other_cpu_share"
LARGEST_SHARE = 10.0  # % of the time of the run's processors; more is flagged
LEAST_STEP_NS = NANOSECONDS  # a shorter trial step is no window: the whole job is
TICKS_SECONDS = 0.02  # per processor: kernels count the host's time in ticks of up to 10 ms, so as little is no sign of anybody
NO_USE = "the use of the host was not sampled"
ELSEWHERE = "trials ran on another host or in pods, where nobody sampled"


class _Others(NamedTuple):
    window: str
    seconds: float  # of the window
    processors: int
    cpu_seconds: float  # of other programs
    coverage: float
    looks: int

    @property
    def share(self) -> float:
        return 100 * self.cpu_seconds / (self.processors * self.seconds)


def disturbance_metrics(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return what other programs used of the run's processors in its trial step, in %; below 1 s, in the whole job."""
    found = _others(run, evidence, account)
    if isinstance(found, str):
        return {SHARE: missing("%", found, source="samples")}
    source, share = f"samples in {found.window}", max(0.0, found.share)  # ticks that lag behind may make it negative
    return {SHARE: known(share, "%", source=source, n_samples=found.looks, coverage=found.coverage)}


def disturbance_flags(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> tuple[FlagRecord, ...]:
    """Return the flag of a run whose processors other programs used by more than 10 %, and by more than ticks may be wrong."""
    found = _others(run, evidence, account)
    if isinstance(found, str) or found.share <= LARGEST_SHARE:
        return ()
    limit = LARGEST_SHARE / 100 * found.processors * found.seconds
    if found.cpu_seconds <= limit + TICKS_SECONDS * found.processors:
        return ()
    of = "its only processor" if found.processors == 1 else f"its {found.processors} processors"
    text = f"other programs used {found.share:.0f} % of {of} in {found.window}: its times are longer, by nobody knows how much"
    return (FlagRecord(name=DISTURBED, text=text),)


def _others(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> _Others | str:
    """Return what others used in the run's window, or why that is not known."""
    samples, used = evidence.samples, account.other_cpu
    if samples is None:
        return NO_SAMPLES
    if used is None:
        return NO_USE if run.continues is None else RESUMED
    if foreign_attempts(run, samples.header.host):
        return ELSEWHERE
    part, end_ns = partition(run)["trial"], jct_ns(run)
    if part is not None and part[1] - part[0] >= LEAST_STEP_NS:
        name, window = "the trial step", part
    elif end_ns:
        name, window = "the whole job", (0, end_ns)
    else:
        return NO_END
    start, end = max(window[0], used.times[0]), min(window[1], used.times[-1])
    coverage = max(0, end - start) / (window[1] - window[0])
    if coverage < LEAST_COVERAGE:
        return f"samples cover {coverage:.0%} of {name}"
    return _Others(
        window=name,
        seconds=(end - start) / NANOSECONDS,
        processors=samples.header.usable_cpus or samples.header.cpus,
        cpu_seconds=used.energy(start, end),
        coverage=coverage,
        looks=len(used.cuts(start, end)),
    )
