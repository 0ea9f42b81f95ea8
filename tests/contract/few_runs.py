"""Which checks the tests of this repository make of every adapter: those that need few runs. `tuneoff check` makes all."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import ClassVar

import msgspec
import pytest

from tuneoff.base.findings import chosen
from tuneoff.record.events import schema
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Process, Reported
from tuneoff.record.samples.reader import Samples, read_samples
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.contract import AdapterContract
from tuneoff.trust.check.evidence import AdapterCheck, AdapterEvidence, FinishedRun
from tuneoff.trust.check.planned_runs import EPOCHS, FIRST, REFUSALS
from tuneoff.trust.history_check.rules import check_history

# of a library by ask and tell: its default model end to end; without trainings: tests/adapters/test_ask_tell_libraries.py
LIBRARY = frozenset({"honest-max", "default-sampler"})
# of one of them also what the base class for ask and tell could break around core's pool, whose own runs are those of serial
ASK_TELL = LIBRARY | {"honest-min", "odd-values", "scripted", "retried", "interrupted", "goal", *FIRST, REFUSALS}
# of a framework that runs its trials itself; trainings that end by themselves: tests/e2e/test_early_ends.py
FRAMEWORK = ASK_TELL | {"goal-reported", "faulty", "careless", "failed-trial", "coordinator-killed"}
CAUSES = {  # rule: the event that is moved, and before which
    "started-early": (schema.TrialStarted, schema.TrialSubmitted),
    "told-early": (schema.Stage, schema.Epoch),
    "best-early": (schema.BestKnown, schema.TrialEnded),
    "tested-early": (schema.Tested, schema.BestKnown),
}
TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def assert_sampled(samples: Samples | None, processes: Iterable[Process]) -> None:
    """Assert that each of the processes is in the samples."""
    assert samples is not None
    assert samples.notes == ()
    identities = {(process.pid, process.process_started_ns) for process in processes}
    seen = {(usage.pid, usage.started_ns) for sample in samples.usage for usage in sample.processes}
    assert identities - seen == set()
    shifted = {(pid, started_ns + TICK) for pid, started_ns in identities}
    assert shifted - seen == shifted, "the comparison does not tell one process from another"


def broken_with(made: FinishedRun, rule: str) -> set[str] | None:
    """Return the broken rules of a run in whose events an effect is moved before its cause; None: it has none."""
    pairs = list(EventLog(made.folder / "events"))
    effect, cause = CAUSES[rule]
    best = next(event.trial for _, event in pairs if isinstance(event, schema.BestKnown))
    times = [event.t for _, event in pairs if isinstance(event, cause) and event.trial == best]
    moved = {
        index
        for index, (_, event) in enumerate(pairs)
        if isinstance(event, effect) and event.trial == best and getattr(event, "name", "tell") == "tell"
    }
    if not moved or not times:
        return None
    pairs = [
        (process, msgspec.structs.replace(event, t=min(times) - 1_000_000_000) if index in moved else event)
        for index, (process, event) in enumerate(pairs)
    ]
    return {breach.rule for breach in check_history(pairs, made.record.run_spec(), is_done=True)}


def shown_by(runs: Collection[str]) -> list[AdapterCheck]:
    """Return the checks that these runs show; one that judges each run by itself reads those among them."""
    checks = [replace(check, reads=tuple(name for name in check.reads if name in runs)) for check in CHECKS]
    return [one for one, whole in zip(checks, CHECKS, strict=True) if one == whole or (one.reads and not whole.needs_all)]


class FewRuns(AdapterContract):
    """The checks that `runs` show."""

    runs: ClassVar[Collection[str]]

    @classmethod
    def checks(cls) -> list[AdapterCheck]:
        return shown_by(cls.runs)


class Framework(FewRuns):
    """What holds of a framework, and what is looked at in the same runs besides."""

    runs = FRAMEWORK
    hears_ends: ClassVar[bool] = False  # its sampler of given configurations is told how trials end

    @pytest.mark.parametrize("check", chosen(CHECKS, ["stops.obeyed"]), ids=["scripted"])  # so that its run is made
    def test_every_process_with_events_is_in_the_samples(self, check: AdapterCheck, evidence: AdapterEvidence) -> None:
        """Whichever framework started it and however: by pid and start. Its epochs are longer than from look to look."""
        made = evidence.runs["scripted"]
        assert_sampled(read_samples(made.folder), made.of(Process))

    @pytest.mark.parametrize("check", chosen(CHECKS, ["best.value"]), ids=["honest"])  # so that its runs are made
    def test_the_framework_is_told_of_as_many_epochs_as_were_asked_for(
        self, check: AdapterCheck, evidence: AdapterEvidence
    ) -> None:
        """Only what it needs in one run, every epoch in the other; the check says that its best is the best epoch in both."""
        needed = {"none": 0, "at_end": 1, "every_epoch": EPOCHS}[evidence.subject.capabilities.reports_with("none")]
        for name, each in {"honest-max": needed, "honest-min": EPOCHS}.items():
            made = evidence.runs[name]
            told = Counter(event.trial for event in made.of(Reported))
            assert told == Counter({trial.trial: each for trial in made.record.trials if each}), name

    @pytest.mark.parametrize("check", chosen(CHECKS, ["best.value"]), ids=["honest"])
    def test_what_comes_before_its_cause_is_found(self, check: AdapterCheck, evidence: AdapterEvidence) -> None:
        made = evidence.runs["honest-max"]
        assert list(made.breaches) == []
        broken = {rule: broken_with(made, rule) for rule in CAUSES}
        assert {rule for rule, rules in broken.items() if rules is None} == (set() if self.hears_ends else {"told-early"})
        assert all(rule in rules for rule, rules in broken.items() if rules is not None), broken
