"""From a path to a checked file; every wrong input is one line with file, place, rule and value."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders.refusals import refusal
from tuneoff.errors import ExperimentError
from tuneoff.experiment.load import MatrixFile, load_matrix
from tuneoff.experiment.schema import json_schema

Load = Callable[..., MatrixFile]
LEAST = {"workload": "curve", "adapters": ["plain"], "budget": {"trials": 5}}


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def from_content(content: dict[str, Any], **overrides: Any) -> MatrixFile:
        path = tmp_path / "digits.yaml"
        path.write_text(json.dumps(content).replace("Infinity", ".inf"))  # JSON is YAML
        return load_matrix(path, overrides or None)

    return from_content


def _space(**dimension: Any) -> dict[str, Any]:
    return {"search_space": {"rate": dimension}}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"budgets": {}}, "unknown key 'budgets'; did you mean 'budget'?; known: "),
        ({"budget": {"trails": 5}}, "budget: unknown key 'trails'; did you mean 'trials'?"),
        ({"budget": {"trials": 0}}, "budget.trials: must be at least 1, but got 0"),
        ({"budget": {"trials": 5, "epochs_per_trial": 0}}, "budget.epochs_per_trial: must be at least 1, but got 0"),
        ({"budget": {"trials": "5"}}, "budget.trials: must be an integer, but got '5'; write it without quotes"),
        ({"budget": {"trials": 5.0}}, "budget.trials: must be an integer, but got 5.0"),
        ({"budget": {"trials": True}}, "budget.trials: must be an integer, but got true"),
        ({"budget": {"trials": 5, "wall_clock_seconds": 0}}, "wall_clock_seconds: must be greater than 0, but got 0"),
        ({"budget": 5}, "budget: must be a mapping of keys to values, but got 5; write {trials: 5}"),
        ({"workers": 2}, "workers: must be a mapping of keys to values, but got 2; write {count: 2}"),
        ({"objective": "loss"}, "objective: must be a mapping of keys to values, but got 'loss'; write {metric: loss}"),
        ({"timeouts": {"trial_seconds": "1h"}}, "trial_seconds: must be a number, but got '1h'; write seconds, e.g. 3600"),
        ({"timeouts": {"trial_seconds": "60"}}, "trial_seconds: must be a number, but got '60'; write it without quotes"),
        ({"workers": {"memory_mb": "1G"}}, "memory_mb: must be a number, but got '1G'; write megabytes, e.g. 600"),
        (
            {"analysis": {"primary_metric": "no.such.metric"}},
            "analysis.primary_metric: no metric named 'no.such.metric'; a name begins with one of: time., quality., ",
        ),
        (
            {"analysis": {"primary_metric": "overhead.pertrial"}},
            "no metric named 'overhead.pertrial'; did you mean 'overhead.per_trial'?; known of 'overhead': overhead.per_trial, ",
        ),
        ({"workers": {"count": -1}}, "workers.count: must be at least 1, but got -1"),
        ({"workers": {"memory_mb": 1e308}}, "workers.memory_mb: must be at most 1e+09, but got 1e+308"),
        ({"workers": {"cpus": 1e308}}, "workers.cpus: must be at most 100000, but got 1e+308"),
        ({"workers": {"memory_mb": 0}}, "workers.memory_mb: must be greater than 0"),
        ({"timeouts": {"trial_seconds": -1}}, "timeouts.trial_seconds: must be greater than 0, but got -1"),
        ({"failures": {"retries": -1}}, "failures.retries: must be at least 0, but got -1"),
        ({"seeds": []}, "seeds: must not be empty, but got []"),
        ({"seeds": [1, 1]}, "seeds: must differ, but got [1, 1]"),
        ({"seeds": [-1]}, "seeds.0: must be at least 0, but got -1"),
        ({"seeds": {"count": 0}}, "seeds.count: must be at least 1, but got 0"),
        ({"seeds": {"cuont": 3}}, "seeds: unknown key 'cuont'; did you mean 'count'?"),
        ({"seeds": 3}, "seeds: must be a list, but got 3; write [3] or {count: 3}"),
        ({"seeds": "0..4"}, "seeds: must be written like 0 1 2, 0-9, 0,4-7 or count:3, but got '0..4'"),
        ({"adapters": []}, "adapters: must not be empty"),
        ({"adapters": [None]}, "adapters.0: must be a name or a mapping"),
        ({"adapters": "plain"}, "adapters: must be a list, but got 'plain'; write [plain]"),
        ({"adapters": {"name": "plain"}}, "adapters: must be a list, but got {'name': 'plain'}; start each entry with a"),
        (
            {"adapter": ["plain"], "adapters": ..., "budget": ...},
            "unknown key 'adapter'; did you mean 'adapters'?; known: name, workload, ",
        ),
        ({"adapter": ["plain"], "adapters": ..., "budget": ...}, ", include"),
        ({"inclued": "x"}, "unknown key 'inclued'; did you mean 'include'?"),
        ({"budget": {"include": 5}}, "budget: unknown key 'include'; known: trials, "),
        ({"adapters": ...}, "adapters: is required"),
        ({"workload": ...}, "workload: is required"),
        (
            {"workload": None},
            'workload: must be a name or a mapping with `name`, but got null; the workload of that name is "null"',
        ),
        ({"workload": {"name": "curve", "option": {}}}, "workload: unknown key 'option'; did you mean 'options'?"),
        ({"workload": 3}, "workload: must be a name or a mapping with `name`, but got 3; put it in quotes if"),
        (
            {"sampler": ["random", "grid"]},
            "sampler: must be a name or a mapping with `name`, but got ['random', 'grid']; to vary it, write matrix: {sampler: [",
        ),
        ({"pruner": ["none"]}, "but got ['none']; to vary it, write matrix: {pruner: [...]}"),
        ({"workload": ["curve"]}, "but got ['curve']; to vary it, write matrix: {workload: [...]}"),
        ({"adapters": [["plain"]]}, "adapters.0: must be a name or a mapping with `name`, but got ['plain']"),
        ({"sampler": None}, "sampler: must be a name or a mapping with `name`, but got null; give a name"),
        ({"sampler": {"seed": 3}}, "sampler.name: is required"),
        ({"objective": {"mode": "best"}}, "objective.mode: must be one of 'min' or 'max', but got 'best'"),
        ({"warm_up": "true"}, "warm_up: must be true or false, but got 'true'; write it without quotes"),
        ({"name": "a/b"}, "name: "),
        ({"search_space": {}}, "search_space: must not be empty"),
        *(
            (
                {"search_space": {"l2": {"type": "float", "low": 0, "high": 1, key: {"regularise": "yes"}}}},
                f"search_space.l2: unknown key '{key}'; there are no conditional dimensions: remove it, and let the training",
            )
            for key in ("if", "when", "condition")
        ),
        ({"search_space": {"l2": {"type": "float", "low": 0, "hihg": 1}}}, "unknown key 'hihg'; did you mean 'high'?; known: "),
        ({"search_space": {"a b": {"type": "constant", "value": 1}}}, "a dimension's name must be letters"),
        ({"stops": [{"index": 0, "after_epoch": 1}]}, "stops: only `pruner: scripted` reads them"),
        ({"configurations": [{"a": 1}]}, "configurations: only `sampler: fixed` reads them"),
        ({"configurations": []}, "configurations: must not be empty"),
        ({"configurations": {"sample": 0}}, "configurations.sample: must be at least 1"),
        ({"pruner": "scripted", "stops": [{"after_epoch": 1}]}, "stops.0: exactly one of `index` and `configuration`"),
        ({"pruner": "scripted", "stops": [{"index": 0, "after_epoch": 0}]}, "stops.0.after_epoch: must be at least 1"),
        ({"matrix": {"budget.trials": [5, 0]}}, "budget.trials: must be at least 1, but got 0"),
        ({"matrix": {"sampler": []}}, "matrix.sampler: must not be empty"),
        (_space(type="float", low=1.0, high=0.0), "search_space.rate: `low <= high` must hold, but got low=1.0, high=0.0"),
        (
            _space(type="float", low=0, high=1, log=True),
            "search_space.rate: a logarithmic dimension needs `low > 0`, but got low=0.0",
        ),
        (
            _space(type="float", low="1e-4", high=1),
            "search_space.rate.low: must be a number, but got '1e-4'; write it without quotes",
        ),
        (_space(type="float", low=0), "search_space.rate.high: is required"),
        (_space(type="float", low=0, hihg=1), "search_space.rate: unknown key 'hihg'; did you mean 'high'?"),
        (_space(type="float", low=1, high=2, log=True, step=1), "`log` and `step` exclude each other"),
        (_space(type="float", low=0, high=1, step=0), "search_space.rate: `step > 0` must hold, but got step=0"),
        (_space(type="float", low=0, high=1, step=0.3), "use high=0.9"),
        (_space(type="float", low=0, high=1e308, step=1e-300), "points must be different floats"),
        (_space(type="float", low=0, high=math.inf), "search_space.rate.high: must be finite, but got inf"),
        (_space(type="int", low=16, high=70, step=16), "got low=16, high=70, step=16; use high=64"),
        (_space(type="int", low=1.5, high=8), "search_space.rate.low: must be an integer, but got 1.5"),
        (_space(type="int", low=1, high=8, log=True, step=2), "list the points as `type: ordered`"),
        (_space(type="int", low=0, high=8, log=True), "needs `low > 0`"),
        (_space(type="categorical", choices=[]), "search_space.rate.choices: must not be empty"),
        (_space(type="categorical", choices=["a", "a"]), "search_space.rate: choices must differ"),
        (_space(type="ordered", values=[1, 1.0, 1]), "choices must differ"),
        (_space(type="flaot", low=0, high=1), "but got 'flaot'; did you mean 'float'?"),
        (_space(low=0, high=1), "search_space.rate: needs a `type`"),
        ({"search_space": {"rate": 3}}, "search_space.rate: must be a mapping of keys to values, but got 3; write {type: "),
        (_space(type="categorical", choices="relu"), "choices: must be a list, but got 'relu'; write [relu]"),
        ({"sampler": "fixed", "configurations": 20}, "configurations: must be a list, but got 20; write {sample: 20}, or"),
        ({"search_space": [1]}, "search_space: must be a mapping"),
    ],
)
def test_wrong_input_is_one_line_with_the_place(load: Load, tmp_path: Path, content: dict[str, Any], problem: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        load({name: part for name, part in {**LEAST, **content}.items() if part is not ...})
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}/digits.yaml: ")
    assert problem in message
    assert "\n" not in message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("content", "ending"),
    [
        ({"budget": {"trials": "many"}}, "budget.trials: must be an integer, but got 'many'"),
        ({"budget": {"trials": "5.5"}}, "budget.trials: must be an integer, but got '5.5'"),
        ({"budget": {"trials": "1_000"}}, "budget.trials: must be an integer, but got '1_000'; write 1000"),  # text in YAML 1.2
        ({"warm_up": "maybe"}, "warm_up: must be true or false, but got 'maybe'"),
        ({"workers": True}, "workers: must be a mapping of keys to values, but got true"),
        ({"workers": "two"}, "workers: must be a mapping of keys to values, but got 'two'"),
    ],
)
def test_no_way_out_is_told_that_would_not_help(load: Load, content: dict[str, Any], ending: str) -> None:
    assert refusal(load, {**LEAST, **content}).endswith(f": {ending}")


def test_overrides_replace_keys_and_their_axes(load: Load) -> None:
    content = {**LEAST, "matrix": {"sampler": ["random", "default"], "workers.count": [1, 2]}}
    file = load(content, adapters=["rich"], seeds=[3], sampler="grid")
    assert (file.adapters[0].name, file.seeds) == ("rich", (3,))
    assert [variant.values for variant in file.variants] == [{"workers.count": 1}, {"workers.count": 2}]
    assert {variant.file.sampler.name for variant in file.variants} == {"grid"}


def test_the_json_schema_accepts_what_the_loader_accepts(load: Load) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json_schema()
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    good = {
        **LEAST,
        "include": "base.yaml",
        "seeds": {"count": 3},
        "sampler": {"name": "tpe", "n_startup_trials": 3},
        "search_space": {"rate": {"type": "float", "low": 0, "high": 1}, "kind": {"type": "ordered", "values": [1, 2]}},
        "matrix": {"budget.trials": [1, 2]},
    }
    validator.validate(good)
    load({key: value for key, value in good.items() if key != "include"})
    for bad in (
        {**LEAST, "budgets": {}},
        {**LEAST, "budget": {"trials": 0}},
        {**LEAST, **_space(type="flaot")},
        {**LEAST, "seeds": []},
    ):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(bad)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            {"seeds": {"count": 10_000}, "adapters": ["plain", "other"]},
            "at most 10000 runs, but variants x adapters x seeds are 20000",
        ),
        ({"matrix": {"budget.trials": [*range(1, 5000)]}, "seeds": [0, 1, 2]}, "at most 10000 runs"),
        (
            {"sampler": "fixed", "configurations": {"sample": 100_000}, "seeds": [0, 1, 2]},
            "may list at most 200000, but they list 300000",
        ),
        ({"adapters": ["plain"] * 101}, "adapters: must be no longer than 100"),
        ({"budget": {"trials": 10**10}}, "budget.trials: must be at most 1000000000"),
        ({"seeds": [2**63]}, "seeds.0: must be at most 9223372036854775807"),
        ({"timeouts": {"trial_seconds": 1e300}}, "timeouts.trial_seconds: must be at most 1e+09, but got 1e+300"),
    ],
)
def test_more_than_can_be_planned_is_refused(load: Load, content: dict[str, Any], problem: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        load({**LEAST, **content})
    assert problem in str(caught.value)


def test_a_key_that_breaks_a_line_is_refused_in_one_line(load: Load) -> None:
    with pytest.raises(ExperimentError, match=r"zip\.0\. ?: must be a list of values") as error:
        load({"zip": [{"\n": None}]})
    assert "\n" not in str(error.value)
