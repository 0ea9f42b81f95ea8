"""Which node a series is of, and what whole nodes used."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from tuneoff_meters.prometheus.sources import Labels, Reading

if TYPE_CHECKING:
    from tuneoff_meters.prometheus.api import PrometheusApi


def raw_node(labels: Labels, host_labels: Sequence[str]) -> str:
    """Return the value of the first of the labels that a series has, or ""."""
    return next((labels[name] for name in host_labels if labels.get(name)), "")


def without_port(node: str) -> str:
    """Return `db1` for `db1:9100`; an address without a port stays as it is."""
    host, colon, port = node.rpartition(":")
    return host if colon and port.isdigit() and (":" not in host or host.endswith("]")) else node


def host_names(series: Sequence[Labels], host_labels: Sequence[str]) -> list[str]:
    """Return the name of each series' node: without its port, where that tells it from the others."""
    raw = [raw_node(labels, host_labels) for labels in series]
    nodes_of: dict[str, set[str]] = defaultdict(set)
    for node in raw:
        nodes_of[without_port(node)].add(node)
    names = [node if len(nodes_of[without_port(node)]) > 1 else without_port(node) for node in raw]
    return [name.replace("/", "_") for name in names]


def named_as_this_host(api: PrometheusApi, nodes: Collection[str], host: str, host_labels: Sequence[str]) -> str | None:
    """Return the one of several nodes that is this host: by its name, else by what node_exporter says of it; None: none is.

    Servers mostly name a node by its address.
    """
    if host in nodes:
        return host
    series = [one["metric"] for one in api.vector("node_uname_info")]
    names = host_names(series, host_labels)
    found = {name for name, labels in zip(names, series, strict=True) if labels.get("nodename") == host and name in nodes}
    return found.pop() if len(found) == 1 else None


def of_nodes(labels: Labels, host_labels: Sequence[str], nodes: Sequence[str]) -> bool:
    """Tell whether a series is of one of the nodes, given with or without the port; no nodes are all."""
    node = raw_node(labels, host_labels)
    return not nodes or node in nodes or without_port(node) in nodes


def node_matcher(nodes: Collection[str], label: str) -> str:
    """Return the matcher of PromQL for nodes, given with or without the port."""
    pattern = "|".join(re.escape(node) for node in sorted(nodes))
    return f"{label}=~`({pattern})(:[0-9]+)?`"


def selected(reading: Reading, nodes: Sequence[str]) -> str:
    """Return a reading's query, narrowed to the nodes where one label alone can name them."""
    if not nodes or reading.is_own or len(reading.host_labels) != 1:
        return reading.query
    matcher = node_matcher(nodes, reading.host_labels[0])
    if reading.query.endswith("}"):
        return f"{reading.query[:-1]},{matcher}}}"
    return f"{reading.query}{{{matcher}}}"
