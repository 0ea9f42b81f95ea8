"""From a file to a plan: cells and their order, ids, skips with reasons, what is emulated, the frozen analysis."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import fake_plugins
from builders.specs import make_spec
from command_line import write_file
from tuneoff.base.capabilities import Reports
from tuneoff.errors import ExperimentError, PluginError, ResultsError
from tuneoff.experiment.analysis import difference
from tuneoff.experiment.expand import Cell, entries, expand, rotated, williams_rows
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import Plan, make_plan
from tuneoff.experiment.skip_check import SkipCheck
from tuneoff.experiment.spec import Workers, run_spec_from_json, run_spec_to_json
from tuneoff_adapters.katib.adapter import KatibAdapter
from tuneoff_adapters.serial import SerialAdapter
from tuneoff_platforms.slurm.platform import SlurmPlatform

MakePlan = Callable[[dict[str, Any]], Plan]
LEAST: dict[str, Any] = {"workload": "curve", "adapters": ["plain", "rich"], "budget": {"trials": 5}, "warm_up": False}


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakePlan:
    fake_plugins.register(monkeypatch, fake_plugins.plugin("twofold", "fake_plugins:Twofold"))
    return lambda content: make_plan(load_matrix(write_file(tmp_path / "file.yaml", content)))


def _reasons(plan: Plan) -> dict[str, str | None]:
    return {run.spec.adapter: run.skip_reason for run in plan.counted}


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        (
            {"workers": {"cpu_limit": "pinned"}},
            "workers.cpu_limit: must be one of 'none', 'quota' or 'affinity', but got 'pinned'",
        ),
        (
            {"workers": {"cpu_limit": "affinity", "cpus": 1.5}},
            "affinity needs whole processors, but cpus is 1.5; use cpu_limit: quota",
        ),
        ({"workers": {"devices": [0, 1], "count": 3}}, "2 devices with per_device 1 are 2 workers, but count is 3; leave it out"),
        ({"workers": {"devices": [1, 1]}}, "workers: devices must differ, but got .1, 1.; per_device gives one several slots"),
        ({"workers": {"devices": [-1]}}, "workers.devices.0: must be at least 0, but got -1"),
        ({"workers": {"devices": ["GPU-1"]}}, "workers.devices.0: must be an integer, but got 'GPU-1'"),
        ({"workers": {"devices": 2}}, "workers.devices: must be a list, but got 2"),
        ({"workers": {"devices": [0], "per_device": "x"}}, "workers.per_device: must be an integer, but got 'x'"),
        ({"workers": {"devices": [0], "per_device": 0}}, "workers.per_device: must be at least 1, but got 0"),
        ({"workers": {"per_device": 2}}, "per_device: 2 needs `devices`, but there are none; name them, or remove it"),
        ({"analysis": {"family_size": 0}}, "analysis.family_size"),
        ({"analysis": {"questions": {"time": "time.jtc"}}}, "no metric named 'time.jtc'"),
        ({"analysis": {"questions": {}}}, "analysis.questions"),
        ({"anchors": {"random_search": 1.0, "best_known": 1.0, "source": "s"}}, "must differ"),
        ({"anchors": {"random_search": 1.0, "best_known": 2.0}}, "anchors.source"),
        (
            {"adapters": [{"name": "rich", "options": {"storge": 1}}]},
            r"file.yaml: adapter 'rich': unknown option 'storge'; known: storage",
        ),
        (
            {"matrix": {"timeouts.test_seconds": [1, 2]}},
            r"two runs must differ in what they do, but rich \(timeouts.test_seconds=1\) and rich \(timeouts.test_seconds=2\)",
        ),
    ],
    ids=str,
)
def test_a_file_that_cannot_hold_is_refused(plan: MakePlan, part: dict[str, Any], problem: str) -> None:
    with pytest.raises(ExperimentError, match=problem):
        plan({**LEAST, **part})


def test_the_number_of_workers_follows_from_their_devices(plan: MakePlan) -> None:
    planned = plan({**LEAST, "workers": {"devices": [3, 1]}, "matrix": {"workers.per_device": [1, 2]}})
    workers = [run.spec.experiment.workers for run in planned.counted if run.spec.adapter == "plain"]
    assert [each.count for each in workers] == [2, 4]
    assert [workers[1].device_of(slot) for slot in range(5)] == [3, 3, 1, 1, None]
    spec = next(run.spec for run in planned.counted)
    assert run_spec_from_json(json.loads(json.dumps(run_spec_to_json(spec)))) == spec
    assert "devices" not in run_spec_to_json(make_spec())["experiment"]["workers"]


@pytest.mark.parametrize(
    ("platform", "visible", "reason"),
    [
        ("local", None, None),
        ("local", "1,0", None),
        ("local", "0", "`workers.devices` has 1, but CUDA_VISIBLE_DEVICES is '0'; name some of these, or unset it"),
        ("ssh", None, "platform 'ssh' has trials elsewhere"),
        ("slurm", None, "remove workers.devices, and write sbatch: {gres: 'gpu:1'}"),
        ("kubernetes", None, "remove workers.devices (option device_resource: nvidia.com/gpu"),
    ],
)
def test_devices_are_those_that_this_machine_has_for_the_command(
    platform: str, visible: str | None, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(SlurmPlatform, "missing", lambda: None)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    spec = replace(make_spec(workers=Workers(count=2, devices=(0, 1))), adapter="serial", platform=platform)
    options: dict[str, dict[str, Any]] = {"ssh": {"hosts": ["localhost"]}, "kubernetes": {"image": "x"}}
    spec = replace(spec, options=options.get(platform, {}))
    found = SkipCheck().reason(spec, SerialAdapter)
    assert found is None if reason is None else reason in str(found)


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


@pytest.mark.parametrize(("metric", "is_said"), [("energy.job", True), ("waste.default.energy", True), ("time.jct", False)])
def test_what_is_decided_by_energy_is_never_compared_across_kinds(plan: MakePlan, metric: str, is_said: bool) -> None:
    made = plan({**LEAST, "analysis": {"primary_metric": metric, "questions": {"time": "time.jct"}}})
    assert ("kind_rule" in made.analysis) is is_said
    assert difference({**made.analysis, "margin_percent": 1.0}, made.analysis) == "analysis"


def test_another_format_a_damaged_and_a_changed_plan_are_refused(plan: MakePlan) -> None:
    data = plan(LEAST).to_json()
    others: tuple[Any, ...] = ({**data, "format_version": 1}, {}, [], None)
    for wrong in others:
        with pytest.raises(ResultsError, match="must have format_version 4, but got"):
            Plan.from_json(wrong)
    for wrong in ({**data, "runs": [{}]}, {**data, "runs": 3}, {key: value for key, value in data.items() if key != "name"}):
        with pytest.raises(ResultsError, match="damaged"):
            Plan.from_json(wrong)
    changed = json.loads(json.dumps(data))
    changed["runs"][0]["spec"]["seed"] = 99
    with pytest.raises(ResultsError, match="was changed or made by another tuneoff"):
        Plan.from_json(changed)


Cells = Callable[[dict[str, Any]], list[Cell]]
SEEDS = [1765982946, 354935541, 154201120]  # of (seed, replicate) (0, 0), (7, 0), (0, 1), as run id format 1 had them


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cells:
    fake_plugins.register(
        monkeypatch,
        fake_plugins.plugin("broken", "fake_plugins:Nothing"),
        fake_plugins.plugin("twice", "fake_plugins:Plain", "one"),
        fake_plugins.plugin("twice", "fake_plugins:Rich", "other"),
    )

    def from_content(content: dict[str, Any]) -> list[Cell]:
        file = load_matrix(write_file(tmp_path / "file.yaml", content))
        return expand(file, entries(file))

    return from_content


def test_a_label_tells_only_the_options_by_which_lines_differ(cells: Cells) -> None:
    def labels(*adapters: Any) -> list[str]:
        return list(dict.fromkeys(cell.entry.label for cell in cells({**LEAST, "adapters": list(adapters)})))

    one, other = ({"name": "rich", "options": {"a": 1, "b": value}} for value in (1, 2))
    elsewhere = {**one, "platform": "cluster"}
    assert labels(one) == ["rich"]
    assert labels("plain", one) == ["plain", "rich"]
    assert labels(one, one) == ["rich", "rich#2"]
    assert labels(one, other) == ['rich{"b":1}', 'rich{"b":2}']
    assert labels(one, elsewhere) == ["rich", "rich@cluster"]
    assert labels({"name": "rich", "options": {"a": None}}, "rich") == ['rich{"a":null}', "rich"]


def test_local_options_are_no_part_of_the_run(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    def line(**options: Any) -> dict[str, Any]:
        return {"name": "rich", "options": options}

    def runs(*adapters: Any) -> dict[str, str]:
        return {cell.entry.label: cell.spec.run_id for cell in cells({**LEAST, "adapters": list(adapters)})}

    (before,) = runs(line(a=1)).values()
    assert runs(line(a=1, address="x")) != {"rich": before}
    monkeypatch.setattr(fake_plugins.Rich, "local_options", frozenset({"address"}))
    assert runs(line(a=1)) == runs(line(a=1, address="x")) == runs(line(a=1, address="y")) == {"rich": before}
    assert runs(line(a=2, address="x")) != {"rich": before}
    two = runs(line(a=1, address="x"), line(a=1, address="y"))
    assert list(two) == ["rich", "rich#2"]
    assert len(set(two.values())) == 2
    (cell,) = cells({**LEAST, "adapters": [line(a=1, address="x")]})
    assert cell.spec.options == {"a": 1, "address": "x"}  # the adapter has it all the same
    again = run_spec_from_json(json.loads(json.dumps(run_spec_to_json(cell.spec))))
    assert (again, again.run_id) == (cell.spec, before)


@pytest.mark.parametrize(("needed", "pruner", "told"), [("none", "none", "none"), ("none", "asha", "every_epoch")])
def test_a_framework_is_told_what_it_needs_unless_the_file_says_every_epoch(
    cells: Cells, monkeypatch: pytest.MonkeyPatch, needed: Reports, pruner: str, told: Reports
) -> None:
    monkeypatch.setattr(fake_plugins.Rich, "capabilities", replace(fake_plugins.Rich.capabilities, reports=needed))
    content = {**LEAST, "adapters": ["rich"], "pruner": pruner, "matrix": {"reports": ["needed", "every_epoch"]}}
    if pruner != "none":  # both are the same run
        content["matrix"]["reports"].pop()
    by_needed, *by_all = cells(content)
    assert by_needed.spec.reports == told
    assert [cell.spec.reports for cell in by_all] == (["every_epoch"] if pruner == "none" else [])
    before = {**run_spec_to_json(by_needed.spec)}
    del before["reports"]  # as a run of a tuneoff that told every epoch
    assert run_spec_from_json(before).run_id == replace(by_needed.spec, reports="every_epoch").run_id
    assert (run_spec_from_json(before).run_id == by_needed.spec.run_id) is (told == "every_epoch")


@pytest.mark.parametrize(("name", "problem"), [("broken", "adapter 'broken' is broken"), ("twice", "one 1.0 and other 1.0")])
def test_a_broken_or_ambiguous_plugin_stops_the_plan(cells: Cells, name: str, problem: str) -> None:
    with pytest.raises(PluginError, match=problem):
        cells({**LEAST, "adapters": [name]})


def streams(found: list[Cell], key: str) -> dict[object, int]:
    """Return the sampler seed of each variant's cells of `plain`, by what its values call `key`."""
    return {cell.spec.experiment.variant.get(key): cell.spec.sampler_seed for cell in found if cell.entry.label == "plain"}


def test_a_file_without_tasks_keeps_its_sampler_seeds_bit_for_bit(cells: Cells) -> None:
    """The figures are those of run id format 1: other variants share their streams on purpose."""
    found = cells({**LEAST, "adapters": ["plain", "plain"], "seeds": [0, 7], "matrix": {"workers.count": [1, 2]}})
    seeds = {(cell.spec.seed, cell.spec.replicate): cell.spec.sampler_seed for cell in found}
    assert [seeds[0, 0], seeds[7, 0], seeds[0, 1]] == SEEDS
    assert len({cell.spec.sampler_seed for cell in found}) == len(seeds) == 4


def test_a_sampler_stream_follows_what_a_task_changes_and_not_its_name_or_its_anchors(cells: Cells) -> None:
    def stream(tasks: dict[str, object], **base: object) -> dict[object, int]:
        return streams(cells({**LEAST, **base, "tasks": tasks}), "task")

    anchors = {"random_search": 0.5, "best_known": 0.9, "source": "planted"}
    one = stream({"a": {"budget.trials": 3, "workers.count": 2}})
    assert list(stream({"b": {"workers.count": 2, "budget.trials": 3, "anchors": anchors}}).values()) == list(one.values())
    assert list(stream({"a": {"budget.trials": 3, "timeouts.trial_seconds": 9}}).values()) == list(
        stream({"a": {"budget.trials": 3}}).values()
    )
    assert stream({"a": {"budget.trials": 3, "workers.count": 1}}) != one
    as_base = stream({"a": {"budget.trials": 3}}, budget={"trials": 3})
    assert list(as_base.values()) == list(streams(cells(LEAST), "task").values()), "what the base has is not a change"


def test_each_adapter_stands_equally_often_in_each_place_and_follows_each_other_equally_often() -> None:
    for size in range(1, 9):
        rows = williams_rows(size)
        assert all(sorted(row) == list(range(size)) for row in rows)
        for place in range(size):
            assert set(Counter(row[place] for row in rows).values()) == {len(rows) // size}
        follows = Counter(pair for row in rows for pair in pairwise(row))
        assert len(follows) == size * (size - 1)
        assert len(set(follows.values())) <= 1
    control = Counter(pair for shift in range(4) for pair in pairwise(rotated(4, shift)))  # a plain rotation
    assert len(control) < 4 * 3


@pytest.fixture
def planned(plan: MakePlan) -> Callable[..., Plan]:
    return lambda *adapters, **more: plan({**LEAST, "adapters": list(adapters), **more})


def on(platform: str) -> dict[str, str]:
    return {"name": "twofold", "platform": platform}


def test_a_run_is_labelled_with_the_platform_that_its_entry_names(planned: Callable[..., Plan]) -> None:
    def labels(plan: Plan) -> list[str]:
        return [run.label for run in plan.runs]

    assert labels(planned("plain", on("emulated"))) == ["plain", "twofold@emulated"]
    assert labels(planned(on("emulated"), warm_up=True)) == ["twofold@emulated"] * 2
    assert labels(planned("twofold")) == ["twofold"]
    assert planned(on("cluster"), on("cluster")).analysis["noise_floor"] == ["twofold@cluster#2"]


def test_a_plan_of_an_earlier_tuneoff_says_of_its_runs_what_nobody_reads_now(plan: MakePlan) -> None:
    made = plan({**LEAST, "adapters": ["plain", {"name": "twofold", "platform": "emulated"}]})
    data = json.loads(json.dumps(made.to_json()))
    assert Plan.from_json(data) == made
    for run in data["runs"]:
        run["emulated"] = True
    assert Plan.from_json(data) == made
    data["runs"][0]["other"] = True
    with pytest.raises(ResultsError, match="unknown key 'other'"):
        Plan.from_json(data)
