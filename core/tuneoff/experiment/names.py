"""The names of runs in everything that people read: progress, tables, status, plan. One function per part of a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tuneoff.base.identity import canonical_json

if TYPE_CHECKING:
    from tuneoff.experiment.spec import EnvironmentSpec, ExperimentSpec, RunSpec, WorkloadSpec

_STRATEGIES = ("sampler", "pruner")  # named apart from the variant
_IMPLIED = (".name", ".count")  # `workload=null` and `workers=2` say as much as `workload.name=null` and `workers.count=2`


def run_name(label: str, spec: RunSpec) -> str:
    """Return what tells a run from the others of its file: adapter, sampler, pruner, variant, seed."""
    which = special_part(spec)
    return f"{cell_name(label, spec.experiment)} seed {spec.seed}" + (f" ({which})" if which else "")


def special_part(spec: RunSpec) -> str:
    """Return what tells a run from others of its cell and seed: `warm-up`, `copy 2 of 3`; "" where there are none."""
    copies = spec.experiment.copies
    return "warm-up" if spec.warm_up else f"copy {spec.copy + 1} of {copies}" if copies > 1 else ""


def cell_name(label: str, experiment: ExperimentSpec) -> str:
    """Return the name that all seeds of a run share; `label`: of the adapter, as the reader is to see it."""
    variant = variant_text(experiment.variant)
    return f"{label} {strategy_text(experiment)}" + (f" {variant}" if variant else "")


def training_name(workload: WorkloadSpec, file: str) -> str:
    """Return what a training is called: as its workload; a program as its file (`file`: the name of that)."""
    return file if workload.name == "command" else workload.name


def strategy_text(experiment: ExperimentSpec) -> str:
    """Return what proposes trials and stops them."""
    return with_pruner(experiment.sampler.name, experiment.pruner.name)


def with_pruner(sampler: str, pruner: str) -> str:
    """Return the sampler and, where there is one, the pruner: `random`, `random + asha`."""
    return sampler if pruner == "none" else f"{sampler} + {pruner}"


def variant_text(variant: Mapping[str, Any]) -> str:
    """Return the values that `matrix` and `zip` set, sampler and pruner aside, by the ends of their keys where these differ.

    `{"workload.name": "null", "sampler": "tpe"}` is `workload=null`.
    """
    values = {key: value for key, value in _flat(variant) if key not in _STRATEGIES}
    ends = {key: key.rpartition(".")[2] for key in values}
    times = Counter(ends.values())
    return " ".join(
        f"{ends[key] if times[ends[key]] == 1 else key}={value if isinstance(value, str) else canonical_json(value)}"
        for key, value in values.items()
    )


def entry_label(
    adapter: str, platform: str | None, options: Mapping[str, Any], replicate: int, environment: EnvironmentSpec | None = None
) -> str:
    """Return the label of an adapter entry: its environment and platform (None: not named), options, and from the second on which
    replicate."""
    where = ("" if environment is None else environment.text) + ("" if platform is None else f"@{platform}")
    return f"{adapter}{where}{canonical_json(dict(options)) if options else ''}{f'#{replicate + 1}' if replicate else ''}"


def short_label(label: str, adapter: str) -> str:
    """Return an adapter entry's label with the class alone for `module:Class`."""
    return adapter.rpartition(":")[2] + label.removeprefix(adapter) if label.startswith(adapter) else label


def _flat(variant: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield keys and values; a mapping with a name (`sampler: {name: tpe, options: {...}}`) gives its parts."""
    for key, value in variant.items():
        if isinstance(value, Mapping) and "name" in value:
            yield key, value["name"]
            options = value.get("options")
            yield from ((f"{key}.options.{name}", option) for name, option in (options or {}).items())
        else:
            for ending in _IMPLIED:
                key = key.removesuffix(ending)
            yield key, value
