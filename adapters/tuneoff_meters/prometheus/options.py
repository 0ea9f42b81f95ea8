"""The options of the meter `prometheus`, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from tuneoff.base.targets import unknown_name
from tuneoff.meter import MeterError, MeterKind, check_names
from tuneoff_meters.prometheus import api
from tuneoff_meters.prometheus.sources import QUERY, SOURCES, UNITS, OwnQuery

METER = "prometheus"
DEFAULT_URL = "http://127.0.0.1:9090"

_Node = Annotated[str, Meta(pattern="^[^`]+$")]
_DomainName = Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*$")]  # wall, gpu-0
_Watts = Annotated[float, Meta(ge=0.0, le=1e9)]
_Seconds = Annotated[float, Meta(ge=0.0, le=3600.0)]
_SomeSeconds = Annotated[float, Meta(ge=0.1, le=3600.0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions:
    """What to ask which server for; the fields are the options of the experiment file, `authorization` aside."""

    url: str = DEFAULT_URL
    source: str = "node_exporter"  # which exporter's metrics; `query`: only the own ones of `domains`
    nodes: tuple[_Node, ...] = ()  # as in the node label, with or without the port; (): all
    node_label: str = ""  # the label that names a node; "": what the source usually has
    domains: dict[_DomainName, OwnQuery] = field(default_factory=dict)  # own PromQL
    kind: MeterKind | None = None  # `estimated` for any source; `measured` for own PromQL
    step_seconds: _SomeSeconds | None = None  # of the range queries; None: half of the scrape interval
    idle_watts: dict[str, _Watts] = field(default_factory=dict)  # by `node/domain`; {}: it is found out
    idle_seconds: _Seconds = 60.0  # before the matrix, whose mean power is idle power if the nodes were idle; 0: it is read anew
    wait_seconds: _Seconds = 15.0  # at most, after a run, for the scrape that covers its end
    timeout_seconds: _SomeSeconds = 10.0  # of each query
    authorization: str = field(default="", repr=False)  # the HTTP header, with a secret from the environment


_KNOWN = {*PrometheusOptions.__dataclass_fields__, *api.OPTIONS} - {"authorization"}


def parse_options(options: Mapping[str, Any]) -> PrometheusOptions:
    """Return the checked options.

    Raises:
        MeterError: an option is unknown, of the wrong type, or out of its range.
    """
    check_names(METER, options, _KNOWN)
    given = {"source": QUERY if options.get("domains") else PrometheusOptions().source, **options}
    if isinstance(given.get("nodes"), str):
        given["nodes"] = [given["nodes"]]
    _check_url(given.get("url", DEFAULT_URL))  # first: no message may print a password in it
    try:
        found = msgspec.convert(given, PrometheusOptions)
    except msgspec.ValidationError as error:
        rule, _, place = str(error).partition(" - at ")
        name = place.rpartition("$.")[2].rstrip("`")
        value = options.get(name.partition("[")[0].partition(".")[0])
        raise MeterError(f"meter prometheus: `{name}`: {rule}, but got {value!r}; correct power.options") from error
    if found.source not in (*SOURCES, QUERY):
        raise MeterError(f"meter prometheus: {unknown_name('source', found.source, {*SOURCES, QUERY})}")
    for name, own in found.domains.items():
        if own.unit not in UNITS:
            raise MeterError(f"meter prometheus: domain {name!r}: {unknown_name('unit', own.unit, set(UNITS))}")
    if found.source == QUERY and not found.domains:
        raise MeterError(
            "meter prometheus: source `query` needs `domains: {NAME: {query: PROMQL, unit: watts}}`, but none is given"
        )
    if found.source != QUERY and found.kind == "measured":
        raise MeterError(f"meter prometheus: `kind` may only be estimated for source {found.source!r}, but got 'measured'")
    return replace(found, url=found.url.rstrip("/"), authorization=api.authorization(options))


def _check_url(value: Any) -> None:
    try:
        parts = urlsplit(str(value))
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # a port that is no number, an unclosed bracket
        usable = False
    if "@" in str(value):
        way_out = "put it into an environment variable: `password_variable` with `username`, or `token_variable`"
        raise MeterError(f"meter prometheus: `url` must hold no name and no password; {way_out}")
    if not usable or parts.query or parts.fragment:
        shown = str(value).partition("?")[0]  # what follows may be a secret
        raise MeterError(f"meter prometheus: `url` must be like {DEFAULT_URL}, without a query, but got {shown!r}")
