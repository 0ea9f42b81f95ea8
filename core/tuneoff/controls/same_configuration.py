"""Same-configuration control: with `sampler: fixed` every metric of every configuration and epoch is equal bit for bit.

Whatever differs then between the adapters is orchestration alone, and interference says how much of it there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum

from tuneoff.controls.cells import POOL, Cell, Setting
from tuneoff.experiment.identity import configuration_digest
from tuneoff.records.model import EpochRecord, RunRecord

SAMPLER = "fixed"
ABSENT = "absent"
Place = tuple[int, str, int, str]  # seed, digest of the configuration, epoch, metric


class Equality(StrEnum):
    """The answer of the control."""

    EQUAL = "EQUAL"
    DIFFERENT = "DIFFERENT"
    INCOMPLETE = "INCOMPLETE"  # what was compared is equal, but some planned values are not there
    NOTHING = "NOTHING TO COMPARE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One value that is not the same in all adapters: the values by the adapters that have them.

    `emulated_only`: the adapters that are not emulated share it, so it is shown and is no part of the answer.
    """

    seed: int
    configuration: str  # digest
    epoch: int
    metric: str
    values: Mapping[str, tuple[str, ...]]  # value -> labels
    emulated_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What of one adapter was compared with the reference, and what the plan had and could not be compared."""

    label: str
    emulated: bool
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
    adapters: tuple[Compared, ...]
    differences: tuple[Difference, ...]
    answer: Equality

    @property
    def contradicting(self) -> tuple[Difference, ...]:
        """The differences between adapters that are not emulated."""
        return tuple(one for one in self.differences if not one.emulated_only)


def same_configurations(all_settings: Sequence[Setting]) -> list[SameConfiguration]:
    """Return the control of each setting with `sampler: fixed` and at least two entries."""
    return [_control(setting) for setting in all_settings if setting.sampler == SAMPLER and len(setting.cells) > 1]


def _control(setting: Setting) -> SameConfiguration:
    candidates = [cell for cell in setting.compared if cell.runs]
    reference = next((cell for cell in candidates if cell.spec.adapter == POOL), candidates[0] if candidates else None)
    values = {cell.label: dict(_values(cell)) for cell in setting.cells}
    adapters = tuple(_compared(cell, reference, values) for cell in setting.cells)
    held = {cell.label for cell in setting.compared}
    differences = tuple(_differences(values, held))
    return SameConfiguration(
        setting=setting.name,
        reference=reference.label if reference is not None else None,
        adapters=adapters,
        differences=differences,
        answer=_answer(adapters, differences, any_shared=_share_an_epoch([values[label] for label in held])),
    )


def _answer(adapters: Sequence[Compared], differences: Sequence[Difference], *, any_shared: bool) -> Equality:
    if any(not one.emulated_only for one in differences):
        return Equality.DIFFERENT
    if not any_shared:
        return Equality.NOTHING
    held = [one for one in adapters if not one.emulated]
    return Equality.INCOMPLETE if any(one.lacking or one.not_done for one in held) else Equality.EQUAL


def _share_an_epoch(values: Sequence[Mapping[Place, str]]) -> bool:
    counts = Counter(epoch for own in values for epoch in {place[:3] for place in own})
    return any(count > 1 for count in counts.values())


def _compared(cell: Cell, reference: Cell | None, values: Mapping[str, Mapping[Place, str]]) -> Compared:
    own = values[cell.label]
    others = values[reference.label] if reference is not None else {}
    epochs = {place[:3] for place in own} & {place[:3] for place in others}
    places = [place for place in {**own, **others} if place[:3] in epochs]
    configurations = {epoch[:2] for epoch in epochs}
    planned = {
        (seed, configuration_digest(one))
        for seed in {**cell.runs, **cell.not_done}
        for one in cell.spec.experiment.configurations
    }
    return Compared(
        label=cell.label,
        emulated=cell.emulated,
        is_reference=cell is reference,
        configurations=len(configurations),
        epochs=len(epochs),
        values=len(places),
        unequal=sum(own.get(place, ABSENT) != others.get(place, ABSENT) for place in places),
        lacking=len(planned - configurations),
        not_done=dict(cell.not_done),
        same_model=_same_model(cell, reference) if reference not in (None, cell) else None,
    )


def _same_model(cell: Cell, reference: Cell | None) -> bool | None:
    """Compare the checkpoints that were tested: no part of the answer, since tied models may be chosen between."""
    pairs = [(_checkpoint(run), _checkpoint(reference.runs.get(seed))) for seed, run in cell.runs.items()] if reference else []
    known = [ours == theirs for ours, theirs in pairs if ours is not None and theirs is not None]
    return all(known) if known else None


def _checkpoint(run: RunRecord | None) -> str | None:
    return run.test.checkpoint_sha256 if run is not None and run.test is not None else None


def _differences(values: Mapping[str, Mapping[Place, str]], held: Set[str]) -> Iterator[Difference]:
    """Yield every value that two adapters which trained that epoch do not share, in the order of seeds, trials, epochs.

    `held`: labels of the adapters that are not emulated.
    """
    trained = {label: {place[:3] for place in own} for label, own in values.items()}
    for place in dict.fromkeys(place for own in values.values() for place in own):
        found: dict[str, list[str]] = {}
        for label, own in values.items():
            if place[:3] in trained[label]:
                found.setdefault(own.get(place, ABSENT), []).append(label)
        if len(found) > 1:
            seed, digest, epoch, metric = place
            shared = {value: tuple(labels) for value, labels in found.items()}
            emulated_only = sum(not held.isdisjoint(labels) for labels in found.values()) < 2
            yield Difference(
                seed=seed, configuration=digest, epoch=epoch, metric=metric, values=shared, emulated_only=emulated_only
            )


def _values(cell: Cell) -> Iterator[tuple[Place, str]]:
    for seed in sorted(cell.runs):
        yield from _of_run(cell.runs[seed], seed)


def _of_run(run: RunRecord, seed: int) -> Iterator[tuple[Place, str]]:
    """Yield each metric of the last attempt of each trial, as text that only equal bits share."""
    for trial in run.trials:
        for epoch in trial.attempts[-1].epochs if trial.attempts else ():
            for metric in epoch.metrics:
                yield (seed, trial.digest, epoch.epoch, metric), _text(epoch, metric)


def _text(epoch: EpochRecord, metric: str) -> str:
    """Return the shortest text that reads back as the same number; -0.0 and 0.0 stay different."""
    value = epoch.metrics[metric]
    return repr(value) if value is not None else (epoch.non_finite or {}).get(metric, "not finite")
