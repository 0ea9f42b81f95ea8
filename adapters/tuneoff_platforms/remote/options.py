"""Options about hosts: what a person writes under `options:` of an entry whose platform is beyond one machine."""

from __future__ import annotations

import contextlib
import ipaddress
import shlex
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tuneoff.base.identity import is_finite
from tuneoff.errors import ExperimentError, UserError

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec

LOST = "host_lost"  # flag
BEAT_SECONDS = 2.0  # between two signs of life
LEAST_LOST_SECONDS = 5 * BEAT_SECONDS  # one or two may come late
LOCAL_OPTIONS = frozenset({"hosts", "host_command", "host_python", "lost_seconds"})  # where a run is, not what it is


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """How hosts are reached, and how long one may be silent."""

    hosts: tuple[str, ...] = ()
    host_command: str = "ssh {host}"  # gets a shell command line as its last argument
    host_python: str = sys.executable
    lost_seconds: float = 60.0  # a host that was silent for so long is lost, and ends by itself what runs there


def host_options(options: Mapping[str, Any]) -> HostOptions:
    """Return the checked options; those of others are left alone.

    Raises:
        ExperimentError: an option has a wrong value.
    """
    chosen = HostOptions(**{name: value for name, value in options.items() if name in LOCAL_OPTIONS})
    hosts, command = chosen.hosts or (), chosen.host_command
    is_list = isinstance(options.get("hosts", []), list) and all(is_word(host) and "/" not in host for host in hosts)
    if not is_list or len(set(hosts)) < len(hosts):
        raise ExperimentError(
            "option `hosts` must be a list of different names, e.g. [node1, root@node2] (a port belongs into `host_command`), "
            f"but got {hosts!r}"
        )
    if (other := next(filter(_is_alias, hosts), None)) is not None:
        raise ExperimentError(f"option `hosts` must name this machine localhost, but got {other}; write localhost in its place")
    if not isinstance(command, str) or "{host}" not in command:
        raise ExperimentError(f"option `host_command` must have {{host}} in it, as `ssh {{host}}` has, but got {command!r}")
    try:
        shlex.split(command)
    except ValueError as error:
        rule = "option `host_command` must be words as a shell takes them"
        raise ExperimentError(f"{rule}, but got {command!r}: {error}") from error
    if not is_word(chosen.host_python):
        raise ExperimentError(f"option `host_python` must be the path of a Python on the hosts, but got {chosen.host_python!r}")
    return replace(chosen, hosts=tuple(hosts), lost_seconds=lost_seconds_of(options))


def lost_seconds_of(values: Mapping[str, Any]) -> float:
    """Return how long a host may be silent.

    Raises:
        ExperimentError: the option is no such number.
    """
    seconds = values.get("lost_seconds", HostOptions().lost_seconds)
    if not is_finite(seconds) or seconds < LEAST_LOST_SECONDS:
        raise ExperimentError(f"option `lost_seconds` must be a number >= {LEAST_LOST_SECONDS:g}, but got {seconds!r}")
    return float(seconds)


def budget_refusal(spec: RunSpec) -> str | None:
    """Return why hosts cannot share the run's budget, or None: each counts time from its own start."""
    seconds = spec.experiment.budget.wall_clock_seconds
    if seconds is None:
        return None
    return f"hosts share no budget of seconds, but got budget.wall_clock_seconds={seconds:g}; use budget.trials"


def hosts_refusal(spec: RunSpec, hosts: tuple[str, ...]) -> str | None:
    """Return why these hosts cannot serve a run, or None."""
    workers = spec.experiment.workers
    if len(hosts) > workers.count:
        return f"each of the {len(hosts)} hosts must get a slot, but workers.count is {workers.count}; name fewer hosts"
    if workers.cpu_limit != "none":
        return "processors of other hosts are not limited by tuneoff yet; remove workers.cpu_limit"
    return budget_refusal(spec)


def slots_of(hosts: tuple[str, ...], count: int) -> dict[str, int]:
    """Return how many of `count` slots each host has: as equal as possible, the first ones more."""
    return {host: count // len(hosts) + (number < count % len(hosts)) for number, host in enumerate(hosts)}


def is_here(host: str) -> bool:
    """Tell whether a host is this machine, by its name without the domain."""
    return host.partition(".")[0] in ("localhost", socket.gethostname().partition(".")[0])


def _is_alias(host: str) -> bool:
    """Tell whether a host is this machine by an address or with a user: to clean it as another one would end this command."""
    name = host.rpartition("@")[2]
    with contextlib.suppress(ValueError, OSError):
        family = socket.AF_INET6 if ipaddress.ip_address(name).version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((name, 0))  # only an own address can be
            return True
    return name != host and is_here(name)


def own_address(hosts: tuple[str, ...]) -> str:
    """Return this machine's address as the other hosts reach it: that of the way to the first of them. Sends nothing."""
    other = next((host for host in hosts if not is_here(host)), "localhost")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((other.rpartition("@")[2], 9))
            return str(probe.getsockname()[0])
    except OSError as error:
        raise UserError(f"host {other} must have an address, but {error.strerror}; name it as this machine finds it") from error


def is_word(value: Any) -> bool:
    """Tell whether a value is one word that no command takes for a flag."""
    return isinstance(value, str) and value != "" and not value.startswith("-") and not any(map(str.isspace, value))
