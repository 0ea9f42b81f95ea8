"""The power meter `prometheus`: asks a server, after the run, for the energy of nodes that others measure."""

from __future__ import annotations

import base64
import itertools
import json
import math
import os
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Meta

from tuneoff.base.clock import NANOSECONDS
from tuneoff.base.targets import unknown_name
from tuneoff.meter import MeterDescription, MeterError, MeterKind, PowerMeter, PowerSample, check_names

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
_LOOPBACK = re.compile(r"(.+\.)?localhost|127(\.\d{1,3}){3}|::1")
_CREDENTIALS = ("token_variable", "username", "password_variable")
_SELECTOR = re.compile(r"[a-zA-Z_:][\w:]*(\{[^{}]*\})?|\{[^{}]*\}")
_NOT_TWICE = 'path!~".*mmio.*"'  # newer kernels show each package a second time, read by another way
_COUNTED = {"joules": 1.0, "millijoules": 1e-3, "microjoules": 1e-6, "watt_hours": 3600.0, "kilowatt_hours": 3.6e6}  # in J
UNITS = {**_COUNTED, "watts": 1.0, "milliwatts": 1e-3, "microwatts": 1e-6, "kilowatts": 1e3}  # in J or W
Labels = Mapping[str, str]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions:
    """What to ask which server for; the fields are the options of the experiment file, `authorization` aside."""

    url: str = DEFAULT_URL
    source: str = "node_exporter"  # which exporter's metrics; `query`: only the own ones of `domains`
    nodes: tuple[Annotated[str, Meta(pattern="^[^`]+$")], ...] = ()  # as in the node label, with or without the port; (): all
    node_label: str = ""  # the label that names a node; "": what the source usually has
    domains: dict[Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*$")], OwnQuery] = field(default_factory=dict)
    kind: MeterKind | None = None  # `estimated` for any source; `measured` for own PromQL
    idle_watts: dict[str, Annotated[float, Meta(ge=0.0, le=1e9)]] = field(default_factory=dict)  # by `node/domain`
    wait_seconds: Annotated[float, Meta(ge=0.0, le=3600.0)] = 15.0  # at most, after a run, for the scrape that covers its end
    timeout_seconds: Annotated[float, Meta(ge=0.1, le=3600.0)] = 10.0  # of each query
    authorization: str = field(default="", repr=False)  # the HTTP header, with a secret from the environment


def parse_options(options: Mapping[str, Any]) -> PrometheusOptions:
    """Return the options, or raise a MeterError for one that is unknown, of the wrong type, or out of its range."""
    check_names("prometheus", options, {*PrometheusOptions.__dataclass_fields__, *_CREDENTIALS} - {"authorization"})
    values = {"source": QUERY if options.get("domains") else PrometheusOptions().source, **options}
    if isinstance(values.get("nodes"), str):
        values["nodes"] = [values["nodes"]]
    if not _URL.fullmatch(str(values.get("url", DEFAULT_URL))):  # what else it holds may be a secret
        secret = "a password belongs into an environment variable: `username` with `password_variable`, or `token_variable`"
        raise MeterError(f"meter prometheus: `url` must be like {DEFAULT_URL}, without a name, password or query; {secret}")
    try:
        parsed = msgspec.convert(values, PrometheusOptions)
    except msgspec.ValidationError as error:
        rule, _, path = str(error).partition(" - at ")
        name = path.rpartition("$.")[2].rstrip("`")
        value = options.get(name.partition("[")[0].partition(".")[0])
        raise MeterError(f"meter prometheus: `{name}`: {rule}, but got {value!r}; correct power.options") from error
    if parsed.source not in (*SOURCES, QUERY):
        raise MeterError(f"meter prometheus: {unknown_name('source', parsed.source, {*SOURCES, QUERY})}")
    for name, query in parsed.domains.items():
        if query.unit not in UNITS:
            raise MeterError(f"meter prometheus: domain {name!r}: {unknown_name('unit', query.unit, set(UNITS))}")
    if parsed.source == QUERY and not parsed.domains:
        needed = "`domains: {NAME: {query: PROMQL, unit: watts}}`"
        raise MeterError(f"meter prometheus: source `query` needs {needed}, but none is given")
    if parsed.source != QUERY and parsed.kind == "measured":
        raise MeterError(f"meter prometheus: `kind` may only be estimated for source {parsed.source!r}, but got 'measured'")
    return replace(parsed, url=parsed.url.rstrip("/"), authorization=authorization(options))


def authorization(options: Mapping[str, Any]) -> str:
    """Return the HTTP header `Authorization`, "" for none; options name variables that hold the secret, and no error tells it."""
    token, name, password = (options.get(option) for option in _CREDENTIALS)
    if (token is not None and (name, password) != (None, None)) or (name is None) != (password is None):
        raise MeterError("meter prometheus: give either `token_variable`, or both `username` and `password_variable`")
    if token is not None:
        secret = _secret("token_variable", token)
        if not secret.isascii() or any(character.isspace() for character in secret):
            raise MeterError(f"meter prometheus: the token in {token!r} must be one ASCII word; export it again")
        return f"Bearer {secret}"
    if name is None:
        return ""
    if not isinstance(name, str) or not name or ":" in name:
        raise MeterError(f"meter prometheus: `username` must be a name without a colon, but got {name!r}")
    return "Basic " + base64.b64encode(f"{name}:{_secret('password_variable', password)}".encode()).decode()


def _secret(option: str, variable: Any) -> str:
    secret = os.environ.get(variable, "").strip() if isinstance(variable, str) else ""
    if not secret:
        raise MeterError(f"meter prometheus: `{option}` names {variable!r}, which is not set; export {variable}=...")
    return secret


class PrometheusApi:
    """Queries of one server. Every failure is a `MeterError` that names the server and the way out."""

    def __init__(self, url: str, *, authorization: str = "", timeout_seconds: float = 10.0) -> None:
        """Connect to nothing yet. `authorization` is the HTTP header; `timeout_seconds` bounds each query as a whole."""
        self.url = url.rstrip("/")
        self.warnings: dict[str, None] = {}  # of the answers so far, in order: a part of the data may be missing
        self._authorization, self._timeout = authorization, timeout_seconds
        self._opener: Any = None

    def clock_offset(self) -> tuple[float, float]:
        """Return the server's clock minus this host's, in seconds, and how far that may be off (half of the round trip)."""
        before = time.time()
        answer = self._ask(query="time()")
        after = time.time()
        try:
            server = float(answer["result"][1])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise self._strange("the query `time()` gave no time") from error
        return server - (before + after) / 2, (after - before) / 2

    def vector(self, query: str) -> list[dict[str, Any]]:
        """Return the series of an instant query, each {"metric": labels, "value": [seconds, text]}."""
        return self._series(self._ask(query=query), "vector")

    def matrix(self, query: str, at: float) -> list[dict[str, Any]]:
        """Return the series of a query for a range up to a moment, each {"metric": labels, "values": [[seconds, text], ...]}."""
        return self._series(self._ask(query=query, time=f"{at:.3f}"), "matrix")

    def _series(self, answer: dict[str, Any], kind: str) -> list[dict[str, Any]]:
        series = answer.get("result")
        if answer.get("resultType") != kind or not isinstance(series, list):
            raise self._strange(f"a {kind} was asked for, but a {answer.get('resultType')!r} came")
        if not all(isinstance(entry, dict) and isinstance(entry.get("metric"), dict) for entry in series):
            raise self._strange(f"a {kind} has series without labels")
        return series

    def _ask(self, **parameters: str) -> dict[str, Any]:
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import Request

        headers = {"Accept": "application/json", **({"Authorization": self._authorization} if self._authorization else {})}
        request = Request(f"{self.url}/api/v1/query", data=urlencode(parameters).encode(), headers=headers)  # POST
        deadline = time.monotonic() + self._timeout
        try:
            with self._open().open(request, timeout=self._timeout) as response:
                content = bytearray()
                while chunk := response.read1(1 << 20):
                    content += chunk
                    if time.monotonic() > deadline:  # also where it comes byte by byte
                        raise TimeoutError
                    if len(content) > MOST_BYTES:
                        raise MeterError(f"an answer of {self.url} exceeds {MOST_BYTES >> 20} MiB; ask for less by `domains`")
        except HTTPError as error:
            with error:
                raise self._refused(error.code, error.read(65536), error.headers.get("Location")) from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            is_late = isinstance(reason, TimeoutError)
            text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            way_out = "start it, correct `url`, or take another meter"
            if "CERTIFICATE_VERIFY_FAILED" in text:
                way_out = "for an authority of your own export SSL_CERT_FILE=FILE with its certificates"
            elif "WRONG_VERSION_NUMBER" in text or "record layer failure" in text:
                way_out = "it speaks no https: give `url` with http"
            text = f"it did not answer within {self._timeout:g} s" if is_late else self._redacted(text)
            raise MeterError(f"Prometheus must be reachable at {self.url}, but: {text}; {way_out}") from error
        return self._data(bytes(content))

    def _data(self, content: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError) as error:
            start = " ".join(content[:60].decode(errors="replace").split())
            raise self._strange(f"the answer is not JSON, but starts with {start!r}") from error
        if not isinstance(answer, dict) or answer.get("status") not in ("success", "error"):
            raise self._strange("the answer has no `status`")
        if answer["status"] == "error":
            raise self._refused(200, content, None)
        data = answer.get("data")
        if not isinstance(data, dict):
            raise self._strange("the answer has no `data`")
        warnings = answer.get("warnings")  # not its `infos`: they are advice on the query
        for text in warnings if isinstance(warnings, list) else ():
            self.warnings[self._redacted(str(text))] = None
        return data

    def _refused(self, code: int, content: bytes, location: str | None) -> MeterError:
        try:
            reason = str(json.loads(content)["error"])
        except (ValueError, KeyError, TypeError, RecursionError):
            reason = ""
        if reason:
            way_out = "correct the query or the options of `power`"
        elif code in (401, 403):
            reason, way_out = "access is denied", "see `token_variable`, and `username` with `password_variable`"
        elif location:
            reason, way_out = f"it redirects to {location}", "give that address as `url`"
        else:
            line = next(iter(content.decode(errors="replace").strip().splitlines()), "")[:200]
            reason = line if line and not line.lstrip().startswith("<") else "no reason is given"  # "<": a page
            way_out = "check that `url` is the server's root (what comes before /api/v1), and whether it is http or https"
        return MeterError(f"Prometheus at {self.url} refused a query (HTTP {code}): {self._redacted(reason)}; {way_out}")

    def _strange(self, what: str) -> MeterError:
        problem = self._redacted(what)
        return MeterError(f"{self.url} must answer as Prometheus does, but {problem}; check that `url` is the server's root")

    def _redacted(self, text: str) -> str:
        """Return others' text as one line without the secret, should a server or a proxy repeat it."""
        secret = self._authorization.partition(" ")[2]
        return " ".join((text.replace(secret, "***") if secret else text).split())[:600]

    def _open(self) -> Any:
        """Return the opener: no proxy for this machine's own addresses, and no redirects, which would carry the token away."""
        if self._opener is None:
            from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

            class Refuse(HTTPRedirectHandler):
                def redirect_request(self, *arguments: Any, **named: Any) -> None:
                    return None

            direct = [ProxyHandler({})] if _LOOPBACK.fullmatch(urlsplit(self.url).hostname or "") else []
            self._opener = build_opener(Refuse, *direct)
        return self._opener


@dataclass(frozen=True, slots=True)
class Domain:
    """What was scraped of one domain of one node, in order of time."""

    name: str  # `node/domain`
    reading: Reading
    scraped: list[tuple[float, float]]

    def samples(self, offset_seconds: float) -> tuple[list[PowerSample], list[str]]:
        """Return the power samples on this host's wall clock, and what was strange.

        A counter that falls has started again from 0: a restart, or RAPL's wrap, of which the part before counts nothing.
        """
        samples: list[PowerSample] = []
        strange: dict[str, int] = defaultdict(int)
        total, before = 0.0, None
        for moment, value in self.scraped:
            t, amount = round((moment - offset_seconds) * NANOSECONDS), value * UNITS[self.reading.unit]
            if amount < 0:
                strange["values below 0, which were left out"] += 1
                continue
            if self.reading.unit not in _COUNTED:
                samples.append(PowerSample(t=t, domain=self.name, watts=amount))
                continue
            if before is not None:
                then, last = before
                if amount >= last:
                    total += amount - last
                elif amount <= MOST_WATTS * (moment - then):
                    total += amount
                    strange["restarts of the counter; what it lost before each is not counted"] += 1
                else:
                    strange["falls of the counter without a restart; not counted"] += 1
            before = (moment, amount)
            samples.append(PowerSample(t=t, domain=self.name, joules=total))
        return samples, [f"{self.name}: {count} {problem}" for problem, count in strange.items()]


def _values(series: Mapping[str, Any]) -> dict[float, float]:
    try:
        pairs = {float(moment): float(text) for moment, text in series.get("values", ())}
    except (TypeError, ValueError) as error:
        rule = "Prometheus must give pairs of time and number"
        raise MeterError(f"{rule}, but a series has others: {error}; check `url`") from error
    return {moment: value for moment, value in pairs.items() if math.isfinite(value)}


def _without_port(node: str) -> str:
    """Return `db1` for `db1:9100`; an address without a port stays as it is."""
    host, colon, port = node.rpartition(":")
    return host if colon and port.isdigit() and (":" not in host or host.endswith("]")) else node


def host_names(series: Sequence[Labels], host_labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return each series' node, and its name: without its port, where that tells it from the others."""
    raw = [next((labels[name] for name in host_labels if labels.get(name)), "") for labels in series]
    nodes_of: dict[str, set[str]] = defaultdict(set)
    for node in raw:
        nodes_of[_without_port(node)].add(node)
    names = [node if len(nodes_of[_without_port(node)]) > 1 else _without_port(node) for node in raw]
    return [(node, name.replace("/", "_")) for node, name in zip(raw, names, strict=True)]


class PrometheusMeter(PowerMeter):
    """Nothing is read while the run runs: the server is asked after it. `idle_watts` is known where it is given, else read."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Ask the server for what it has now.

        Raises:
            MeterError: an option is wrong; the server does not answer, refuses, or has no such metric or node; its clock differs.
        """
        self._options = chosen = parse_options(options)
        self._api = PrometheusApi(chosen.url, authorization=chosen.authorization, timeout_seconds=chosen.timeout_seconds)
        own_readings = (
            Reading(query=own_query.query, domain=lambda _, name=name: name, unit=own_query.unit, is_own=True)  # type: ignore[misc]
            for name, own_query in chosen.domains.items()
        )
        readings, label = (*SOURCES.get(chosen.source, ()), *own_readings), chosen.node_label
        self._readings = tuple(replace(reading, host_labels=(label,) if label else reading.host_labels) for reading in readings)
        self._interval = UNKNOWN_INTERVAL
        self._left_out: set[str] = set()  # nodes that were not asked for
        self._own_names: dict[str, str] = {}  # of this host among several nodes, by the server's name of it
        now = time.time() + self._offset()
        domains = self._fetch(now - LOOK_BACK_SECONDS, now)
        if not domains:
            raise MeterError(self._nothing())
        nodes = {domain.name.rpartition("/")[0] for domain in domains} - {""}
        if len(nodes) > 1:
            self._name_this_host(nodes)
            domains = self._fetch(now - LOOK_BACK_SECONDS, now)
        gaps = ([later - earlier for (earlier, _), (later, _) in itertools.pairwise(domain.scraped)] for domain in domains)
        medians = (statistics.median_high(seconds) for seconds in gaps if seconds)
        self._interval = max(medians, default=UNKNOWN_INTERVAL)  # the slowest
        names = sorted(domain.name for domain in domains)
        self.description = MeterDescription(
            kind=chosen.kind or ("estimated" if chosen.domains else "measured"),
            source=self._source(domains),
            domains=tuple(names),
            longest_gap_seconds=max(10.0, 2.5 * self._interval),
        )
        if not set(names) >= set(chosen.idle_watts):
            wrong = ", ".join(sorted(set(chosen.idle_watts) - set(names)))
            raise MeterError(f"meter prometheus: `idle_watts` names {wrong}, but the domains are {', '.join(names)}; correct it")
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
            if domains and all(domain.scraped[-1][0] >= end for domain in domains):
                break
            time.sleep(min(POLL_SECONDS, max(0.05, self._interval / 2)))
        margin = max(1.0, 2.5 * self._interval)
        domains = self._fetch(start - margin, min(end + margin, time.time() + offset))
        if not any(start <= moment <= end + margin for domain in domains for moment, _ in domain.scraped):
            problem = f"Prometheus at {self._options.url} has no {self._options.source} samples of the run's {end - start:.0f} s"
            raise MeterError(f"{problem}; see its page /targets for whether the nodes are scraped")
        taken = [domain.samples(offset) for domain in domains]
        warnings = [f"Prometheus at {self._options.url} warns that a part may be missing: {text}" for text in self._api.warnings]
        self.problems = (*warnings, *(problem for _, problems in taken for problem in problems))
        return sorted((sample for samples, _ in taken for sample in samples), key=lambda sample: sample.t)

    def _fetch(self, start: float, end: float) -> list[Domain]:
        """Return what was scraped in a window of the server's clock, by domain."""
        domains: dict[str, Domain] = {}
        for reading in self._readings:
            lasts = f"{max(1, round((end - start) * 1000))}ms"
            query = f"{reading.query}[{lasts}]"  # all values as scraped, or, of more than a selector, at steps
            if not _SELECTOR.fullmatch(reading.query):
                step = max((end - start) / MOST_POINTS, min(1.0, max(0.1, (end - start) / 2000)))
                query = f"(\n{reading.query}\n)[{lasts}:{max(1, round(step * 1000))}ms]"  # it may end in a comment
            series = self._api.matrix(query, end)
            for name, scraped in self._by_name(reading, series).items():
                if name not in domains and scraped:
                    domains[name] = Domain(name, reading, sorted(scraped.items()))
        return list(domains.values())

    def _by_name(self, reading: Reading, series: Sequence[Mapping[str, Any]]) -> dict[str, dict[float, float]]:
        """Return the values by their times and `node/domain`, of equal times the first; those of other nodes are left out."""
        by_name: dict[str, list[dict[float, float]]] = defaultdict(list)
        metrics = [entry["metric"] for entry in series]
        for entry, labels, (node, host) in zip(series, metrics, host_names(metrics, reading.host_labels), strict=True):
            domain = reading.domain(labels)
            if self._options.nodes and not {node, _without_port(node)} & set(self._options.nodes):
                self._left_out.add(host)
            elif domain:
                by_name[f"{self._own_names.get(host, host)}/{domain}" if host else domain].append(_values(entry))
        for name, parts in by_name.items():
            if reading.is_own and len(parts) > 1:
                problem = f"the query of domain {name!r} must give one series per node, but gives {len(parts)}"
                raise MeterError(f"meter prometheus: {problem}; sum them: sum by (instance) ({reading.query})")
        return {name: {t: value for part in reversed(parts) for t, value in part.items()} for name, parts in by_name.items()}

    def _name_this_host(self, nodes: set[str]) -> None:
        """Find which of several nodes is this host, by its name or by what node_exporter says of it."""
        host = os.uname().nodename
        series = [] if host in nodes else [entry["metric"] for entry in self._api.vector("node_uname_info")]
        named = zip(host_names(series, (self._options.node_label or "instance",)), series, strict=True)
        hosts = {name for (_, name), labels in named if labels.get("nodename") == host and name in nodes} or {host} & nodes
        if len(hosts) != 1:
            rule = f"one of the nodes must be this host, {host}, but they are {', '.join(sorted(nodes))}"
            raise MeterError(f"meter prometheus: {rule}; let `node_label` name hosts, or `nodes` the one that this host is")
        self._own_names[hosts.pop()] = host

    def _offset(self) -> float:
        """Return the server's clock minus this host's in seconds."""
        offset, error = self._api.clock_offset()
        if abs(offset) - error > MOST_OFFSET_SECONDS:
            rule = f"the clocks of this host and of Prometheus at {self._options.url} must agree within {MOST_OFFSET_SECONDS:g} s"
            raise MeterError(f"{rule}, but differ by {offset:+.1f} s; synchronize both (NTP)")
        return offset

    def _source(self, domains: Sequence[Domain]) -> str:
        """Return e.g. "Prometheus http://...: node_exporter, 2 nodes, scraped every 15 s"."""
        nodes = sorted({domain.name.rpartition("/")[0] for domain in domains} - {""})
        named = f", {', '.join(nodes)}" if 0 < len(nodes) <= 4 else f", {len(nodes)} nodes" if nodes else ""
        every = f", scraped every {self._interval:.3g} s" if self._interval > 2 else ""  # finer ones differ a little
        return f"Prometheus {self._options.url}: {self._options.source}{named}{every}"

    def _nothing(self) -> str:
        """Return why nothing was found: another node, another source, or no power metric at all."""
        url, source = self._options.url, self._options.source
        if self._left_out:
            nodes = ", ".join(sorted(self._left_out)[:8]) + (", ..." if len(self._left_out) > 8 else "")
            return f"Prometheus at {url} has {source} metrics, but not of nodes {', '.join(self._options.nodes)}; known: {nodes}"
        for name, readings in SOURCES.items():
            if name != source and any(self._api.vector(f"count({reading.query})") for reading in readings):
                return f"Prometheus at {url} has no {source} metrics, but has those of {name}; set `source: {name}`"
        wanted = " or ".join(reading.query for reading in self._readings)
        rapl = "; a virtual machine has none, and to read /sys/class/powercap takes root" if source == "node_exporter" else ""
        return f"Prometheus at {url} has none of {wanted}; see its page /targets for whether they are scraped{rapl}"
