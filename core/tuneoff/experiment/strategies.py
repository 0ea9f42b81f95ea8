"""The vocabulary of samplers and pruners, the options that mean the same in every framework, and core's own draws.

Random configurations and the order of a grid are drawn from `random.Random(seed)` and `from_unit` alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tuneoff.base.capabilities import Capabilities, Option
from tuneoff.base.commands import install_command
from tuneoff.base.identity import configuration_digest
from tuneoff.base.packages import installed_version, release
from tuneoff.base.space import Categorical, Float, SearchSpace, Stepped
from tuneoff.base.targets import unknown_name, unknown_option
from tuneoff.errors import ExperimentError, UnknownNameError
from tuneoff.workload import new_workload

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec, Strategy


DEFAULT = "default"  # the sampler that each framework has by default
SAMPLERS = ("random", "grid", "fixed", DEFAULT, "tpe", "gp", "cmaes", "sobol")
PRUNERS = ("none", "median", "asha", "hyperband", "scripted")
LISTED = ("grid", "fixed")  # samplers whose configurations core lists: each framework trains the same ones
COST_MODEL = "cost_model"  # a flag of samplers that can be handed what the workload says that a configuration costs
_WITHOUT_OPTIONS = ("random", *LISTED, DEFAULT)  # the other samplers' options are their adapter's to check


# The options of pruners with their defaults. Epochs count from 1. asha: a trial is compared after first_rung_epochs *
# reduction_factor ** k epochs. median: from first_epoch on, and not before min_trials other trials ended.
_PRUNER_OPTIONS: Mapping[str, Mapping[str, int]] = {
    "none": {},
    "scripted": {},
    "asha": {"first_rung_epochs": 1, "reduction_factor": 3},
    "hyperband": {"first_rung_epochs": 1, "reduction_factor": 3, "brackets": 3},
    "median": {"first_epoch": 1, "min_trials": 5},
}
_IN_EPOCHS = ("first_rung_epochs", "first_epoch")  # at most the epochs of a trial
MAX_REPEATS = 10_000  # draws in a row that give nothing new before `sample_distinct` gives up


def check_sampler(sampler: Strategy, more_names: Iterable[str] = ()) -> Strategy:
    """Return the sampler; `more_names` are names that adapters list beyond the vocabulary.

    Raises:
        UnknownNameError: nobody knows the name.
        ExperimentError: an option that it does not have.
    """
    names = {*SAMPLERS, *more_names}
    if sampler.name not in names:
        raise UnknownNameError(unknown_name("sampler", sampler.name, names))
    if sampler.name in _WITHOUT_OPTIONS and sampler.options:
        option = next(iter(sampler.options))
        raise ExperimentError(f"sampler {sampler.name!r} has no options, but got {option!r}; remove it")
    return sampler


def search_refusal(spec: RunSpec) -> str | None:
    """Return why there is nothing to ask a framework for, which many have no space for, or None."""
    if spec.experiment.search_space.searched or spec.experiment.sampler.name in LISTED:
        return None
    return "the search space has no dimension with more than one value, so nothing to ask for; use adapter serial"


def sampler_refusal(spec: RunSpec, capabilities: Capabilities) -> str | None:
    """Return in one line why the adapter's sampler cannot have these options or draw from this space, or None."""
    sampler, space = spec.experiment.sampler, spec.experiment.search_space
    offer = capabilities.samplers.get(sampler.name)
    if offer is None:
        return None
    whose = f"sampler {sampler.name!r} of adapter {spec.adapter!r}"
    if problem := unknown_option(whose, sampler.options, offer.options):
        return problem
    for name, value in sampler.options.items():
        option = offer.options[name]
        if not option.admits(value):
            return f"option `{name}` of {whose} must be {option.text}, but got {value!r}"
    ordered = sum(not isinstance(item, Categorical) or item.ordered for item in space.searched.values())
    if ordered < offer.ordered_dimensions:
        needs = f"at least {offer.ordered_dimensions} numeric or ordered dimensions with more than one value"
        return f"{whose} needs {needs}, but the search space has {ordered}; use another sampler"
    count, trials = space.cardinality, spec.experiment.budget.trials
    if not offer.repeats and count is not None and count < trials:
        rule = f"{whose} proposes no configuration twice, but the search space has {count}, fewer than the {trials} trials"
        return f"{rule}; lower `budget.trials`, or use another sampler"
    for name, item in space.searched.items():
        if isinstance(item, Stepped) and offer.most_points is not None and item.size > offer.most_points:
            rule = f"{whose} keeps all points of a dimension in memory, at most {offer.most_points}, but {name} has {item.size}"
            return f"{rule}; use a larger step, a float, or another sampler"
        if isinstance(item, Float) and item.high - item.low < offer.least_width:
            rule = f"{whose} needs `high - low >= {offer.least_width}` of a float, but {name} has {item.high - item.low}"
            return f"{rule}; use other units, or another sampler"
    if sampler.options.get(COST_MODEL):
        workload = spec.experiment.workload
        middle = space.from_units(dict.fromkeys(space.searched, 0.5))
        if new_workload(workload.target, workload.options).cost(middle, 1) is None:
            return f"{whose} with `{COST_MODEL}` needs a workload with `cost`, which {workload.name!r} lacks; remove it"
    return None


def framework_version(spec: RunSpec, capabilities: Capabilities) -> str | None:
    """Return the framework's version that a run has, or None where nobody knows it; imports nothing."""
    return installed_version(capabilities.package) if spec.environment is None else spec.environment.version


def release_refusal(what: str, least: str, spec: RunSpec, capabilities: Capabilities, below: str = "") -> str | None:
    """Return in one line that `what` needs another release of the framework than the run's, or None.

    `least`, `below`: the first release that has it, and the first one that does not any more; "": any.
    """
    version = framework_version(spec, capabilities) if least or below else None
    is_too_new = version is not None and bool(below) and release(version) >= release(below)
    if version is None or (not is_too_new and release(version) >= release(least)):
        return None
    wanted = f"before {below}" if is_too_new else f"{least} or later"
    here = "installed" if spec.environment is None else "asked for"
    way_out = f"use {spec.adapter}=={least or capabilities.minimum_version}"  # in an environment of its own
    if spec.environment is None and not is_too_new:
        way_out = f"run: {install_command(f'{capabilities.package}>={least}')}"
    return f"{what} needs {capabilities.framework} {wanted}, but {version} is {here}; {way_out}"


def check_pruner(pruner: Strategy, epochs_per_trial: int, more_names: Iterable[str] = ()) -> Strategy:
    """Return the pruner with its defaults filled in; `more_names` are names that adapters list beyond the vocabulary.

    Raises:
        UnknownNameError: nobody knows the name.
        ExperimentError: an option that it does not have, or a value out of range.
    """
    names = {*PRUNERS, *more_names}
    if pruner.name not in names:
        raise UnknownNameError(unknown_name("pruner", pruner.name, names))
    defaults = _PRUNER_OPTIONS.get(pruner.name)
    if defaults is None:  # an adapter's own pruner: its options are the adapter's to check
        return pruner
    if problem := unknown_option(f"pruner {pruner.name!r}", pruner.options, defaults):
        raise ExperimentError(problem)
    options = {name: pruner.options.get(name, default) for name, default in defaults.items()}
    for name, value in options.items():
        rule = Option(type="integer", least=2 if name == "reduction_factor" else 1)
        problem = f"pruner option `{pruner.name}.{name}`"
        if not rule.admits(value):
            raise ExperimentError(f"{problem} must be {rule.text}, but got {value!r}")
        if name in _IN_EPOCHS and value > epochs_per_trial:
            raise ExperimentError(f"{problem} may be at most `budget.epochs_per_trial` ({epochs_per_trial}), but got {value}")
    return replace(pruner, options=options)


def draw(space: SearchSpace, generator: random.Random) -> dict[str, Any]:
    """Return one configuration; one random number per searched dimension, in the space's order."""
    return space.from_units({name: generator.random() for name in space.searched})


def draws(space: SearchSpace, seed: int) -> Iterator[dict[str, Any]]:
    """Yield random configurations without end; the same seed gives the same ones on every machine."""
    generator = random.Random(seed)
    while True:
        yield draw(space, generator)


def sample_distinct(space: SearchSpace, count: int, seed: int) -> list[dict[str, Any]]:
    """Return `count` different random configurations.

    Raises:
        ExperimentError: the space has fewer.
    """
    if space.cardinality is not None and space.cardinality < count:
        raise ExperimentError(f"at most {space.cardinality} different configurations exist, but {count} were asked for")
    by_digest: dict[str, dict[str, Any]] = {}
    repeats = 0
    for configuration in draws(space, seed):
        if len(by_digest) == count:
            break
        before = len(by_digest)
        by_digest.setdefault(configuration_digest(configuration), configuration)
        repeats = 0 if len(by_digest) > before else repeats + 1
        if repeats > MAX_REPEATS:
            raise ExperimentError(f"{count} of {space.cardinality} configurations could not be drawn by chance; ask for fewer")
    return list(by_digest.values())


def grid_order(space: SearchSpace, seed: int) -> list[dict[str, Any]]:
    """Return every configuration once, in an order shuffled by `seed`.

    Raises:
        ExperimentError: a dimension is continuous, or the grid is too large.
    """
    return shuffled(space.grid(), seed)


def shuffled(items: Sequence[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Return `items` in an order that depends on `seed` alone (`random.shuffle` may change between Python versions)."""
    result = list(items)
    generator = random.Random(seed)
    for last in range(len(result) - 1, 0, -1):
        other = int(generator.random() * (last + 1))
        result[last], result[other] = result[other], result[last]
    return result


def listed_configurations(spec: RunSpec) -> list[dict[str, Any]] | None:
    """Return the configurations that a run must evaluate, in order, or None where its sampler chooses them.

    `fixed`: the given list; `grid`: the shuffled grid; both cut at `budget.trials`.
    """
    experiment = spec.experiment
    if experiment.sampler.name == "fixed":
        return [dict(item) for item in experiment.configurations[: experiment.budget.trials]]
    if experiment.sampler.name == "grid":
        return grid_order(experiment.search_space, spec.sampler_seed)[: experiment.budget.trials]
    return None
