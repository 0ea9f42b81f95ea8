"""What a meter knows of a run afterwards: a database is asked once for the run's time, and not for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from tuneoff.clock import Anchor
from tuneoff.power.meter import CollectingMeter, MeterError, NodeMeter, ObservantMeter
from tuneoff.power.reading import checked
from tuneoff.samples.schema import NodeSample, PowerSample


def collected(
    meter: CollectingMeter,
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
    answered = threading.Event()

    def ask() -> None:
        with lock:
            try:
                samples = checked(list(meter.collect(start.wall_ns, time.time_ns())))
                found.extend(
                    msgspec.structs.replace(sample, t=sample.t - start.wall_ns + start.monotonic_ns) for sample in samples
                )
                if take_node is not None and isinstance(meter, NodeMeter):
                    for used in meter.node_samples:
                        take_node(msgspec.structs.replace(used, t=used.t - start.wall_ns + start.monotonic_ns))
                for problem in meter.problems if isinstance(meter, ObservantMeter) else ():
                    note(problem)
                if not samples:
                    note(f"the power meter {name} has no samples of this run")
            except MeterError as error:
                note(str(error))
            except Exception as error:  # a plugin's own code may fail in any way, and must not end the run
                note(f"the power meter {name} failed: {type(error).__name__}: {error}")
        answered.set()

    threading.Thread(target=ask, name=f"meter-{name}", daemon=True).start()
    if not answered.wait(within_seconds):
        note(f"the power meter {name} did not answer within {within_seconds:g} s after the run; its samples are missing")
        return ()
    return found
