"""Determinism, established by repetitions, half of them beside a busy machine, and its classes.

D0: bit-equal, D1: the same configurations, D2: the same distribution.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tuneoff.base.findings import Finding, check, judged
from tuneoff.base.identity import canonical_json
from tuneoff.base.space import SearchSpace
from tuneoff.record.run_record import RunRecord
from tuneoff.trust.check.evidence import AdapterEvidence
from tuneoff.trust.check.planned_runs import repetitions
from tuneoff.trust.space_test.statistics import ValuePlaces

ALARM = 1e-4  # p-value below which two halves are not of the same distribution

ClassName = Literal["D0", "D1", "D2", "none"]
ALONE, TOGETHER = repetitions(1), repetitions(2)


@check(
    "seeds.repeat",
    rule="one worker, one seed: the same configurations; the class of determinism is determined and reported",
    reason="its class of determinism decides whether pairing by seed helps",
    way_out="seed the sampler with spec.sampler_seed, and whatever else the framework draws from",
    reads=(*ALONE, *TOGETHER),
)
def _repeat(evidence: AdapterEvidence) -> Finding:
    alone = classify([run.record for run in evidence.some(*ALONE)])
    together = classify([run.record for run in evidence.some(*TOGETHER)])
    workers = evidence.runs[TOGETHER[0]].experiment.workers.count
    text = f"1 worker: {alone.text}; {workers} workers: {together.text}; {len(ALONE)} repetitions each, half under load"
    if alone.name not in ("D0", "D1"):
        return judged([f"one worker and one seed gave different configurations ({text})"])
    if together.name == "none":
        return judged([f"the distribution of the configurations depends on the machine's load ({text})"])
    return Finding(verdict="passed", text=text)


def _digests(evidence: AdapterEvidence, name: str) -> list[str]:
    return sorted(trial.digest for trial in evidence.runs[name].record.trials)


@check(
    "seeds.differ",
    rule="another seed gives other configurations",
    reason="repetitions under the same seed are one observation, not several",
    way_out="seed the sampler with spec.sampler_seed; a constant seed is the same in all runs",
    reads=(ALONE[0], "other-seed"),
)
def _differ(evidence: AdapterEvidence) -> Finding:
    same = _digests(evidence, ALONE[0]) == _digests(evidence, "other-seed")
    return judged(["two seeds gave the same configurations"] if same else [])


@check(
    "seeds.trial-values",
    rule="the same configuration and seed give the same values in every run",
    reason="a configuration must have the same value in every framework, order and attempt",
    way_out="leave the seeds of trials to run_trial, with core's trial context unchanged",
    reads=(*ALONE, *TOGETHER),
)
def _trial_values(evidence: AdapterEvidence) -> Finding:
    return judged(_value_problems(evidence, [*ALONE, *TOGETHER]) + _value_problems(evidence, ["honest-max", "honest-min"]))


def _value_problems(evidence: AdapterEvidence, names: Sequence[str]) -> list[str]:
    problems = []
    references: dict[tuple[object, str], tuple[str, tuple[object, ...]]] = {}
    for run in evidence.some(*names):
        seed = run.record.specification["seed"]  # another seed is another training
        for trial in run.record.trials:
            if trial.state == "completed":
                values = tuple((epoch.epoch, tuple(sorted(epoch.metrics.items()))) for epoch in trial.attempts[-1].epochs)
                first, before = references.setdefault((seed, trial.digest), (run.name, values))
                if before != values:
                    problems.append(f"configuration {trial.digest} has other values in {run.name} than in {first}")
    return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Determinism:
    """What repetitions have in common."""

    name: ClassName
    text: str


def classify(records: Sequence[RunRecord]) -> Determinism:
    """Return the class of repetitions of one seed; the second half was made under load.

    D0: the same trials with the same configurations in the same order, the same values in every epoch, the same best trial and
    scores. D1: the same configurations, in any order (their values are the matter of seeds.trial-values). D2: other ones, of
    which no difference in distribution was found between the halves; that is weak evidence, since few trials show little.
    What comes again in its half or in the other one is counted once or not at all: the test is of independent samples.
    """
    contents = set()
    for record in records:
        trials = []  # by their order: a framework may name them at random
        for trial in record.trials:
            epochs = trial.attempts[-1].epochs if trial.attempts else ()
            trials.append([trial.state, trial.digest, [[epoch.epoch, sorted(epoch.metrics.items())] for epoch in epochs]])
        named = record.best.trial if record.best is not None else None
        best = next((number for number, trial in enumerate(record.trials) if trial.trial == named), None)
        contents.add(canonical_json([trials, best, dict(record.test.scores) if record.test is not None else None]))
    if len(contents) == 1:
        return Determinism(name="D0", text="D0 (bit-equal)")
    if len({canonical_json(sorted(trial.digest for trial in record.trials)) for record in records}) == 1:
        return Determinism(name="D1", text="D1 (the same configurations, in another order)")
    half = len(records) // 2
    first, second = _distinct(records[:half]), _distinct(records[half:])
    in_both = first.keys() & second.keys()
    alone = [
        [configuration for digest, configuration in configurations.items() if digest not in in_both]
        for configurations in (first, second)
    ]
    p = least_p(records[0].run_spec().experiment.search_space, *alone)
    if p < ALARM:
        return Determinism(name="none", text=f"none (with load the distribution is another, p = {p:.1g})")
    return Determinism(name="D2", text=f"D2 (other configurations; smallest p of their distributions {p:.2g})")


def _distinct(records: Iterable[RunRecord]) -> dict[str, Mapping[str, Any]]:
    return {trial.digest: trial.configuration for record in records for trial in record.trials}


def least_p(space: SearchSpace, first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> float:
    """Return the least p-value over the dimensions of the two-sample Kolmogorov-Smirnov test, times their number.

    1 where a sample is empty.
    """
    from scipy import stats

    p_values = [1.0]
    for name, dimension in space.searched.items():
        position = ValuePlaces(dimension)
        values = ([configuration[name] for configuration in sample if name in configuration] for sample in (first, second))
        samples = [[at for at in map(position, sample) if at is not None] for sample in values]
        if all(samples):
            p_values.append(min(1.0, len(space.searched) * float(stats.ks_2samp(*samples, method="asymp").pvalue)))
    return min(p_values)
