"""The exact columns of one run: what must be equal bit for bit where nothing that the bits depend on has changed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.strategies import LISTED
from tuneoff.judge.comparison.values import ENDED_EARLY, compare_values, values_of
from tuneoff.record.run_record import EpochRecord, RunRecord, TrialRecord
from tuneoff.trust.bundle.verdict import ReproducedColumn, ReproductionAnswer, exact, inconclusive

INDEPENDENT = frozenset({*LISTED, "random", "sobol"})  # do not follow the values
NOT_ADAPTIVE = frozenset({"none", "scripted"})  # pruners that look at no other trial


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPair:
    """A run of the bundle and the same run here, and what is known to differ around them, in words.

    `numerics`: what equal bits depend on. `same_machine`: processor, memory and accelerators are the same.
    """

    where: str
    spec: RunSpec
    sampler: str  # what it is: `default` is another one
    bundle: RunRecord
    here: RunRecord
    numerics: tuple[str, ...] = ()
    same_machine: bool = True

    @property
    def bits_excuse(self) -> str | None:
        """Why equal configurations may give other bits; None where nothing explains it."""
        trials = (*self.bundle.trials, *self.here.trials)
        devices = sorted({attempt.device for trial in trials for attempt in trial.attempts if attempt.device} - {"cpu"})
        on_device = f"trained on {devices[0]}, whose sums have no fixed order" if devices else None
        return self.after_seed("; ".join(self.numerics) or on_device)

    def after_seed(self, excuse: str | None) -> str | None:
        """Return the excuse after another seed here, which is the likelier cause; a seed alone excuses nothing."""
        if excuse is None or self.bundle.specification["seed"] == self.here.specification["seed"]:
            return excuse
        return f"the seed is another one here; besides, {excuse}"

    @property
    def lost_epochs_excuse(self) -> str | None:
        """Why a budget of epochs need not give the same trials: those of a lost attempt stay used."""
        if self.spec.experiment.budget.epochs_total is None:
            return None
        lost = any(trial.epochs_trained > len(_epochs(trial)) for run in (self.bundle, self.here) for trial in run.trials)
        return "a lost attempt used epochs of the budget" if lost else None

    @property
    def seeds_excuse(self) -> str | None:
        """Why a seed need not give the same configurations; None where it must."""
        return self.after_seed(self._seeds_excuse)

    @property
    def _seeds_excuse(self) -> str | None:
        if self.spec.experiment.budget.wall_clock_seconds is not None:
            return "the budget is a time, so the clock decides how many trials there are"
        if self.lost_epochs_excuse is not None:
            return self.lost_epochs_excuse
        if self.sampler in LISTED:
            return None
        if self.spec.experiment.workers.count > 1:
            return f"with {self.spec.experiment.workers.count} workers their timing decides which one asks next"
        if self.sampler in INDEPENDENT:
            return None
        if self.spec.experiment.pruner.name not in NOT_ADAPTIVE:
            return "sampler and pruner follow values, and when a stop arrives is a matter of timing"
        return f"sampler {self.sampler} follows the values, and {'; '.join(self.numerics)}" if self.numerics else None


def exact_columns(pair: RunPair) -> Iterator[ReproducedColumn]:
    """Yield the exact columns of a run; only `status` where it is not done here."""
    yield status(pair)
    if pair.here.status != "done":
        return
    same = configurations(pair)
    yield same
    are_same = same.answer is ReproductionAnswer.REPRODUCED
    yield from states(pair)
    yield validation(pair)
    yield best(pair, are_same)
    yield from test_scores(pair, are_same)
    yield from checkpoint(pair, are_same)


def status(pair: RunPair) -> ReproducedColumn:
    """Return whether the run is done here too."""
    if pair.here.status == "done":
        return exact("status", pair.where, "done", "")
    why = f"{pair.here.status} here: {' '.join((pair.here.reason or '').split())}"
    if pair.here.status == "interrupted" or pair.here.charged in ("infrastructure", "user"):
        return inconclusive("status", pair.where, why)
    return exact("status", pair.where, None, why)


def configurations(pair: RunPair) -> ReproducedColumn:
    """Return whether the same configurations were trained, in whatever order."""
    ours, theirs = (Counter(trial.digest for trial in run.trials if trial.used_ticket) for run in (pair.here, pair.bundle))
    common = (ours & theirs).total()
    equal = f"the same {theirs.total()}" if ours == theirs else None
    different = f"{common} of {theirs.total()} are the same, {ours.total()} were trained here"
    return exact("configurations", pair.where, equal, different, pair.seeds_excuse)


def states(pair: RunPair) -> Iterator[ReproducedColumn]:
    """Yield whether the configurations that both trained ended alike; epochs count unless both were stopped early.

    Those of the last attempt: it has all epochs from the first on, trained again or restored.
    """
    with_epochs = pair.spec.experiment.pruner.name == "none"
    common = list(common_trials(pair))
    if not common:
        return
    unequal = [
        f"{theirs.trial} {theirs.state} in the bundle, {ours.trial} {ours.state} here"
        for theirs, ours in common
        if theirs.state != ours.state
        or ((with_epochs or ours.state == "completed") and len(_epochs(theirs)) != len(_epochs(ours)))
    ]
    excuse = None
    if pair.spec.experiment.pruner.name not in NOT_ADAPTIVE:
        excuse = pair.seeds_excuse or pair.bits_excuse or pair.after_seed("a pruner's decision may depend on timing")
    elif pair.spec.experiment.budget.epochs_total is not None and pair.spec.experiment.workers.count > 1:
        excuse = pair.after_seed("with several workers their timing decides who gets the last epochs")
    elif pair.lost_epochs_excuse is not None:
        excuse = pair.after_seed(pair.lost_epochs_excuse)
    elif pair.spec.experiment.budget.wall_clock_seconds is not None:
        excuse = pair.after_seed("the budget is a time")
    equal = None if unequal else f"{len(common)} of {len(common)} trials ended alike"
    yield exact(
        "trial states", pair.where, equal, f"{len(unequal)} of {len(common)} ended otherwise ({', '.join(unequal[:1])})", excuse
    )


def validation(pair: RunPair) -> ReproducedColumn:
    """Return whether configurations that both trained have equal metrics in every epoch that both have."""
    metric, budget = pair.spec.experiment.objective.metric, pair.spec.experiment.budget
    theirs, ours = (values_of({0: run}, budget.epochs_per_trial) for run in (pair.bundle, pair.here))
    comparison = compare_values(theirs, ours)
    if not comparison.configurations:
        return inconclusive("validation metrics", pair.where, "no configuration was trained in both", decides=False)
    unequal = [key for key in comparison.unequal if key[3] != ENDED_EARLY]
    gap = max((_gap(theirs.get(key), ours.get(key)) for key in unequal if key[3] == metric), default=0.0)
    equal = f"equal bits in every epoch of {len(comparison.configurations)} configurations" if not unequal else None
    different = f"{len({key[1] for key in unequal})} of {len(comparison.configurations)} configurations have other metrics"
    return exact("validation metrics", pair.where, equal, f"{different}, {metric} by up to {gap:.3g}", pair.bits_excuse)


def best(pair: RunPair, same_configurations: bool) -> ReproducedColumn:
    """Return whether the same configuration was selected, with the same value."""
    theirs, ours = (_selected(run) for run in (pair.bundle, pair.here))
    same = theirs is not None and ours is not None and (theirs.digest, theirs.value) == (ours.digest, ours.value)
    equal = f"{ours.value:.6g} by the same configuration" if same and ours is not None and ours.value is not None else None
    tied = theirs is not None and ours is not None and theirs.value == ours.value
    excuse = "another one of equal value" if tied and same_configurations else _follows(pair, same_configurations)
    values = [f"{trial.value:.6g}" if trial is not None and trial.value is not None else "none" for trial in (ours, theirs)]
    return exact("best configuration", pair.where, equal, f"{values[0]} here, {values[1]} in the bundle", excuse)


def test_scores(pair: RunPair, same_configurations: bool) -> Iterator[ReproducedColumn]:
    """Yield whether the tested model has the same scores."""
    theirs, ours = pair.bundle.test, pair.here.test
    if theirs is None and ours is None:
        return
    if theirs is None or ours is None:
        yield exact("test scores", pair.where, None, f"only {'here' if theirs is None else 'in the bundle'}")
        return
    unequal = [name for name in {**theirs.scores, **ours.scores} if theirs.scores.get(name) != ours.scores.get(name)]
    different = ", ".join(f"{name} {ours.scores.get(name)} here, {theirs.scores.get(name)} in the bundle" for name in unequal[:1])
    equal = None if unequal else f"{len(theirs.scores)} equal"
    yield exact("test scores", pair.where, equal, different, _follows(pair, same_configurations))


def checkpoint(pair: RunPair, same_configurations: bool) -> Iterator[ReproducedColumn]:
    """Yield whether the tested checkpoint has the same bytes; nothing for a workload without state."""
    theirs, ours = (run.test.checkpoint_sha256 if run.test is not None else None for run in (pair.bundle, pair.here))
    if theirs is None and ours is None:
        return
    equal = f"SHA-256 {theirs[:12]}" if theirs is not None and theirs == ours else None
    different = f"SHA-256 {(ours or 'none')[:12]} here, {(theirs or 'none')[:12]} in the bundle"
    yield exact("checkpoint", pair.where, equal, different, _follows(pair, same_configurations))


def _follows(pair: RunPair, same_configurations: bool) -> str | None:
    """Return why what follows from the configurations and their values may differ."""
    if not same_configurations and pair.seeds_excuse is not None:
        return pair.seeds_excuse
    return pair.bits_excuse


def common_trials(pair: RunPair) -> Iterator[tuple[TrialRecord, TrialRecord]]:
    """Yield trials of one configuration in the bundle and here; one that is trained twice is paired once each."""
    unpaired: dict[str, list[TrialRecord]] = {}
    for trial in pair.here.trials:
        if trial.used_ticket:
            unpaired.setdefault(trial.digest, []).append(trial)
    for trial in pair.bundle.trials:
        if trial.used_ticket and unpaired.get(trial.digest):
            yield trial, unpaired[trial.digest].pop(0)


def _epochs(trial: TrialRecord) -> Sequence[EpochRecord]:
    return trial.attempts[-1].epochs if trial.attempts else ()


def _gap(theirs: str | None, ours: str | None) -> float:
    try:
        gap = abs(float(theirs or "") - float(ours or ""))
    except ValueError:  # one of both has none
        return math.inf
    return math.inf if math.isnan(gap) else gap


def _selected(run: RunRecord) -> TrialRecord | None:
    chosen = run.best.trial if run.best is not None else None
    return next((trial for trial in run.trials if trial.trial == chosen), None)
