"""Determinism, established by repetitions: half of them beside a busy machine."""

from __future__ import annotations

from collections.abc import Sequence

from tuneoff.trust.check.determinism import classify
from tuneoff.trust.check.evidence import AdapterEvidence
from tuneoff.trust.check.model import Check, Finding, judged
from tuneoff.trust.check.planned_runs import repetitions

ALONE, TOGETHER = repetitions(1), repetitions(2)


def _repeat(evidence: AdapterEvidence) -> Finding:
    alone = classify([made.record for made in evidence.some(*ALONE)])
    together = classify([made.record for made in evidence.some(*TOGETHER)])
    workers = evidence.runs[TOGETHER[0]].experiment.workers.count
    text = f"1 worker: {alone.text}; {workers} workers: {together.text}; {len(ALONE)} repetitions each, half under load"
    if alone.name not in ("D0", "D1"):
        return judged([f"one worker and one seed gave different configurations ({text})"])
    if together.name == "none":
        return judged([f"the distribution of the configurations depends on the machine's load ({text})"])
    return Finding(verdict="passed", text=text)


def _digests(evidence: AdapterEvidence, name: str) -> list[str]:
    return sorted(trial.digest for trial in evidence.record(name).trials)


def _differ(evidence: AdapterEvidence) -> Finding:
    same = _digests(evidence, ALONE[0]) == _digests(evidence, "other-seed")
    return judged(["two seeds gave the same configurations"] if same else [])


def _trial_values(evidence: AdapterEvidence) -> Finding:
    return judged(_value_problems(evidence, [*ALONE, *TOGETHER]) + _value_problems(evidence, ["honest-max", "honest-min"]))


def _value_problems(evidence: AdapterEvidence, names: Sequence[str]) -> list[str]:
    problems = []
    known: dict[tuple[object, str], tuple[str, tuple[object, ...]]] = {}
    for made in evidence.some(*names):
        seed = made.record.specification["seed"]  # another seed is another training
        for trial in made.record.trials:
            if trial.state == "completed":
                values = tuple((epoch.epoch, tuple(sorted(epoch.metrics.items()))) for epoch in trial.attempts[-1].epochs)
                first, before = known.setdefault((seed, trial.digest), (made.name, values))
                if before != values:
                    problems.append(f"configuration {trial.digest} has other values in {made.name} than in {first}")
    return problems


CHECKS = (
    Check(
        id="seeds.repeat",
        reason="its class of determinism decides whether pairing by seed buys anything",
        way_out="seed the sampler with spec.sampler_seed, and whatever else the framework draws from",
        reads=(*ALONE, *TOGETHER),
        judge=_repeat,
    ),
    Check(
        id="seeds.differ",
        reason="repetitions under the same seed are one observation, not several",
        way_out="seed the sampler with spec.sampler_seed; a constant seed is the same in all runs",
        reads=(ALONE[0], "other-seed"),
        judge=_differ,
    ),
    Check(
        id="seeds.trial-values",
        reason="the same configuration has to be worth the same in every framework, order and attempt",
        way_out="leave the seeds of trials to run_trial, with the trial context as core made it",
        reads=(*ALONE, *TOGETHER),
        judge=_trial_values,
    ),
)
