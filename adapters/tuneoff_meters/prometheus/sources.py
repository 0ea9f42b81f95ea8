"""Which metrics of which exporter are a node's energy: no two that count the same joules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

Labels = Mapping[str, str]
QUERY = "query"  # the source that is nothing but own PromQL


@dataclass(frozen=True, slots=True)
class Unit:
    """What a metric's value is: a counter of energy (J = value · scale) or power (W = value · scale)."""

    quantity: Literal["joules", "watts"]
    scale: float


UNITS: Mapping[str, Unit] = {
    "joules": Unit("joules", 1.0),
    "millijoules": Unit("joules", 1e-3),
    "microjoules": Unit("joules", 1e-6),
    "watt_hours": Unit("joules", 3600.0),
    "kilowatt_hours": Unit("joules", 3.6e6),
    "watts": Unit("watts", 1.0),
    "milliwatts": Unit("watts", 1e-3),
    "microwatts": Unit("watts", 1e-6),
    "kilowatts": Unit("watts", 1e3),
}


class OwnQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """PromQL that a user gives for a domain, with the unit of its values."""

    query: Annotated[str, msgspec.Meta(pattern="[^ ]")]
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One metric: its selector, its unit, the domain of a series ("" is none), and the labels that may name its node.

    Series of one node and domain are the same counter or gauge under labels that change (a pod that uses the GPU); those of own
    PromQL (`is_own`) may not be.
    """

    query: str
    unit: Unit
    domain: Callable[[Labels], str]
    host_labels: tuple[str, ...] = ("instance",)
    is_own: bool = False


def own_reading(name: str, own: OwnQuery) -> Reading:
    """Return how a user's own query is read."""
    return Reading(query=own.query, unit=UNITS[own.unit], domain=lambda labels: name, is_own=True)


def _rapl(labels: Labels) -> str:
    """Return `package-0`, `dram-1`, `package-1-die-0`, from the metric's name or, where it has one, the zone label."""
    name = labels.get("rapl_zone") or labels.get("__name__", "").removeprefix("node_rapl_").removesuffix("_joules_total")
    return name.replace("_", "-") if "die" in name else f"{name}-{labels.get('index', '0')}"


def _kepler_zone(labels: Labels) -> str:
    """Return `package-0` for a zone of one package, `package` where Kepler has summed them."""
    package = re.search(r"intel-rapl:(\d+)", labels.get("path", ""))
    return labels.get("zone", "") + (f"-{package[1]}" if package else "")


def _kepler_supply(labels: Labels) -> str:
    parts = ("platform", labels.get("chassis_id", ""), labels.get("source_id", ""))
    return "-".join(re.sub(r"[^A-Za-z0-9.]+", "_", text) for text in parts if text)


def _gpu(labels: Labels) -> str:
    return f"gpu-{labels['gpu']}" if labels.get("gpu") else ""


_JOULES, _WATTS = UNITS["joules"], UNITS["watts"]
_KEPLER_HOST = ("node_name", "exported_instance", "instance")
_DCGM_HOST = ("Hostname", "instance")
_NOT_TWICE = 'path!~".*mmio.*"'  # newer kernels show each package a second time, read by another way

# A source's readings, the best first: one that comes later serves only what the ones before it lack on that node.
# Of the zones that RAPL has, core and uncore lie within the package, and psys contains it: package and dram alone are summed.
SOURCES: Mapping[str, tuple[Reading, ...]] = {
    "node_exporter": (
        Reading(query=f"node_rapl_package_joules_total{{{_NOT_TWICE}}}", unit=_JOULES, domain=_rapl),
        Reading(
            query=f'{{__name__=~"node_rapl_package_[0-9]+_die_[0-9]+_joules_total",{_NOT_TWICE}}}', unit=_JOULES, domain=_rapl
        ),
        Reading(query=f"node_rapl_dram_joules_total{{{_NOT_TWICE}}}", unit=_JOULES, domain=_rapl),
        Reading(
            query=f'node_rapl_joules_total{{rapl_zone=~"package.*|dram",{_NOT_TWICE}}}', unit=_JOULES, domain=_rapl
        ),  # with --collector.rapl.enable-zone-label
    ),
    # its counter is a sum of counters that wrap one by one, so the gauge is taken
    "scaphandre": (Reading(query="scaph_host_power_microwatts", unit=UNITS["microwatts"], domain=lambda labels: "node"),),
    "kepler": (
        Reading(
            query='kepler_node_cpu_joules_total{zone=~"package|dram"}',
            unit=_JOULES,
            domain=_kepler_zone,
            host_labels=_KEPLER_HOST,
        ),
    ),
    "kepler_platform": (Reading(query="kepler_platform_watts", unit=_WATTS, domain=_kepler_supply, host_labels=_KEPLER_HOST),),
    "dcgm": (
        Reading(query="DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", unit=UNITS["millijoules"], domain=_gpu, host_labels=_DCGM_HOST),
        Reading(query="DCGM_FI_DEV_POWER_USAGE", unit=_WATTS, domain=_gpu, host_labels=_DCGM_HOST),
    ),
}
# finds what a server has of all of these, to name the source that would have worked
PROBES: Mapping[str, str] = {
    "node_exporter": "node_rapl_.*joules_total",
    "scaphandre": "scaph_host_power_microwatts",
    "kepler": "kepler_node_cpu_joules_total",
    "kepler_platform": "kepler_platform_watts",
    "dcgm": "DCGM_FI_DEV_(TOTAL_ENERGY_CONSUMPTION|POWER_USAGE)",
}
