"""What of a bundle is obeyed here: runs of installed adapters and workloads, on this machine, with options that they allow.

A bundle says of itself what it likes: label, platform, options. What counts is the specification of a run (its id
covers it) and the code that is installed here. Nothing that a bundle names is imported: names are those of entry points.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tuneoff import registry
from tuneoff.base.capabilities import LOCAL
from tuneoff.base.format import listed
from tuneoff.base.identity import is_finite
from tuneoff.base.space import Categorical, Constant
from tuneoff.errors import ExperimentError
from tuneoff.experiment.power_settings import AUTO, INTERVAL_SECONDS, NO_METER, PowerSettings
from tuneoff.experiment.spec import RunSpec, WorkloadSpec
from tuneoff.registry import AdapterClass
from tuneoff.workload import Workload

TRUSTED = "unpack the bundle and run its experiment.json if you trust it"
METERS: Mapping[str, frozenset[str]] = {  # others read files, ask servers or start programs; the options are numbers
    AUTO: frozenset(),
    NO_METER: frozenset(),
    "model": frozenset({"joules_per_cpu_second", "watts_per_core", "low", "high"}),
    "constant": frozenset({"watts"}),
}
_WORD = re.compile(r"\w[\w+-]{0,99}")  # no path, address, variable, module, command or template
_DEEPEST = 8


def adapter_of(spec: RunSpec) -> AdapterClass:
    """Return the installed adapter that a bundle's run names.

    Raises:
        UnknownNameError: none of that name is installed.
        PluginError: it is broken.
    """
    return registry.adapter_class(registry.installed("adapter", spec.adapter).name)


def workload_of(workload: WorkloadSpec) -> type[Workload]:
    """Return the installed workload that a bundle names. Raises: as `adapter_of`."""
    return registry.workload_class(registry.installed("workload", workload.name).name)


def refuse(spec: RunSpec) -> None:
    """Refuse a bundle's run that would reach beyond this machine, or beyond its own results.

    Raises:
        ExperimentError: it would.
        TuneoffError: its adapter or workload is not installed, or broken.
    """
    adapter = adapter_of(spec)
    refuse_workload(spec.experiment.workload)
    reason = next(_reasons(spec, adapter), None)
    if reason is not None:
        raise ExperimentError(f"{reason}; {TRUSTED}")


def refuse_workload(workload: WorkloadSpec) -> None:
    """Refuse what a bundle's options would let a workload do here beyond its trials. Raises: as `refuse`."""
    installed = workload_of(workload)
    reason = next(_options(workload.options, installed.foreign_options), None) or installed.refuse_foreign(workload.options)
    if reason is not None:
        raise ExperimentError(f"workload {workload.name!r} does not obey these options of a bundle: {reason}; {TRUSTED}")


def obeyed_power(power: PowerSettings) -> tuple[PowerSettings, str | None]:
    """Return the power settings that a bundle may have here, and what of its own is not obeyed, if anything."""
    numbers = METERS.get(power.meter)
    low, high = INTERVAL_SECONDS
    if numbers is None:
        problem = f"meter {_shown(power.meter)}; these are: {', '.join(METERS)}"
    elif odd := next(
        (
            name
            for name, value in power.options.items()
            if name not in numbers or not all(map(is_finite, value if isinstance(value, list | tuple) else [value]))
        ),
        None,
    ):
        problem = f"option {_shown(odd)} of meter {power.meter}"
    elif not low <= power.interval_seconds <= high:
        problem = f"interval_seconds {power.interval_seconds:g}"
    else:
        return power, None
    return PowerSettings(), f"power: meter auto, as no bundle is obeyed in {problem}"


def _reasons(spec: RunSpec, adapter: AdapterClass) -> Iterator[str]:
    """Yield why a bundle's run is not run here, beyond its workload's options."""
    if spec.platform != LOCAL:
        yield f"a bundle's run is run on this machine alone (platform {LOCAL!r}), but this one is for {_shown(spec.platform)}"
        return
    rule = f"adapter {spec.adapter!r} does not obey these options of a bundle"
    yield from (f"{rule}: {reason}" for reason in _options(spec.options, adapter.foreign_options))
    if spec.environment is not None and (packages := spec.environment.packages):
        yield f"a bundle may name a framework's release, but no further packages, and has {listed(packages)}"
    if (elsewhere := adapter.placement(spec)) is not None:
        yield f"no run of a bundle is put on other hosts, but this one: {elsewhere}"
    experiment = spec.experiment
    values = {
        "sampler": experiment.sampler.options,
        "pruner": experiment.pruner.options,
        "search_space": {name: _choices(dimension) for name, dimension in experiment.search_space},  # names meet a shell too
        "configurations": experiment.configurations,
    }
    for name, value in values.items():
        yield from (f"`{name}` of a bundle may have only numbers and words, but has {_shown(odd)}" for odd in _odd(value))


def _choices(dimension: object) -> tuple[Any, ...]:
    if isinstance(dimension, Categorical):
        return dimension.choices
    return (dimension.value,) if isinstance(dimension, Constant) else ()


def _options(options: Mapping[str, Any], allowed: frozenset[str]) -> Iterator[str]:
    """Yield why options are not obeyed: the list of allowed ones lacks their name, or they are neither number nor word."""
    for name, value in options.items():
        if name not in allowed:
            names = ", ".join(sorted(allowed)) or "none"
            yield f"option {_shown(name)} with {_shown(value)} is not one that a bundle may set ({names})"
        for odd in _odd(value):
            yield f"option {name!r} may be numbers and words, but has {_shown(odd)}"


def _odd(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield what in a JSON value is neither a number, nor true, false or null, nor a word, nor a list or mapping of these."""
    if depth > _DEEPEST:
        yield value
    elif isinstance(value, Mapping):
        yield from _odd([*value, *value.values()], depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _odd(item, depth + 1)
    elif isinstance(value, str):
        if _WORD.fullmatch(value) is None:
            yield value
    elif not (value is None or isinstance(value, bool) or is_finite(value)):
        yield value


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
