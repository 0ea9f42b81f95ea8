"""Checks on records made by hand: each sees what is wrong, and only that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import binom

from check.evidences import attempt, evidence, finding, made, trial
from tuneoff.check import specs
from tuneoff.check.checks.space import _at_most
from tuneoff.check.evidence import Answer, Drawn, Evidence, Made, Refusals
from tuneoff.check.footprint import Left
from tuneoff.check.listeners import Listener
from tuneoff.events import schema
from tuneoff.experiment.sampling import draws
from tuneoff.records.model import FlagRecord, RefusalRecord

LEVELS = (0.4, 0.9, 0.2, 0.6)
BEST, WORST = "t00001", "t00002"


def both(**changes: Any) -> Evidence:
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


def test_the_value_of_the_last_epoch_is_not_that_of_the_best() -> None:
    given = both(record_fields={"value": 0.89})
    assert finding("best.value", given).verdict == "failed"
    assert finding("best.is-best", both()).verdict == "passed"


@pytest.mark.parametrize(
    ("named", "wrong"), [("t00000", None), ("t00002", None), ("t00001", "best.ties"), ("t00003", "best.nan")]
)
def test_ties_and_nan_are_told_apart(named: str, wrong: str | None) -> None:
    trials = [trial(0, 0.7), trial(1, 0.3), trial(2, 0.7, act="calm"), trial(3, None, "failed", level=0.9, act="nan")]
    given = evidence(made("odd-values", trials, named))
    found = [name for name in ("best.ties", "best.nan") if finding(name, given).verdict != "passed"]
    assert found == ([wrong] if wrong else [])


def test_a_pruned_trial_is_no_best_one() -> None:
    trials = [trial(0, 0.4), trial(1, 0.9, "pruned")]
    assert finding("best.completed-only", evidence(made("scripted", trials, "t00001"))).verdict == "failed"
    assert finding("best.completed-only", evidence(made("scripted", trials, "t00000"))).verdict == "passed"


def ended(name: str, state: Any = "completed", seq: int = 0) -> schema.TrialEnded:
    return schema.TrialEnded(seq=seq, t=seq, trial=name, state=state, epochs=3)


def begun(name: str, number: int = 1, seq: int = 0, **fields: Any) -> schema.TrialStarted:
    values = {"slot": 0, "configuration": {"level": 0.5}, "digest": "d", "seed": 1, "threads": 1, **fields}
    return schema.TrialStarted(seq=seq, t=seq, trial=name, attempt=number, **values)


def test_a_completed_trial_that_is_begun_again_takes_the_incumbent_back() -> None:
    again = [begun("t0"), ended("t0", seq=1), begun("t0", 2, seq=2)]
    assert finding("incumbent.monotone", evidence(made("honest-max", events=again))).verdict == "failed"
    retried = [begun("t0"), ended("t0", "failed", seq=1), begun("t0", 2, seq=2)]
    assert finding("incumbent.monotone", evidence(made("honest-max", events=retried))).verdict == "passed"


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


def test_a_configuration_that_changed_on_its_way_is_seen() -> None:
    def events(received: dict[str, Any]) -> list[schema.Event]:
        return [
            schema.TrialSubmitted(seq=0, t=0, trial="t0", configuration={"level": 1}),
            begun("t0", configuration=received),
        ]

    assert finding("configurations.received", evidence(made("honest-max", events=events({"level": 1})))).verdict == "passed"
    for changed in ({"level": 1.0}, {"level": 2}, {}):
        given = evidence(made("honest-max", events=events(changed)))
        assert finding("configurations.received", given).verdict == "failed", changed


def test_given_configurations_are_counted_with_repetitions() -> None:
    spec = specs.listed(specs.sound(2))
    one, two = spec.configurations
    submissions = {"passed": [one, two], "failed": [one, one]}
    for verdict, configurations in submissions.items():
        events = [
            schema.TrialSubmitted(seq=n, t=n, trial=f"t{n}", configuration=dict(item)) for n, item in enumerate(configurations)
        ]
        assert finding("configurations.listed", evidence(made("honest-max", spec=spec, events=events))).verdict == verdict


SPACE_CHECKS = ("space.inside", "space.bounds-reached", "space.ends-not-starved")


def space_evidence(change: Callable[[dict[str, Any], int], None]) -> Evidence:
    spec = specs.drawn(8)
    configurations = []
    for number, configuration in zip(range(1000), draws(spec.search_space, 3), strict=False):
        change(configuration, number)
        configurations.append(configuration)
    run = made("random-1-workers-1", spec=spec)
    return replace(evidence(run), drawn=Drawn(source="draw", configurations=configurations))


def outside(configuration: dict[str, Any], number: int) -> None:
    configuration["depth"] += 3 * (number == 500)


def never_the_upper(configuration: dict[str, Any], number: int) -> None:
    configuration["depth"] = min(configuration["depth"], 2)


def half_at_the_ends(configuration: dict[str, Any], number: int) -> None:
    configuration["depth"] = (1, 2, 2, 3)[number % 4]


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda configuration, number: None, []),
        (outside, ["space.inside"]),
        (lambda configuration, number: configuration.update(depth=float(configuration["depth"])), ["space.inside"]),
        (lambda configuration, number: configuration.update(more=1), ["space.inside"]),
        (never_the_upper, ["space.bounds-reached"]),
        (half_at_the_ends, ["space.ends-not-starved"]),
    ],
)
def test_a_wrong_space_fails_in_one_check(change: Callable[[dict[str, Any], int], None], wrong: list[str]) -> None:
    given = space_evidence(change)
    found = [name for name in SPACE_CHECKS if finding(name, given).verdict != "passed"]
    if wrong == ["space.inside"] and found != wrong:  # other types are other values, to all three
        assert "space.inside" in found
    else:
        assert found == wrong


def test_a_draw_that_ends_outside_the_space_is_seen() -> None:
    given = space_evidence(lambda configuration, number: None)
    assert given.drawn is not None
    given = replace(given, drawn=replace(given.drawn, problem="4 is none of the 3 points"))
    assert finding("space.inside", given).verdict == "failed"


@pytest.mark.parametrize(("count", "draws", "share"), [(0, 10, 0.3), (250, 1000, 1 / 3), (1000, 1000, 0.5)])
def test_the_binomial_tail_is_exact(count: int, draws: int, share: float) -> None:
    assert _at_most(count, draws, share) == pytest.approx(binom.cdf(count, draws, share), rel=1e-9)


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


def faulty(**changes: Any) -> Evidence:
    """The faulty run as it has to be; `changes`: trials by their act, None to leave one out."""
    words = {"raise": "planted fault", "nan": "must be a finite number", "inf": "must be a finite number"}
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


def retried(once: list[str], each_time: int = 2, raised: int = 1, retries: int = 1) -> Evidence:
    def attempts(states: list[str]) -> Any:
        charged = [None if state == "completed" else "infrastructure" for state in states]
        return tuple(attempt(n, state, charged=by) for n, (state, by) in enumerate(zip(states, charged, strict=True), 1))

    last: Any = once[-1]
    trials = [
        trial(0, 0.4 if last == "completed" else None, last, act="kill-once", level=0.7, attempts=attempts(once)),
        trial(1, None, "failed", act="kill", level=0.8, attempts=attempts(["superseded"] * (each_time - 1) + ["failed"])),
        trial(2, None, "failed", act="raise", level=0.9, attempts=attempts(["superseded"] * (raised - 1) + ["failed"])),
    ]
    return evidence(made("retried", trials, spec=specs.retried(retries)))


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
def test_retries_are_counted_for_each_kind_of_failure(given: Evidence, wrong: list[str]) -> None:
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
    assert finding("threads.per-trial", evidence(made("honest-max", trials))).verdict == "not applicable"
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
        given = evidence(made("honest-max", listeners=(Listener("1", address, 80),)))
        assert finding("ports.loopback-only", given).verdict == verdict


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
    process = (Left("process", "x"),)

    def given(*calls: tuple[float, str | None] | None, left: tuple[Left, ...] = (), usual: tuple[Left, ...] = ()) -> Evidence:
        sound = [made(name, events=undeploys(GOOD)) for name in names if name != "failed-setup"]
        return evidence(made("honest-max", left=usual), made("failed-setup", events=undeploys(*calls), left=left), *sound)

    for evidence_given, verdict in (
        (given(GOOD), "passed"),
        (given(GOOD, left=process), "failed"),
        (given(GOOD, left=process, usual=process), "passed"),
        (given((0.1, "KeyError: x"), GOOD), "failed"),  # that a fresh process succeeded is no excuse
        (given(PLANTED, PLANTED), "passed"),
        (given(None), "failed"),
    ):
        assert finding("undeploy.after-failure", evidence_given).verdict == verdict


def test_a_second_call_that_fails_is_seen_though_a_third_one_succeeds() -> None:
    for calls, verdict in (((GOOD,), "passed"), (((0.1, "FileNotFoundError: x"), GOOD), "failed"), ((None,), "failed")):
        assert finding("undeploy.twice", evidence(made("undeployed-twice", events=undeploys(*calls)))).verdict == verdict


def test_a_slow_undeploy_is_seen_by_its_own_limit() -> None:
    for calls, verdict in (((GOOD,), "passed"), (((20.0, None),), "failed"), ((None, GOOD), "failed")):
        sound = made("honest-max", events=undeploys(GOOD))
        given = evidence(sound, made("interrupted", events=undeploys(*calls)))
        assert finding("undeploy.in-time", given).verdict == verdict, calls


def test_an_interruption_is_in_time_where_undeploy_begins_soon() -> None:
    for began, seconds, verdict in ((2.0, 3.0, "passed"), (8.0, 9.0, "failed"), (2.0, 16.0, "failed"), (2.0, None, "not tested")):
        fields: dict[str, Any] = {"record_fields": {"status": "interrupted", "reason": "by the user"}, "end_seconds": seconds}
        given = evidence(made("interrupted", events=undeploys(GOOD, began=began), **fields))
        assert finding("interruption.in-time", given).verdict == verdict


def test_flags_of_damaged_event_files_are_failures() -> None:
    flags = (FlagRecord(name="missing_lines", text="lines are missing"),)
    assert finding("records.no-gaps", evidence(made("honest-max", record_fields={"flags": flags}))).verdict == "failed"
    assert finding("records.no-gaps", evidence(made("honest-max", record_fields={"torn_lines": 1}))).verdict == "failed"
    assert finding("records.no-gaps", evidence(made("honest-max"))).verdict == "passed"


def test_what_is_declared_must_be_served() -> None:
    refused = Answer(family="undeclared", request="sampler 'gp'", outcome="refused", text="not offered")
    served = Answer(family="declared", request="declared sampler 'grid'", outcome="accepted")
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
    def given(outcome: str, text: str) -> Evidence:
        asked = Answer(family="adapter-options", request="option", outcome=outcome, text=text)
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


def test_a_continued_run_keeps_what_had_ended_and_its_budget() -> None:
    spec = specs.listed([(0.4, "sound"), (0.9, "sound")])
    first = made("interrupted", [trial(0, 0.4), trial(1, None, "cancelled", level=0.9)], spec=spec)
    again = trial(0, 0.4, attempts=(attempt(1), attempt(2)))
    for continued, verdict in (
        ([trial(0, 0.4), trial(1, 0.9)], "passed"),
        ([trial(1, 0.9)], "failed"),  # lost
        ([again, trial(1, 0.9)], "failed"),  # repeated
        ([trial(0, 0.4), trial(1, 0.9), trial(2, 0.4)], "failed"),  # over the budget
        ([trial(0, 0.4), trial(1, 0.5)], "failed"),  # not the given configuration
        ([trial(0, 0.4, value_epoch=2, level=0.3), trial(1, 0.9)], "failed"),  # another one under its name
    ):
        given = evidence(first, made("continued", continued, "t00001", spec=spec))
        assert finding("resume.keeps-trials", given).verdict == verdict, continued


def test_what_cannot_be_continued_has_to_be_refused() -> None:
    for outcome, verdict in (("refused", "passed"), ("accepted", "failed")):
        asked = Answer(family="resume", request="to go on", outcome=outcome, text="not by tuneoff yet")
        given = evidence(refusals=Refusals(answers=[asked], framework_imported=False))
        assert finding("resume.as-declared", given).verdict == verdict
