"""DeepHyper's searches and stoppers as the adapter makes them, without trainings."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from builders.specs import make_context, toy_spec
from tuneoff.base.space import Categorical, Float, SearchSpace, stepped
from tuneoff.experiment.translation import translation_of
from tuneoff_adapters.deephyper.adapter import DeepHyperAdapter

SPACE = SearchSpace(
    {
        "rate": Float(low=1e-5, high=1e-1, log=True),
        "self": stepped(0, 5, 1, integer=True),
        "job_id": Categorical(choices=("relu", None, [64, 32])),  # a key of DeepHyper's own
    }
)


@pytest.fixture(scope="module")
def search() -> ModuleType:
    pytest.importorskip("deephyper", reason="DeepHyper is not in the development environment; run: pip install '.[deephyper]'")
    return importlib.import_module("tuneoff_adapters.deephyper.search")


def test_a_space_without_choices_is_refused() -> None:
    space = SearchSpace({"x": Categorical(choices=(1,))})
    assert "nothing to ask for" in str(DeepHyperAdapter.refuse(toy_spec("deephyper", sampler="default", space=space)))
    assert DeepHyperAdapter.refuse(toy_spec("deephyper", sampler="default", space=SPACE)) is None


@pytest.mark.parametrize("sampler", ["random", *(pytest.param(name, marks=pytest.mark.slow) for name in ("default", "gp"))])
def test_a_seed_repeats_the_configurations(search: ModuleType, sampler: str, tmp_path: Path) -> None:
    def drawn(name: str, seed: int) -> list[Any]:
        context = make_context(toy_spec("deephyper", sampler=sampler, space=SPACE, trials=9, seed=seed), tmp_path / name)
        translation = translation_of(context.spec)
        asked = search.make_search(context, translation)
        drawn = []
        for number in range(9):  # seven are drawn before the model is used
            (native,) = asked.ask()
            asked.tell([(native, "F_failed" if number == 3 else -native["rate"])])
            drawn.append(translation.decode(native))
        return drawn

    first = drawn("first", 3)
    assert first == drawn("again", 3)
    assert first != drawn("other", 4)


@pytest.mark.parametrize("count", [1, 5])
def test_a_list_is_proposed_in_its_order(search: ModuleType, count: int, tmp_path: Path) -> None:
    listed = tuple({"rate": 0.01, "self": number, "job_id": None} for number in range(count))
    spec = toy_spec("deephyper", sampler="fixed", space=SPACE, trials=count, configurations=listed)
    context = make_context(spec, tmp_path)
    translation = translation_of(spec)
    asked = search.make_search(context, translation)
    assert [translation.decode(asked.ask()[0]) for _ in range(count)] == list(listed)


@pytest.mark.parametrize(("first", "factor"), [(1, 3), (2, 3), (5, 2), (7, 10)])
def test_the_rungs_are_those_of_the_other_frameworks(search: ModuleType, first: int, factor: int) -> None:
    pruner = {"first_rung_epochs": first, "reduction_factor": factor}
    spec = toy_spec("deephyper", pruner="asha", pruner_options=pruner, epochs=10_000)
    stopper = search.make_stopper(spec.experiment, translation_of(spec))
    for rung in range(4):
        stopper._rung = rung
        assert first * factor**rung - 1 < stopper._compute_halting_budget() <= first * factor**rung
