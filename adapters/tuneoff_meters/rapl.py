"""The `rapl` meter: energy counters of CPU packages and DRAM, by the kernel's powercap files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tuneoff.base import clock
from tuneoff.meter import MeterDescription, MeterError, PowerMeter, PowerSample, check_names, text
from tuneoff_meters.rapl_zones import Zone, find_zones

ROOT = "/sys/class/powercap"
HIGHEST_WATTS = 10_000.0  # of one zone; a counter that moved faster was reset, not wrapped


class RaplMeter(PowerMeter):
    """Packages and DRAM zones, each a domain with an ever-growing counter. Option `root`: the powercap folder.

    The counters wrap after some minutes at full load; read at least every 10 s, and each wrap is seen.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.check_options(options)
        root = Path(text("rapl", options, "root", ROOT))
        zones, left_out = find_zones(root)
        now = clock.monotonic_ns()
        self._counters = [_Counter(zone, now) for zone in zones]
        names = tuple(zone.domain for zone in zones)
        source = f"powercap: {', '.join(names)}" + (f" ({'; '.join(left_out)})" if left_out else "")
        self.description = MeterDescription(kind="measured", source=source, domains=names)

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """Refuse wrong options; nothing is opened.

        Raises:
            OptionError: there is one.
        """
        check_names("rapl", options, ("root",))
        text("rapl", options, "root", ROOT)

    def read(self) -> Sequence[PowerSample]:
        """Return one sample per zone.

        Raises:
            MeterError: a zone cannot be read, or its counter was reset; said once, and the next call reads the others.
        """
        problems: list[str] = []
        samples = [sample for counter in self._counters if (sample := counter.sample(problems)) is not None]
        if problems:
            raise MeterError("; ".join(problems))
        return samples


class _Counter:
    """One zone's counter without its wraps: joules since the meter was opened."""

    def __init__(self, zone: Zone, now_ns: int) -> None:
        self._zone = zone
        self._last_uj = zone.opened_at_uj
        self._last_ns = now_ns
        self._total_uj = 0
        self._is_lost = False

    def sample(self, problems: list[str]) -> PowerSample | None:
        try:
            value, now = self._zone.energy_uj(), clock.monotonic_ns()
        except (OSError, ValueError) as error:
            if not self._is_lost:
                reason = getattr(error, "strerror", None) or str(error)
                problem = f"zone {self._zone.domain} cannot be read any more ({reason})"
                problems.append(f"{problem}; it is tried again, and unknown till then")
            self._is_lost = True
            return None
        self._is_lost = False
        moved = value - self._last_uj
        if moved < 0 and self._zone.range_uj is not None:
            moved += self._zone.range_uj + 1
        seconds = (now - self._last_ns) / clock.NANOSECONDS
        if moved < 0 or moved > HIGHEST_WATTS * 1e6 * max(seconds, 0.1):
            problems.append(f"the counter of {self._zone.domain} was reset; its energy since the sample before is not counted")
            moved = 0
        self._last_uj, self._last_ns, self._total_uj = value, now, self._total_uj + moved
        return PowerSample(t=now, domain=self._zone.domain, joules=self._total_uj / 1e6)
