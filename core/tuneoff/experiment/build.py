"""From a checked file to specifications: names become classes, defaults are filled in, and the parts must fit each other."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tuneoff import registry
from tuneoff.base.identity import canonical_json, configuration_digest, own_copy
from tuneoff.base.space import MAX_LISTED, SearchSpace
from tuneoff.base.targets import unknown_name
from tuneoff.base.tracebacks import text_of
from tuneoff.errors import ExperimentError, PluginError, TuneoffError
from tuneoff.experiment import spec
from tuneoff.experiment.load import MatrixFile, Variant
from tuneoff.experiment.schema import DrawPart, ExperimentFile, ObjectivePart
from tuneoff.experiment.strategies import LISTED, check_pruner, check_sampler, sample_distinct
from tuneoff.workload import Workload

Configurations = tuple[Mapping[str, Any], ...]


def build_experiments(
    file: MatrixFile, *, samplers: Iterable[str] = (), pruners: Iterable[str] = ()
) -> list[spec.ExperimentSpec]:
    """Return one specification per variant; `samplers` and `pruners` are names that the file's adapters list themselves.

    Raises:
        ExperimentError: a name that nobody knows, or parts that do not fit each other; one line with file and place.
        PluginError: the workload's plugin is broken.
    """
    known_samplers, known_pruners = frozenset(samplers), frozenset(pruners)
    return [_build(file.path, variant, known_samplers, known_pruners) for variant in file.variants]


def _build(path: str, variant: Variant, samplers: frozenset[str], pruners: frozenset[str]) -> spec.ExperimentSpec:
    file = variant.file
    at = functools.partial(_at, f"{path} ({variant.label})" if variant.values else path)
    with at("workload"):
        workload_type = registry.workload_class(file.workload.name)
    with at("workload.options"), _plugin_faults(file):
        workload = workload_type(own_copy(file.workload.options))
    with at("search_space"), _plugin_faults(file):
        space = _space(file, workload)
    epochs = file.budget.epochs_per_trial or workload_type.default_epochs
    with at("sampler"):
        sampler = check_sampler(file.sampler, samplers)
    with at("pruner"):
        pruner = check_pruner(file.pruner, epochs, pruners)
    with at("configurations"):
        listed = _configurations(file, space)
        if sampler.name == "fixed" and not listed:
            raise ExperimentError(
                "`sampler: fixed` needs a list of configurations, but got none; give them, or {sample: 20, seed: 0}"
            )
        fixed = listed if sampler.name == "fixed" else ()
    with at("first_configurations"):
        first = _completed(file.first_configurations or (), space)
        if first and sampler.name in LISTED:
            raise ExperimentError(f"sampler {sampler.name!r} tries nothing but its list; remove them, or use another sampler")
    with at("stops"):
        stops = _stops(file, space, listed, epochs) if pruner.name == "scripted" else {}
    with at("sampler"):
        most = _most(sampler.name, space, fixed)
    with at("objective"):
        objective = _objective(file.objective, workload_type)
    anchors = file.anchors
    with at("anchors"):  # the wrong way round regret would call the worse adapter the better one
        if anchors is not None and (anchors.best_known > anchors.random_search) != (objective.mode == "max"):
            raise ExperimentError(
                f"best_known must be better than random_search, but the {objective.mode} of {objective.metric!r} is better, and "
                f"got best_known={anchors.best_known} and random_search={anchors.random_search}; swap them"
            )
    with at("budget.trials"):
        trials = _trials(file.budget.trials, sampler.name, most)
        if len(first) > trials:
            raise ExperimentError(f"must be at least the {len(first)} `first_configurations`, but got {trials}")
    with at("copies"):
        if len(file.workers.devices) % file.copies:
            rule = f"{file.copies} jobs share the devices of `workers`, but there are {len(file.workers.devices)}"
            raise ExperimentError(f"{rule}; name {file.copies}, or a multiple")
    return spec.ExperimentSpec(
        workload=spec.WorkloadSpec(
            name=file.workload.name,
            target=registry.find("workload", file.workload.name).target,
            options=file.workload.options,
        ),
        search_space=space,
        objective=objective,
        sampler=sampler,
        pruner=pruner,
        budget=spec.Budget(
            trials=trials,
            epochs_per_trial=epochs,
            epochs_total=file.budget.epochs_total,
            wall_clock_seconds=file.budget.wall_clock_seconds,
        ),
        workers=file.workers,
        timeouts=file.timeouts,
        failures=file.failures,
        configurations=fixed or first,
        stops=stops,
        variant=variant.values,
        task_digest=variant.task_digest,
        copies=file.copies,
    )


@contextlib.contextmanager
def _at(where: str, key: str) -> Iterator[None]:
    """Put the file and the place in front of an ExperimentError."""
    try:
        yield
    except ExperimentError as error:
        raise type(error)(f"{where}: {key}: {error}") from error


@contextlib.contextmanager
def _plugin_faults(file: ExperimentFile) -> Iterator[None]:
    """Tell a fault in a workload's own code as the plugin's, in one line."""
    try:
        yield
    except TuneoffError:
        raise
    except Exception as error:  # a plugin's own code may fail in any way
        cause = " ".join(f"{type(error).__name__}: {text_of(error)}".split())
        raise PluginError(f"workload {file.workload.name!r} fails on the experiment instead of refusing it: {cause}") from error


def _space(file: ExperimentFile, workload: Workload) -> SearchSpace:
    if file.search_space is None:
        space = workload.default_space()
    else:
        space = SearchSpace({name: part.to_core() for name, part in file.search_space.items()})
    workload.check_space(space)
    return space


def _objective(part: ObjectivePart, workload: type[Workload]) -> spec.Objective:
    metric = part.metric or workload.default_metric
    if not workload.metrics:  # they are known when it runs
        if part.mode is None and metric != "validation_accuracy":
            rule = f"mode: it must be given for {metric!r}, as the workload does not say which direction is better"
            raise ExperimentError(f"{rule}; write mode: max or mode: min")
        return _with_goals(spec.Objective(metric=metric, mode=part.mode or "max"), part)
    if metric not in workload.metrics:
        raise ExperimentError(f"metric: {unknown_name('metric', metric, workload.metrics)}")
    mode = workload.metrics[metric]
    if part.mode is not None and part.mode != mode:
        raise ExperimentError(f"mode: {metric!r} is better at its {mode}, but got mode={part.mode!r}; leave `mode` out")
    return _with_goals(spec.Objective(metric=metric, mode=mode), part)


def _with_goals(objective: spec.Objective, part: ObjectivePart) -> spec.Objective:
    goals = part.goal if isinstance(part.goal, dict) else {}
    for (easier, value), (name, harder) in itertools.pairwise(goals.items()):
        if not objective.is_better(harder, than=value):
            rule = f"each must be harder than the one before (mode {objective.mode})"
            raise ExperimentError(f"goal: {rule}, but got {easier}={value:g} and then {name}={harder:g}; write the hardest last")
    goal = next(reversed(goals.values())) if isinstance(part.goal, dict) else part.goal
    if part.stop and goal is None:
        raise ExperimentError("stop: there is no goal to stop at; write goal: VALUE, or leave `stop` out")
    return replace(objective, goal=goal, goals=goals, stop=part.stop)


def _configurations(file: ExperimentFile, space: SearchSpace) -> Configurations:
    """Return the given or drawn configurations, completed and checked; () where the file has none."""
    if file.configurations is None:
        return ()
    if isinstance(file.configurations, DrawPart):
        return tuple(sample_distinct(space, file.configurations.sample, file.configurations.seed))
    return _completed(file.configurations, space)


def _completed(configurations: Iterable[Mapping[str, Any]], space: SearchSpace) -> Configurations:
    """Return given configurations with what they leave out of their constants, checked."""
    completed = []
    seen: dict[str, int] = {}
    for index, partial in enumerate(configurations):
        try:
            configuration = space.complete(partial)
        except ExperimentError as error:
            raise ExperimentError(f"{index}: {error}") from error
        digest = configuration_digest(configuration)
        if digest in seen:
            raise ExperimentError(f"{index}: configurations must differ, but it equals number {seen[digest]}; remove one")
        seen[digest] = index
        completed.append(configuration)
    return tuple(completed)


def _stops(file: ExperimentFile, space: SearchSpace, listed: Configurations, epochs: int) -> dict[str, int]:
    """Return the last epoch of each configuration that `pruner: scripted` stops, by its digest."""
    if not file.stops:
        raise ExperimentError("`pruner: scripted` needs `stops`, but got none; give a list of {index, after_epoch}")
    stops: dict[str, int] = {}
    for number, stop in enumerate(file.stops):
        if stop.after_epoch >= epochs:
            raise ExperimentError(
                f"{number}.after_epoch: must be less than `budget.epochs_per_trial` ({epochs}), but got {stop.after_epoch}"
            )
        try:
            if stop.index is None:
                configuration = space.complete(stop.configuration or {})
            elif stop.index < len(listed):
                configuration = dict(listed[stop.index])
            else:
                raise ExperimentError(f"index must be less than the {len(listed)} configurations, but got {stop.index}")
        except ExperimentError as error:
            raise ExperimentError(f"{number}: {error}") from error
        digest = configuration_digest(configuration)
        if digest in stops:
            raise ExperimentError(f"{number}: a configuration may be stopped once, but {canonical_json(configuration)} is twice")
        stops[digest] = stop.after_epoch
    return stops


def _most(sampler: str, space: SearchSpace, fixed: Configurations) -> int | None:
    """Return how many configurations a list or a grid has; None for samplers without an end."""
    if sampler == "fixed":
        return len(fixed)
    if sampler != "grid":
        return None
    if space.cardinality is None or space.cardinality > MAX_LISTED:
        space.grid()  # raises, with the reason
    return space.cardinality


def _trials(count: int | None, sampler: str, most: int | None) -> int:
    """Return the trials of a run: as given, else all that a list or a grid has."""
    if most is None and count is None:
        raise ExperimentError(f"is required for sampler {sampler!r}; give the number of trials of each run")
    if most is not None and count is not None and count > most:
        raise ExperimentError(
            f"sampler {sampler!r} has {most} configurations, but got {count} trials; use at most {most}, or leave it out"
        )
    return count if count is not None else most or 0
