"""Which meters a matrix opens, and what the user is told of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from power.meters import Counter, plan_of
from tuneoff.errors import ExperimentError
from tuneoff.power import plan
from tuneoff.power.choose import Chosen
from tuneoff.power.meter import MeterError
from tuneoff.power.plan import NO_POWER, Baseline, PowerPlan, open_power
from tuneoff.power.settings import PowerSettings


def refuse(*arguments: object, **options: object) -> Chosen:
    raise MeterError("no RAPL: no such folder; use another meter")


def test_a_named_meter_that_cannot_be_used_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "choose", refuse)
    with pytest.raises(
        ExperimentError, match=r"^power\.meter 'rapl' cannot be used: no RAPL: no such folder; use another meter$"
    ):
        open_power(PowerSettings(meter="rapl"))


def test_without_any_meter_runs_go_on_and_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "choose", refuse)
    power = open_power(PowerSettings())
    assert power.chosen is None
    assert power.line() == "power: no meter (no RAPL: no such folder; use another meter)"


def test_settings_reach_the_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def choose(*arguments: object, **options: object) -> Chosen:
        asked.extend([*arguments, options])
        return Chosen(name="test", meter=Counter(), reason="no other", second_problem="not there")

    monkeypatch.setattr(plan, "choose", choose)
    power = open_power(PowerSettings(meter="a", options={"x": 1}, interval_seconds=0.5, second="b"))
    assert asked == ["a", {"x": 1}, {"second": "b"}]
    assert (power.interval_seconds, power.reason, power.problems) == (0.5, "no other", ("not there",))
    told = "power: test (measured: a test's counter); no second opinion: not there; no better one: no other"
    assert power.line() == told


def test_no_meter_is_opened_where_none_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "choose", refuse)
    power = open_power(PowerSettings(meter="none", interval_seconds=0.5))
    assert (power.chosen, power.interval_seconds) == (None, 0.5)
    assert power.line() == "power: no meter (none was asked for)"
    assert PowerSettings(meter="none").line == "power: no meter, as asked for"


def test_a_meter_that_fails_when_it_is_closed_costs_no_finished_run(caplog: pytest.LogCaptureFixture) -> None:
    meter, second = Counter(), Counter()

    def fail() -> None:
        raise RuntimeError("not\ninitialised")

    meter.close = fail  # type: ignore[method-assign]
    plan_of(meter, second=second).close()
    assert second.closed == 1
    assert caplog.messages == ["the power meter test fails when it is closed: RuntimeError: not initialised; tell its author"]


def test_the_default_interval_is_a_fifth_of_a_second() -> None:
    assert NO_POWER.interval_seconds == PowerPlan().interval_seconds == 0.2


def test_a_second_opinion_and_problems_of_the_baseline_are_told() -> None:
    power = plan_of(Counter(), second=Counter())
    assert power.line() == "power: test (measured: a test's counter), with other as a second opinion"
    assert replace(power, baseline=Baseline(problems=("not idle",))).problems == ("not idle",)


def test_all_meters_are_closed() -> None:
    one, other = Counter(), Counter()
    plan_of(one, second=other).close()
    assert (one.closed, other.closed) == (1, 1)
