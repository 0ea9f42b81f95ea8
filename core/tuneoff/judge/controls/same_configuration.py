"""Same-configuration control: with `sampler: fixed` every metric of every configuration and epoch is equal bit for bit.

Whatever differs then between the adapters is orchestration alone, and interference says how much of it there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum

from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.names import strategy_text, variant_text
from tuneoff.judge.comparison.values import ABSENT, Values, compare_values, values_of
from tuneoff.judge.groups import Group
from tuneoff.judge.results import POOL
from tuneoff.record.run_record import RunRecord

SAMPLER = "fixed"
Setting = tuple[Group, ...]  # of one scope, that have runs of their own, in the plan's order; at least one


class Equality(StrEnum):
    """The answer of the control."""

    EQUAL = "EQUAL"
    DIFFERENT = "DIFFERENT"
    INCOMPLETE = "INCOMPLETE"  # what was compared is equal, but some planned values are not there
    NOTHING = "NOTHING TO COMPARE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One value that is not the same in all frameworks: the values by the adapters that have them.

    `excluded_only`: the adapters that no flag excludes share it, so it is shown and is not a part of the answer.
    """

    seed: int
    configuration: str  # digest
    epoch: int
    metric: str
    values: Mapping[str, tuple[str, ...]]  # value -> labels
    excluded_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedAdapter:
    """What of one adapter was compared with the reference, and what the plan had and could not be compared."""

    label: str
    excluded: str
    is_reference: bool
    configurations: int  # over all seeds
    epochs: int
    values: int
    unequal: int
    lacking: int  # planned configurations of which no epoch could be compared
    not_done: Mapping[int, str]  # seed -> status of a run that is not done
    same_model: bool | None = None  # the tested checkpoints are the reference's, byte by byte; None: nothing to compare


@dataclass(frozen=True, slots=True, kw_only=True)
class SameConfiguration:
    """The control of one setting. Emulated adapters are compared and shown, and are not in the answer."""

    setting: str
    reference: str | None
    adapters: tuple[ComparedAdapter, ...]
    differences: tuple[Difference, ...]
    answer: Equality

    @property
    def contradicting(self) -> tuple[Difference, ...]:
        """The differences between adapters that no flag excludes."""
        return tuple(difference for difference in self.differences if not difference.excluded_only)


def same_configurations(all_settings: Sequence[Setting]) -> list[SameConfiguration]:
    """Return the control of each setting with `sampler: fixed` and at least two entries."""
    controls = []
    for groups in all_settings:
        if groups[0].scope.sampler != SAMPLER or len(groups) < 2:
            continue
        compared = [group for group in groups if not group.excluded]
        candidates = [group for group in compared if group.done]
        reference = next((group for group in candidates if group.spec.adapter == POOL), candidates[0] if candidates else None)
        values = {group.label: values_of(group.done, group.spec.experiment.budget.epochs_per_trial) for group in groups}
        adapters = tuple(_compared(group, reference, values) for group in groups)
        held = {group.label for group in compared}
        differences = tuple(_differences(values, held))
        trained = Counter(epoch for label in held for epoch in {key[:3] for key in values[label]})
        answer = Equality.EQUAL
        if not all(difference.excluded_only for difference in differences):
            answer = Equality.DIFFERENT
        elif max(trained.values(), default=0) < 2:
            answer = Equality.NOTHING
        elif any(adapter.lacking or adapter.not_done for adapter in adapters if not adapter.excluded):
            answer = Equality.INCOMPLETE
        controls.append(
            SameConfiguration(
                setting=setting_text(groups[0]),
                reference=reference.label if reference is not None else None,
                adapters=adapters,
                differences=differences,
                answer=answer,
            )
        )
    return controls


def _compared(group: Group, reference: Group | None, values: Mapping[str, Values]) -> ComparedAdapter:
    common = compare_values(values[group.label], values[reference.label] if reference is not None else {})
    planned = {
        (seed, configuration_digest(configuration))
        for seed in {**group.done, **group.not_done}
        for configuration in group.spec.experiment.configurations
    }
    expected = reference.done if reference is not None and reference is not group else {}
    pairs = [(_checkpoint(run), _checkpoint(expected.get(seed))) for seed, run in group.done.items()]
    equal = [ours == theirs for ours, theirs in pairs if ours is not None and theirs is not None]
    return ComparedAdapter(
        label=group.label,
        excluded=group.excluded,
        is_reference=group is reference,
        configurations=len(common.configurations),
        epochs=common.epochs,
        values=common.values,
        unequal=len(common.unequal),
        lacking=len(planned - common.configurations),
        not_done=group.not_done,
        same_model=all(equal) if equal else None,  # no part of the answer: tied models may be chosen between
    )


def _checkpoint(run: RunRecord | None) -> str | None:
    return run.test.checkpoint_sha256 if run is not None and run.test is not None else None


def _differences(values: Mapping[str, Values], held: Set[str]) -> Iterator[Difference]:
    """Yield every value that two adapters which trained that epoch do not share, in the order of seeds, trials, epochs.

    `held`: labels of the adapters that no flag excludes.
    """
    trained = {label: {key[:3] for key in texts} for label, texts in values.items()}
    for key in dict.fromkeys(key for texts in values.values() for key in texts):
        labels_of: dict[str, list[str]] = {}
        for label, texts in values.items():
            if key[:3] in trained[label]:
                labels_of.setdefault(texts.get(key, ABSENT), []).append(label)
        if len(labels_of) > 1:
            seed, digest, epoch, metric = key
            shared = {value: tuple(labels) for value, labels in labels_of.items()}
            excluded_only = sum(not held.isdisjoint(labels) for labels in labels_of.values()) < 2
            yield Difference(
                seed=seed, configuration=digest, epoch=epoch, metric=metric, values=shared, excluded_only=excluded_only
            )


def setting_text(group: Group) -> str:
    """Return the setting of a group, as far as it tells it from others: `random + asha workload=null`."""
    experiment = group.spec.experiment
    return f"{strategy_text(experiment)} {variant_text(experiment.variant)}".rstrip()
