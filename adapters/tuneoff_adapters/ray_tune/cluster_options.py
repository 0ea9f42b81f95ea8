"""Options of platform `cluster`: whether a run can be served there, and what is started where. Light: every plan imports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuneoff.base.targets import unknown_option
from tuneoff.errors import ExperimentError
from tuneoff_platforms.remote.options import LOCAL_OPTIONS, host_options, hosts_refusal, is_here, slots_of

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec

CLUSTER = "cluster"  # the platform
ADDRESS = "address"  # option: of a cluster that is there
OPTIONS = LOCAL_OPTIONS | {ADDRESS}


def refuse_cluster(spec: RunSpec) -> str | None:
    """Return why a run on a cluster cannot be served, or None.

    Raises:
        ExperimentError: an option is unknown, missing, or has a wrong value.
    """
    if problem := unknown_option(f"platform {CLUSTER!r}", spec.options, sorted(OPTIONS)):
        raise ExperimentError(problem)
    options, address = host_options(spec.options), spec.options.get(ADDRESS)
    if (address is None) == (not options.hosts):
        raise ExperimentError(
            f"platform {CLUSTER!r} needs option `hosts`, where tuneoff starts and ends Ray, or option `address`, of Ray's head"
        )
    if address is not None and (not isinstance(address, str) or not address.rpartition(":")[2].isdigit()):
        raise ExperimentError(f"option `address` must be HOST:PORT of a Ray head, e.g. 10.0.0.1:6379, but got {address!r}")
    return hosts_refusal(spec, options.hosts)


def placement(spec: RunSpec) -> str:
    """Return one line on what is started where."""
    options = host_options(spec.options)
    if not options.hosts:
        address = spec.options.get(ADDRESS, "no address")  # what is wrong with it `refuse_cluster` tells
        return f"Ray's cluster at {address}: {spec.experiment.workers.count} slots where it puts them; starts no node"
    shares = slots_of(options.hosts, spec.experiment.workers.count)
    parts = [f"{host} {count} slots{' and Ray head' if is_here(host) else ''}" for host, count in shares.items()]
    if not any(map(is_here, options.hosts)):
        parts.insert(0, "this machine Ray's head")
    return f"starts Ray on {', '.join(parts)}; reached by `{options.host_command}`"
