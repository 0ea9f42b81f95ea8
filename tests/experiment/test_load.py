"""From a path to a checked file; every wrong input is one line with file, place, rule and value."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tuneoff.errors import ExperimentError
from tuneoff.experiment.load import MatrixFile, load_matrix
from tuneoff.experiment.schema import json_schema, price_file_schema
from tuneoff.record.store import run_json_schema

Load = Callable[..., MatrixFile]
LEAST = {"workload": "curve", "adapters": ["plain"], "budget": {"trials": 5}}
RATE = {"type": "float", "low": 0, "high": 1}


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
        ({"adapter": ["plain"], "adapters": ..., "budget": ...}, "unknown key 'adapter'; did you mean 'adapters'?; known: name,"),
        ({"budget": {"include": 5}}, "budget: unknown key 'include'; known: trials, "),
        ({"adapters": ...}, "adapters: is required"),
        ({"budget": {"trials": 0}}, "budget.trials: must be at least 1, but got 0"),
        ({"budget": {"trials": 10**10}}, "budget.trials: must be at most 1000000000"),
        ({"budget": {"trials": 5, "wall_clock_seconds": 0}}, "wall_clock_seconds: must be greater than 0, but got 0"),
        ({"analysis": {"confidence": 1}}, "analysis.confidence: must be less than 1, but got 1"),
        ({"workers": {"memory_mb": 1e308}}, "workers.memory_mb: must be at most 1e+09, but got 1e+308"),
        ({"budget": {"trials": "5"}}, "budget.trials: must be an integer, but got '5'; write it without quotes"),
        ({"budget": {"trials": 5.0}}, "budget.trials: must be an integer, but got 5.0"),
        ({"budget": {"trials": True}}, "budget.trials: must be an integer, but got true"),
        ({"timeouts": {"trial_seconds": "1h"}}, "trial_seconds: must be a number, but got '1h'"),
        ({"timeouts": {"trial_seconds": "60"}}, "trial_seconds: must be a number, but got '60'; write it without quotes"),
        ({"warm_up": "true"}, "warm_up: must be true or false, but got 'true'; write it without quotes"),
        ({"budget": 5}, "budget: must be a mapping of keys to values, but got 5; write {trials: 5}"),
        ({"objective": "loss"}, "objective: must be a mapping of keys to values, but got 'loss'; write {metric: loss}"),
        ({"objective": {"mode": "best"}}, "objective.mode: must be one of 'min' or 'max', but got 'best'"),
        ({"name": "a/b"}, "name: must be letters"),
        ({"adapters": []}, "adapters: must not be empty"),
        ({"adapters": ["plain"] * 101}, "adapters: must be no longer than 100"),
        ({"adapters": "plain"}, "adapters: must be a list, but got 'plain'; write [plain]"),
        ({"adapters": {"name": "plain"}}, "adapters: must be a list, but got {'name': 'plain'}; start each entry with a"),
        ({"adapters": [["plain"]]}, "adapters.0: must be a name or a mapping with `name`, but got ['plain']"),
        (
            {"workload": None},
            'workload: must be a name or a mapping with `name`, but got null; the workload of that name is "null"',
        ),
        ({"workload": {"name": "curve", "option": {}}}, "workload: unknown key 'option'; did you mean 'options'?"),
        ({"workload": 3}, "workload: must be a name or a mapping with `name`, but got 3; put it in quotes if"),
        ({"sampler": ["random"]}, "with `name`, but got ['random']; to vary it, write matrix: {sampler: [...]}"),
        ({"sampler": None}, "sampler: must be a name or a mapping with `name`, but got null; give a name"),
        ({"sampler": {"seed": 3}}, "sampler.name: is required"),
        ({"seeds": [1, 1]}, "seeds: must differ, but got [1, 1]"),
        ({"seeds": [2**63]}, "seeds.0: must be at most 9223372036854775807"),
        ({"seeds": 3}, "seeds: must be a list, but got 3; write a list, e.g. [0, 1], or {count: 2}"),
        ({"seeds": "0..4"}, "seeds: must be written like 0 1 2, 0-9, 0,4-7 or count:3, but got '0..4'"),
        (
            {"analysis": {"primary_metric": "no.such.metric"}},
            "no metric named 'no.such.metric'; a name begins with one of: time., ",
        ),
        (
            {"analysis": {"primary_metric": "overhead.pertrial"}},
            "did you mean 'overhead.per_trial'?; known of 'overhead': overhead.",
        ),
        ({"search_space": 3}, "search_space: must be a mapping"),
        ({"search_space": {"rate": 3}}, "search_space.rate: must be a mapping of keys to values, but got 3; write {type: "),
        ({"search_space": {"a b": RATE}}, "a dimension's name must be letters"),
        (_space(**RATE, when={}), "search_space.rate: unknown key 'when'; there are no conditional dimensions: remove it"),
        (_space(type="float", low=0, hihg=1), "search_space.rate: unknown key 'hihg'; did you mean 'high'?; known: "),
        (_space(type="float", low=1.0, high=0.0), "search_space.rate: `low <= high` must hold, but got low=1.0, high=0.0"),
        (_space(**RATE, log=True), "search_space.rate: a logarithmic dimension needs `low > 0`, but got low=0.0"),
        (_space(type="float", low=1, high=2, log=True, step=1), "`log` and `step` exclude each other"),
        (_space(**RATE, step=0), "search_space.rate: `step > 0` must hold, but got step=0"),
        (_space(**RATE, step=0.3), "use high=0.9"),
        (_space(type="float", low=0, high=1e308, step=1e-300), "points must be different floats"),
        (_space(type="float", low=0, high=math.inf), "search_space.rate.high: must be finite, but got inf"),
        (_space(type="int", low=1, high=8, log=True, step=2), "list the points as `type: ordered`"),
        (_space(type="ordered", values=[1, 1.0, 1]), "choices must differ"),
        (_space(type="flaot", low=0, high=1), "but got 'flaot'; did you mean 'float'?"),
        (_space(low=0, high=1), "search_space.rate: needs a `type`"),
        ({"stops": [{"index": 0, "after_epoch": 1}]}, "stops: only `pruner: scripted` reads them"),
        ({"configurations": [{"a": 1}]}, "configurations: only `sampler: fixed` reads them"),
        ({"sampler": "fixed", "configurations": 20}, "configurations: must be a list, but got 20; write {sample: 20}, or"),
        ({"pruner": "scripted", "stops": [{"after_epoch": 1}]}, "stops.0: exactly one of `index` and `configuration`"),
        ({"matrix": {"budget.trials": [5, 0]}}, "budget.trials: must be at least 1, but got 0"),
        (
            {"seeds": {"count": 10_000}, "adapters": ["plain", "other"]},
            "at most 10000 runs, but variants x adapters x seeds are 20",
        ),
        (
            {"sampler": "fixed", "configurations": {"sample": 100_000}, "seeds": [0, 1, 2]},
            "may list at most 200000, but they list",
        ),
        ({"budget": {"trials": "many"}}, "budget.trials: must be an integer, but got 'many'$"),  # no way out that would not help
        ({"workers": "two"}, "workers: must be a mapping of keys to values, but got 'two'$"),
        ({"zip": [{"\n": None}]}, "zip.0. : must be a list of values"),
    ],
)
def test_wrong_input_is_one_line_with_the_place(load: Load, tmp_path: Path, content: dict[str, Any], problem: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        load({name: part for name, part in {**LEAST, **content}.items() if part is not ...})
    message = f"{caught.value}$"
    assert message.startswith(f"{tmp_path}/digits.yaml: ")
    assert problem in message
    assert "\n" not in message
    assert caught.value.exit_code == 2


def test_overrides_replace_keys_and_their_axes(load: Load) -> None:
    content = {**LEAST, "matrix": {"sampler": ["random", "default"], "workers.count": [1, 2]}}
    file = load(content, adapters=["rich"], seeds=[3], sampler="grid")
    assert (file.adapters[0].name, file.seeds) == ("rich", (3,))
    assert [variant.values for variant in file.variants] == [{"workers.count": 1}, {"workers.count": 2}]
    assert {variant.file.sampler.name for variant in file.variants} == {"grid"}


def rules(schema: Any) -> Any:
    """Return a schema without its descriptions."""
    if isinstance(schema, dict):
        return {key: rules(part) for key, part in schema.items() if not (key == "description" and isinstance(part, str))}
    return list(map(rules, schema)) if isinstance(schema, list) else schema


@pytest.mark.parametrize("schema", [json_schema, price_file_schema, run_json_schema])
def test_what_a_file_may_say_is_what_its_schema_says(schema: Callable[[], dict[str, Any]], snapshot: SnapshotAssertion) -> None:
    """With every bound, pattern and default: the reader takes its rules from the same annotations."""
    assert rules(schema()) == snapshot


def test_the_json_schema_accepts_what_the_loader_accepts(load: Load) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.check_schema(json_schema())
    good = {
        **LEAST,
        "include": "base.yaml",
        "seeds": {"count": 3},
        "sampler": {"name": "tpe", "n_startup_trials": 3},
        "search_space": {"rate": RATE, "kind": {"type": "ordered", "values": [1, 2]}},
        "matrix": {"budget.trials": [1, 2]},
    }
    validator.validate(good)
    load({key: value for key, value in good.items() if key != "include"})
    bad: dict[str, Any]
    for bad in ({"budgets": {}}, {"budget": {"trials": 0}}, _space(type="flaot"), {"seeds": []}):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate({**LEAST, **bad})
