"""Which meters a matrix opens, and what the user is told of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from measure.power.meters import Counter, plan_of
from tuneoff.errors import ExperimentError
from tuneoff.experiment.power_settings import PowerSettings
from tuneoff.measure.power import metering as plan
from tuneoff.measure.power.metering import NO_POWER, Baseline, PowerPlan, open_power
from tuneoff.measure.power.select_meter import Chosen
from tuneoff.meter import MeterError, OptionError


def refuse(*arguments: object, **options: object) -> Chosen:
    raise MeterError("no RAPL: no such folder; use another meter")


def test_a_named_meter_that_cannot_be_used_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "choose", refuse)
    with pytest.raises(
        ExperimentError, match=r"^power\.meter 'rapl' cannot be used: no RAPL: no such folder; use another meter$"
    ):
        open_power(PowerSettings(meter="rapl"))


def test_a_wrong_option_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*arguments: object) -> Chosen:
        raise OptionError("meter rapl has no option 'roo'")

    monkeypatch.setattr(plan, "choose", raising)
    with pytest.raises(ExperimentError, match=r"^power\.options: meter rapl has no option 'roo'$"):
        open_power(PowerSettings())


def test_paths_of_options_begin_at_the_experiment_file_and_are_stored_as_written() -> None:
    settings = PowerSettings(meter="replay", options={"path": "a.csv"}, folder="experiments")
    assert settings.placed_options == {"path": "experiments/a.csv"}
    assert "experiments" not in str(settings.to_json())
    assert PowerSettings(**settings.to_json()).options == {"path": "a.csv"}
    for options, there in (
        ({"rapl": {"root": "x"}, "model": {"cpu": "a"}}, {"rapl": {"root": "e/x"}, "model": {"cpu": "a"}}),
        ({"rapl": {"root": "/x"}}, {"rapl": {"root": "/x"}}),
        ({"rapl": 5}, {"rapl": 5}),
    ):
        assert PowerSettings(options=options, folder="e").placed_options == there


@pytest.mark.parametrize(
    ("command", "there"),
    [
        ("./meter.sh -x ./y", "e/meter.sh -x ./y"),
        (["bin/meter", "y"], ["e/bin/meter", "y"]),
        ("ipmitool sensor", "ipmitool sensor"),
        ("/bin/meter", "/bin/meter"),
        ("'./half", "'./half"),
        (5, 5),
    ],
)
def test_a_program_with_a_slash_begins_at_the_experiment_file_and_one_of_the_path_stays(command: object, there: object) -> None:
    options = {"command": command}
    assert PowerSettings(meter="command", options=options, folder="e").placed_options == {"command": there}
    assert PowerSettings(meter="command", options=options, folder=".").placed_options == options


def test_options_are_shown_as_a_file_has_them() -> None:
    options = {"command": ["./meter.sh", "-n 2"], "timeout_seconds": 5.0, "x": {"a": None, "b": [1, True]}}
    shown = "command: ./meter.sh '-n 2', timeout_seconds: 5, x: {a: null, b: [1, true]}"
    assert PowerSettings(meter="m", options=options).line == f"power: meter m ({shown}), read every 0.2 s"


def test_settings_reach_the_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def choose(*arguments: object) -> Chosen:
        asked.extend(arguments)
        return Chosen(name="test", meter=Counter(), reason="no other")

    monkeypatch.setattr(plan, "choose", choose)
    power = open_power(PowerSettings(meter="a", options={"x": 1}, interval_seconds=0.5))
    assert asked == ["a", {"x": 1}, {}]
    assert (power.interval_seconds, power.reason, power.problems) == (0.5, "no other", ())
    assert power.line() == "power: test (measured: a test's counter); no better one: no other"


def test_no_meter_is_opened_where_none_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "choose", refuse)
    power = open_power(PowerSettings(meter="none", interval_seconds=0.5))
    assert (power.chosen, power.interval_seconds) == (None, 0.5)
    assert power.line() == "power: no meter (none was asked for)"
    assert PowerSettings(meter="none").line == "power: no meter, as asked for"


def test_a_meter_that_fails_when_it_is_closed_costs_no_finished_run(caplog: pytest.LogCaptureFixture) -> None:
    meter = Counter()

    def fail() -> None:
        raise RuntimeError("not\ninitialised")

    meter.close = fail  # type: ignore[method-assign]
    plan_of(meter).close()
    assert caplog.messages == ["the power meter test fails when it is closed: RuntimeError: not initialised; tell its author"]


def test_the_default_interval_is_a_fifth_of_a_second() -> None:
    assert NO_POWER.interval_seconds == PowerPlan().interval_seconds == 0.2


def test_problems_of_the_baseline_are_told() -> None:
    assert replace(plan_of(Counter()), baseline=Baseline(problems=("not idle",))).problems == ("not idle",)
