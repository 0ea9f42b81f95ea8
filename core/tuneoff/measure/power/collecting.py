"""What a meter knows of a run afterwards: a database is asked once for the run's time, and not for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from tuneoff.base.clock import Anchor
from tuneoff.measure.power.reading import checked
from tuneoff.meter import MeterError, PowerMeter
from tuneoff.record.samples.schema import NodeSample, PowerSample


def collected(
    meter: PowerMeter,
    name: str,
    lock: threading.Lock,
    start: Anchor,
    *,
    within_seconds: float,
    note: Callable[[str], None],
    take_node: Callable[[NodeSample], None] | None = None,
) -> Sequence[PowerSample]:
    """Return the samples from `start` to now, on the monotonic clock; what goes wrong is noted. `lock` is the meter's.

    `take_node` gets what the meter says of whole nodes, if it says anything.
    """
    found: list[PowerSample] = []
    has_power, is_done = threading.Event(), threading.Event()
    shift_ns = start.monotonic_ns - start.wall_ns

    def tell_problems() -> None:
        for problem in meter.problems:
            note(problem)

    def ask() -> None:
        with lock:
            try:
                end_wall_ns = time.time_ns()
                samples = checked(list(meter.collect(start.wall_ns, end_wall_ns)))
                found.extend(msgspec.structs.replace(sample, t=sample.t + shift_ns) for sample in samples)
                has_power.set()
                tell_problems()
                if not samples:
                    note(f"the power meter {name} has no samples of this run")
                if take_node is not None:
                    for used in meter.collect_nodes(start.wall_ns, end_wall_ns):
                        take_node(msgspec.structs.replace(used, t=used.t + shift_ns))
                    tell_problems()
            except MeterError as error:
                note(str(error))
            except Exception as error:  # a plugin's own code may fail in any way, and must not end the run
                note(f"the power meter {name} failed: {type(error).__name__}: {error}")
        is_done.set()

    threading.Thread(target=ask, name=f"meter-{name}", daemon=True).start()
    if not is_done.wait(within_seconds):
        late = f"the power meter {name} did not answer within {within_seconds:g} s after the run"
        note(f"{late}: what the nodes used is not known" if has_power.is_set() else f"{late}; its samples are missing")
        return list(found) if has_power.is_set() else ()
    return found
