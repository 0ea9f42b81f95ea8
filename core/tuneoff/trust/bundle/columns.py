"""The columns of a reproduction, their answers, and the answer of all together.

**Exact** is what must be equal bit for bit where nothing that the bits depend on has changed. What need not be equal is quality,
values of equal configurations, and what is bound to the machine.

**Quality of a cell** (an adapter's runs that differ in the seed alone). With n seeds in the bundle, their mean m and standard
deviation s, and k runs here: a mean of k further runs lies in m ± t · s · sqrt(1/n + 1/k) in 95 of 100 cases (t of n − 1 degrees
of freedom), if they are of the same kind. Outside is DIFFERENT, from 3 seeds on. Inside is REPRODUCED from 5 seeds on: the
interval of fewer is so wide that almost anything lies in it. Values that are equal bit for bit need no interval.

**Values of equal configurations**, where bits need not be equal. With d the differences here − bundle over the configurations
that both completed: the 95 % interval of their mean against a margin of half the standard deviation of the bundle's values.
Inside the margin is REPRODUCED, wholly outside of it is DIFFERENT, anything else is INCONCLUSIVE.

**Bound to the machine** are times, energy, cost, memory: a ratio in a band, never an equality.
What goes with time is divided by the ratio of the sentinels (the SHA-256 of 32 MiB that every run is preceded by). CPU seconds
are only where the machines differ: on the same one a slow sentinel means other work, which costs no CPU seconds. Inside the
band is REPRODUCED. Outside is DIFFERENT on the same machine where neither run has a flag of a machine at work, else
INCONCLUSIVE: another machine, or one with other work, explains it. INCONCLUSIVE is also what is too short to compare, inside the
band or not: 10 ms of a trial have become 49 on one machine without a flag.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tuneoff.base.format import counted
from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.strategies import LISTED
from tuneoff.judge.comparison.environments import sentinel_ratio
from tuneoff.judge.comparison.values import ENDED_EARLY, compare_values, values_of
from tuneoff.judge.stats.location import students_t_quantile
from tuneoff.judge.stats.paired import ROUNDING
from tuneoff.record.run_record import EpochRecord, RunRecord, TrialRecord
from tuneoff.run.machine import PASSING

UNEXPLAINED = "nothing in the table above explains it"
INDEPENDENT = frozenset({*LISTED, "random", "sobol"})  # do not follow the values
NOT_ADAPTIVE = frozenset({"none", "scripted"})  # pruners that look at no other trial
QUALITIES = ("quality.validation", "quality.test")
LEAST_TO_DIFFER = 3  # seeds of the bundle
LEAST_TO_AGREE = 5
MARGIN = 0.5  # standard deviations of the bundle's values
MS_PER_SECOND = 1000.0  # times are in ms
SHORT_TIME_SECONDS = 0.5  # a time that is below this in both
SHORT_RUN_SECONDS = 2.0  # energy, carbon and cost of runs whose `time.jct` is below this in both
BUSY_FLAGS = (*sorted(PASSING), "steal", "too_few_processors")
ToleranceClass = Literal["exact", "statistical", "machine"]


class ReproductionAnswer(StrEnum):
    """What a comparison came to."""

    DIFFERENT = "DIFFERENT"
    INCONCLUSIVE = "INCONCLUSIVE"
    REPRODUCED = "REPRODUCED"


DIFFERENT, INCONCLUSIVE, REPRODUCED = WORST_FIRST = tuple(ReproductionAnswer)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproducedColumn:
    """One column of one run (or of all seeds of a cell): its tolerance class, its answer and why.

    `decides`: whether it counts in the overall answer. What nobody promises (equal bits on another CPU, times) does not.
    """

    name: str
    tolerance: ToleranceClass
    where: str
    answer: ReproductionAnswer
    why: str
    decides: bool = True


def inconclusive(name: str, where: str, why: str, *, decides: bool = True) -> ReproducedColumn:
    """Return an exact column that tells nothing."""
    return ReproducedColumn(name=name, tolerance="exact", where=where, answer=INCONCLUSIVE, why=why, decides=decides)


def of_columns(columns: Iterable[ReproducedColumn]) -> ReproductionAnswer:
    """Return the worst answer: DIFFERENT before INCONCLUSIVE before REPRODUCED; without columns INCONCLUSIVE."""
    return min((column.answer for column in columns), key=WORST_FIRST.index, default=INCONCLUSIVE)


def overall(columns: Sequence[ReproducedColumn], changed: Sequence[str]) -> tuple[ReproductionAnswer, str]:
    """Return the answer of a whole reproduction and why, in words.

    `changed`: what makes it another experiment (data, seed, framework version, an unverified bundle).
    """
    deciding = [column for column in columns if column.decides and column.tolerance != "machine"]
    answer = of_columns(deciding)
    cause = f"changed: {'; '.join(changed)}" if changed else ""
    if answer is DIFFERENT:
        names = list(dict.fromkeys(column.name for column in deciding if column.answer is DIFFERENT))
        return answer, f"{', '.join(names)} differ; {cause or UNEXPLAINED}"
    if answer is INCONCLUSIVE:
        open_ones = [column for column in deciding if column.answer is INCONCLUSIVE]
        why = open_ones[0].why if open_ones else "no column could be compared"
        return answer, f"{why}; {cause}" if cause and cause.removeprefix("changed: ") not in why else why
    if changed:
        return INCONCLUSIVE, f"every column agrees, but it is not the same experiment; {cause}"
    return answer, "every exact and statistical column agrees"


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

    def exact(self, name: str, equal: str | None, different: str, excuse: str | None = None) -> ReproducedColumn:
        """Return an exact column: `equal` says what is equal (None: it is not), `excuse` why it need not be."""
        if equal is None and excuse is not None:
            return inconclusive(name, self.where, f"{different}, which need not be equal: {excuse}", decides=False)
        answer = DIFFERENT if equal is None else REPRODUCED
        return ReproducedColumn(name=name, tolerance="exact", where=self.where, answer=answer, why=equal or different)

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
        return f"the seed differs here; also, {excuse}"

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
        experiment, excuse = self.spec.experiment, self.lost_epochs_excuse
        if experiment.budget.wall_clock_seconds is not None:
            excuse = "the budget is a time, so the clock decides the number of trials"
        elif experiment.objective.stop:
            excuse = "it ends at its goal, so timing decides which trials still ran then"
        elif excuse is not None or self.sampler in LISTED:
            pass
        elif self.spec.experiment.workers.count > 1:
            excuse = f"with {experiment.workers.count} workers timing decides which one asks next"
        elif self.sampler not in INDEPENDENT and experiment.pruner.name not in NOT_ADAPTIVE:
            excuse = "sampler and pruner follow values, and the moment of a stop depends on timing"
        elif self.sampler not in INDEPENDENT and self.numerics:
            excuse = f"sampler {self.sampler} follows the values, and {'; '.join(self.numerics)}"
        return self.after_seed(excuse)


def exact_columns(pair: RunPair) -> Iterator[ReproducedColumn]:
    """Yield the exact columns of a run; only `status` where it is not done here."""
    bundle, here, experiment = pair.bundle, pair.here, pair.spec.experiment
    if here.status != "done":
        why = f"{here.status} here: {' '.join((here.reason or '').split())}"
        is_open = here.status == "interrupted" or here.charged in ("infrastructure", "user")
        yield inconclusive("status", pair.where, why) if is_open else pair.exact("status", None, why)
        return
    yield pair.exact("status", "done", "")

    # The same configurations were trained, in whatever order.
    ours, theirs = (Counter(trial.digest for trial in run.trials if trial.used_ticket) for run in (here, bundle))
    are_same, total = ours == theirs, theirs.total()
    different = f"{(ours & theirs).total()} of {total} are the same, {ours.total()} were trained here"
    yield pair.exact("configurations", f"the same {total}" if are_same else None, different, pair.seeds_excuse)

    # Those that both trained ended alike; epochs count unless both were stopped early. They are those of the last attempt: it has
    # all epochs from the first on, trained again or restored.
    common, pruner = list(common_trials(pair)), experiment.pruner.name
    unequal = [
        f"{old.trial} {old.state} in the bundle, {new.trial} {new.state} here"
        for old, new in common
        if old.state != new.state or ((pruner == "none" or new.state == "completed") and len(_epochs(old)) != len(_epochs(new)))
    ]
    budget, reason = experiment.budget, pair.lost_epochs_excuse
    if budget.epochs_total is not None and experiment.workers.count > 1:
        reason = "with several workers timing decides which one gets the last epochs"
    elif reason is None and budget.wall_clock_seconds is not None:
        reason = "the budget is a time"
    elif reason is None and experiment.objective.stop:
        reason = "what runs at the goal is ended"
    excuse = pair.after_seed(reason)
    if pruner not in NOT_ADAPTIVE:
        excuse = pair.seeds_excuse or pair.bits_excuse or pair.after_seed("a pruner's decision may depend on timing")
    if common:
        equal = None if unequal else f"{len(common)} of {len(common)} trials ended alike"
        different = f"{len(unequal)} of {len(common)} ended differently ({', '.join(unequal[:1])})"
        yield pair.exact("trial states", equal, different, excuse)

    # They have equal metrics in every epoch that both have.
    metric = experiment.objective.metric
    old_values, values = (values_of({0: run}, experiment.budget.epochs_per_trial) for run in (bundle, here))
    comparison = compare_values(old_values, values)
    count = len(comparison.configurations)
    if count:
        keys = [key for key in comparison.unequal if key[3] != ENDED_EARLY]
        gap = max((_gap(old_values.get(key), values.get(key)) for key in keys if key[3] == metric), default=0.0)
        different = f"{len({key[1] for key in keys})} of {count} configurations have other metrics, {metric} by up to {gap:.3g}"
        equal = None if keys else f"equal bits in every epoch of {count} configurations"
        yield pair.exact("validation metrics", equal, different, pair.bits_excuse)
    else:
        yield inconclusive("validation metrics", pair.where, "no configuration was trained in both", decides=False)

    # The same configuration was selected, with the same value; what follows from configurations and values may differ with them.
    excuse = pair.bits_excuse if are_same else pair.seeds_excuse or pair.bits_excuse
    selected = [
        next((trial for trial in run.trials if run.best is not None and trial.trial == run.best.trial), None)
        for run in (here, bundle)
    ]
    identities = {(trial.digest, trial.value) if trial is not None else None for trial in selected}
    values_text = [f"{trial.value:.6g}" if trial is not None and trial.value is not None else "none" for trial in selected]
    is_equal = len(identities) == 1 and "none" not in values_text
    equal = f"{values_text[0]} by the same configuration" if is_equal else None
    is_tied = None not in selected and len({trial.value for trial in selected if trial is not None}) == 1
    tied = "another one of equal value" if is_tied and are_same else excuse
    yield pair.exact("best configuration", equal, f"{values_text[0]} here, {values_text[1]} in the bundle", tied)

    # The tested model has the same scores, and its checkpoint the same bytes; a workload without state has none.
    old_test, test = bundle.test, here.test
    if old_test is not None and test is not None:
        names = [name for name in {**old_test.scores, **test.scores} if old_test.scores.get(name) != test.scores.get(name)]
        texts = [f"{name} {test.scores.get(name)} here, {old_test.scores.get(name)} in the bundle" for name in names[:1]]
        yield pair.exact("test scores", None if names else f"{len(old_test.scores)} equal", ", ".join(texts), excuse)
    elif old_test is not None or test is not None:
        yield pair.exact("test scores", None, f"only {'here' if old_test is None else 'in the bundle'}")
    old_sha, sha = (item.checkpoint_sha256 if item is not None else None for item in (old_test, test))
    if old_sha is not None or sha is not None:
        different = f"SHA-256 {(sha or 'none')[:12]} here, {(old_sha or 'none')[:12]} in the bundle"
        yield pair.exact("checkpoint", f"SHA-256 {sha[:12]}" if sha is not None and sha == old_sha else None, different, excuse)


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


def quality_columns(where: str, bundle: Sequence[RunRecord], here: Sequence[RunRecord]) -> Iterator[ReproducedColumn]:
    """Yield the quality of a cell's runs here against all its runs in the bundle."""
    same = {run.run_id for run in here}
    for name in QUALITIES:
        ours = _values(here, name)
        theirs = _values(bundle, name)
        paired = _values([run for run in bundle if run.run_id in same], name)
        if ours and theirs:
            answer, why = _quality(theirs, ours, is_equal=sorted(paired) == sorted(ours))
            yield ReproducedColumn(name=name, tolerance="statistical", where=where, answer=answer, why=why)


def _quality(theirs: Sequence[float], ours: Sequence[float], *, is_equal: bool) -> tuple[ReproductionAnswer, str]:
    mean = statistics.fmean(ours)
    if is_equal:
        return REPRODUCED, f"equal: {', '.join(f'{value:.6g}' for value in ours)}"
    n, k = len(theirs), len(ours)
    seeds = counted(n, "seed")
    if n < LEAST_TO_DIFFER:
        why = f"{mean:.6g} here, {statistics.fmean(theirs):.6g} in the bundle, whose {seeds} show no spread (3 are needed)"
        return INCONCLUSIVE, why
    spread, centre = statistics.stdev(theirs), statistics.fmean(theirs)
    if n < LEAST_TO_AGREE and spread <= ROUNDING * max(map(abs, theirs)):
        why = f"{mean:.6g} here, {centre:.6g} in each of the bundle's {seeds}, too few for a spread (5 are needed)"
        return INCONCLUSIVE, why
    half = students_t_quantile(0.975, n - 1) * spread * math.sqrt(1 / n + 1 / k)
    interval = f"[{centre - half:.6g}, {centre + half:.6g}], where 95 % of such runs lie by the bundle's {seeds}"
    if abs(mean - centre) > half:
        return DIFFERENT, f"{mean:.6g} here is outside {interval}"
    if n < LEAST_TO_AGREE:
        return INCONCLUSIVE, f"{mean:.6g} here is in {interval}, too few to call it equal (5 are needed)"
    return REPRODUCED, f"{mean:.6g} here is in {interval}"


def value_columns(pair: RunPair) -> Iterator[ReproducedColumn]:
    """Yield the values of equal configurations, where their bits differ for a known reason."""
    values = [
        (theirs.value, ours.value)
        for theirs, ours in common_trials(pair)
        if theirs.value is not None and ours.value is not None and theirs.state == ours.state == "completed"
    ]
    if pair.bits_excuse is None or not values or all(theirs == ours for theirs, ours in values):
        return
    n, gaps = len(values), [ours - theirs for theirs, ours in values]
    answer, why = INCONCLUSIVE, "one configuration has no spread"
    if 1 < n < LEAST_TO_AGREE and statistics.stdev(gaps) <= ROUNDING * max(abs(value) for both in values for value in both):
        why = f"{n} configurations differ by the same {gaps[0]:.3g}: too few for a spread ({LEAST_TO_AGREE} are needed)"
    elif n > 1:
        mean, half = statistics.fmean(gaps), students_t_quantile(0.975, n - 1) * statistics.stdev(gaps) / math.sqrt(n)
        margin = MARGIN * statistics.stdev([theirs for theirs, _ in values])
        why = f"mean difference of {n} configurations {mean:.3g} ± {half:.3g}, margin {margin:.3g}"
        if mean - half >= -margin and mean + half <= margin:
            answer = REPRODUCED
        elif mean - half > margin or mean + half < -margin:
            answer = DIFFERENT
    name = "values of equal configurations"
    yield ReproducedColumn(name=name, tolerance="statistical", where=pair.where, answer=answer, why=why)


def _values(runs: Sequence[RunRecord], name: str) -> list[float]:
    metrics = (run.metrics.get(name) for run in runs)
    return [float(metric.value) for metric in metrics if metric is not None and metric.value is not None]


@dataclass(frozen=True, slots=True)
class Bound:
    """A metric, the widest ratio that counts as the same, the time below which both tell nothing, and when sentinels scale it."""

    metric: str
    band: float
    floor: tuple[str, float] | None  # a metric in ms, and seconds
    scaled: Literal["always", "across machines", "never"] = "always"


TIMES = ("time.jct_without_test", "time.jct", "time.deploy", "time.trial", "time.test", "overhead.per_trial")
SHORT_RUN = ("time.jct", SHORT_RUN_SECONDS)
BOUNDS = (
    *(Bound(name, 2.0, (name, SHORT_TIME_SECONDS)) for name in TIMES),
    Bound("energy.cpu_seconds", 1.5, SHORT_RUN, "across machines"),
    *(Bound(name, 2.0, SHORT_RUN) for name in ("energy.job", "carbon.job", "cost.job")),
    Bound("memory.peak_rss", 1.25, None, "never"),
)


def machine_columns(pair: RunPair) -> Iterator[ReproducedColumn]:
    """Yield the machine-bound columns of a run; metrics that one of both lacks are left out."""
    speed = sentinel_ratio([pair.bundle.environment], [pair.here.environment])  # how much longer the sentinel took here
    flags = sorted({flag.name for run in (pair.bundle, pair.here) for flag in run.flags} & set(BUSY_FLAGS))
    excuse = "a run has no sentinel" if speed is None else None
    if not pair.same_machine:
        excuse = "this is another machine"
    elif flags:
        excuse = f"a machine had other work (flags {', '.join(flags)})"
    for bound in BOUNDS:
        theirs, ours = (run.metrics.get(bound.metric) for run in (pair.bundle, pair.here))
        if theirs is None or ours is None or not theirs.value or not ours.value:
            continue
        raw = ours.value / theirs.value
        is_scaled = bound.scaled == "always" or (bound.scaled == "across machines" and not pair.same_machine)
        scale = speed if is_scaled and speed is not None else 1.0
        ratio = raw / scale
        scaled = f", {ratio:.2f} by the sentinel's {scale:.2f}" if scale != 1.0 else ""
        text = f"{ours.value:.4g} {ours.unit} here, {theirs.value:.4g} in the bundle: ratio {raw:.2f}{scaled}"
        band = f"{1 / bound.band:.2g} to {bound.band:g}"
        # By what each was metered; a model's coefficients are in its source.
        meters = [f"{metric.kind}, {' '.join(metric.source.split())}" for metric in (ours, theirs)]
        answer = INCONCLUSIVE
        if meters[0] != meters[1]:
            why = f"another meter: {meters[0]} here, {meters[1]} in the bundle"
        elif (short := _short(pair, bound)) is not None:
            why = f"too short to compare: {short}"
        elif 1 / bound.band <= ratio <= bound.band:
            answer, why = REPRODUCED, f"in the band {band}"
        elif excuse is not None:
            why = f"outside {band}, but {excuse}"
        else:
            answer, why = DIFFERENT, f"outside {band} on the same machine with no sign of other work"
        why = f"{text}; {why}"
        yield ReproducedColumn(name=bound.metric, tolerance="machine", where=pair.where, answer=answer, why=why, decides=False)


def _short(pair: RunPair, bound: Bound) -> str | None:
    """Return which floor both values are below, in words; None: they are long enough, or the runs' lengths are not known."""
    if bound.floor is None:
        return None
    name, floor = bound.floor
    times = [run.metrics.get(name) for run in (pair.bundle, pair.here)]
    if any(time is None or time.value is None or time.value / MS_PER_SECOND >= floor for time in times):
        return None
    return f"{'both are' if name == bound.metric else f'{name} of both is'} below {floor:g} s"
