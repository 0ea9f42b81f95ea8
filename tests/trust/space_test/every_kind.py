"""A search space with every kind of dimension, and samples of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from builders.specs import NULL, make_context, make_spec
from tuneoff.adapter import Adapter
from tuneoff.base.space import Categorical, Constant, Float, IntegerLog, SearchSpace, stepped
from tuneoff.experiment.spec import Objective, Workers
from tuneoff.experiment.strategies import draws
from tuneoff.record.run_context import RunContext
from tuneoff.trust.space_test.draw import mapping_problems
from tuneoff.trust.space_test.judge import Sample
from tuneoff.trust.space_test.verify import with_probes

SPACE = SearchSpace(
    {
        "share": Float(low=-2.0, high=5.0),
        "learning_rate": Float(low=1e-5, high=1e-1, log=True),
        "dropout": stepped(0.0, 0.5, 0.1, integer=False),
        "epochs": stepped(0, 1000, 1, integer=True),
        "batch": stepped(16, 256, 16, integer=True),
        "width": IntegerLog(low=8, high=1024),
        "activation": Categorical(choices=("relu", "tanh", "gelu")),
        "layers": Categorical(choices=([64], [64, 32], None, 3)),
        "size": Categorical(choices=(1, 2, 4, 8, 16), ordered=True),
        "optimizer": Constant(value="adam"),
    }
)
PROBED = with_probes(SPACE)
SEEDS = 4


def core_sample(count: int, first_seed: int) -> Sample:
    """Return core's own draws, as an adapter without a defect would give them."""
    seeds = range(first_seed, first_seed + SEEDS)
    return Sample(by_seed={seed: list(islice(draws(PROBED, seed), count // SEEDS)) for seed in seeds}, mapping={})


def adapter_sample(adapter: type[Adapter], count: int, folder: Path) -> Sample:
    """Return what an adapter draws in this process, the first seed twice."""
    by_seed: dict[int, Any] = {seed: drawn(adapter, seed, count // SEEDS, folder) for seed in range(SEEDS)}
    sample = Sample(by_seed=by_seed, again=drawn(adapter, 0, 50, folder))
    try:
        space = adapter(context_of(adapter, 0, count, folder)).framework_space()
    except NotImplementedError as error:
        return replace(sample, mapping_text=str(error))
    return replace(sample, mapping=mapping_problems(PROBED, space))


def drawn(adapter: type[Adapter], seed: int, count: int, folder: Path) -> list[Any]:
    return list(islice(adapter(context_of(adapter, seed, count, folder)).draw(count), count))


def context_of(adapter: type[Adapter], seed: int, count: int, folder: Path) -> RunContext:
    """Return the context that the process of a draw gives."""
    spec = make_spec(
        adapter.__name__,
        target=f"{adapter.__module__}:{adapter.__name__}",
        seed=seed,
        workload=NULL,
        search_space=PROBED,
        objective=Objective(metric="validation_loss", mode="min"),
        trials=count,
        epochs=1,
        workers=Workers(),
    )
    return make_context(spec, folder)
