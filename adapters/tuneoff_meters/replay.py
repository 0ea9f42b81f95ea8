"""The `replay` meter: recorded samples, put on the time of each run; for tests, and for meters that write files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneoff.meter import MeterDescription, MeterError, PowerMeter, PowerSample, check_names, text
from tuneoff_meters.recording import read_recording


class ReplayMeter(PowerMeter):
    """Asked after the run, for the samples of its time: the recording's start is each run's start.

    Option `path`: a `power.jsonl`, or a CSV file (see `recording`). Kind, source and idle power are what the file says.
    """

    is_inert = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        check_names("replay", options, ("path",))
        self._path = Path(text("replay", options, "path"))
        self._recording = read_recording(self._path)
        about = self._recording
        self.idle_watts = about.idle_watts
        self.description = MeterDescription(
            kind=about.kind,
            source=f"replay of {self._path.name}: {about.source}",
            domains=about.domains,
            coefficients=about.coefficients,
            longest_gap_seconds=max(10.0, 2.5 * about.interval_seconds),
        )

    def collect(self, start_wall_ns: int, end_wall_ns: int) -> list[PowerSample]:
        """Return the recorded samples of the first `end - start` ns, and the next of each domain, which the end lies before.

        Raises:
            MeterError: the recording has nothing of that time.
        """
        lasts = end_wall_ns - start_wall_ns
        collected: list[PowerSample] = []
        beyond: set[str] = set()
        for t, domain, joules, watts in self._recording.samples:
            if domain in beyond:
                continue
            if t > lasts:
                beyond.add(domain)
            collected.append(PowerSample(t=start_wall_ns + t, domain=domain, joules=joules, watts=watts))
        if not any(sample.t <= end_wall_ns for sample in collected) and self.description.domains:
            first = min(t for t, *_ in self._recording.samples) / 1e9
            raise MeterError(f"{self._path} begins {first:g} s after the run's start, but the run took {lasts / 1e9:.3g} s")
        return collected
