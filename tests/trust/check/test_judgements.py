"""Checks on records made by hand: each sees what is wrong, and only that."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from builders.check_evidence import attempt, evidence, finding, made, trial
from tuneoff.record.events import schema
from tuneoff.record.run_record import FlagRecord, RefusalRecord
from tuneoff.trust.check import specs
from tuneoff.trust.check.evidence import AdapterEvidence, Made, Refusals, RequestAnswer
from tuneoff.trust.check.footprint import Left, ListeningSocket


def ended(name: str, state: Any = "completed", seq: int = 0) -> schema.TrialEnded:
    return schema.TrialEnded(seq=seq, t=seq, trial=name, state=state, epochs=3)


@pytest.mark.parametrize(
    ("trials", "refused", "verdict"), [(4, 0, "passed"), (3, 0, "failed"), (4, 1, "failed"), (3, 1, "passed")]
)
def test_the_budget_counts_what_was_asked_for(trials: int, refused: int, verdict: str) -> None:
    refusals = tuple(RefusalRecord(trial=f"x{n}", reason="trials", refused_ns=1) for n in range(refused))
    given = made(
        "honest-max",
        [trial(n, 0.5, level=n / 10) for n in range(trials)],
        spec=specs.listed(specs.sound(4)),
        record_fields={"refusals": refusals},
    )
    assert finding("budget.trials", evidence(given)).verdict == verdict


def test_an_epoch_too_many_is_seen() -> None:
    long = trial(0, 0.5, attempts=(attempt(1, epochs=4),))
    assert finding("budget.epochs", evidence(made("honest-max", [long]))).verdict == "failed"


def test_stops_are_compared_trial_by_trial() -> None:
    spec = specs.scripted()
    stopped = list(spec.stops.values())

    def scripted(first: int, state: Any = "pruned", other: Any = "completed") -> Made:
        trials = []
        for number, configuration in enumerate(spec.configurations):
            item = trial(number, 0.5, level=configuration["level"])
            last = spec.stops.get(item.digest)
            if last is not None:
                epochs = first if last == stopped[0] else last
                item = replace(item, state=state, attempts=(attempt(1, state, epochs=epochs),))
            elif number == 0:
                item = replace(item, state=other)
            trials.append(item)
        return made("scripted", trials, spec=spec)

    names = ("stops.obeyed", "stops.only-scripted")
    for run, wrong in (
        (scripted(stopped[0]), []),
        (scripted(stopped[0] + 1), ["stops.obeyed"]),
        (scripted(6, "completed"), ["stops.obeyed"]),
        (scripted(stopped[0], other="pruned"), ["stops.only-scripted"]),
    ):
        assert [name for name in names if finding(name, evidence(run)).verdict != "passed"] == wrong


def faulty(**changes: Any) -> AdapterEvidence:
    """The faulty run as it has to be; `changes`: trials by their act, None to leave one out."""
    words = {"raise": "planted fault", "no-report": "each epoch must give level, but epoch 1 gave nothing"}
    trials: dict[str, Any] = {
        act: trial(
            number,
            None,
            "failed",
            level=number,
            act=act,
            cause=words.get(act, "must be a finite number"),
            charged="infrastructure" if act == "kill" else "workload",
        )
        for number, act in enumerate(("raise", "nan", "inf", "no-report", "exit", "kill"))
    }
    trials["sound"] = trial(9, 0.5)
    trials.update({name.replace("_", "-"): value for name, value in changes.items()})
    return evidence(made("faulty", [item for item in trials.values() if item is not None], "t00009"))


def test_each_failed_trial_is_expected_with_its_cause_and_charge() -> None:
    assert finding("failures.recorded", faulty()).verdict == "passed"
    wrong: list[dict[str, Any]] = [
        {"raise": None},
        {"raise": trial(20, 0.5, act="raise")},
        {"nan": trial(20, None, "failed", level=1, act="nan", cause="something else", charged="workload")},
        {"kill": trial(20, None, "failed", level=1, act="kill", cause="killed", charged="workload")},
    ]
    for change in wrong:
        assert finding("failures.recorded", faulty(**change)).verdict == "failed", change
    assert finding("failures.others-intact", faulty()).verdict == "passed"
    assert finding("failures.others-intact", faulty(sound=trial(9, None, "failed"))).verdict == "failed"


RETRY_CHECKS = ("retries.infrastructure", "retries.at-most", "retries.workload-never")


def retried(once: list[str], each_time: int = 2, raised: int = 1, retries: int = 1) -> AdapterEvidence:
    def attempts(states: list[str]) -> Any:
        charged = [None if state == "completed" else "infrastructure" for state in states]
        return tuple(attempt(n, state, charged=by) for n, (state, by) in enumerate(zip(states, charged, strict=True), 1))

    last: Any = once[-1]
    trials = [
        trial(0, 0.4 if last == "completed" else None, last, act="kill-once", level=0.7, attempts=attempts(once)),
        trial(1, None, "failed", act="kill", level=0.8, attempts=attempts(["superseded"] * (each_time - 1) + ["failed"])),
        trial(2, None, "failed", act="raise", level=0.9, attempts=attempts(["superseded"] * (raised - 1) + ["failed"])),
    ]
    return evidence(made("retried", trials, spec=specs.retried(retries, has_fixed=True)))


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        (retried(["superseded", "completed"]), []),
        (retried(["failed"]), ["retries.infrastructure"]),
        (retried(["superseded", "completed"], each_time=3), ["retries.at-most"]),
        (retried(["superseded", "completed"], each_time=1), []),
        (retried(["superseded", "completed"], raised=2), ["retries.workload-never"]),
        (retried(["failed"], each_time=1, retries=0), []),
    ],
)
def test_retries_are_counted_for_each_kind_of_failure(given: AdapterEvidence, wrong: list[str]) -> None:
    assert [name for name in RETRY_CHECKS if not finding(name, given).is_good] == wrong


def test_too_many_trials_at_once_and_idle_workers_are_told_apart() -> None:
    def run(name: str, *spans: tuple[int, int], waited_ns: int = 0) -> Made:
        trials = []
        for number, (start, end) in enumerate(spans):
            begun = attempt(1, slot=number % 2, started_ns=start, ended_ns=end, waited_ns=waited_ns, epochs=0)
            trials.append(trial(number, 0.5, level=number, attempts=(begun,)))
        return made(name, trials)

    names = ("workers.at-most", "workers.all-used")
    both, one_by_one = ((0, 10), (0, 10)), ((0, 10), (10, 20))
    for spans, later, waited, wrong in (
        ((*both, (10, 20)), one_by_one, 0, []),
        (both, both, 5, ["workers.at-most"]),
        (one_by_one, one_by_one, 0, ["workers.all-used"]),
        (one_by_one, both, 0, []),  # its second worker came after the coordinator of the first run was killed
    ):
        runs = [run(name, *spans, waited_ns=waited) for name in ("honest-max", "coordinator-killed")]
        given = evidence(*runs, run("scripted", *later))
        assert [name for name in names if finding(name, given).verdict != "passed"] == wrong


def test_threads_are_counted_in_every_way() -> None:
    trials = [trial(0, 0.5)]
    load = {"what": "load", "t": 1, "threads_told": 1, "variables": {"OMP_NUM_THREADS": "1"}}
    train = {"what": "train", "t": 2, "busy_threads": 1}
    assert finding("threads.per-trial", evidence(made("honest-max", trials, notes=[load, train]))).verdict == "passed"
    assert finding("threads.per-trial", evidence(made("honest-max", trials))).is_out_of_reach
    for wrong in (
        [load, {**train, "busy_threads": 2}],
        [{**load, "threads_told": 2}],
        [{**load, "variables": {"OMP_NUM_THREADS": "2"}}],
        [{**load, "variables": {"OMP_NUM_THREADS": None}}],
    ):
        assert finding("threads.per-trial", evidence(made("honest-max", trials, notes=wrong))).verdict == "failed", wrong
    told = trial(0, 0.5, attempts=(attempt(1, threads=2),))
    assert finding("threads.per-trial", evidence(made("honest-max", [told]))).verdict == "failed"


def test_what_is_left_fails_in_the_check_of_its_kind() -> None:
    kinds = {
        "left.processes": "process",
        "left.ports": "port",
        "left.shared-memory": "shared memory",
        "left.temporary-files": "temporary file",
        "left.home-files": "home file",
        "left.outside": "outside",
    }
    for kind in kinds.values():
        given = evidence(made("honest-max", left=(Left(kind, "x"),)))  # type: ignore[arg-type]
        assert [kinds[name] for name in kinds if finding(name, given).verdict != "passed"] == [kind]


def test_a_port_that_others_can_reach_is_seen() -> None:
    for address, verdict in (("127.0.0.1", "passed"), ("0.0.0.0", "failed")):
        given = evidence(made("honest-max", listeners=(ListeningSocket("1", address, 80),)))
        assert finding("ports.loopback-only", given).verdict == verdict


def test_flags_of_damaged_event_files_are_failures() -> None:
    flags = (FlagRecord(name="missing_lines", text="lines are missing"),)
    assert finding("records.no-gaps", evidence(made("honest-max", record_fields={"flags": flags}))).verdict == "failed"
    assert finding("records.no-gaps", evidence(made("honest-max", record_fields={"torn_lines": 1}))).verdict == "failed"
    assert finding("records.no-gaps", evidence(made("honest-max"))).verdict == "passed"


def test_what_is_declared_must_be_served() -> None:
    refused = RequestAnswer(family="undeclared", request="sampler 'gp'", outcome="refused", text="not offered")
    served = RequestAnswer(family="declared", request="declared sampler 'grid'", outcome="accepted")
    for answers, verdict, text in (
        ([refused], "passed", "1 requests refused"),
        ([refused, served], "passed", "1 requests refused, 1 served"),
        ([refused, replace(served, outcome="refused", text="no")], "failed", "declared sampler 'grid' was refused: no"),
        ([replace(refused, outcome="accepted"), served], "failed", "sampler 'gp' was accepted: not offered"),
    ):
        given = evidence(refusals=Refusals(answers=answers, framework_imported=False))
        found = finding("refusal.undeclared", given)
        assert (found.verdict, found.text) == (verdict, text)


def test_what_must_be_refused_is_refused_in_one_line() -> None:
    def given(outcome: str, text: str) -> AdapterEvidence:
        asked = RequestAnswer(family="adapter-options", request="option", outcome=outcome, text=text)
        return evidence(refusals=Refusals(answers=[asked], framework_imported=False))

    for outcome, text, verdict in (
        ("refused", "no such option", "passed"),
        ("refused", "no\nsuch option", "failed"),
        ("accepted", "", "failed"),
        ("broken", "KeyError", "failed"),
    ):
        assert finding("refusal.adapter-options", given(outcome, text)).verdict == verdict
    imported = Refusals(answers=[], framework_imported=True)
    assert finding("refusal.starts-nothing", evidence(refusals=imported)).verdict == "failed"


def test_a_test_split_that_trials_read_is_seen() -> None:
    for t, verdict in ((5, "failed"), (50, "passed")):
        given = evidence(made("honest-max", events=[ended("t0", seq=10)], notes=[{"what": "test", "t": t}]))
        assert finding("test.split-unseen", given).verdict == verdict


@pytest.mark.parametrize(
    ("allowed", "limit", "verdict"),
    [
        (2, "none (declared, not enforced)", "passed"),
        (1, "none (declared, not enforced)", "failed"),
        (3, "none (declared, not enforced)", "failed"),
        (1, "container", "passed"),
    ],
)
def test_trials_that_may_use_fewer_processors_than_there_are_need_a_limit_in_the_record(
    monkeypatch: pytest.MonkeyPatch, allowed: int, limit: str, verdict: str
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    trials = [trial(0, 0.5, attempts=(attempt(1, cpus_allowed=allowed),))]
    given = made("honest-max", trials, record_fields={"environment": {"limits": {"memory": "none", "cpus": limit}}})
    assert finding("limits.processors", evidence(given)).verdict == verdict
