"""The options of the meter `prometheus`, checked once."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tuneoff.base.suggest import unknown_name
from tuneoff.meter import MeterError, MeterKind, check_names
from tuneoff_meters.prometheus import credentials
from tuneoff_meters.prometheus.sources import QUERY, SOURCES, UNITS, OwnQuery

METER = "prometheus"
DEFAULT_URL = "http://127.0.0.1:9090"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions:
    """What to ask which server for; the fields are the options of the experiment file, `authorization` aside."""

    url: str = DEFAULT_URL
    source: str = "node_exporter"  # which exporter's metrics; `query`: only the own ones of `domains`
    nodes: tuple[str, ...] = ()  # as in the node label, with or without the port; (): all
    node_label: str = ""  # the label that names a node; "": what the source usually has
    domains: Mapping[str, OwnQuery] = field(default_factory=dict)  # own PromQL
    kind: MeterKind | None = None  # `estimated` for any source; `measured` for own PromQL
    step_seconds: float | None = None  # of the range queries; None: half of the scrape interval
    idle_watts: Mapping[str, float] = field(default_factory=dict)  # by `node/domain`; {}: it is found out
    idle_seconds: float = 60.0  # before the matrix, whose mean power is idle power if the nodes were idle; 0: it is read anew
    wait_seconds: float = 15.0  # at most, after a run, for the scrape that covers its end
    timeout_seconds: float = 10.0  # of each query
    authorization: str = field(default="", repr=False)  # the HTTP header, with a secret from the environment


_DEFAULTS = PrometheusOptions()
_KNOWN = {*PrometheusOptions.__dataclass_fields__, *credentials.OPTIONS} - {"authorization"}


def parse_options(options: Mapping[str, Any]) -> PrometheusOptions:
    """Return the checked options.

    Raises:
        MeterError: an option is unknown, of the wrong type, or out of its range.
    """
    check_names(METER, options, _KNOWN)
    domains = _domains(options.get("domains", {}))
    source = options.get("source", QUERY if domains else _DEFAULTS.source)
    if source not in (*SOURCES, QUERY):
        raise MeterError(f"meter prometheus: {unknown_name('source', str(source), {*SOURCES, QUERY})}")
    if source == QUERY and not domains:
        raise MeterError(
            "meter prometheus: source `query` needs `domains: {NAME: {query: PROMQL, unit: watts}}`, but none is given"
        )
    step = options.get("step_seconds")
    return PrometheusOptions(
        url=_url(options.get("url", DEFAULT_URL)),
        source=source,
        nodes=_nodes(options.get("nodes", ())),
        node_label=_text("node_label", options.get("node_label", "")),
        domains=domains,
        kind=_kind(options.get("kind"), source),
        step_seconds=None if step is None else _seconds("step_seconds", step, least=0.1),
        idle_watts=_idle_watts(options.get("idle_watts", {})),
        idle_seconds=_seconds("idle_seconds", options.get("idle_seconds", _DEFAULTS.idle_seconds), least=0.0),
        wait_seconds=_seconds("wait_seconds", options.get("wait_seconds", _DEFAULTS.wait_seconds), least=0.0),
        timeout_seconds=_seconds("timeout_seconds", options.get("timeout_seconds", _DEFAULTS.timeout_seconds), least=0.1),
        authorization=credentials.authorization(options),
    )


def _url(value: Any) -> str:
    try:
        parts = urlsplit(_text("url", value))
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # a port that is no number, an unclosed bracket
        usable = False
    if "@" in str(value):  # first: no message may print it
        way_out = "put it into an environment variable: `password_variable` with `username`, or `token_variable`"
        raise MeterError(f"meter prometheus: `url` must hold no name and no password; {way_out}")
    if not usable or parts.query or parts.fragment:
        shown = str(value).partition("?")[0]  # what follows may be a secret
        raise MeterError(f"meter prometheus: `url` must be like {DEFAULT_URL}, without a query, but got {shown!r}")
    return str(value).rstrip("/")


def _nodes(value: Any) -> tuple[str, ...]:
    nodes = (value,) if isinstance(value, str) else value
    if not isinstance(nodes, list | tuple) or not all(isinstance(node, str) and node and "`" not in node for node in nodes):
        raise MeterError(f"meter prometheus: `nodes` must be a name or a list of names, but got {value!r}")
    return tuple(nodes)


def _domains(value: Any) -> dict[str, OwnQuery]:
    if not isinstance(value, Mapping):
        raise MeterError(f"meter prometheus: `domains` must be {{NAME: {{query: PROMQL, unit: watts}}}}, but got {value!r}")
    return {_domain_name(name): _own_query(name, one) for name, one in value.items()}


def _domain_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise MeterError(f"meter prometheus: the name of a domain must be like wall or gpu-0, but got {name!r}")
    return name


def _own_query(name: str, value: Any) -> OwnQuery:
    if not isinstance(value, Mapping) or set(value) != {"query", "unit"}:
        raise MeterError(f"meter prometheus: domain {name!r} needs `query` and `unit`, but got {value!r}")
    unit = value["unit"]
    if unit not in UNITS:
        raise MeterError(f"meter prometheus: domain {name!r}: {unknown_name('unit', str(unit), set(UNITS))}")
    return OwnQuery(query=_text(f"domains.{name}.query", value["query"], empty=False), unit=unit)


def _idle_watts(value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise MeterError(f"meter prometheus: `idle_watts` must be {{NODE/DOMAIN: WATTS}}, but got {value!r}")
    for name, watts in value.items():
        is_number = isinstance(watts, int | float) and not isinstance(watts, bool) and math.isfinite(watts)
        if not isinstance(name, str) or not is_number or watts < 0:
            raise MeterError(f"meter prometheus: `idle_watts` must be numbers >= 0 by NODE/DOMAIN, but got {name!r}: {watts!r}")
    return {name: float(watts) for name, watts in value.items()}


def _kind(value: Any, source: str) -> MeterKind | None:
    if value is None or value == "estimated":
        return value  # type: ignore[no-any-return]
    if value == "measured" and source == QUERY:
        return "measured"
    rule = "must be measured or estimated" if source == QUERY else f"may only be estimated for source {source!r}"
    raise MeterError(f"meter prometheus: `kind` {rule}, but got {value!r}")


def _text(name: str, value: Any, *, empty: bool = True) -> str:
    if not isinstance(value, str) or not (empty or value.strip()):
        raise MeterError(f"meter prometheus: `{name}` must be a text, but got {value!r}")
    return value


def _seconds(name: str, value: Any, *, least: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not least <= value <= 3600:
        raise MeterError(f"meter prometheus: `{name}` must be from {least:g} to 3600 seconds, but got {value!r}")
    return float(value)
