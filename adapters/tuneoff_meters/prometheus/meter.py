"""The power meter `prometheus`: asks a server, after the run, for the energy of nodes that others measure."""

from __future__ import annotations

import base64
import itertools
import math
import os
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from typing import Annotated, Any, Literal, TypeVar
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import msgspec
from msgspec import Meta

from tuneoff.base.clock import NANOSECONDS
from tuneoff.base.targets import unknown_name
from tuneoff.meter import MeterDescription, MeterError, MeterKind, PowerMeter, PowerSample

DEFAULT_URL = "http://127.0.0.1:9090"
QUERY = "query"  # the source that is nothing but own PromQL
LOOK_BACK_SECONDS = 300.0  # as Prometheus does: what was not scraped for so long is not there
MOST_OFFSET_SECONDS = 5.0  # between this host's clock and the server's
UNKNOWN_INTERVAL = 60.0  # Prometheus' default, where fewer than two scrapes were seen
POLL_SECONDS = 0.5
MOST_BYTES = 512 * 1024 * 1024  # of one answer
MOST_POINTS = 10_000  # of a query that is evaluated at steps
MOST_WATTS = 20_000.0  # of one domain: a counter that fell and now stands for more did not start again from 0
_URL = re.compile(r"https?://(\[[^\]@]+\]|[^\s/:@?#\[\]]+)(:[0-9]+)?(/[^\s@?#]*)?")
_SELECTOR = re.compile(r"[a-zA-Z_:][\w:]*(\{[^{}]*\})?|\{[^{}]*\}")
_NOT_TWICE = 'path!~".*mmio.*"'  # newer kernels show each package a second time, read by another way
_COUNTED = {"joules": 1.0, "millijoules": 1e-3, "microjoules": 1e-6, "watt_hours": 3600.0, "kilowatt_hours": 3.6e6}  # in J
UNITS = {**_COUNTED, "watts": 1.0, "milliwatts": 1e-3, "microwatts": 1e-6, "kilowatts": 1e3}  # in J or W
Labels = Mapping[str, str]
Scraped = list[tuple[float, float]]  # (seconds of the server's clock, value), in order of time
Result = TypeVar("Result")
_DCGM, _GPU = ("Hostname", "instance"), lambda labels: f"gpu-{labels['gpu']}" if labels.get("gpu") else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A metric: PromQL, its unit, the domain of a series ("": none), and the labels that may name its node.

    Series of one node and domain are the same counter or gauge under labels that change (a pod that uses the GPU); those of own
    PromQL (`is_own`) may not be.
    """

    query: str
    domain: Callable[[Labels], str]
    unit: str = "joules"
    host_labels: tuple[str, ...] = ("instance",)
    is_own: bool = False


def _rapl(labels: Labels) -> str:
    """Return `package-0`, `dram-1`, `package-1-die-0`, from the metric's name or, where it has one, the zone label."""
    name = labels.get("rapl_zone") or labels.get("__name__", "").removeprefix("node_rapl_").removesuffix("_joules_total")
    return name.replace("_", "-") if "die" in name else f"{name}-{labels.get('index', '0')}"


_RAPL = (
    f"node_rapl_package_joules_total{{{_NOT_TWICE}}}",
    f'{{__name__=~"node_rapl_package_[0-9]+_die_[0-9]+_joules_total",{_NOT_TWICE}}}',
    f"node_rapl_dram_joules_total{{{_NOT_TWICE}}}",
    f'node_rapl_joules_total{{rapl_zone=~"package.*|dram",{_NOT_TWICE}}}',  # with --collector.rapl.enable-zone-label
)
# A source's readings, the best first: one that comes later serves only what the ones before it lack on that node.
# Of the zones that RAPL has, core and uncore lie within the package, and psys contains it: package and dram alone are summed.
SOURCES: Mapping[str, tuple[Reading, ...]] = {
    "node_exporter": tuple(Reading(query=query, domain=_rapl) for query in _RAPL),
    # its counter is a sum of counters that wrap one by one, so the gauge is taken
    "scaphandre": (Reading(query="scaph_host_power_microwatts", domain=lambda _: "node", unit="microwatts"),),
    "dcgm": (
        Reading(query="DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", domain=_GPU, unit="millijoules", host_labels=_DCGM),
        Reading(query="DCGM_FI_DEV_POWER_USAGE", domain=_GPU, unit="watts", host_labels=_DCGM),
    ),
}


class OwnQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """PromQL that a user gives for a domain, with the unit of its values."""

    query: Annotated[str, Meta(pattern="[^ ]")]
    unit: str

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(unknown_name("unit", self.unit, set(UNITS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions:
    """What to ask which server for: what the experiment file gives."""

    url: str = DEFAULT_URL
    source: str = ""  # which exporter's metrics; `query`: only the own ones of `domains`; "": node_exporter, or those alone
    nodes: Annotated[str, Meta(min_length=1)] | tuple[str, ...] = ()  # as in the node label, with or without the port; (): all
    node_label: str = ""  # the label that names a node; "": what the source usually has
    domains: dict[Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*$")], OwnQuery] = field(default_factory=dict)
    kind: MeterKind | None = None  # `estimated` for any source; `measured` for own PromQL
    idle_watts: dict[str, Annotated[float, Meta(ge=0.0, le=1e9)]] = field(default_factory=dict)  # by `node/domain`
    wait_seconds: Annotated[float, Meta(ge=0.0, le=3600.0)] = 15.0  # at most, after a run, for the scrape that covers its end
    timeout_seconds: Annotated[float, Meta(ge=0.1, le=3600.0)] = 10.0  # of each query
    token_variable: str | None = None  # environment variable with a bearer token
    username: Annotated[str, Meta(pattern="^[^:]+$")] | None = None
    password_variable: str | None = None

    def __post_init__(self) -> None:
        source = self.source_name
        if not _URL.fullmatch(self.url):  # what else it holds may be a secret
            secret = "a password belongs into an environment variable: `username` with `password_variable`, or `token_variable`"
            raise ValueError(f"`url` must be like {DEFAULT_URL}, without a name, password or query; {secret}")
        if source not in (*SOURCES, QUERY):
            raise ValueError(unknown_name("source", source, {*SOURCES, QUERY}))
        if source == QUERY and not self.domains:
            raise ValueError("source `query` needs `domains: {NAME: {query: PROMQL, unit: watts}}`, but none is given")
        if source != QUERY and self.kind == "measured":
            raise ValueError(f"`kind` may only be estimated for source {source!r}, but got 'measured'")
        is_token = self.token_variable is not None
        if (self.username is None) != (self.password_variable is None) or (is_token and self.username is not None):
            raise ValueError("give either `token_variable`, or both `username` and `password_variable`")

    @property
    def source_name(self) -> str:
        """The source, also where none is given."""
        return self.source or (QUERY if self.domains else "node_exporter")


def authorization(options: PrometheusOptions) -> str:
    """Return the HTTP header `Authorization`, "" for none; options name variables that hold the secret, and no error tells it."""
    if options.token_variable is not None:
        secret = _secret("token_variable", options.token_variable)
        if not secret.isascii() or any(character.isspace() for character in secret):
            raise MeterError(f"meter prometheus: the token in {options.token_variable!r} must be one ASCII word; export it again")
        return f"Bearer {secret}"
    if options.password_variable is None:
        return ""
    pair = f"{options.username}:{_secret('password_variable', options.password_variable)}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def _secret(option: str, variable: str) -> str:
    secret = os.environ.get(variable, "").strip()
    if not secret:
        raise MeterError(f"meter prometheus: `{option}` names {variable!r}, which is not set; export {variable}=...")
    return secret


class QueryAnswer(msgspec.Struct):
    """What the server answers, as far as it matters here."""

    status: Literal["success", "error"]
    data: dict[str, msgspec.Raw] = {}
    error: str = ""
    warnings: list[str] = []  # not its `infos`: they are advice on the query


class Series(msgspec.Struct):
    """One series of an answer; `values` of a query for a range."""

    metric: dict[str, str]
    values: list[tuple[float, Annotated[str, Meta(pattern=r"^[-+]?([0-9.]+(e[-+]?[0-9]+)?|Inf|NaN)$")]]] = []

    def scraped(self) -> dict[float, float]:
        """Return the finite values by their times."""
        return {moment: value for moment, text in self.values if math.isfinite(value := float(text))}


class _Refuse(HTTPRedirectHandler):
    """Follows no redirect, which would carry the token away."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None


class PrometheusApi:
    """Queries of one server. Every failure is a `MeterError` that names the server and the way out."""

    def __init__(self, url: str, *, authorization: str = "", timeout_seconds: float = 10.0) -> None:
        """Connect to nothing yet. `authorization` is the HTTP header; `timeout_seconds` bounds each query as a whole."""
        self.url = url.rstrip("/")
        self.warnings: dict[str, None] = {}  # of the answers so far, in order: a part of the data may be missing
        self._authorization, self._timeout = authorization, timeout_seconds
        is_local = re.fullmatch(r"(.+\.)?localhost|127(\.\d{1,3}){3}|::1", urlsplit(self.url).hostname or "")
        self._opener = build_opener(_Refuse, *([ProxyHandler({})] if is_local else []))  # a proxy would see the token

    def clock_offset(self) -> tuple[float, float]:
        """Return the server's clock minus this host's, in seconds, and how far that may be off (half of the round trip)."""
        before = time.time()
        _, server = self.ask("time()", tuple[float, str])
        after = time.time()
        return float(server) - (before + after) / 2, (after - before) / 2

    def series(self, query: str, at: float | None = None) -> list[Series]:
        """Return the series of a query, at a moment or now.

        Raises:
            MeterError: the server cannot be reached, refuses, or is none.
        """
        return self.ask(query, list[Series], at)

    def ask(self, query: str, kind: type[Result], at: float | None = None) -> Result:
        """Return the result of a query. Raises: as `series`."""
        content = self._content({"query": query} if at is None else {"query": query, "time": f"{at:.3f}"})
        try:
            answer = msgspec.json.decode(content, type=QueryAnswer)
            if answer.status == "error":
                raise self._refused(200, content, None)
            self.warnings.update(dict.fromkeys(map(self._redacted, answer.warnings)))
            return msgspec.json.decode(answer.data["result"], type=kind)
        except (msgspec.MsgspecError, KeyError, UnicodeDecodeError, RecursionError) as error:
            problem = f"{error}: {content[:60].decode(errors='replace')!r}"
            rule = f"{self.url} must answer as Prometheus does, but {self._redacted(problem)}"
            raise MeterError(f"{rule}; check that `url` is the server's root") from error

    def _content(self, parameters: Mapping[str, str]) -> bytes:
        headers = {"Accept": "application/json", **({"Authorization": self._authorization} if self._authorization else {})}
        request = Request(f"{self.url}/api/v1/query", data=urlencode(parameters).encode(), headers=headers)  # POST
        deadline = time.monotonic() + self._timeout
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                content = bytearray()
                while chunk := response.read1(1 << 20):
                    content += chunk
                    if time.monotonic() > deadline:  # also where it comes byte by byte
                        raise TimeoutError
                    if len(content) > MOST_BYTES:
                        raise MeterError(f"an answer of {self.url} exceeds {MOST_BYTES >> 20} MiB; ask for less by `domains`")
                return bytes(content)
        except HTTPError as error:
            with error:
                raise self._refused(error.code, error.read(65536), error.headers.get("Location")) from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            text = self._redacted(getattr(reason, "strerror", None) or str(reason) or type(reason).__name__)
            way_out = "start it, correct `url`, or take another meter"
            if isinstance(reason, TimeoutError):
                text = f"it did not answer within {self._timeout:g} s"
            elif "CERTIFICATE_VERIFY_FAILED" in text:
                way_out = "for an authority of your own export SSL_CERT_FILE=FILE with its certificates"
            elif "WRONG_VERSION_NUMBER" in text or "record layer failure" in text:
                way_out = "it speaks no https: give `url` with http"
            raise MeterError(f"Prometheus must be reachable at {self.url}, but: {text}; {way_out}") from error

    def _refused(self, code: int, content: bytes, location: str | None) -> MeterError:
        try:
            reason, way_out = msgspec.json.decode(content, type=QueryAnswer).error, "correct the query or the options of `power`"
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            way_out = "check that `url` is the server's root (what comes before /api/v1), and whether it is http or https"
            reason = next(iter(content.decode(errors="replace").strip().splitlines()), "")[:200]
            reason = reason if reason and not reason.startswith("<") else "no reason is given"  # "<": a page
            if code in (401, 403):
                reason, way_out = "access is denied", "see `token_variable`, and `username` with `password_variable`"
            elif location:
                reason, way_out = f"it redirects to {location}", "give that address as `url`"
        return MeterError(f"Prometheus at {self.url} refused a query (HTTP {code}): {self._redacted(reason)}; {way_out}")

    def _redacted(self, text: str) -> str:
        """Return others' text as one line without the secret, should a server or a proxy repeat it."""
        secret = self._authorization.partition(" ")[2]
        return " ".join((text.replace(secret, "***") if secret else text).split())[:600]


def power_samples(
    name: str, unit: str, scraped: Iterable[tuple[float, float]], offset_seconds: float
) -> tuple[list[PowerSample], int]:
    """Return what was scraped of a domain as power samples on this host's wall clock, and how often its counter fell.

    A counter that falls has started again from 0 (a restart, or RAPL's wrap), of which the part before counts nothing.
    """
    samples: list[PowerSample] = []
    total, falls, before = 0.0, 0, None
    for moment, value in scraped:
        t, amount = round((moment - offset_seconds) * NANOSECONDS), value * UNITS[unit]
        if amount < 0:
            continue
        if unit not in _COUNTED:
            samples.append(PowerSample(t=t, domain=name, watts=amount))
            continue
        if before is not None:
            then, last = before
            falls += amount < last
            moved = amount - last if amount >= last else amount
            total += moved if amount >= last or moved <= MOST_WATTS * (moment - then) else 0.0
        before = (moment, amount)
        samples.append(PowerSample(t=t, domain=name, joules=total))
    return samples, falls


def _without_port(node: str) -> str:
    """Return `db1` for `db1:9100`; an address without a port stays as it is."""
    host, colon, port = node.rpartition(":")
    return host if colon and port.isdigit() and (":" not in host or host.endswith("]")) else node


def host_names(series: Sequence[Series], host_labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return each series' node, and its name: without its port, where that tells it from the others."""
    nodes = [next((entry.metric[name] for name in host_labels if entry.metric.get(name)), "") for entry in series]
    distinct = list(map(_without_port, set(nodes)))
    names = [_without_port(node) if distinct.count(_without_port(node)) == 1 else node for node in nodes]
    return [(node, name.replace("/", "_")) for node, name in zip(nodes, names, strict=True)]


class PrometheusMeter(PowerMeter):
    """Nothing is read while the run runs: the server is asked after it. `idle_watts` is known where it is given, else read."""

    options_type = PrometheusOptions

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Ask the server for what it has now.

        Raises:
            MeterError: an option is wrong; the server does not answer, refuses, or has no such metric or node; its clock differs.
        """
        chosen: PrometheusOptions = self.check_options(options)
        self._options, self._source = chosen, chosen.source_name
        self._nodes = {chosen.nodes} if isinstance(chosen.nodes, str) else set(chosen.nodes)
        self._api = PrometheusApi(chosen.url, authorization=authorization(chosen), timeout_seconds=chosen.timeout_seconds)
        self._server = f"Prometheus at {self._api.url}"
        own_readings = (
            Reading(query=own_query.query, domain=lambda _, name=name: name, unit=own_query.unit, is_own=True)  # type: ignore[misc]
            for name, own_query in chosen.domains.items()
        )
        readings, label = (*SOURCES.get(self._source, ()), *own_readings), chosen.node_label
        self._readings = tuple(replace(reading, host_labels=(label,) if label else reading.host_labels) for reading in readings)
        self._interval = UNKNOWN_INTERVAL
        self._left_out: set[str] = set()  # nodes that were not asked for
        self._own_names: dict[str, str] = {}  # of this host among several nodes, by the server's name of it
        now = time.time() + self._offset()
        domains = self._fetch(now - LOOK_BACK_SECONDS, now)
        if not domains:
            raise MeterError(self._nothing())
        nodes = {name.rpartition("/")[0] for name in domains} - {""}
        if len(nodes) > 1:
            self._name_this_host(nodes)
            domains = self._fetch(now - LOOK_BACK_SECONDS, now)
        gaps = ([later - earlier for (earlier, _), (later, _) in itertools.pairwise(scraped)] for _, scraped in domains.values())
        medians = (statistics.median_high(seconds) for seconds in gaps if seconds)
        self._interval = max(medians, default=UNKNOWN_INTERVAL)  # the slowest
        self.description = MeterDescription(
            kind=chosen.kind or ("estimated" if chosen.domains else "measured"),
            source=self._described(domains),
            domains=tuple(sorted(domains)),
            longest_gap_seconds=max(10.0, 2.5 * self._interval),
        )
        if wrong := ", ".join(sorted(chosen.idle_watts.keys() - domains.keys())):
            domain_names = ", ".join(sorted(domains))
            raise MeterError(f"meter prometheus: `idle_watts` names {wrong}, but the domains are {domain_names}; correct it")
        self.idle_watts = chosen.idle_watts or None

    def collect(self, start_wall_ns: int, end_wall_ns: int) -> list[PowerSample]:
        """Return the samples of a window, and those just outside that its ends are interpolated from; waits for one after it.

        Raises:
            MeterError: the server does not answer or refuses, its clock differs, or it has nothing of that time.
        """
        self._api.warnings.clear()
        offset = self._offset()
        start, end = start_wall_ns / NANOSECONDS + offset, end_wall_ns / NANOSECONDS + offset
        # each domain is scraped after `end`, in no longer than two scrapes take: a node may be gone
        longest = min(self._options.wait_seconds, 2 * self._interval + POLL_SECONDS)
        while (now := time.time() + offset) < end + longest:
            domains = self._fetch(end - self._interval, max(now, end))
            if domains and all(scraped[-1][0] >= end for _, scraped in domains.values()):
                break
            time.sleep(min(POLL_SECONDS, max(0.05, self._interval / 2)))
        margin = max(1.0, 2.5 * self._interval)
        domains = self._fetch(start - margin, min(end + margin, time.time() + offset))
        if not any(start <= moment <= end + margin for _, scraped in domains.values() for moment, _ in scraped):
            problem = f"{self._server} has no {self._source} samples of the run's {end - start:.0f} s"
            raise MeterError(f"{problem}; see its page /targets for whether the nodes are scraped")
        problems = [f"{self._server} warns that a part may be missing: {text}" for text in self._api.warnings]
        collected: list[PowerSample] = []
        for name, (reading, scraped) in domains.items():
            samples, falls = power_samples(name, reading.unit, scraped, offset)
            collected += samples
            if below := sum(value < 0 for _, value in scraped):
                problems.append(f"{name}: {below} values below 0, which are left out")
            if falls:
                problems.append(f"{name}: {falls} restarts of the counter; what it lost before each is not counted")
        self.problems = problems
        return sorted(collected, key=lambda sample: sample.t)

    def _fetch(self, start: float, end: float) -> dict[str, tuple[Reading, Scraped]]:
        """Return what was scraped in a window of the server's clock, by `node/domain`."""
        domains: dict[str, tuple[Reading, Scraped]] = {}
        for reading in self._readings:
            lasts = f"{max(1, round((end - start) * 1000))}ms"
            query = f"{reading.query}[{lasts}]"  # all values as scraped, or, of more than a selector, at steps
            if not _SELECTOR.fullmatch(reading.query):
                step = max((end - start) / MOST_POINTS, min(1.0, max(0.1, (end - start) / 2000)))
                query = f"(\n{reading.query}\n)[{lasts}:{max(1, round(step * 1000))}ms]"  # it may end in a comment
            for name, scraped in self._by_name(reading, self._api.series(query, end)).items():
                if name not in domains and scraped:
                    domains[name] = reading, sorted(scraped.items())
        return domains

    def _by_name(self, reading: Reading, series: Sequence[Series]) -> dict[str, dict[float, float]]:
        """Return the values by their times and `node/domain`, of equal times the first; those of other nodes are left out."""
        by_name: dict[str, list[dict[float, float]]] = defaultdict(list)
        for entry, (node, host) in zip(series, host_names(series, reading.host_labels), strict=True):
            domain = reading.domain(entry.metric)
            if self._nodes and not {node, _without_port(node)} & self._nodes:
                self._left_out.add(host)
            elif domain:
                by_name[f"{self._own_names.get(host, host)}/{domain}" if host else domain].append(entry.scraped())
        for name, parts in by_name.items():
            if reading.is_own and len(parts) > 1:
                problem = f"the query of domain {name!r} must give one series per node, but gives {len(parts)}"
                raise MeterError(f"meter prometheus: {problem}; sum them: sum by (instance) ({reading.query})")
        return {name: {t: value for part in reversed(parts) for t, value in part.items()} for name, parts in by_name.items()}

    def _name_this_host(self, nodes: set[str]) -> None:
        """Find which of several nodes is this host, by its name or by what node_exporter says of it."""
        host = os.uname().nodename
        series = [] if host in nodes else self._api.series("node_uname_info")
        named = zip(host_names(series, (self._options.node_label or "instance",)), series, strict=True)
        hosts = {name for (_, name), entry in named if entry.metric.get("nodename") == host and name in nodes} or {host} & nodes
        if len(hosts) != 1:
            rule = f"one of the nodes must be this host, {host}, but they are {', '.join(sorted(nodes))}"
            raise MeterError(f"meter prometheus: {rule}; let `node_label` name hosts, or `nodes` the one that this host is")
        self._own_names[hosts.pop()] = host

    def _offset(self) -> float:
        """Return the server's clock minus this host's in seconds."""
        offset, error = self._api.clock_offset()
        if abs(offset) - error > MOST_OFFSET_SECONDS:
            rule = f"the clocks of this host and of {self._server} must agree within {MOST_OFFSET_SECONDS:g} s"
            raise MeterError(f"{rule}, but differ by {offset:+.1f} s; synchronize both (NTP)")
        return offset

    def _described(self, domains: Iterable[str]) -> str:
        """Return e.g. "Prometheus http://...: node_exporter, 2 nodes, scraped every 15 s"."""
        nodes = sorted({name.rpartition("/")[0] for name in domains} - {""})
        named = f", {', '.join(nodes)}" if 0 < len(nodes) <= 4 else f", {len(nodes)} nodes" if nodes else ""
        every = f", scraped every {self._interval:.3g} s" if self._interval > 2 else ""  # finer ones differ a little
        return f"Prometheus {self._api.url}: {self._source}{named}{every}"

    def _nothing(self) -> str:
        """Return why nothing was found: another node, another source, or no power metric at all."""
        has_none = f"{self._server} has no {self._source} metrics"
        if self._left_out:
            asked_for, others = (", ".join(sorted(names)[:8]) for names in (self._nodes, self._left_out))
            return f"{self._server} has {self._source} metrics, but not of nodes {asked_for}; known: {others}"
        for name, readings in SOURCES.items():
            if name != self._source and any(self._api.series(f"count({reading.query})") for reading in readings):
                return f"{has_none}, but has those of {name}; set `source: {name}`"
        wanted = " or ".join(reading.query for reading in self._readings)
        rapl = (
            "; a virtual machine has none, and to read /sys/class/powercap takes root" if self._source == "node_exporter" else ""
        )
        return f"{has_none}: none of {wanted}; see its page /targets for whether they are scraped{rapl}"
