"""Bit for bit: the same configuration with the same seed gives the same numbers, in any version of a framework."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from tuneoff.judge.controls.same_configuration import same_configuration
from tuneoff.judge.diff.comparison import Exact, Matched
from tuneoff.judge.runs import Group

OLD, NEW = "A", "B"


def exact(found: Sequence[Matched], *, same_machine: bool) -> list[Exact]:
    """Return the comparison of each matched entry that has runs to compare."""
    return [one for group in found if (one := _of_group(group, same_machine)) is not None]


def _of_group(group: Matched, same_machine: bool) -> Exact | None:
    shared = set(group.old.done) & set(group.new.done)
    if not shared:
        return None
    sides = [_labelled(one, label, shared) for one, label in ((group.old, OLD), (group.new, NEW))]
    # the sampler is not asked: whatever proposed a configuration, its numbers depend on it, the seed and the machine alone
    control = same_configuration("", sides)
    compared = next(one for one in control.adapters if not one.is_reference)
    first = next(iter(control.differences), None)
    example = ""
    if first is not None:
        values = " and ".join(f"{' '.join(labels)} {value}" for value, labels in first.values.items())
        example = f"seed {first.seed}, configuration {first.configuration}, epoch {first.epoch}, {first.metric}: {values}"
    return Exact(
        name=group.name,
        configurations=compared.configurations,
        tried=(_tried(sides[0]), _tried(sides[1])),
        values=compared.values,
        unequal=compared.unequal,
        example=example,
        is_due=same_machine,
    )


def _labelled(group: Group, label: str, seeds: Set[int]) -> Group:
    """Return the runs of these seeds as an entry of that name, which is compared whatever its platform is."""
    return replace(group, label=label, emulated=False, runs=tuple(run for run in group.own if run.seed in seeds))


def _tried(group: Group) -> str:
    return str(sum(len({trial.digest for trial in run.trials}) for run in group.done.values()))
