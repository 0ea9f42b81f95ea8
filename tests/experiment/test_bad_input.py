"""Whatever stands in a file, a user sees a plan or one line, never a traceback."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fake_plugins
from tuneoff.errors import TuneoffError
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import make_plan
from tuneoff.measure.power.metering import check_meters

GOOD: dict[str, Any] = {
    "name": "good",
    "workload": {"name": "curve", "options": {"noise": 1}},
    "search_space": {
        "rate": {"type": "float", "low": 0.1, "high": 1.0, "log": True},
        "width": {"type": "int", "low": 1, "high": 9, "step": 2},
        "kind": {"type": "categorical", "choices": ["a", "b"]},
    },
    "objective": {"metric": "loss", "goal": 0.1},
    "sampler": "fixed",
    "pruner": {"name": "scripted"},
    "configurations": {"sample": 4, "seed": 1},
    "stops": [{"index": 0, "after_epoch": 1}],
    "budget": {"epochs_per_trial": 3},
    "workers": {"count": 2, "cpus": 1.0},
    "timeouts": {"trial_seconds": 10},
    "failures": {"retries": 1},
    "seeds": [0, 1],
    "adapters": ["plain", {"name": "rich", "options": {"storage": "x"}}],
    "matrix": {"workers.count": [1, 2]},
    "zip": [{"budget.epochs_per_trial": [3, 4], "timeouts.test_seconds": [5, 6]}],
}

scalars = st.none() | st.booleans() | st.integers(-3, 10**12) | st.floats(allow_nan=False) | st.text(max_size=4)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)


def _places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    return [place for key, inner in items for place in [(*above, key), *_places(inner, (*above, key))]]


def _outcome(path: Path) -> str:
    try:
        file = load_matrix(path)
        check_meters(file)
        make_plan(file)
    except TuneoffError as error:
        return str(error)
    return ""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fake_plugins.register(monkeypatch)
    return tmp_path / "file.yaml"


def test_the_file_that_is_spoiled_below_is_good(path: Path) -> None:
    path.write_text(json.dumps(GOOD))
    assert _outcome(path) == ""


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(_places(GOOD)), value=values)
def test_any_value_in_any_place_gives_a_plan_or_one_line(path: Path, place: tuple[Any, ...], value: Any) -> None:
    content = copy.deepcopy(GOOD)
    here: Any = content
    for key in place[:-1]:
        here = here[key]
    here[place[-1]] = value
    path.write_text(json.dumps(content))
    assert "\n" not in _outcome(path)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 2000), inserted=st.text(max_size=3))
def test_a_damaged_text_gives_a_plan_or_one_line(path: Path, cut: int, inserted: str) -> None:
    text = json.dumps(GOOD, indent=1)
    path.write_bytes((text[:cut] + inserted + text[cut + 1 :]).encode(errors="surrogatepass"))
    assert "\n" not in _outcome(path)
