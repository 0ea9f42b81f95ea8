"""From a file and the command line's overrides to a plan."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneoff.base.commands import command
from tuneoff.base.output import note
from tuneoff.base.packages import experiments
from tuneoff.base.targets import unknown_name
from tuneoff.cli.command import ListedAction
from tuneoff.errors import ExperimentError, UnknownNameError
from tuneoff.experiment.seeds import FORMS, read_seeds, seeds_text

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan

ONLY_ADAPTERS = (
    "only these frameworks of the file, or others (module:Class if not installed; NAME@PLATFORM for another platform "
    "than the file's; NAME==VERSION for a release, in an environment of its own)"
)
FLAGS = {  # which replace values of the file, by key
    "adapters": "--adapter",
    "budget.trials": "--trials",
    "workers.count": "--workers",
    "seeds": "--seeds",
    "sampler": "--sampler",
}


def add_file(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(experiments())
    parser.add_argument(
        "file", metavar="FILE", type=Path, help=f"experiment or matrix file (YAML), or one that is installed: {names}"
    )


def add_adapters(parser: argparse.ArgumentParser, text: str = ONLY_ADAPTERS) -> None:
    parser.add_argument("--adapter", dest="adapters", metavar="NAME", action=ListedAction, help=text)


def add_offline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--offline", action="store_true", help="make no environment for NAME==VERSION: it must be there")


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """Declare what replaces values of the file; a run's id changes with what it does."""
    add_adapters(parser)
    for flag, what, key in (("--trials", "trials", "budget.trials"), ("--workers", "workers", "workers.count")):
        text = f"{what} of each run, or of several variants; default: the file's {key}"
        parser.add_argument(flag, metavar="N", type=int, action=ListedAction, help=text)
    parser.add_argument("--seeds", metavar="SEED", action=ListedAction, help=f"seeds, written like {FORMS}; default: the file's")


def plan_of(arguments: argparse.Namespace) -> Plan:
    """Return the plan of the file that the command line names, with its overrides.

    Raises:
        ExperimentError: as `overridden_plan`.
        PluginError: as `overridden_plan`.
    """
    return overridden_plan(
        arguments.file,
        adapters=arguments.adapters,
        trials=arguments.trials,
        workers=arguments.workers,
        seeds=_seeds(arguments.seeds),
    )


def _seeds(words: Sequence[str] | None) -> list[int] | None:
    """Return the seeds of `--seeds`; a lone number, which may be meant as how many, is told for what it is."""
    if words is None:
        return None
    try:
        seeds = read_seeds(" ".join(words))
    except ValueError as error:
        raise ExperimentError(f"--seeds: {error}") from error
    if words == [str(seeds[0])] and seeds[0] > 1:
        note(f"seed {seeds[0]} alone; {seeds[0]} seeds: --seeds count:{seeds[0]}")
    return seeds


def overridden_plan(
    path: Path,
    *,
    adapters: Sequence[str] | None = None,
    trials: int | Sequence[int] | None = None,
    workers: int | Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    sampler: str | None = None,
) -> Plan:
    """Return the plan of a file with values of it replaced; several `trials` or `workers` are varied, as by `matrix`.

    Raises:
        ExperimentError: the file or a replaced value breaks a rule.
        PluginError: a plugin that it names is broken.
    """
    from tuneoff.experiment.load import load_matrix
    from tuneoff.experiment.plan import make_plan
    from tuneoff.experiment.rules import under_rules
    from tuneoff.measure.power.metering import check_meters

    source = path
    if re.fullmatch(r"[\w-]{1,60}", str(path)) and not path.exists():  # the name of an experiment that comes with tuneoff
        paths = experiments()
        if path.name not in paths:
            raise UnknownNameError(f"{unknown_name('experiment', path.name, paths)}; or give the path of a file")
        source = paths[path.name]
    entries = _entries(source, adapters) if adapters is not None else None
    trials, workers = (
        numbers[0] if isinstance(numbers, Sequence) and len(numbers) == 1 else numbers for numbers in (trials, workers)
    )
    values = dict(zip(FLAGS, (entries, trials, workers, list(seeds) if seeds is not None else None, sampler), strict=True))
    replaced = {key: value for key, value in values.items() if value is not None}
    options = dict(zip(FLAGS.values(), (adapters, trials, workers, seeds and seeds_text(seeds), sampler), strict=True))
    try:
        varied = {key: replaced.pop(key) for key in ("budget.trials", "workers.count") if isinstance(replaced.get(key), Sequence)}
        file = load_matrix(source, replaced, varied)
        check_meters(file)
        plan = replace(make_plan(file), path=str(path))
        plan = under_rules(plan, file.rules) if file.rules is not None else plan
    except ExperimentError as error:
        problem = str(error)  # of a value that a flag has replaced, by the flag
        location, colon, rule = problem.removeprefix(f"{source}: ").partition(": ")
        entry = r"(\.\d+(\.name|\.platform|\.environment\.version)?)?"
        keys = [key for key, value in values.items() if value is not None]
        key = next((key for key in keys if re.search(rf"(^|matrix\.|: ){re.escape(key)}{entry}$", location)), None)
        raise type(error)(problem if key is None or not colon else f"{FLAGS[key]}: {rule}") from error
    share_folder()
    lists = {
        option: value if isinstance(value, list | tuple) else [value] for option, value in options.items() if value is not None
    }
    return replace(plan, options={option: tuple(map(str, values)) for option, values in lists.items()})


def check_something_runs(plan: Plan) -> None:
    """Refuse a plan of which nothing would run.

    Raises:
        MissingPackageError: a framework or package is missing or of another version.
        UnsupportedError: the adapters cannot serve it.
    """
    from tuneoff.base.capabilities import framework_status
    from tuneoff.errors import MissingPackageError, UnsupportedError
    from tuneoff.registry import adapter_class

    reasons = {run.skip_reason: run for run in plan.counted}
    if plan.to_run or not reasons:
        return
    reason, run = next(iter(reasons.items()))
    more = f"; {len(reasons) - 1} more reasons: {command('plan', plan.path)}" if len(reasons) > 1 else ""
    adapter = run.spec.adapter
    of_framework = framework_status(adapter, adapter_class(adapter).capabilities).text
    is_missing = reason == of_framework or "pip install" in (reason or "")  # the latter: of an offer or the workload
    raise (MissingPackageError if is_missing else UnsupportedError)(f"{reason}{more}")


def _entries(path: Path, names: Sequence[str]) -> list[Any]:
    """Return the file's own entries of these adapters, with their options; a name that it lacks stands for itself.

    `name@platform`, as tables write it, is the entry on that platform; else each that names no platform, or that adapter, there.
    """
    from tuneoff.experiment.variants import named
    from tuneoff.experiment.yaml_reader import read_merged

    written = read_merged(path).get("adapters")
    entries = [named(entry) for entry in written] if isinstance(written, list) else []
    chosen: list[Any] = []
    for name in dict.fromkeys(name for text in names for name in text.split(",")):
        if not name:
            raise ExperimentError(f"--adapter: names must not be empty, but got {' '.join(names)!r}; remove the empty one")
        wanted = named(name)
        if not all(wanted.values()):
            raise ExperimentError(f"--adapter: NAME@PLATFORM needs both, but got {name!r}; drop the @, or complete it")
        same_name = [entry for entry in entries if isinstance(entry, dict) and entry.get("name") == wanted["name"]]
        matching = [entry for entry in same_name if wanted.items() <= entry.items()]
        chosen.extend(matching or [{**entry, **wanted} for entry in same_name if entry.get("platform") is None] or [wanted])
    return chosen


def share_folder() -> None:
    """Let the processes of the runs import from the current folder too, where a plugin was found there (see registry)."""
    folder = os.getcwd()
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder in sys.path and folder not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, paths), folder])
