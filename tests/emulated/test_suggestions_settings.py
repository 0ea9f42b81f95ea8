"""What the services say of settings, and what medianstop makes of finished trials."""

from __future__ import annotations

from typing import Any

import pytest

from emulated.katib_world import experiment_named
from katib_emulation.suggestions import MedianStop, told_trials, validate_algorithm, validate_early_stopping

Object = dict[str, Any]


def with_settings(algorithm: str, **settings: str) -> Object:
    given = [{"name": name, "value": value} for name, value in settings.items()]
    experiment = experiment_named(algorithm={"algorithmName": algorithm, "algorithmSettings": given})
    for parameter in experiment["spec"]["parameters"]:
        parameter["feasibleSpace"]["distribution"] = "uniform"
    return experiment


@pytest.mark.parametrize(
    ("algorithm", "settings", "why"),
    [
        ("random", {"seed": "1"}, "unknown setting seed for algorithm random"),
        ("random", {"random_state": "-1"}, "random_state should be great or equal than zero"),
        ("random", {"random_state": "x"}, "failed to validate random_state(x): invalid literal for int() with base 10: 'x'"),
        ("multivariate-tpe", {"gamma": "0.5"}, "unknown setting gamma for algorithm multivariate-tpe"),
        ("multivariate-tpe", {"n_startup_trials": "-1"}, "n_startup_trials should be greate or equal than zero"),
        ("grid", {"sigma": "1"}, "unknown setting sigma for algorithm grid"),
    ],
)
def test_a_refused_setting_is_named_in_the_services_words(algorithm: str, settings: dict[str, str], why: str) -> None:
    assert validate_algorithm(with_settings(algorithm, **settings)) == why


def test_sound_settings_pass() -> None:
    assert validate_algorithm(with_settings("random", random_state="3")) is None
    assert validate_algorithm(with_settings("multivariate-tpe", n_startup_trials="5", n_ei_candidates="24")) is None


def test_a_grid_needs_steps_and_enough_combinations() -> None:
    experiment = with_settings("grid")
    why = validate_algorithm(experiment)
    assert why is not None
    assert why.startswith("failed to validate parameters")
    assert "must include step" in why
    experiment["spec"]["parameters"][0]["feasibleSpace"]["step"] = "0.8"
    assert validate_algorithm(experiment) is None
    experiment["spec"]["maxTrialCount"] = 5
    assert validate_algorithm(experiment) == "Max Trial Count: 5 > all possible search combinations: 4"


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("start_step", "0", "start_step must be greater or equal than one (>=1)"),
        ("min_trials_required", "0", "min_trials_required must be greater than zero (>0)"),
        ("percentile", "50", "unknown setting percentile for algorithm medianstop"),
        ("start_step", "x", "failed to validate start_step(x): invalid literal for int() with base 10: 'x'"),
        ("start_step", "2", None),
    ],
)
def test_medianstop_validates_its_settings(name: str, value: str, why: str | None) -> None:
    assert validate_early_stopping({"algorithmSettings": [{"name": name, "value": value}]}) == why


def trial(name: str, end: str, latest: str = "0.5") -> Object:
    conditions = [{"type": "Running", "status": "False"}, {"type": end, "status": "True"}]
    metric = {"name": "accuracy", "min": "0.1", "max": "unavailable", "latest": latest}
    objective = {"objectiveMetricName": "accuracy", "metricStrategies": [{"name": "accuracy", "value": "max"}]}
    return {
        "metadata": {"name": name},
        "spec": {"objective": objective, "parameterAssignments": [{"name": "lr", "value": "0.3"}]},
        "status": {"conditions": conditions, "observation": {"metrics": [metric]}},
    }


def median_stop(type_: str = "maximize", **settings: str) -> MedianStop:
    given = [{"name": name, "value": value} for name, value in settings.items()]
    experiment = experiment_named(
        objective={"type": type_, "objectiveMetricName": "accuracy"},
        earlyStopping={"algorithmName": "medianstop", "algorithmSettings": given},
    )
    reports = {"t1": ["1", "1", "9"], "t2": ["2", "2"], "t3": ["30", "30"], "t4": ["5", "5"], "empty": [], "nan": [""]}
    return MedianStop(experiment, lambda name: reports[name])


def test_medianstop_takes_the_mean_of_the_means_of_the_first_reports() -> None:
    trials = [trial(f"t{i}", "Succeeded") for i in (1, 2, 3, 4)]
    rules = median_stop(start_step="2").rules(trials)
    assert rules == [{"name": "accuracy", "value": "9.5", "comparison": "less", "startStep": 2}]  # the median is 3.5


def test_medianstop_compares_the_other_way_where_less_is_better() -> None:
    rules = median_stop("minimize", min_trials_required="1").rules([trial("t2", "Succeeded")])
    assert rules == [{"name": "accuracy", "value": "2.0", "comparison": "greater", "startStep": 4}]


def test_medianstop_has_no_rule_until_enough_trials_succeeded() -> None:
    stop = median_stop()
    assert stop.rules([trial("t1", "Succeeded"), trial("t2", "Succeeded"), trial("t3", "EarlyStopped")]) == []
    assert len(stop.rules([trial("t4", "Succeeded"), trial("t1", "Succeeded"), trial("t2", "Succeeded")])) == 1


@pytest.mark.parametrize("name", ["empty", "nan"])
def test_medianstop_fails_on_a_trial_without_numbers(name: str) -> None:
    with pytest.raises(ValueError):
        median_stop().rules([trial(name, "Succeeded")])


def test_a_service_is_told_of_ended_trials_that_have_a_value() -> None:
    trials = [trial("a", "Succeeded"), trial("b", "EarlyStopped"), trial("c", "Failed"), trial("d", "MetricsUnavailable")]
    assert [(t.name, t.value, dict(t.configuration)) for t in told_trials(trials)] == [
        ("a", 0.5, {"lr": "0.3"}),
        ("b", 0.5, {"lr": "0.3"}),
    ]
    assert told_trials([trial("e", "Succeeded", latest="unavailable")]) == []


def test_a_value_that_is_no_number_stops_every_service() -> None:
    with pytest.raises(ValueError, match="could not convert string to float: ''"):
        told_trials([trial("a", "Succeeded", latest="")])
