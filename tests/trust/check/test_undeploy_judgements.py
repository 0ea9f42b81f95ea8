"""Checks of undeploy and of interruptions, on events made by hand."""

from __future__ import annotations

from typing import Any

from builders.check_evidence import evidence, finding, made
from tuneoff.record.events import schema
from tuneoff.trust.check.evidence import AdapterEvidence
from tuneoff.trust.check.footprint import Left


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

    def given(
        *calls: tuple[float, str | None] | None, left: tuple[Left, ...] = (), usual: tuple[Left, ...] = ()
    ) -> AdapterEvidence:
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
