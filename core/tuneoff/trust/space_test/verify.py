"""Verify the search spaces of a plan: draw, judge, one adapter after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tuneoff.base.interrupting import interrupting
from tuneoff.experiment.plan import Plan
from tuneoff.run.supervisor.guardian import Announce, watching
from tuneoff.trust.space_test.draw import DRAWN, NOT_OFFERED, OUTSIDE
from tuneoff.trust.space_test.judge import SpaceJudgement, judge
from tuneoff.trust.space_test.process import Drawing, draw_in_process
from tuneoff.trust.space_test.received import receive
from tuneoff.trust.space_test.sample import Sample
from tuneoff.trust.space_test.targets import SpaceTarget

SEEDS = 4  # of each adapter; the draws are shared among them
AGAIN = 100  # draws of the first seed, made once more in a fresh process

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetJudgement:
    """What came of one target: its judgement, or None where it was skipped."""

    target: SpaceTarget
    judgement: SpaceJudgement | None
    source: str = ""
    seeds: tuple[int, ...] = ()


def verify(
    plan: Plan, found: Sequence[SpaceTarget], *, draws: int, seed: int, seconds: float, tell: Tell
) -> list[TargetJudgement]:
    """Draw `draws` configurations of each target and judge them; `seconds` limits each process that draws.

    Raises:
        KeyboardInterrupt: SIGINT, SIGTERM or SIGHUP; every process is ended and every folder removed then.
    """
    outcomes = []
    with interrupting(), watching() as announce:
        for target in found:
            if target.run.skip_reason is not None:
                outcomes.append(TargetJudgement(target=target, judgement=None))
                continue
            sample = draw_sample(target, plan, draws, seed, seconds, tell, announce)
            tell(f"{target.label}: testing {len(sample.configurations)} configurations")
            judgement = judge(target.space, sample)
            outcomes.append(
                TargetJudgement(target=target, judgement=judgement, source=sample.source, seeds=tuple(sample.by_seed))
            )
    return outcomes


def draw_sample(target: SpaceTarget, plan: Plan, draws: int, seed: int, seconds: float, tell: Tell, announce: Announce) -> Sample:
    """Return the draws of one target under several seeds, each from a process of its own, and the first seed's again."""
    spec, label = target.run.spec, target.label
    by_seed: dict[int, Any] = {}
    first: Drawing | None = None
    for number in range(SEEDS):
        tell(f"{label}: drawing, seed {number + 1} of {SEEDS}")
        count = draws // SEEDS + (number < draws % SEEDS)
        answer = draw_in_process(spec, count, seed + number, seconds, announce=announce)
        if answer.state == NOT_OFFERED:
            tell(f"{label}: running trials, for the adapter cannot draw without")
            sample = receive(target.run, plan, draws, seed, answer.text, announce=announce)
            return _with_mapping(sample, answer)
        first = first or answer
        by_seed[seed + number] = answer.configurations
        if answer.state != DRAWN:
            return _with_mapping(_broken(by_seed, answer), first)
        if len(answer.configurations) < count:
            text = f"seed {seed + number} gave only {len(answer.configurations)} of {count} configurations"
            return _with_mapping(Sample(by_seed=by_seed, failure=text), first)
    tell(f"{label}: drawing, the first seed again")
    again = draw_in_process(spec, min(AGAIN, len(by_seed[seed])), seed, seconds, announce=announce)
    assert first is not None
    if again.state != DRAWN:
        return _with_mapping(_broken(by_seed, again), first)
    return _with_mapping(Sample(by_seed=by_seed, again=again.configurations), first)


def _broken(by_seed: dict[int, Any], answer: Drawing) -> Sample:
    if answer.state == OUTSIDE:
        return Sample(by_seed=by_seed, outside=answer.text)
    return Sample(by_seed=by_seed, failure=answer.text)


def _with_mapping(sample: Sample, answer: Drawing) -> Sample:
    return sample.with_mapping(answer.problems, answer.mapping_text)
