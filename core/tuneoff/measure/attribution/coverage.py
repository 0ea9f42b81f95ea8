"""Which domains a run's meter has, what of the run it did not see, and whether its energy can be told all the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tuneoff.base.clock import NANOSECONDS
from tuneoff.record.samples.reader import Samples
from tuneoff.record.samples.series import EnergySeries


class Domains:
    """A run's metered domains by what they are; on several hosts a domain is named `host/domain`."""

    def __init__(self, samples: Samples, *, is_trained_on_gpu: bool) -> None:
        header = samples.header
        power = {name: series for name, series in samples.power.items() if series.times}
        hosts = {name.partition("/")[0] for name in power if "/" in name}
        mine = next(iter(hosts)) if len(hosts) == 1 and all("/" in name for name in power) else header.host
        local = {name.removeprefix(f"{mine}/"): name for name in power if "/" not in name or name.startswith(f"{mine}/")}
        self.slots = {name: power[full] for name, full in local.items() if name.startswith("slot-")}
        self.gpus = {name: power[full] for name, full in local.items() if name.startswith("gpu-")}
        host = {name: full for name, full in local.items() if name not in self.slots and name not in self.gpus}
        self.host = {name: power[full] for name, full in host.items()}
        self.elsewhere = {name: series for name, series in power.items() if name not in local.values()}
        watts = [header.idle_watts.get(full, header.idle_watts.get(name)) for name, full in host.items()]
        known = [value for value in watts if value is not None]
        self.idle_watts = sum(known) if len(known) == len(watts) else None
        promised = [name.removeprefix(f"{mine}/") for name in header.domains]
        self._silent = [name for name in promised if "/" not in name and name not in local]
        self._is_trained_on_gpu = is_trained_on_gpu
        self._longest_gap_ns = header.longest_gap_ns

    def silent(self, *, is_by_slots: bool) -> list[str]:
        """Return the domains of this host that the meter has, that the run's energy needs, and that gave no sample."""
        return [
            name
            for name in self._silent
            if (self._is_trained_on_gpu if name.startswith("gpu-") else not is_by_slots)
            and not (name.startswith("slot-") and self.host)
        ]

    def gpus_seen(self, end_ns: int) -> dict[str, EnergySeries]:
        """Return the accelerators; without one that nobody trained on, and that was not sampled over the whole run."""
        if self._is_trained_on_gpu:
            return self.gpus
        return {
            name: series for name, series in self.gpus.items() if unseen({name: series}, (), end_ns, self._longest_gap_ns) is None
        }


def unseen(power: Mapping[str, EnergySeries], silent: Sequence[str], end_ns: int, longest_gap_ns: int) -> str | None:
    """Return why the energy of a run (0 to `end_ns`) is not known from its domains; None where it is.

    `silent` are domains that the meter has, and that gave no sample. Samples that begin later or end earlier than a gap
    between them may last leave a time of which nothing is known: what was used in it is no 0.
    """
    if silent:
        return f"the meter gave no sample of {', '.join(silent)} in this run"
    for name, series in power.items():
        first, last = series.times[0], series.times[-1]
        if first > longest_gap_ns:
            return f"{name} was sampled only from {_seconds(first)} of the run on"
        if last < end_ns - longest_gap_ns:
            return f"{name} was sampled only up to {_seconds(last)} of the run's {_seconds(end_ns)}"
    return None


def still(power: Mapping[str, EnergySeries], end_ns: int) -> str | None:
    """Return why a host that used no energy at all is a meter that does not count; None where it does."""
    if any(series.energy(0, end_ns) > 0 for series in power.values()):
        return None
    return f"the meter does not count: {', '.join(power)} stood still over the run"


def to_both_ends(power: Mapping[str, EnergySeries], end_ns: int) -> dict[str, EnergySeries]:
    """Return the domains from a run's start to its end: what no sample saw goes on at the power of the nearest second."""
    return {name: series.reaching(0, end_ns) for name, series in power.items()}


def _seconds(t: int) -> str:
    return f"{t / NANOSECONDS:.1f} s"
