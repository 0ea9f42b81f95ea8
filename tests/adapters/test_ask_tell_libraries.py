"""The libraries that choose by ask and tell, without trainings: their seeds, and what they make of what they are told."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.specs import make_context, toy_spec
from tuneoff.ask_tell import AskTellAdapter, Offer
from tuneoff.base.capabilities import framework_status
from tuneoff.base.space import Categorical, Float, IntegerLog, SearchSpace, stepped
from tuneoff.base.targets import load_target
from tuneoff.experiment.spec import Strategy, WorkloadSpec
from tuneoff.run.pool_adapter import Task
from tuneoff.run.trial.run_trial import TrialOutcome

SPACE = SearchSpace(
    {
        "share": Float(low=-2.0, high=5.0),
        "rate": Float(low=1e-5, high=1e-1, log=True),
        "a/b": stepped(0.0, 0.5, 0.1, integer=False),  # a path to FLAML
        "self": IntegerLog(low=8, high=1024),  # an argument to Nevergrad
        "kind": Categorical(choices=("relu", None, [64, 32])),
        "loss": Categorical(choices=(1, 2, 4, 8), ordered=True),
    }
)
TRIALS = {"rustuna": 16, "hyperopt": 26, "ax": 8}  # more than are drawn at random
ADAPTERS = {
    name: f"tuneoff_adapters.{name}:{name.capitalize()}Adapter"
    for name in ("rustuna", "nevergrad", "hyperopt", "flaml", "smac", "ax")
}
SLOW = ("smac", "ax")  # to ask
Configurations = list[Mapping[str, Any]]
PRUNED = 1000.0  # by which those that are pruned are better


@pytest.fixture(scope="module", params=[pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in ADAPTERS])
def library(request: pytest.FixtureRequest) -> type[AskTellAdapter]:
    adapter: type[AskTellAdapter] = load_target(ADAPTERS[request.param])
    status = framework_status(request.param, adapter.capabilities)
    if request.param == "ax" and status.state == "missing":
        pytest.skip(f"{status.text} (too large for the development environment)")
    return adapter


def slope(configuration: Mapping[str, Any]) -> float:
    """Return a loss that tells all configurations apart."""
    return float(configuration["share"] ** 2 + math.log(configuration["rate"] / 1e-3) ** 2 + math.log(configuration["self"]))


def started(
    library: type[AskTellAdapter], folder: Path, *, seed: int = 3, sampler: str = "default", **changes: Any
) -> AskTellAdapter:
    """Return the adapter with its optimizer open."""
    trials = TRIALS.get(library.__module__.rpartition(".")[2], 12)
    spec = replace(toy_spec("under-test", sampler=sampler, **{"space": SPACE, "trials": trials, **changes}), seed=seed)
    assert library.refuse(spec) is None
    adapter = library(make_context(spec, folder))
    adapter.setup()
    return adapter


def searched(
    adapter: AskTellAdapter, loss: Callable[[Mapping[str, Any]], float], *, sign: float = 1.0, failed: Collection[int] = ()
) -> Configurations:
    """Run the trials two at a time, of which the later one ends first, and return their configurations.

    Those with the numbers `failed` fail, and each fifth one is pruned at a value better than any other's.
    """
    waiting: list[tuple[int, str, Mapping[str, Any]]] = []
    configurations: Configurations = []
    for trial in itertools.chain(adapter.propose(), [None, None]):
        if trial is not None:
            waiting.append((len(configurations), *trial))
            configurations.append(trial[1])
        if len(waiting) == 2 or (trial is None and waiting):
            number, trial_id, configuration = waiting.pop()
            state = "failed" if number in failed else "pruned" if number % 5 == 4 else "completed"
            value = None if state == "failed" else sign * (loss(configuration) - (PRUNED if state == "pruned" else 0.0))
            adapter.ended(Task(trial_id, configuration, 1), TrialOutcome(state=state, value=value))  # type: ignore[arg-type]
    return configurations


@pytest.fixture(scope="module")
def sound(library: type[AskTellAdapter], tmp_path_factory: pytest.TempPathFactory) -> tuple[AskTellAdapter, Configurations]:
    """A search in which no trial fails, and its configurations."""
    adapter = started(library, tmp_path_factory.mktemp("sound"))
    return adapter, searched(adapter, slope)


def test_a_seed_repeats_the_configurations(
    library: type[AskTellAdapter], sound: tuple[AskTellAdapter, Configurations], tmp_path: Path
) -> None:
    assert searched(started(library, tmp_path / "again"), slope) == sound[1]
    assert searched(started(library, tmp_path / "other", seed=4), slope) != sound[1]


def test_a_model_learns_from_what_it_is_told(
    library: type[AskTellAdapter], sound: tuple[AskTellAdapter, Configurations], tmp_path: Path
) -> None:
    """By the same model a maximum of the mirrored values is searched as their minimum, and another minimum is not."""
    (lowest, configurations), highest = sound, started(library, tmp_path / "max", mode="max")
    assert searched(highest, slope, sign=-1.0) == configurations
    assert searched(started(library, tmp_path / "other"), slope, sign=-1.0) != configurations
    for adapter, sign in ((lowest, 1.0), (highest, -1.0)):
        best = adapter.collect_results()
        assert best is not None
        completed = [slope(item) for number, item in enumerate(configurations) if number % 5 != 4]
        assert best.value == sign * min(completed)


def test_failed_trials_are_told_and_never_the_best(
    library: type[AskTellAdapter], sound: tuple[AskTellAdapter, Configurations], tmp_path: Path
) -> None:
    """A search whose first half fails goes on, and otherwise than one in which it completes."""
    adapter, half = started(library, tmp_path), len(sound[1]) // 2
    configurations = searched(adapter, slope, failed=range(half))
    assert configurations != sound[1]
    best = adapter.collect_results()
    assert best is not None
    assert best.configuration in configurations[half:]


@pytest.mark.parametrize("count", [1, 3])
def test_given_configurations_are_told_as_any_others(library: type[AskTellAdapter], tmp_path: Path, count: int) -> None:
    drawn = [configuration for _, configuration in started(library, tmp_path / "drawn", sampler="random").propose()][:count]
    adapter = started(library, tmp_path / "given", sampler="fixed", configurations=tuple(drawn), trials=count)
    assert searched(adapter, slope) == drawn
    best = adapter.collect_results()
    assert best is not None
    assert best.configuration == min(drawn, key=slope)


def test_a_search_that_repeats_nothing_needs_as_many_configurations(library: type[AskTellAdapter], tmp_path: Path) -> None:
    space = SearchSpace({"x": stepped(0, 3, 1, integer=True), "kind": Categorical(choices=("a", "b"))})
    default = library.capabilities.samplers["default"]
    refusal = library.refuse(toy_spec("under-test", sampler="default", space=space, trials=9))
    assert (refusal is None) == default.repeats
    if default.repeats:
        searched(started(library, tmp_path, space=space, trials=9), lambda configuration: float(configuration["x"]))
    else:
        assert refusal is not None
        assert "proposes no configuration twice, but the search space has 8, fewer than the 9 trials" in refusal


def test_what_is_drawn_twice_is_two_trials(library: type[AskTellAdapter], tmp_path: Path) -> None:
    space = SearchSpace({"x": stepped(0, 1, 1, integer=True), "kind": Categorical(choices=("a", "b"))})
    adapter = started(library, tmp_path, sampler="random", space=space, trials=9)
    assert len(searched(adapter, lambda configuration: 1.0 - configuration["x"])) == 9
    best = adapter.collect_results()
    assert best is not None
    assert best.value == 1.0 - best.configuration["x"] == 0.0


def test_every_offer_names_what_is_there(library: type[AskTellAdapter], tmp_path: Path) -> None:
    for name, offer in library.capabilities.samplers.items():
        if name not in ("fixed", "grid"):
            assert isinstance(offer, Offer)
            assert started(library, tmp_path / name, sampler=name).implementation is not None


def test_flaml_begins_where_the_workload_says_that_it_is_cheap(tmp_path: Path) -> None:
    flaml: type[AskTellAdapter] = load_target(ADAPTERS["flaml"])
    space = SearchSpace(
        {
            "hidden_width": IntegerLog(low=8, high=512),
            "batch_size": Categorical(choices=(16, 64, 256), ordered=True),
            "dropout": Float(low=0.0, high=0.5),
            "optimizer": Categorical(choices=("adam", "sgd")),
        }
    )
    spec = toy_spec("under-test", space=space, trials=1)
    first = {}
    for is_told in (False, True):
        sampler = Strategy(name="cfo", options={"cost_model": is_told})
        told = replace(spec, experiment=replace(spec.experiment, sampler=sampler))
        assert bool(flaml.refuse(told)) == is_told  # its workload has no cost
        workload = WorkloadSpec(name="mnist_mlp", target="tuneoff_workloads.mnist_mlp.workload:MnistMlp")
        told = replace(told, experiment=replace(told.experiment, workload=workload))
        assert flaml.refuse(told) is None
        adapter = flaml(make_context(told, tmp_path / str(is_told)))
        adapter.setup()
        ((_, first[is_told]),) = adapter.propose()
    assert (first[True]["hidden_width"], first[True]["batch_size"]) == (8, 256)
    assert (first[False]["hidden_width"], first[False]["batch_size"]) != (8, 256)


@pytest.mark.parametrize("best", [0, 1])
def test_flaml_searches_from_the_best_of_the_given_configurations(tmp_path: Path, best: int) -> None:
    space = SearchSpace({"x": Float(low=0.0, high=1.0), "y": Float(low=0.0, high=1.0)})
    given = ({"x": 0.1, "y": 0.1}, {"x": 0.9, "y": 0.9})
    adapter = started(load_target(ADAPTERS["flaml"]), tmp_path, space=space, trials=4, configurations=given)
    values = [1.0, 1.0, 0.5, 0.5]
    values[best] = 0.0
    configurations = []
    for (trial_id, configuration), value in zip(adapter.propose(), values, strict=True):
        configurations.append(configuration)
        adapter.ended(Task(trial_id, configuration, 1), TrialOutcome(state="completed", value=value))
    assert tuple(configurations[:2]) == given
    for later in configurations[2:]:
        assert math.dist(later.values(), given[best].values()) < math.dist(later.values(), given[1 - best].values())
