"""The `codecarbon` meter: what codecarbon makes of this host, by its offline tracker."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from tuneoff.base import clock
from tuneoff.base.commands import install_command
from tuneoff.base.packages import installed_version
from tuneoff.meter import MeterDescription, MeterError, PowerMeter, PowerSample

DOMAIN = "codecarbon"
COUNTRY = "FRA"  # its tracker needs one for grams, which are not read


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecarbonOptions:
    """What the experiment file gives."""

    interval_seconds: Annotated[float, Meta(ge=0.1)] = 1.0  # how often codecarbon measures


class CodecarbonMeter(PowerMeter):
    """Cumulative energy as codecarbon counts it, for the whole machine; it includes a constant for memory.

    Uses no network and writes no file.
    """

    options_type = CodecarbonOptions

    def __init__(self, options: Mapping[str, Any]) -> None:
        interval: float = self.check_options(options).interval_seconds
        self._energy = _Energy()
        self._read_at = -1
        self._tracker = _started(self._energy, interval)
        source = f"codecarbon {installed_version('codecarbon')}: its own model or counters, whole machine"
        gap = max(10.0, 3 * interval)
        self.description = MeterDescription(kind="estimated", source=source, domains=(DOMAIN,), longest_gap_seconds=gap)

    def read(self) -> Sequence[PowerSample]:
        """Return the energy so far, if codecarbon has measured since the last call."""
        at, joules = self._energy.latest
        if at == self._read_at:
            return ()
        self._read_at = at
        return (PowerSample(t=at, domain=DOMAIN, joules=joules),)

    def close(self) -> None:
        """End codecarbon's threads; may be called twice."""
        tracker, self._tracker = self._tracker, None
        if tracker is not None:
            tracker.stop()


class _Energy:
    """Takes what codecarbon measured, as one of its outputs, in codecarbon's thread."""

    def __init__(self) -> None:
        self.latest = (clock.monotonic_ns(), 0.0)

    def out(self, total: Any, delta: Any) -> None:
        self.latest = (clock.monotonic_ns(), max(total.energy_consumed * 3.6e6, self.latest[1]))

    live_out = out

    def task_out(self, data: Any, experiment_name: str, output_dir: str) -> None:
        """Do nothing: no tasks are told apart."""

    def exit(self) -> None:
        """Do nothing: nothing was opened."""


def _started(output: _Energy, interval_seconds: float) -> Any:
    try:
        logging.getLogger("codecarbon").disabled = True  # it talks while it is imported and made
        from codecarbon import OfflineEmissionsTracker  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise MeterError(f"meter codecarbon needs its package; run: {install_command('tuneoff[codecarbon]')}") from error
    try:
        tracker = OfflineEmissionsTracker(
            country_iso_code=COUNTRY,
            measure_power_secs=interval_seconds,
            api_call_interval=1,  # each measurement is given to `output`
            output_methods=[],
            output_handlers=[output],
            emissions_endpoint=None,
            electricitymaps_api_token=None,
            tracking_mode="machine",
            allow_multiple_runs=True,
            log_level="critical",
        )
        tracker.start()
    except Exception as error:  # it detects hardware in many ways, each of which may fail
        raise MeterError(f"meter codecarbon cannot be used: {type(error).__name__}: {' '.join(str(error).split())}") from error
    return tracker
