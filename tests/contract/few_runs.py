"""Which checks the tests of this repository make of every adapter: those that need few runs. `tuneoff check` makes all."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

import pytest

from tuneoff.adapter import Capabilities
from tuneoff.base.findings import chosen
from tuneoff.record.events.schema import Process, Reported
from tuneoff.record.samples.reader import Samples, read_samples
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.contract import AdapterContract
from tuneoff.trust.check.evidence import AdapterCheck, AdapterEvidence
from tuneoff.trust.check.planned_runs import EPOCHS, planned_runs, repetitions

ONE_OF_MANY = repetitions(2)[0]  # the one random run that many checks read
LEFT_OUT = {
    name
    for name in planned_runs(Capabilities(framework="none"))
    if name.startswith(("random-", "failed-", "wall-clock", "other-seed", "undeployed"))
    and name not in (ONE_OF_MANY, "failed-trial")
}
OF_CORE = {"faulty", "failed-trial", "coordinator-killed", "without-groups"}  # for adapters whose workers are core's pool


def without(runs: set[str]) -> tuple[str, ...]:
    """Return the ids of the checks that read none of these runs."""
    return tuple(check.id for check in CHECKS if not runs.intersection(check.reads))


FEW_RUNS = without(LEFT_OUT)
ASK_TELL = without(LEFT_OUT | OF_CORE)  # of what only answers `ask` and `tell`: the rest is the same code as serial's
# of one more library: what its model is told, asked for and names
LIBRARY = without(LEFT_OUT | OF_CORE | {"careless", "early-ends", "interrupted", "refusals", "retried"})
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


class FewRuns(AdapterContract):
    """The contract with few runs, and what is looked at in the same runs besides."""

    only = FEW_RUNS

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
