"""What no planted adapter shows of a check: what it leaves to another one, what it must not count, and its arithmetic."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from builders.check_evidence import attempt, evidence, finding, made, trial
from tuneoff.experiment.spec import Failures
from tuneoff.record.events import schema
from tuneoff.record.run_record import RefusalRecord
from tuneoff.trust.check import planned_runs as experiments
from tuneoff.trust.check.checks.failures import EXPECTED
from tuneoff.trust.check.checks.space import _outside
from tuneoff.trust.check.evidence import AdapterEvidence, FinishedRun, Refusals, RequestAnswer
from tuneoff.trust.check.footprint import Leftover


@pytest.mark.parametrize(
    ("trials", "refused", "verdict"), [(4, 0, "passed"), (3, 0, "failed"), (4, 1, "failed"), (3, 1, "passed")]
)
def test_the_budget_counts_what_was_asked_for(trials: int, refused: int, verdict: str) -> None:
    refusals = tuple(RefusalRecord(trial=f"x{n}", reason="trials", refused_ns=1) for n in range(refused))
    given = made(
        "honest-max",
        [trial(n, 0.5, level=n / 10) for n in range(trials)],
        spec=experiments.listed(experiments.sound(4)),
        record_fields={"refusals": refusals},
    )
    assert finding("budget.trials", evidence(given)).verdict == verdict


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
    spec = replace(experiments.listed([(0.5, "sound")]), failures=Failures(retries=retries))
    return evidence(made("retried", trials, spec=spec))


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
    def run(name: str, *spans: tuple[int, int], waited_ns: int = 0) -> FinishedRun:
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


LEVELS = (0.4, 0.9, 0.2, 0.6)
BEST, WORST = "t00001", "t00002"


def both(**changes: Any) -> AdapterEvidence:
    """Two honest runs: the same trials, the best one under max and the best one under min named."""
    trials = changes.pop("trials", [trial(number, value) for number, value in enumerate(LEVELS)])
    best_max, best_min = changes.pop("best", (BEST, WORST))
    return evidence(made("honest-max", trials, best_max, **changes), made("honest-min", trials, best_min, mode="min", **changes))


BEST_CHECKS = ("best.among-trials", "best.is-best", "best.direction", "best.value")


@pytest.mark.parametrize(
    ("best", "wrong"),
    [
        ((BEST, WORST), None),
        (("t00003", WORST), "best.is-best"),
        ((BEST, "t00003"), "best.is-best"),
        ((WORST, BEST), "best.direction"),
        ((BEST, BEST), "best.direction"),
        (("t00009", WORST), "best.among-trials"),
        ((None, WORST), "best.among-trials"),
        ((None, BEST), "best.among-trials best.direction"),
        ((WORST, "t00003"), "best.is-best"),
        (("t00003", BEST), "best.is-best"),
    ],
)
def test_a_wrong_best_trial_fails_in_one_check(best: tuple[str | None, str], wrong: str | None) -> None:
    given = both(best=best)
    found = [name for name in BEST_CHECKS if finding(name, given).verdict == "failed"]
    assert found == (wrong.split() if wrong else [])


def test_a_trial_that_did_not_complete_is_neither_the_best_nor_the_worst() -> None:
    trials = [trial(number, value) for number, value in enumerate(LEVELS)]
    given = both(trials=[*trials, trial(4, 0.95, "failed"), trial(5, 0.1, "pruned")])
    assert {finding(name, given).verdict for name in BEST_CHECKS} == {"passed"}


@pytest.mark.parametrize("best", [(None, None), (BEST, None), (None, WORST), (BEST, "t00009")])
def test_where_no_trial_is_named_nothing_is_said_of_it(best: tuple[str | None, str | None]) -> None:
    for name in ("best.is-best", "best.direction", "best.value"):
        said = finding(name, both(best=best))
        assert (said.verdict, said.text) == ("not tested", "no trial was named: see best.among-trials")


def test_the_worst_trial_passes_neither_as_the_best_nor_by_its_direction() -> None:
    reversed_direction, by_chance = both(best=(WORST, BEST)), both(best=(WORST, "t00003"))
    assert "see best.direction" in finding("best.is-best", reversed_direction).text
    assert finding("best.is-best", reversed_direction).verdict == "not tested"
    assert "see best.is-best" in finding("best.direction", by_chance).text
    assert finding("best.direction", by_chance).verdict == "not tested"


def undeploys(*calls: tuple[float, str | None] | None, began: float = 2.0) -> list[schema.Event]:
    """Return the events of calls of undeploy: how long each took and how it failed; None: it never ended."""
    events: list[schema.Event] = [schema.RunStopped(seq=0, t=10**9, cause="by the user", charged="user", cancels=True)]
    at = int(began * 1e9)
    for call in calls:
        events.append(schema.StepStarted(seq=0, t=at, step="undeploy"))
        if call is not None:
            at += int(call[0] * 1e9)
            events.append(schema.StepEnded(seq=0, t=at, step="undeploy", error=call[1]))
    return events


GOOD = (0.1, None)
PLANTED = (0.1, "PlantedFailure: planted in step undeploy")


def test_undeploy_is_judged_after_each_failure_less_what_every_run_leaves() -> None:
    names = [f"failed-{step}" for step in ("deploy", "setup", "trial", "collect", "test", "metrics", "undeploy")]
    process = (Leftover("process", "x"),)

    def given(
        *calls: tuple[float, str | None] | None, left: tuple[Leftover, ...] = (), usual: tuple[Leftover, ...] = ()
    ) -> AdapterEvidence:
        sound = [made(name, events=undeploys(GOOD)) for name in names if name != "failed-setup"]
        return evidence(
            made("honest-max", leftovers=usual), made("failed-setup", events=undeploys(*calls), leftovers=left), *sound
        )

    for evidence_given, verdict in (
        (given(GOOD), "passed"),
        (given(GOOD, left=process), "failed"),
        (given(GOOD, left=process, usual=process), "passed"),
        (given((0.1, "KeyError: x"), GOOD), "failed"),  # that a fresh process succeeded is not an excuse
        (given(PLANTED, PLANTED), "passed"),
        (given(None), "failed"),
    ):
        assert finding("undeploy.after-failure", evidence_given).verdict == verdict


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({}, []),
        ({"level": None}, ["'level' is missing"]),
        ({"other": 1}, ["'other' is in no search space"]),
        ({"level": 1.1}, ["level=1.1 is outside"]),
    ],
)
def test_a_configuration_has_a_value_of_each_dimension_and_no_other(changes: dict[str, Any], problems: list[str]) -> None:
    given = {"level": 0.5, "act": "sound", **changes}
    configuration = {name: value for name, value in given.items() if value is not None}
    for problem, expected in zip(_outside(experiments.LISTED, configuration), problems, strict=True):
        assert problem.startswith(expected)


def _all_failed(**states: Any) -> FinishedRun:
    """Return a run whose trials failed as they have to, but for those whose state is given, by their act."""
    trials = []
    for number, (act, (cause, charged)) in enumerate(EXPECTED.items()):
        state = states.get(act, "failed")
        about = {"cause": cause or "died", "charged": charged[0]} if state == "failed" else {}
        trials.append(trial(number, None, state, act=act, level=number / 10, **about))
    return made("faulty", trials)


@pytest.mark.parametrize(
    ("check_id", "sound", "broken"),
    [
        ("failures.recorded", _all_failed(), _all_failed(**{"raise": "completed"})),
        ("budget.early-ends", made("early-ends"), made("early-ends", record_fields={"status": "timeout", "reason": "late"})),
        (
            "threads.per-trial",
            made("honest-max", notes=[{"what": "load", "t": 0, "threads_told": 1}]),
            made("honest-max", notes=[{"what": "load", "t": 0, "threads_told": 2}]),
        ),
        (
            "test.best-tested",
            *(
                made("honest-min", [trial(0, 0.5)], "t00000", events=[schema.Tested(seq=0, t=0, trial=tested, scores={})])
                for tested in ("t00000", "t00001")
            ),
        ),
    ],
)
def test_what_else_breaks_a_rule(check_id: str, sound: FinishedRun, broken: FinishedRun) -> None:
    assert [finding(check_id, evidence(run)).verdict for run in (sound, broken)] == ["passed", "failed"]
