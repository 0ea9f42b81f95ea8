"""From the path of a matrix file to its checked content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tuneoff.base.reading import Refused, read
from tuneoff.base.targets import unknown_name
from tuneoff.errors import ExperimentError
from tuneoff.experiment.accounting.declared import Accounting
from tuneoff.experiment.accounting.resolve import resolve
from tuneoff.experiment.advice import refusal
from tuneoff.experiment.power_settings import PowerSettings
from tuneoff.experiment.schema import AdapterPart, AnalysisPart, ExperimentFile, RulesPart
from tuneoff.experiment.variants import TASK, expand, put, task_digest, without
from tuneoff.experiment.yaml_reader import read_merged

MAX_RUNS = 10_000
MAX_LISTED = 200_000  # configurations in the runs of a matrix, together


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One combination of the file's `matrix` and `zip` values, and the checked content that it gives."""

    values: Mapping[str, Any]
    file: ExperimentFile
    task_digest: str = ""

    @property
    def label(self) -> str:
        """The values as text for errors and tables; "" for a file without axes."""
        return ", ".join(f"{key}={value}" for key, value in self.values.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFile:
    """A checked file: what belongs to the whole matrix, and its variants in order (at least one)."""

    path: str
    name: str
    adapters: tuple[AdapterPart, ...]
    seeds: tuple[int, ...]
    warm_up: bool
    power: PowerSettings
    accounting: Accounting
    analysis: AnalysisPart
    rules: RulesPart | None
    variants: tuple[Variant, ...]
    content: Mapping[str, Any]  # as written, includes merged and overrides applied


def load_matrix(
    path: Path | str, overrides: Mapping[str, Any] | None = None, varied: Mapping[str, Any] | None = None
) -> MatrixFile:
    """Read, merge, expand and check a file; `overrides` (dotted keys) replace values and the axes that vary them, `varied` are
    such axes.

    Raises:
        ExperimentError: one line with the file, the place, the rule, the value, and where it is not plain the way out.
    """
    content = read_merged(Path(path))
    try:
        if overrides or varied:
            content = without(content, {**(overrides or {}), **(varied or {})})
            for key, value in (overrides or {}).items():
                put(content, key, value)
            if varied and isinstance(matrix := content.get("matrix", {}), Mapping):
                content["matrix"] = {**matrix, **{key: list(values) for key, values in varied.items()}}
        variants = tuple(_check(values, variant, content) for values, variant in expand(content))
        first, files = variants[0].file, [variant.file for variant in variants]
        if not overrides:  # an override may leave a list unused that no variant reads
            scripted = any(file.pruner.name == "scripted" for file in files)
            if any(file.stops for file in files) and not scripted:
                raise ExperimentError(f"stops: only `pruner: scripted` reads them, but the pruner is {first.pruner.name!r}")
            by_index = any(stop.index is not None for file in files for stop in file.stops or [])
            is_read = by_index or any(file.sampler.name == "fixed" for file in files)
            if any(file.configurations for file in files) and not is_read:
                raise ExperimentError(
                    f"configurations: only `sampler: fixed` reads them, but the sampler is {first.sampler.name!r}"
                )
        each = len(first.adapters) * len(first.seed_list)  # more take longer to plan than anyone waits
        if len(files) * each > MAX_RUNS:
            raise ExperimentError(
                f"a matrix may have at most {MAX_RUNS} runs, but variants x adapters x seeds are {len(files) * each}; "
                "shorten a list, or split the file"
            )
        listed = each * sum(file.listed for file in files)  # `fixed` runs carry their list, each its own
        if listed > MAX_LISTED:
            raise ExperimentError(
                f"configurations: all runs together may list at most {MAX_LISTED}, but they list {listed}; "
                "ask for fewer configurations, or for fewer runs"
            )
        tasks = {str(variant.values.get(TASK, "")) for variant in variants}
        if unknown := [name for name in first.analysis.weights or {} if name not in tasks]:
            raise ExperimentError(f"analysis.weights: {unknown_name('task', unknown[0], filter(None, tasks))}")
        accounting = resolve(first.carbon, first.prices)
    except ExperimentError as error:
        raise ExperimentError(f"{path}: {' '.join(str(error).split())}") from error  # keys and values may break lines
    return MatrixFile(
        path=str(path),
        name=first.name or Path(path).stem,
        adapters=tuple(first.adapters),
        seeds=tuple(first.seed_list),
        warm_up=first.warm_up,
        power=replace(first.power, folder=str(Path(path).parent)),
        accounting=accounting,
        analysis=first.analysis,
        rules=first.rules,
        variants=variants,
        content=content,
    )


def _check(values: Mapping[str, Any], variant: Mapping[str, Any], content: Mapping[str, Any]) -> Variant:
    try:
        file = read(ExperimentFile, variant)
    except Refused as error:
        raise ExperimentError(refusal(error)) from error
    return Variant(values=values, file=file, task_digest=task_digest(content, values.get(TASK)))
