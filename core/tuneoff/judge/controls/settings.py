"""The settings of a matrix, as the controls compare them: groups that share sampler, pruner, variant and task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tuneoff.experiment.names import strategy_text, variant_text
from tuneoff.judge.runs import Group, by_scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Groups of one scope that have runs of their own, in the plan's order; at least one."""

    groups: tuple[Group, ...]

    @property
    def sampler(self) -> str:
        return self.groups[0].scope.sampler

    @property
    def pruner(self) -> str:
        return self.groups[0].scope.pruner

    @property
    def variant(self) -> str:
        return variant_text(self.groups[0].spec.experiment.variant)

    @property
    def compared(self) -> tuple[Group, ...]:
        """The groups that are in comparisons."""
        return tuple(group for group in self.groups if not group.emulated)

    @property
    def name(self) -> str:
        """The setting as text, as far as it tells it from others: `random + asha workload=null`."""
        return f"{strategy_text(self.groups[0].spec.experiment)} {self.variant}".rstrip()


def settings(groups: Iterable[Group]) -> list[Setting]:
    """Return the settings of these groups, those without runs of their own left out."""
    return [Setting(groups=tuple(own)) for own in by_scope(group for group in groups if group.own).values()]
