"""What a reader of a run's energy must know of its samples."""

from __future__ import annotations

from tuneoff.record.run_record import FlagRecord
from tuneoff.record.samples.reader import Samples

MOST_NOTES = 3  # in the text of a flag
STEAL_LIMIT = 0.02  # of the host's processor time: with more of it, the host itself shares its processors with others


def sample_flags(samples: Samples | None) -> tuple[FlagRecord, ...]:
    """Return the flags `power_problem` (something went wrong while sampling) and `steal` (a hypervisor took processor time)."""
    if samples is None:
        return ()
    flags = []
    if samples.notes:
        more = len(samples.notes) - MOST_NOTES
        text = "; ".join(samples.notes[:MOST_NOTES]) + (f"; {more} more in power.jsonl" if more > 0 else "")
        flags.append(FlagRecord(name="power_problem", text=text, count=len(samples.notes)))
    share = steal_share(samples)
    if share is not None and share > STEAL_LIMIT:
        text = (
            f"the hypervisor took {100 * share:.1f} % of the processors' time during the run: others share them, times are longer"
        )
        flags.append(FlagRecord(name="steal", text=text))
    return tuple(flags)


def steal_share(samples: Samples) -> float | None:
    """Return which share of the host's processor time was stolen between the first and the last sample; None without two."""
    usage = samples.usage
    if len(usage) < 2 or usage[-1].t <= usage[0].t:
        return None
    return (usage[-1].steal_ns - usage[0].steal_ns) / ((usage[-1].t - usage[0].t) * max(1, samples.header.cpus))
