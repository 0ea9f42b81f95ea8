"""What energy is attributed by: everybody's CPU time and reserved time in one run."""

from __future__ import annotations

from dataclasses import dataclass

from tuneoff.measure.attribution.attempts import CpuUse, cpu_use
from tuneoff.measure.attribution.slots import CpuPiece, SlotUse, clipped, core_seconds, cpu_seconds, slot_uses
from tuneoff.measure.attribution.tree import PARTS, TreeUse, tree_use
from tuneoff.measure.spans import AttemptKey, boundaries, started_attempts
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Samples

NO_USE = "no use of processes was sampled"
NO_COORDINATOR = "no sample saw the coordinator"
NO_TEST = "the test's CPU time is not known"
NOT_TESTED = "no model was tested"
UNREAD = "a process did not say what it had used before its first trial"


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """Everybody's use from 0 to `end_ns`. `parts` holds CPU time of `overhead` and of `attribution_tree.PARTS`, where known."""

    end_ns: int
    cores: float  # of a slot
    host_cores: int
    slots: list[SlotUse]
    cpu: CpuUse
    tree: TreeUse
    parts: dict[str, list[CpuPiece]]
    node: list[CpuPiece] | None
    foreign: frozenset[AttemptKey]  # attempts on other hosts than the sampled one
    reasons: dict[str, str]  # of parts that are not known
    names: dict[str, str]  # of the processes that train: to which part their time outside of attempts belongs

    @property
    def reserved_cores(self) -> float:
        """Cores that the slots reserve together."""
        return len(self.slots) * self.cores

    def trial_cpu_seconds(self) -> float | None:
        """Return the CPU seconds of all attempts, None where those of one are unknown."""
        if self.cpu.unknown:
            return None
        return sum(cpu_seconds(pieces) for pieces in self.cpu.attempts.values())

    def job_cpu_seconds(self) -> float | None:
        """Return the CPU seconds of the job, None where a part is unknown."""
        trials = self.trial_cpu_seconds()
        names = ("overhead", "coordinator", "services", "test")
        if trials is None or any(name in self.reasons for name in names[:3]):
            return None
        return trials + sum(cpu_seconds(self.parts.get(name, ())) for name in names)

    def trial_core_seconds(self) -> float:
        """Return the reserved core seconds of all attempts while they were busy."""
        return self.cores * sum(core_seconds(shares) for slot in self.slots for shares in slot.busy.values())

    def core_seconds(self) -> float:
        """Return the reserved core seconds of the slots, busy or not."""
        return self.reserved_cores * self.end_ns / 1e9


def uses_of(run: RunRecord, samples: Samples | None, *, is_refined: bool = False, is_extrapolated: bool = False) -> Uses:
    """Return everybody's use in a run; without samples, that of the trials alone."""
    end_ns = last_ns(run)
    tree = tree_use(run, samples) if samples is not None else TreeUse()
    cpu = cpu_use(run, tree.sampled, is_refined=is_refined, is_extrapolated=is_extrapolated)
    window = (0, end_ns)
    reasons: dict[str, str] = {}
    parts: dict[str, list[CpuPiece]] = {}
    names = {name: "coordinator" if name in run.coordinators else "overhead" for name in cpu.around}
    if tree.sampled.times:
        parts = {name: clipped(tree.parts[name], window) for name in PARTS}
        parts["overhead"] = []
        for name, pieces in cpu.around.items():
            parts[names[name]].extend(clipped(pieces, window))
        if not cpu.is_around_known:
            reasons["overhead"] = UNREAD
        if not tree.saw_coordinator and "coordinator" not in names.values():
            reasons["coordinator"] = NO_COORDINATOR
        if not parts["test"]:
            reasons["test"] = NO_TEST if run.test is not None else NOT_TESTED
    else:
        reasons = dict.fromkeys(("overhead", *PARTS), NO_USE)
    for name in reasons:
        parts.pop(name, None)
    host = samples.header.host if samples is not None else ""
    return Uses(
        end_ns=end_ns,
        cores=run.run_spec().experiment.workers.cpus,
        host_cores=samples.header.cpus if samples is not None else 0,
        slots=slot_uses(run, end_ns),
        cpu=cpu,
        tree=tree,
        parts=parts,
        node=clipped(tree.node, window) if tree.sampled.times else None,
        foreign=foreign_attempts(run, host),
        reasons=reasons,
        names=names,
    )


def last_ns(run: RunRecord) -> int:
    """Return the end of the job; of a run whose un-deploy never ended, the last moment that anybody noted."""
    end = boundaries(run).undeployed_ns
    if end is not None:
        return end
    moments = [attempt.ended_ns for trial in run.trials for attempt in trial.attempts]
    moments += [moment for step in run.steps for moment in (step.started_ns, step.ended_ns)]
    return max((moment for moment in moments if moment is not None), default=0)


def foreign_attempts(run: RunRecord, host: str) -> frozenset[AttemptKey]:
    """Return the attempts that ran elsewhere than on the sampled host: on another one, or in a pod."""
    return frozenset(
        key for key, attempt in started_attempts(run) if attempt.process and attempt.process.rsplit(":", 2)[0] != host
    )
