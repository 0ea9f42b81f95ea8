"""What metrics rest on beyond the run's events: samples of power and use, carbon intensity, prices."""

from __future__ import annotations

from dataclasses import dataclass

from tuneoff.experiment.accounting.declared import NO_ACCOUNTING, Accounting
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Samples on the run's time scale (ns since its start), and what the run is charged."""

    samples: Samples | None = None
    accounting: Accounting = NO_ACCOUNTING


NO_EVIDENCE = Evidence()


def on_run_clock(samples: Samples | None, run: RunRecord) -> Samples | None:
    """Return the samples on the run's time scale: by the monotonic clock of one boot, else through the wall-clock anchors."""
    clock = run.clock
    if samples is None or clock is None:
        return None
    header = samples.header
    is_same = header.boot_id == clock.boot_id and (header.boot_id != "unknown" or header.host == clock.host)
    if is_same:
        return samples.shifted(-clock.start_monotonic_ns)
    return samples.shifted(header.anchor_wall_ns - header.anchor_monotonic_ns - clock.start_wall_ns)
