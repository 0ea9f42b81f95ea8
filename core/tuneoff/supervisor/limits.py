"""The limits of a run's slots: decided and made before its processes start, put in force by the trials, removed at the end.

CPU: whole numbers by processors of the slot's own where enough are free, else, and for decimals, by a quota of a control
group; where neither is possible trials run unlimited. Memory: by a control group where one can be made, always by the watchdog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneoff.errors import PluginError
from tuneoff.experiment.spec import RunSpec, Workers
from tuneoff.supervisor.cgroups import Groups, make_groups
from tuneoff.supervisor.controllers import Controller, own_quota
from tuneoff.supervisor.prepare import MEGABYTE, Execution
from tuneoff.supervisor.processors import ReservedProcessors, usable_processors
from tuneoff.trial.context import load_target
from tuneoff.trial.limits import SlotLimits

NO_LIMIT = "none (no limit asked for)"
AFFINITY = "affinity"
TOO_FEW = "too_few_processors"  # flag


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLimits:
    """What is in force for the slots of a run, and what a reader of its results must know of it."""

    slots: tuple[SlotLimits, ...] = ()
    in_force: Mapping[str, Any] = field(default_factory=dict)  # for the record
    flags: tuple[tuple[str, str], ...] = ()
    reserved: ReservedProcessors = field(default_factory=ReservedProcessors)

    def release(self) -> None:
        """Free the processors for other runs; control groups are removed with what else the execution remembered."""
        self.reserved.close()


def limit_workers(execution: Execution, root: Path | None = None) -> WorkerLimits:
    """Decide and make the limits of every slot; what the run's adapter limits by itself is left to it.

    `in_force` has `memory` and `cpus` as texts: "affinity", "cgroup v1", "cgroup v2", "watchdog ...", "none (why)"; of a quota
    `cpu_quota`, in processors; of an affinity `processors`, a list per slot.
    """
    workers = execution.spec.experiment.workers
    core_limits_memory, core_limits_cpu = _left_to_core(execution.spec)
    usable = usable_processors()
    reserved = ReservedProcessors()
    own: tuple[int, ...] = ()
    why_shared = "no limit by core"
    wanted: dict[Controller, float] = {}
    if core_limits_memory and workers.memory_mb is not None:
        wanted["memory"] = workers.memory_mb * MEGABYTE
    if core_limits_cpu:
        own, why_shared = _own_processors(workers, usable, reserved)
        if not own:
            wanted["cpu"] = workers.cpus
    groups = make_groups(execution, wanted, root)
    slots = _slots(workers, own, groups)
    in_force: dict[str, Any] = {"memory": _memory_in_force(groups.get("memory"))}
    if own:
        in_force |= {"cpus": AFFINITY, "processors": [list(slot.processors) for slot in slots]}
    elif groups.get("cpu", Groups(text="")).folders:
        in_force |= {"cpus": groups["cpu"].text, "cpu_quota": workers.cpus}
    elif core_limits_cpu:
        in_force["cpus"] = f"none ({why_shared}; {groups['cpu'].text})"
    flags = _too_few(workers, usable, own_quota(root)) if core_limits_cpu else ()
    return WorkerLimits(slots=slots, in_force=in_force, flags=flags, reserved=reserved)


def _left_to_core(spec: RunSpec) -> tuple[bool, bool]:
    """Tell whether core limits memory, and CPU, for the run's adapter."""
    try:
        capabilities = load_target(spec.adapter_target).capabilities
    except PluginError:  # the coordinator will meet it, and say so
        return True, True
    return not capabilities.memory_limiter, not capabilities.cpu_limiter


def _own_processors(workers: Workers, usable: list[int], reserved: ReservedProcessors) -> tuple[tuple[int, ...], str]:
    """Return the processors of all slots in turn, or none and why not."""
    if workers.cpus != int(workers.cpus):
        return (), f"{workers.cpus:g} is no number of whole processors"
    needed = workers.count * int(workers.cpus)
    if needed > len(usable):
        return (), f"{workers.count} workers of {workers.cpus:g} need {needed} processors, but {len(usable)} may be used"
    try:
        own = reserved.take(needed, usable)
    except OSError as error:
        return (), f"processors cannot be reserved: {error.strerror}"
    return own, "" if own else f"{needed} of {len(usable)} processors are needed, but other runs hold too many"


def _slots(workers: Workers, own: tuple[int, ...], groups: Mapping[Controller, Groups]) -> tuple[SlotLimits, ...]:
    each = int(workers.cpus)
    memory, cpu = (groups[name].folders if name in groups else () for name in ("memory", "cpu"))
    if not (own or memory or cpu):
        return ()
    return tuple(
        SlotLimits(
            processors=own[slot * each : (slot + 1) * each],
            memory_cgroup=memory[slot] if memory else None,
            cpu_cgroup=cpu[slot] if cpu else None,
        )
        for slot in range(workers.count)
    )


def _memory_in_force(groups: Groups | None) -> str:
    if groups is None:
        return NO_LIMIT
    return f"{groups.text} and watchdog" if groups.folders else f"watchdog ({groups.text})"


def _too_few(workers: Workers, usable: list[int], quota: float | None) -> tuple[tuple[str, str], ...]:
    available = min(float(len(usable)), quota or float(len(usable)))
    needed = workers.count * workers.cpus
    if not usable or needed <= available:
        return ()
    text = f"{workers.count} workers of {workers.cpus:g} CPU need {needed:g} processors, but this machine gives {available:g}"
    return ((TOO_FEW, f"{text}: trials wait for each other"),)
