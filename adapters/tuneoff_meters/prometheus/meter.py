"""The power meter `prometheus`: asks a server, after the run, for the energy of nodes that others measure."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tuneoff.base.clock import NANOSECONDS
from tuneoff.meter import MeterDescription, MeterError, MeterKind, PowerMeter, PowerSample
from tuneoff_meters.prometheus.api import PrometheusApi
from tuneoff_meters.prometheus.idle import busy_shares, idle_before
from tuneoff_meters.prometheus.nodes import host_names, named_as_this_host, of_nodes, selected
from tuneoff_meters.prometheus.options import parse_options
from tuneoff_meters.prometheus.series import (
    FINEST_INTERVAL,
    Points,
    merged,
    points,
    samples,
    scrape_interval,
    step_of,
    windows,
    with_times,
)
from tuneoff_meters.prometheus.sources import PROBES, QUERY, SOURCES, Reading, Unit, own_reading

LOOK_BACK_SECONDS = 300.0  # as Prometheus does: what was not scraped for so long is not there
MOST_OFFSET_SECONDS = 5.0  # between this host's clock and the server's
UNKNOWN_INTERVAL = 60.0  # Prometheus' default, where fewer than two scrapes were seen
POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class _Domain:
    """What was scraped of one domain of one node."""

    name: str
    unit: Unit
    scraped: list[tuple[float, float]]


class PrometheusMeter(PowerMeter):
    """Nothing is read while the run runs: the server is asked after it.

    What the nodes used is known where node_exporter is scraped. `idle_watts` is known where it is given, or the server knows it.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Ask the server for what it has now.

        Raises:
            MeterError: an option is wrong; the server does not answer, refuses, or has no such metric or node; its clock differs.
        """
        self._options = parse_options(options)
        chosen = self._options
        self._api = PrometheusApi(chosen.url, authorization=chosen.authorization, timeout_seconds=chosen.timeout_seconds)
        of_source = SOURCES[chosen.source] if chosen.source != QUERY else ()
        readings = (*of_source, *(own_reading(name, own) for name, own in chosen.domains.items()))
        label = chosen.node_label
        self._readings = tuple(replace(one, host_labels=(label,)) for one in readings) if label else readings
        self._host_labels = (label or "instance",)  # that name a node in node_exporter's own metrics
        self._interval: float | None = None
        self._this_host: tuple[str, str] | None = None  # the server's name of this host among several nodes, and its own
        offset = self._offset()
        now = time.time() + offset
        found = self._fetch(now - LOOK_BACK_SECONDS, now, step=1.0)
        if not found:
            raise MeterError(self._nothing())
        nodes = _nodes_of(found)
        if len(nodes) > 1:
            self._name_this_host(nodes)
            found = [replace(domain, name=self._named(domain.name)) for domain in found]
        self._interval = scrape_interval([[moment for moment, _ in domain.scraped] for domain in found])
        self.description = MeterDescription(
            kind=self._kind,
            source=self._source(found),
            domains=tuple(sorted(domain.name for domain in found)),
            longest_gap_seconds=max(10.0, 2.5 * self._known_interval),
        )
        self.idle_watts = self._idle_power(found, now, offset)

    def collect(self, start_wall_ns: int, end_wall_ns: int) -> list[PowerSample]:
        """Return the samples of a window, in order of time, and those just outside that its ends are interpolated from.

        Waits up to `wait_seconds` for a scrape after the window's end.

        Raises:
            MeterError: the server does not answer or refuses, its clock differs, or it has nothing of that time.
        """
        self._api.warnings.clear()
        offset = self._offset()
        start, end = start_wall_ns / NANOSECONDS + offset, end_wall_ns / NANOSECONDS + offset
        self._await_scrape(end, offset)
        margin = max(1.0, 2.5 * self._known_interval)
        found = self._fetch(start - margin, min(end + margin, time.time() + offset))
        collected: list[PowerSample] = []
        problems: list[str] = []
        for domain in found:
            taken, strange = samples(self._named(domain.name), domain.scraped, domain.unit, offset)
            collected.extend(taken)
            problems.extend(strange)
        if not any(start <= moment <= end + margin for domain in found for moment, _ in domain.scraped):
            raise MeterError(
                f"Prometheus at {self._options.url} has no {self._options.source} samples of the run's {end - start:.0f} s; "
                "see its page /targets for whether the nodes are scraped"
            )
        self.problems = (*self._warnings(), *problems)
        return sorted(collected, key=lambda sample: sample.t)

    @property
    def _known_interval(self) -> float:
        return self._interval if self._interval is not None else UNKNOWN_INTERVAL

    def _await_scrape(self, end: float, offset: float) -> None:
        """Wait until each domain was scraped after `end`, no longer than two scrapes take: a node may be gone."""
        longest = min(self._options.wait_seconds, 2 * self._known_interval + POLL_SECONDS)
        while (now := time.time() + offset) < end + longest:
            found = self._fetch(end - self._known_interval, max(now, end))
            if found and all(domain.scraped[-1][0] >= end for domain in found):
                return
            time.sleep(min(POLL_SECONDS, max(0.05, self._known_interval / 2)))

    def _fetch(self, start: float, end: float, step: float | None = None) -> list[_Domain]:
        """Return what was scraped in a window of the server's clock, by domain."""
        step = step or self._step(start, end)
        found: dict[str, _Domain] = {}
        for reading in self._readings:
            query = selected(reading, self._options.nodes)
            answers = [self._api.matrix(with_times(query), *window, step) for window in windows(start, end, step)]
            by_name = self._by_name(reading, points(answers))
            for name, parts in by_name.items():
                scraped = merged(parts)
                if name not in found and scraped:
                    found[name] = _Domain(name, reading.unit, scraped)
        return list(found.values())

    def _step(self, start: float, end: float) -> float:
        return self._options.step_seconds or step_of(end - start, self._interval)

    def _by_name(self, reading: Reading, series: Sequence[Points]) -> dict[str, list[Points]]:
        """Return the series by `node/domain`, those of other nodes left out."""
        hosts = host_names([one.labels for one in series], reading.host_labels)
        by_name: dict[str, list[Points]] = defaultdict(list)
        for one, host in zip(series, hosts, strict=True):
            domain = reading.domain(one.labels)
            if domain and of_nodes(one.labels, reading.host_labels, self._options.nodes):
                by_name[f"{host}/{domain}" if host else domain].append(one)
        for name, parts in by_name.items():
            if reading.is_own and len(parts) > 1:
                problem = f"the query of domain {name!r} must give one series per node, but gives {len(parts)}"
                raise MeterError(f"meter prometheus: {problem}; sum them: sum by (instance) ({reading.query})")
        return by_name

    def _name_this_host(self, nodes: Collection[str]) -> None:
        """Find out which of several nodes is this host: its energy is shared by what is used here.

        Raises:
            MeterError: none is.
        """
        host = os.uname().nodename
        name = named_as_this_host(self._api, nodes, host, self._host_labels)
        if name is None:
            rule = f"one of the nodes must be this host, {host}, but they are {', '.join(sorted(nodes))}"
            raise MeterError(f"meter prometheus: {rule}; let `node_label` name hosts, or `nodes` the one that this host is")
        self._this_host = name, host

    def _named(self, name: str) -> str:
        """Return a node, or a `node/domain`, with this host's own name."""
        node, slash, domain = name.partition("/")
        return f"{self._this_host[1]}{slash}{domain}" if self._this_host is not None and node == self._this_host[0] else name

    def _warnings(self) -> list[str]:
        """Return what the server has warned of since this was last asked."""
        texts = [f"Prometheus at {self._options.url} warns that a part may be missing: {text}" for text in self._api.warnings]
        self._api.warnings.clear()
        return texts

    def _offset(self) -> float:
        """Return the server's clock minus this host's in seconds.

        Raises:
            MeterError: it is so great that something is wrong with one of them.
        """
        offset, error = self._api.clock_offset()
        if abs(offset) - error > MOST_OFFSET_SECONDS:
            rule = f"the clocks of this host and of Prometheus at {self._options.url} must agree within {MOST_OFFSET_SECONDS:g} s"
            raise MeterError(f"{rule}, but differ by {offset:+.1f} s; synchronize both (NTP)")
        return offset

    def _idle_power(self, found: Sequence[_Domain], now: float, offset: float) -> Mapping[str, float] | None:
        """Return the given idle power, or that of the last minute if the nodes were idle then; None where it is not known."""
        chosen = self._options
        names = {domain.name for domain in found}
        if not names >= set(chosen.idle_watts):
            wrong, known = ", ".join(sorted(set(chosen.idle_watts) - names)), ", ".join(sorted(names))
            raise MeterError(f"meter prometheus: `idle_watts` names {wrong}, but the domains are {known}; correct it")
        if chosen.idle_watts or not chosen.idle_seconds:
            return chosen.idle_watts or None
        seconds = min(LOOK_BACK_SECONDS, max(chosen.idle_seconds, 3 * self._known_interval))
        taken = [sample for domain in found for sample in samples(domain.name, domain.scraped, domain.unit, offset)[0]]
        shares = busy_shares(self._api, seconds, self._host_labels)
        busy = {self._named(node): share for node, share in shares.items()}
        return idle_before(taken, round((now - offset) * NANOSECONDS), seconds, busy)

    @property
    def _kind(self) -> MeterKind:
        is_own = self._options.source == QUERY or self._options.domains
        return self._options.kind or ("estimated" if is_own else "measured")

    def _source(self, found: Sequence[_Domain]) -> str:
        """Return e.g. "Prometheus http://...: node_exporter, 2 nodes, scraped every 15 s"."""
        nodes = sorted({domain.name.rpartition("/")[0] for domain in found} - {""})
        named = f", {', '.join(nodes)}" if 0 < len(nodes) <= 4 else f", {len(nodes)} nodes" if nodes else ""
        is_resolved = self._interval is not None and self._interval > FINEST_INTERVAL
        every = f", scraped every {self._interval:.3g} s" if is_resolved else ""
        return f"Prometheus {self._options.url}: {self._options.source}{named}{every}"

    def _nothing(self) -> str:
        """Return why nothing was found: another node, another source, or no power metric at all."""
        url, source = self._options.url, self._options.source
        if self._options.nodes:
            there = sorted({host for reading in self._readings for host in self._hosts(reading)} - {""})
            if there:
                named, known = ", ".join(self._options.nodes), ", ".join(there[:8]) + (", ..." if len(there) > 8 else "")
                return f"Prometheus at {url} has {source} metrics, but not of nodes {named}; known: {known}"
        for name, pattern in PROBES.items():
            if name != source and self._api.vector(f'count({{__name__=~"{pattern}"}})'):
                return f"Prometheus at {url} has no {source} metrics, but has those of {name}; set `source: {name}`"
        if source == "node_exporter" and self._api.vector("count(node_cpu_seconds_total)"):
            why = "a virtual machine has none; else let it read /sys/class/powercap, which takes root"
            return f"Prometheus at {url} has node_exporter metrics, but no node has energy counters (RAPL): {why}"
        wanted = " or ".join(reading.query for reading in self._readings)
        return f"Prometheus at {url} has none of {wanted}; see its page /targets for whether an exporter with them is scraped"

    def _hosts(self, reading: Reading) -> list[str]:
        return host_names([one["metric"] for one in self._api.vector(reading.query)], reading.host_labels)


def _nodes_of(domains: Sequence[_Domain]) -> frozenset[str]:
    return frozenset({domain.name.rpartition("/")[0] for domain in domains} - {""})
