"""The history checker: no alarm on sound histories of a simulation, and each planted defect found, drawn in few events."""

from __future__ import annotations

import functools

import msgspec
import pytest

from builders.event_logs import Log
from builders.specs import make_spec
from trust.history_check.generated_histories import GeneratedRun, generate
from trust.history_check.planted_histories import PLANTS
from trust.history_check.planting import planted
from tuneoff.record.events.schema import TrialEnded, TrialSubmitted
from tuneoff.trust.history_check.counterexample import MISSING, MOST_EVENTS, Counterexample
from tuneoff.trust.history_check.rules import check_history

HISTORIES = 10  # of each planted defect
TRIED = 600  # generated histories, of which not each one has what a defect needs


def found(run: GeneratedRun) -> list[Counterexample]:
    return check_history(run.pairs, run.spec, is_done=run.is_done)


small = functools.cache(functools.partial(generate, events=300))


def alarms(seeds: range, events: int) -> dict[int, list[str]]:
    """Return the rules that are found broken in generated histories, by their seeds."""
    rules = {seed: [one.rule for one in found(generate(seed, events))] for seed in seeds}
    return {seed: broken for seed, broken in rules.items() if broken}


def test_no_alarm_on_sound_histories() -> None:
    assert alarms(range(60), 2_000) == {}


@pytest.mark.slow
def test_no_alarm_on_long_sound_histories() -> None:
    assert alarms(range(60, 160), 10_000) == {}


def test_the_generator_makes_all_that_a_sound_history_may_have() -> None:
    runs = [small(seed) for seed in range(100)]
    kinds = {(type(event).__name__, getattr(event, "by", "")) for run in runs for _, event in run.pairs}
    assert {name for name, _ in kinds} >= {"TrialKilled", "WorkerDied", "TrialRefused", "TrialEnded", "StopDecided"}
    assert ("TrialEnded", "coordinator") in kinds
    assert {run.is_done for run in runs} == {True, False}
    attempts = [event.attempt for run in runs for _, event in run.pairs if isinstance(event, TrialSubmitted)]
    assert max(attempts) > 2
    assert {getattr(event, "restored", None) for run in runs for _, event in run.pairs} >= {True, False}


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_defect_is_found_and_drawn(name: str) -> None:
    rule, plant = PLANTS[name]
    runs = list(planted(plant, (small(seed) for seed in range(TRIED)), HISTORIES))
    assert len(runs) == HISTORIES
    for run in runs:
        breaches = {one.rule: one for one in found(run)}
        assert rule in breaches, (rule, list(breaches))
        assert 1 <= len(breaches[rule].events) <= MOST_EVENTS
        assert len(breaches[rule].drawing()) <= MOST_EVENTS + 2
        is_missing = breaches[rule].drawing()[-1].endswith("and nothing more of it")
        assert is_missing == (rule in MISSING) == (not any(event.is_wrong for event in breaches[rule].events))


def test_of_a_line_that_stands_twice_the_second_one_is_marked() -> None:
    log = Log()
    worker = log.process("worker", 0.0)
    worker.start("t00000", 1.0, 0)
    log.submit("t00000", 0.5)
    worker.add(TrialEnded, 2.0, trial="t00000", state="failed", epochs=0, cause="x", charged="framework")
    worker.events.append(msgspec.structs.replace(worker.events[-1]))
    (breach,) = check_history(log.pairs(), make_spec(), is_done=False)
    assert [(event.event, event.is_wrong) for event in breach.events[-2:]] == [("ended failed", False), ("ended failed", True)]
