"""What the services say of settings, and what medianstop makes of finished trials."""

from __future__ import annotations

import pytest

from emulated.katib_world import Object, experiment_named
from katib_emulation.suggestions import MedianStop, algorithm_for, results_of


def with_settings(algorithm: str, part: str = "algorithm", **settings: str) -> Object:
    given = [{"name": name, "value": value} for name, value in settings.items()]
    changes: Object = {part: {"algorithmName": algorithm, "algorithmSettings": given}}
    return experiment_named(**changes)


def why_refused(experiment: Object) -> str:
    experiment["metadata"]["uid"] = "u"
    try:
        algorithm_for(experiment)
        MedianStop(experiment, lambda name: [])
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("algorithm", "part", "settings", "why"),
    [
        ("random", "algorithm", {"seed": "1"}, "unknown setting seed for algorithm random"),
        ("random", "algorithm", {"random_state": "x"}, "random_state must be a whole number of at least 0, but is x"),
        ("medianstop", "earlyStopping", {"start_step": "0"}, "start_step must be a whole number of at least 1, but is 0"),
        ("medianstop", "earlyStopping", {"percentile": "50"}, "unknown setting percentile for algorithm medianstop"),
    ],
)
def test_a_refused_setting_is_named(algorithm: str, part: str, settings: dict[str, str], why: str) -> None:
    assert why_refused(with_settings(algorithm, part, **settings)) == why


def test_a_grid_needs_no_doubles_and_enough_combinations() -> None:
    experiment = with_settings("grid")
    assert "integers and categories only" in why_refused(experiment)
    experiment["spec"]["parameters"][0] = {"name": "n", "parameterType": "int", "feasibleSpace": {"min": "1", "max": "2"}}
    assert callable(algorithm_for(experiment))
    experiment["spec"]["maxTrialCount"] = 5
    assert why_refused(experiment).endswith("Max Trial Count: 5 > all possible search combinations: 4")


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
    assert [(t.name, t.value, dict(t.configuration)) for t in results_of(trials)] == [
        ("a", 0.5, {"lr": "0.3"}),
        ("b", 0.5, {"lr": "0.3"}),
    ]
    assert results_of([trial("e", "Succeeded", latest="unavailable")]) == []


def test_a_value_that_is_no_number_stops_every_service() -> None:
    with pytest.raises(ValueError, match="could not convert string to float: ''"):
        results_of([trial("a", "Succeeded", latest="")])
