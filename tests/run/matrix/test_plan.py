"""The plan: ids, skips with reasons, runs that are the same, warm-ups, totals, the frozen analysis."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fake_plugins
from builders.specs import make_spec
from command_line import write_file
from tuneoff.errors import ExperimentError, PluginError, ResultsError
from tuneoff.experiment.analysis import difference
from tuneoff.experiment.expand import SkipCheck
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import Plan, make_plan, seconds_at_most
from tuneoff.experiment.spec import Workers
from tuneoff_adapters.katib.adapter import KatibAdapter

MakePlan = Callable[[dict[str, Any]], Plan]
LEAST: dict[str, Any] = {"workload": "curve", "adapters": ["plain", "rich"], "budget": {"trials": 5}, "warm_up": False}


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakePlan:
    fake_plugins.register(monkeypatch)

    return lambda content: make_plan(load_matrix(write_file(tmp_path / "file.yaml", content)))


def _reasons(plan: Plan) -> dict[str, str | None]:
    return {run.spec.adapter: run.skip_reason for run in plan.counted}


def test_the_same_file_gives_the_same_plan(plan: MakePlan) -> None:
    content = {**LEAST, "seeds": [1, 2], "warm_up": True}
    assert plan(content) == plan(content)
    assert plan(content).plan_id == plan({**content, "timeouts": {"trial_seconds": 5}}).plan_id
    assert plan(content).plan_id != plan({**content, "seeds": [1, 3]}).plan_id


def test_the_limit_of_processors_is_part_of_what_identifies_a_run(plan: MakePlan) -> None:
    plans = [plan({**LEAST, "workers": {"cpu_limit": limit}}) for limit in ("none", "quota", "affinity")]
    assert len({one.plan_id for one in plans}) == 3
    assert plan(LEAST).plan_id == plans[0].plan_id
    assert Plan.from_json(plans[1].to_json()) == plans[1]


@pytest.mark.parametrize(
    ("workers", "problem"),
    [
        ({"cpu_limit": "pinned"}, "workers.cpu_limit: must be one of 'none', 'quota' or 'affinity', but got 'pinned'"),
        ({"cpu_limit": "affinity", "cpus": 1.5}, "affinity needs whole processors, but cpus is 1.5; use cpu_limit: quota"),
    ],
)
def test_a_limit_of_processors_that_is_none_is_refused(plan: MakePlan, workers: dict[str, Any], problem: str) -> None:
    with pytest.raises(ExperimentError, match=problem):
        plan({**LEAST, "workers": workers})


@pytest.mark.parametrize(
    ("limit", "platform", "skipped"),
    [
        ("none", "kubernetes", False),
        ("quota", "kubernetes", False),
        ("affinity", "kubernetes", True),
        ("none", "emulated", False),
        ("quota", "emulated", True),
        ("affinity", "emulated", True),
    ],
)
def test_pods_have_the_quota_of_their_platform_and_no_other_limit(limit: Any, platform: str, skipped: bool) -> None:
    spec = make_spec(workers=Workers(count=2, cpu_limit=limit))
    spec = replace(spec, platform=platform, adapter="katib", options={"image": "x"} if platform == "kubernetes" else {})
    reason = SkipCheck().reason(spec, KatibAdapter)
    assert (reason is not None and "workers.cpu_limit" in reason) is skipped


NO_MEDIAN = "adapter 'plain' does not list pruner 'median'; it offers: none, scripted"


def test_every_skip_has_its_own_reason(plan: MakePlan) -> None:
    adapters = ["plain", "rich", "missing", "old"]
    tpe = _reasons(plan({**LEAST, "adapters": adapters, "sampler": "tpe"}))
    assert tpe == {
        "plain": "sampler 'tpe' is not offered by the framework (none)",
        "rich": None,
        "missing": "adapter 'missing' needs the nowhere-tune package; run: pip install nowhere-tune",
        "old": "adapter 'old' does not list sampler 'tpe'; it offers: none",
    }


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"adapters": ["plain"], "pruner": "asha"}, "pruner 'asha' is not offered by adapter 'plain' yet: later"),
        ({"adapters": ["plain"], "pruner": "median"}, f"{NO_MEDIAN}; to compare it too: matrix: {{pruner: [none, median]}}"),
        ({"adapters": ["plain"], "matrix": {"pruner": ["median", "none"]}}, NO_MEDIAN),
        ({"adapters": ["plain"], "platform": "cluster"}, "adapter 'plain' does not offer platform 'cluster'; it offers: local"),
        (
            {"adapters": ["rich"], "sampler": "gp"},
            "sampler 'gp' of adapter 'rich' needs no_such_module; run: pip install rich-library",
        ),
        (
            {"adapters": ["rich"], "failures": {"retries": 1}},
            "adapter 'rich' repeats no trials (not by tuneoff yet), but `failures.retries` is 1; set it to 0",
        ),
        ({"adapters": ["rich"], "budget": {"trials": 101}}, "at most 100 trials"),
        ({"adapters": ["rich"], "workers": {"count": 9}}, "at most 8 workers"),
        (
            {"adapters": ["plain"], "workload": "heavy"},
            "workload 'heavy' needs no_such_module; run: pip install no_such_module",
        ),
        (
            {"adapters": ["plain", "rich"], "sampler": "own"},
            "adapter 'plain' does not list sampler 'own'; it offers: random, grid, fixed, default",
        ),
    ],
)
def test_what_an_adapter_cannot_do_is_skipped_with_the_reason(plan: MakePlan, content: dict[str, Any], reason: str) -> None:
    assert plan({**LEAST, **content}).counted[0].skip_reason == reason


def test_a_mistake_that_an_adapter_finds_stops_the_plan(plan: MakePlan) -> None:
    with pytest.raises(ExperimentError, match=r"file.yaml: adapter 'rich': unknown option 'storge'; known: storage"):
        plan({**LEAST, "adapters": [{"name": "rich", "options": {"storge": 1}}]})


def test_a_check_that_fails_is_a_broken_plugin(plan: MakePlan) -> None:
    with pytest.raises(PluginError, match="adapter 'failing' fails to check a run: KeyError: 'oops'"):
        plan({**LEAST, "adapters": ["failing"]})


def test_a_default_that_is_random_is_run_once_and_says_so(plan: MakePlan) -> None:
    made = plan({**LEAST, "matrix": {"sampler": ["random", "default", "tpe"]}})
    runs = {(run.spec.adapter, run.spec.experiment.sampler.name): run for run in made.runs}
    twin = runs["plain", "random"].run_id
    assert runs["plain", "default"].skip_reason == f"same as sampler 'random': run {twin}"
    assert runs["plain", "default"].same_as == twin
    assert runs["rich", "default"].same_as == runs["rich", "tpe"].run_id


def test_a_default_alone_is_run(plan: MakePlan) -> None:
    assert all(run.skip_reason is None for run in plan({**LEAST, "sampler": "default"}).runs)


def test_a_default_whose_twin_is_skipped_is_skipped_for_its_own_reason(plan: MakePlan) -> None:
    made = plan({**LEAST, "adapters": ["missing"], "matrix": {"sampler": ["tpe", "default"]}})
    assert {run.skip_reason for run in made.runs} == {
        "adapter 'missing' needs the nowhere-tune package; run: pip install nowhere-tune"
    }
    assert all(run.same_as is None for run in made.runs)


def test_two_runs_of_one_identity_are_refused(plan: MakePlan) -> None:
    with pytest.raises(
        ExperimentError,
        match=r"two runs must differ in what they do, but rich \(timeouts.test_seconds=1\) and rich \(timeouts.test_seconds=2\)",
    ):
        plan({**LEAST, "matrix": {"timeouts.test_seconds": [1, 2]}})


def test_one_short_warm_up_per_kind_of_adapter_comes_first(plan: MakePlan) -> None:
    content = {
        **LEAST,
        "warm_up": True,
        "adapters": ["plain", "plain", "rich", "missing"],
        "workers": {"count": 2},
        "seeds": [3, 4],
    }
    made = plan({**content, "pruner": "scripted", "stops": [{"configuration": {"rate": 0.1, "width": 1}, "after_epoch": 2}]})
    warm = [run for run in made.runs if run.spec.warm_up]
    assert [run.spec.adapter for run in warm] == ["plain", "rich"]
    assert made.runs[: len(warm)] == tuple(warm)
    for run in warm:
        experiment = run.spec.experiment
        assert (experiment.budget.trials, experiment.budget.epochs_per_trial, experiment.pruner.name) == (2, 1, "none")
        assert run.block == -1
    assert not {run.run_id for run in warm} & {run.run_id for run in made.counted}


def test_totals_count_what_is_run(plan: MakePlan) -> None:
    content = {**LEAST, "adapters": ["plain", "rich", "missing"], "seeds": [1, 2], "budget": {"trials": 5, "epochs_per_trial": 3}}
    totals = plan(content).totals
    assert (totals.runs, totals.skipped, totals.warm_ups, totals.trials, totals.epochs) == (4, 2, 0, 20, 60)
    limited = plan({**content, "budget": {"trials": 5, "epochs_per_trial": 3, "epochs_total": 7}}).totals
    assert limited.epochs == 28


def test_the_bound_in_seconds_follows_timeouts_and_budget(plan: MakePlan) -> None:
    steps = ("deploy", "setup", "collect", "test", "metrics", "undeploy")
    timeouts = {f"{step}_seconds": 1 for step in steps} | {"trial_seconds": 10}
    content = {**LEAST, "adapters": ["plain"], "timeouts": timeouts, "workers": {"count": 2}, "failures": {"retries": 1}}
    assert seconds_at_most(plan(content).runs[0].spec) == 6 + 3 * 2 * 10
    budget = {"trials": 5, "wall_clock_seconds": 4}
    assert seconds_at_most(plan({**content, "budget": budget}).runs[0].spec) == 6 + 4 + 10
    assert plan({**content, "seeds": [1, 2]}).totals.seconds_at_most == 2 * (6 + 60)


@pytest.mark.parametrize(("metric", "is_said"), [("energy.job", True), ("waste.default.carbon", True), ("time.jct", False)])
def test_what_is_decided_by_energy_is_never_compared_across_kinds(plan: MakePlan, metric: str, is_said: bool) -> None:
    made = plan({**LEAST, "analysis": {"primary_metric": metric, "questions": {"time": "time.jct"}}})
    assert ("kind_rule" in made.analysis) is is_said
    assert difference({**made.analysis, "margin_percent": 1.0}, made.analysis) == "analysis"


def test_the_analysis_is_frozen_with_its_family(plan: MakePlan) -> None:
    content = {
        **LEAST,
        "adapters": ["plain", "plain", "rich", "missing"],
        "seeds": [1, 2],
        "matrix": {"sampler": ["random", "tpe"]},
    }
    made = plan({**content, "analysis": {"primary_metric": "overhead.per_trial", "margin_percent": 10}})
    analysis = made.analysis
    assert (analysis["primary_metric"], analysis["margin_percent"], analysis["seeds"]) == ("overhead.per_trial", 10.0, [1, 2])
    assert analysis["comparisons"] == [{"variant": {"sampler": "random"}, "adapters": ["plain", "rich"]}]
    assert (analysis["family_size"], analysis["questions"]["quality"]) == (15, "quality.test")
    assert analysis["noise_floor"] == ["plain#2"]
    assert made.analysis_digest != plan(content).analysis_digest


def test_a_plan_survives_json(plan: MakePlan) -> None:
    made = plan(
        {**LEAST, "adapters": ["plain", "rich", "missing"], "matrix": {"sampler": ["random", "default"]}, "warm_up": True}
    )
    again = Plan.from_json(json.loads(json.dumps(made.to_json())))
    assert again == made
    assert (again.plan_id, again.analysis_digest, again.totals) == (made.plan_id, made.analysis_digest, made.totals)


def test_another_format_a_damaged_and_a_changed_plan_are_refused(plan: MakePlan) -> None:
    data = plan(LEAST).to_json()
    others: tuple[Any, ...] = ({**data, "format_version": 1}, {}, [], None)
    for wrong in others:
        with pytest.raises(ResultsError, match="must have format_version 3, but got"):
            Plan.from_json(wrong)
    for wrong in ({**data, "runs": [{}]}, {**data, "runs": 3}, {key: value for key, value in data.items() if key != "name"}):
        with pytest.raises(ResultsError, match="damaged"):
            Plan.from_json(wrong)
    changed = json.loads(json.dumps(data))
    changed["runs"][0]["spec"]["seed"] = 99
    with pytest.raises(ResultsError, match="was changed or made by another tuneoff"):
        Plan.from_json(changed)


def test_what_differs_between_frozen_analyses_is_named(plan: MakePlan) -> None:
    made = plan(LEAST).analysis
    assert difference(made, made) is None
    assert difference({**made, "family_size": 3}, made) == "analysis"
    assert difference({**made, "carbon": None}, made) == "carbon"


def test_anchors_are_frozen_by_task(plan: MakePlan) -> None:
    anchors = {"random_search": 0.9, "best_known": 0.99, "source": "planted"}
    tasks = {"one": {"budget.trials": 3, "anchors": anchors}, "other": {"budget.trials": 4}}
    assert plan({**LEAST, "tasks": tasks}).analysis["anchors"] == {"one": anchors}
    assert plan({**LEAST, "anchors": anchors}).analysis["anchors"] == {"": anchors}
    assert "anchors" not in plan(LEAST).analysis


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ({"analysis": {"family_size": 0}}, "analysis.family_size"),
        ({"analysis": {"questions": {"time": "time.jtc"}}}, "no metric named 'time.jtc'"),
        ({"analysis": {"questions": {}}}, "analysis.questions"),
        ({"anchors": {"random_search": 1.0, "best_known": 1.0, "source": "s"}}, "must differ"),
        ({"anchors": {"random_search": 1.0, "best_known": 2.0}}, "anchors.source"),
    ],
    ids=str,
)
def test_an_analysis_that_cannot_hold_is_refused(plan: MakePlan, part: dict[str, Any], problem: str) -> None:
    with pytest.raises(ExperimentError, match=problem):
        plan({**LEAST, **part})
