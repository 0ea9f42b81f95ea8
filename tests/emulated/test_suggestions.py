"""The algorithms' determinism and peculiarities, and what medianstop makes of finished trials.

(tests/trust/space_test holds what they draw against core's distributions.)
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulated.katib_world import Object, experiment_named
from katib_emulation.suggestions import MedianStop, algorithm_for, ended_of


def settings_of(given_settings: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in given_settings.items()]


def asking(algorithm: str, **given_settings: str) -> Object:
    parameters = [
        {"name": "a", "parameterType": "int", "feasibleSpace": {"min": "1", "max": "5", "step": "2"}},
        {"name": "b", "parameterType": "categorical", "feasibleSpace": {"list": ["x", "y"]}},
    ]
    if algorithm == "random":
        parameters[0] = {"name": "a", "parameterType": "double", "feasibleSpace": {"min": "1", "max": "3"}}
    asked = {"algorithmName": algorithm, "algorithmSettings": settings_of(given_settings)}
    return experiment_named(algorithm=asked, parameters=parameters)


def suggest(experiment: Object, numbers: Sequence[int], uid: str = "u") -> list[dict[str, str]]:
    experiment["metadata"]["uid"] = uid
    algorithm = algorithm_for(experiment)
    return [algorithm(number, []) for number in numbers]


def test_the_grid_visits_each_combination_once_in_shuffled_order_and_then_any_that_has_not_succeeded() -> None:
    experiment = asking("grid", random_state="1")
    first = suggest(experiment, range(6))
    assert {(c["a"], c["b"]) for c in first} == {(a, b) for a in "135" for b in "xy"}
    assert first != sorted(first, key=lambda c: (c["a"], c["b"]))
    algorithm = algorithm_for(experiment)
    again = [algorithm(number, first[:4]) for number in range(6, 40)]
    assert {tuple(c.items()) for c in again} == {tuple(c.items()) for c in first[4:]}
    assert {tuple(algorithm(number, first).items()) for number in range(40, 200)} == {tuple(c.items()) for c in first}


@pytest.mark.parametrize("algorithm", ["random", "grid"])
@given(order=st.permutations(range(6)), seed=st.integers(0, 2**40))
@settings(max_examples=15, deadline=None)
def test_the_nth_suggestion_depends_on_nothing_but_its_number_and_the_seed(algorithm: str, order: list[int], seed: int) -> None:
    experiment = asking(algorithm, random_state=str(seed))
    straight = suggest(experiment, range(6), uid="one")
    assert [straight[number] for number in order] == suggest(experiment, order, uid="two")


def test_without_a_seed_experiments_differ() -> None:
    assert suggest(asking("random"), range(3), uid="one") != suggest(asking("random"), range(3), uid="two")


@pytest.mark.parametrize(
    ("algorithm", "given_settings", "why"),
    [
        ("random", {"seed": "1"}, "unknown setting seed for algorithm random"),
        ("random", {"random_state": "x"}, "random_state must be a whole number of at least 0, but is x"),
        ("medianstop", {"start_step": "0"}, "start_step must be a whole number of at least 1, but is 0"),
        ("grid", {}, "Max Trial Count: 7 > all possible search combinations: 6"),
    ],
)
def test_a_refused_setting_is_named(algorithm: str, given_settings: dict[str, str], why: str) -> None:
    experiment = asking(algorithm, **given_settings)
    experiment["spec"] |= {"maxTrialCount": 7, "earlyStopping": experiment["spec"]["algorithm"]}
    make = (lambda: MedianStop(experiment, lambda name: [])) if algorithm == "medianstop" else lambda: suggest(experiment, [0])
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == why


def trial(name: str, end: str, latest: str = "0.5") -> Object:
    conditions = [{"type": "Running", "status": "False"}, {"type": end, "status": "True"}]
    metric = {"name": "accuracy", "min": "0.1", "max": "unavailable", "latest": latest}
    objective = {"objectiveMetricName": "accuracy", "metricStrategies": [{"name": "accuracy", "value": "max"}]}
    return {
        "metadata": {"name": name},
        "spec": {"objective": objective, "parameterAssignments": [{"name": "lr", "value": "0.3"}]},
        "status": {"conditions": conditions, "observation": {"metrics": [metric]}},
    }


def median_stop(type_: str, **given_settings: str) -> MedianStop:
    experiment = experiment_named(
        objective={"type": type_, "objectiveMetricName": "accuracy"},
        earlyStopping={"algorithmName": "medianstop", "algorithmSettings": settings_of(given_settings)},
    )
    reports = {"t1": ["1", "1", "9"], "t2": ["2", "2"], "t3": ["30", "30"], "t4": ["5", "5"], "empty": []}
    return MedianStop(experiment, lambda name: reports[name])


def test_medianstop_takes_the_mean_of_the_means_of_the_first_reports_of_enough_trials() -> None:
    trials = [trial(f"t{i}", "Succeeded") for i in (1, 2, 3, 4)]
    rules = median_stop("maximize", start_step="2").rules(trials)
    assert rules == [{"name": "accuracy", "value": "9.5", "comparison": "less", "startStep": 2}]  # the median is 3.5
    stop = median_stop("minimize")
    assert stop.rules([*trials[:2], trial("t3", "EarlyStopped")]) == []
    assert [(rule["comparison"], rule["startStep"]) for rule in stop.rules(trials[:3])] == [("greater", 4)]
    with pytest.raises(ValueError, match="trial empty has no report of accuracy"):
        stop.rules([trial("empty", "Succeeded")])


def test_a_service_is_told_of_ended_trials_that_have_a_value() -> None:
    trials = [trial("a", "Succeeded"), trial("b", "EarlyStopped"), trial("c", "Failed"), trial("d", "MetricsUnavailable")]
    assert ended_of([*trials, trial("e", "Succeeded", latest="unavailable")]) == [{"lr": "0.3"}] * 2
