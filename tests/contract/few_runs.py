"""Which checks the tests of this repository make of every adapter: those that need few runs. `tuneoff check` makes all."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import ClassVar

import pytest

from tuneoff.base.findings import chosen
from tuneoff.record.events.schema import Process, Reported
from tuneoff.record.samples.reader import Samples, read_samples
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.contract import AdapterContract
from tuneoff.trust.check.evidence import AdapterCheck, AdapterEvidence
from tuneoff.trust.check.planned_runs import EPOCHS, FIRST, REFUSALS

# of a library by ask and tell: its default model end to end; without trainings: tests/adapters/test_ask_tell_libraries.py
LIBRARY = frozenset({"honest-max", "default-sampler"})
# of one of them also what the base class for ask and tell could break around core's pool, whose own runs are those of serial
ASK_TELL = LIBRARY | {"honest-min", "odd-values", "scripted", "retried", "interrupted", "goal", *FIRST, REFUSALS}
# of a framework that runs its trials itself; trainings that end by themselves: tests/e2e/test_early_ends.py
FRAMEWORK = ASK_TELL | {"goal-reported", "faulty", "careless", "failed-trial", "coordinator-killed"}
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
