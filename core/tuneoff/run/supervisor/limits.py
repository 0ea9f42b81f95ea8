"""The limits of a run's slots: decided and made before its processes start, put in force by the trials, removed at the end.

CPU: what `workers.cpu_limit` asks for, in all runs of a matrix or in none: a limit changes what a framework's figures are.
Memory: by a control group where one can be made, always by the watchdog.
"""

from __future__ import annotations

import errno
import os
import socket
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneoff.base.process_limits import SlotLimits
from tuneoff.base.targets import load_target
from tuneoff.errors import PluginError, UnsupportedError
from tuneoff.experiment.spec import RunSpec, Workers
from tuneoff.record.environment import memory
from tuneoff.run.supervisor.cgroups import V1, V2, Controller, Groups, enter, make_groups, own_memory, own_quota
from tuneoff.run.supervisor.execution import MEGABYTE, Execution

# A name in the kernel's own ("abstract") namespace of sockets: one holder, no file, and free as soon as the holder has died.
_NAME = "\0tuneoff-processor-{}"
NO_LIMIT = "none (no limit asked for)"
NOT_ENFORCED = "none (declared, not enforced)"
AFFINITY = "affinity"
TOO_FEW, NOT_SHARED, OVER_SHARE = "too_few_processors", "share_not_limited", "share_exceeded"  # flags
SHARES: Mapping[str, Controller] = {"cpus": "cpu", "memory_mb": "memory"}  # of a copy


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLimits:
    """What is in force for the slots of a run, and what a reader of its results must know of it."""

    slots: tuple[SlotLimits, ...] = ()
    in_force: Mapping[str, Any] = field(default_factory=dict)  # for the record
    flags: tuple[tuple[str, str], ...] = ()
    leave: Callable[[], int] | None = None  # see `enter`: this process leaves the run's own groups, so that they can be removed


def reserve_processors(specs: Iterable[RunSpec], reserved: ReservedProcessors, root: Path | None = None) -> tuple[int, ...]:
    """Return the processors that the runs' slots are put on, one run after the other; `reserved` holds them from now on.

    Raises:
        UnsupportedError: a limit that one of the runs asks for cannot be put in force here.
    """
    by_core = {(spec.experiment.workers, spec.experiment.copies): spec for spec in specs if _left_to_core(spec)[1]}
    for (workers, copies), spec in by_core.items():
        if workers.cpu_limit != "quota":
            continue
        if workers.cpus > (share := _processors(root) / copies):
            raise UnsupportedError(
                f"`workers.cpu_limit: quota` gives a worker {workers.cpus:g} vCPU, but the share of each of {copies} jobs at the "
                f"same time is {share:g}; use fewer `copies` or `workers.cpus`, or cpu_limit: none"
            )
        with tempfile.TemporaryDirectory() as folder:  # its groups are made once, and removed
            execution = Execution(spec=spec, execution_id=f"try-{os.urandom(3).hex()}", folder=Path(folder))
            groups = make_groups(execution, _wanted(spec), root)
            for group in dict.fromkeys(name for controller_groups in groups.values() for name in controller_groups.folders):
                os.rmdir(group)
        if not groups["cpu"].folders:
            raise UnsupportedError(
                "`workers.cpu_limit: quota` needs control groups that limit CPU time, but there are none here "
                f"({groups['cpu'].text}); use cpu_limit: none"
            )
    needed = max(
        (copies * workers.count * int(workers.cpus) for workers, copies in by_core if workers.cpu_limit == AFFINITY), default=0
    )
    if not needed:
        return ()
    usable = usable_processors()
    try:
        processors = reserved.take(needed, usable)
    except OSError as error:
        raise UnsupportedError(f"`workers.cpu_limit: affinity` reserves processors, but: {error.strerror}") from error
    if not processors:
        rule = f"`workers.cpu_limit: affinity` needs a processor for each of {needed} vCPU"
        if needed > len(usable):
            raise UnsupportedError(f"{rule}, but {len(usable)} may be used; use fewer workers, or cpu_limit: none")
        raise UnsupportedError(f"{rule}, but another run of tuneoff holds too many of the {len(usable)}; wait for its end")
    return processors


def limit_workers(execution: Execution, processors: Sequence[int] = (), root: Path | None = None) -> WorkerLimits:
    """Make the limits of every slot; what the run's adapter limits by itself is left to it.

    One of several copies of a job enters, with all that it starts from now on, a group of its share of the machine.

    `processors`: what `reserve_processors` gave. `in_force` has `memory` and `cpus` as texts: "affinity", "cgroup v1",
    "cgroup v2", "watchdog ...", "none (why)"; of a quota `cpu_quota`, in processors; of an affinity `processors`, a list for
    each slot; where slots have devices `devices`, one for each slot; of a copy `share`, by what limits it.

    Raises:
        UnsupportedError: the quota that the run asks for cannot be given.
    """
    workers, copies = execution.spec.experiment.workers, execution.spec.experiment.copies
    _, core_limits_cpu = _left_to_core(execution.spec)
    wanted = _wanted(execution.spec)
    flags = _too_few(workers, usable_processors(), own_quota(root)) if core_limits_cpu and is_all_here(execution.spec) else ()
    share, leave = _enter_share(execution, root) if copies > 1 else ({}, None)
    if lacking := {name: limit["text"] for name, limit in share.items() if limit["text"] not in (V1, V2)}:
        texts = "; ".join(f"{name}: {text}" for name, text in lacking.items())
        flags = (*flags, (NOT_SHARED, f"no control group holds this copy to its share ({texts}): each takes what it can"))
    groups = make_groups(execution, wanted, root)
    if "cpu" in wanted and not groups["cpu"].folders:
        raise UnsupportedError(f"`workers.cpu_limit: quota` cannot be put in force any more: {groups['cpu'].text}; add --resume")
    slot_processors = tuple(processors) if core_limits_cpu and workers.cpu_limit == AFFINITY else ()
    slots = _slots(workers, slot_processors, groups)
    in_force: dict[str, Any] = {"memory": NO_LIMIT}
    if (memory := groups.get("memory")) is not None:
        in_force["memory"] = f"{memory.text} and watchdog" if memory.folders else f"watchdog ({memory.text})"
    if slot_processors:
        in_force |= {"cpus": AFFINITY, "processors": [list(slot.processors) for slot in slots]}
    elif "cpu" in wanted:
        in_force |= {"cpus": groups["cpu"].text, "cpu_quota": workers.cpus}
    elif core_limits_cpu:
        in_force["cpus"] = NOT_ENFORCED
    if workers.devices:
        in_force["devices"] = [slot.device for slot in slots]
    if share:
        in_force["share"] = share
    return WorkerLimits(slots=slots, in_force=in_force, flags=flags, leave=leave)


def _processors(root: Path | None) -> float:
    """Return how many processors' time the command may use."""
    usable = float(len(usable_processors()))
    return min(usable, own_quota(root) or usable)


def _enter_share(execution: Execution, root: Path | None) -> tuple[dict[str, dict[str, Any]], Callable[[], int]]:
    """Enter groups with one of equal shares of the processors and of the memory that the command may use.

    Returns what each limits, in processors and in MB, and by what; and what leaves the groups.
    """
    copies = execution.spec.experiment.copies
    limits: dict[Controller, float] = {"cpu": _processors(root) / copies}
    if sizes := [size for size in (memory()[1], own_memory(root)) if size is not None]:
        limits["memory"] = min(sizes) // copies
    groups = make_groups(execution, limits, root, of_run=True)
    units = {"cpu": 1, "memory": MEGABYTE}
    share = {
        name: {"limit": limits[controller] / units[controller], "text": groups[controller].text}
        for name, controller in SHARES.items()
        if controller in limits
    }
    return share, enter(execution, groups, root)


def _left_to_core(spec: RunSpec) -> tuple[bool, bool]:
    """Tell whether core limits memory, and CPU, for the run's adapter."""
    try:
        capabilities = load_target(spec.adapter_target).capabilities_on(spec.platform)
    except PluginError:  # the coordinator will meet it, and say so
        return True, True
    return not capabilities.memory_limiter, not capabilities.cpu_limiter


def is_all_here(spec: RunSpec) -> bool:
    """Tell whether no trial of a run is on another host."""
    try:
        return load_target(spec.adapter_target).placement(spec) is None
    except PluginError:
        return True


def _wanted(spec: RunSpec) -> dict[Controller, float]:
    """Return what control groups are to limit: bytes of memory, processors' worth of CPU time."""
    workers = spec.experiment.workers
    core_limits_memory, core_limits_cpu = _left_to_core(spec)
    wanted: dict[Controller, float] = {}
    if core_limits_memory and workers.memory_mb is not None:
        wanted["memory"] = workers.memory_mb * MEGABYTE
    if core_limits_cpu and workers.cpu_limit == "quota":
        wanted["cpu"] = workers.cpus
    return wanted


def _slots(workers: Workers, processors: tuple[int, ...], groups: Mapping[Controller, Groups]) -> tuple[SlotLimits, ...]:
    each = int(workers.cpus)
    memory, cpu = (groups[name].folders if name in groups else () for name in ("memory", "cpu"))
    if not (processors or memory or cpu or workers.devices):
        return ()
    return tuple(
        SlotLimits(
            processors=processors[slot * each : (slot + 1) * each],
            memory_cgroup=memory[slot] if memory else None,
            cpu_cgroup=cpu[slot] if cpu else None,
            device=workers.device_of(slot),
        )
        for slot in range(workers.count)
    )


def _too_few(workers: Workers, usable: list[int], quota: float | None) -> tuple[tuple[str, str], ...]:
    available = min(float(len(usable)), quota or float(len(usable)))
    needed = workers.count * workers.cpus
    if needed <= available:
        return ()
    text = f"{workers.count} workers of {workers.cpus:g} CPU need {needed:g} processors, but this machine gives {available:g}"
    return ((TOO_FEW, f"{text}: trials wait for each other"),)


def usable_processors() -> list[int]:
    """Return the processors that this process may run on, in order."""
    return sorted(os.sched_getaffinity(0))


class ReservedProcessors:
    """Holds processors against other runs on this machine until it is closed, or this process ends."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def take(self, count: int, among: Collection[int]) -> tuple[int, ...]:
        """Reserve `count` processors and return them in order, or reserve none and return nothing: too few are free."""
        taken: list[int] = []
        for processor in sorted(among):
            if len(taken) == count:
                break
            holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                holder.bind(_NAME.format(processor))
            except OSError as error:
                holder.close()
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                self._held.append(holder)
                taken.append(processor)
        if len(taken) < count:
            self.close()
            return ()
        return tuple(taken)

    def close(self) -> None:
        """Free what is held. Idempotent."""
        for holder in self._held:
            holder.close()
        self._held.clear()

    def __enter__(self) -> ReservedProcessors:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
