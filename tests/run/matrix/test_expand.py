"""From a file to cells."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fake_plugins
from command_line import write_file
from tuneoff.capabilities import Reports
from tuneoff.errors import PluginError, UnknownNameError
from tuneoff.experiment.expand import Cell, entries, expand
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.spec import run_spec_from_json, run_spec_to_json

Cells = Callable[[dict[str, Any]], list[Cell]]
LEAST: dict[str, Any] = {"workload": "curve", "adapters": ["plain", "rich"], "budget": {"trials": 5}}
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


def test_every_combination_is_one_cell_in_blocks_of_seeds(cells: Cells) -> None:
    found = cells({**LEAST, "seeds": [4, 5, 6], "matrix": {"sampler": ["random", "tpe"], "workers.count": [1, 2]}})
    assert len(found) == 2 * 3 * 4
    assert [cell.block for cell in found] == sorted(cell.block for cell in found)
    assert [cell.spec.seed for cell in found] == [4] * 8 + [5] * 8 + [6] * 8
    assert len({cell.spec.run_id for cell in found}) == len(found)


def test_adapters_change_places_between_blocks(cells: Cells) -> None:
    found = cells({**LEAST, "seeds": [1, 2]})
    assert [cell.spec.adapter for cell in found] == ["plain", "rich", "rich", "plain"]


def test_equal_lines_are_replicates_and_other_options_are_not(cells: Cells) -> None:
    adapters = ["plain", "plain", {"name": "rich", "options": {"a": 1}}, {"name": "rich", "options": {"a": 2}}, "rich"]
    found = {cell.entry.label: cell.spec for cell in cells({**LEAST, "adapters": adapters})}
    assert {label: spec.replicate for label, spec in found.items()} == {
        "plain": 0,
        "plain#2": 1,
        'rich{"a":1}': 0,
        'rich{"a":2}': 0,
        "rich": 0,
    }
    assert found["plain"].sampler_seed != found["plain#2"].sampler_seed


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


def test_the_platform_is_the_entrys_then_the_files_then_the_adapters_first(cells: Cells) -> None:
    adapters = ["plain", {"name": "rich", "platform": "cluster"}]
    assert {cell.spec.platform for cell in cells({**LEAST, "adapters": adapters})} == {"local", "cluster"}
    assert {cell.spec.platform for cell in cells({**LEAST, "platform": "cluster"})} == {"cluster"}


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


def test_an_adapter_may_be_given_by_its_class(cells: Cells) -> None:
    (cell,) = cells({**LEAST, "adapters": ["fake_plugins:Rich"]})
    assert cell.spec.adapter == cell.spec.adapter_target == "fake_plugins:Rich"


def test_an_unknown_adapter_names_the_known_ones(cells: Cells) -> None:
    with pytest.raises(UnknownNameError) as caught:
        cells({**LEAST, "adapters": ["plain", "rihc"]})
    assert "adapters.1: no adapter named 'rihc'; did you mean 'rich'?; known: broken, failing, missing" in str(caught.value)
    assert caught.value.exit_code == 2


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


def test_tasks_have_sampler_streams_of_their_own_and_variants_of_a_task_share_one(cells: Cells) -> None:
    tasks = {"short": {"budget.trials": 3}, "long": {"budget.trials": 4}}
    found = cells({**LEAST, "tasks": tasks, "matrix": {"workers.count": [1, 2]}})
    by_task = streams(found, "task")
    assert len(set(by_task.values())) == 2
    assert len({cell.spec.sampler_seed for cell in found}) == 2


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
    assert list(as_base.values()) == list(streams(cells(LEAST), "task").values()), "what the base has is no change"
