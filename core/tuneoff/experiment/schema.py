"""The experiment and matrix file as people write it. Units are in the key names; unknown keys are refused."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, field

from tuneoff.base import reading
from tuneoff.base.reading import Options, Refused, Written
from tuneoff.base.space import Categorical, Constant, Dimension, Float, IntegerLog, stepped
from tuneoff.errors import ExperimentError
from tuneoff.experiment.accounting.declared import WORLD, Date, Prices, Text
from tuneoff.experiment.metric_catalogue import QUESTIONS, check_metric
from tuneoff.experiment.power_settings import PowerSettings
from tuneoff.experiment.seeds import MOST_SEED, MOST_SEEDS, read_seeds
from tuneoff.experiment.spec import Count, EnvironmentSpec, Failures, Name, Seconds, Strategy, Timeouts, Workers
from tuneoff.experiment.variants import named

PlainName = Annotated[
    str,
    Meta(
        max_length=100,
        pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="letters, digits, `.`, `_` and `-` after a letter or digit",
    ),
]
Seed = Annotated[int, Meta(ge=0, le=MOST_SEED)]
MetricName = Annotated[Name, check_metric]
NONE = "none"
MOST_G_PER_KWH = 100_000.0  # no grid has a tenth of it; products of greater figures could come out infinite
Axes = dict[str, Annotated[list[Any], Meta(min_length=1)]]


class FilePart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mapping in the file."""


class _DimensionPart(FilePart, frozen=True, kw_only=True, tag_field="type"):
    """A dimension; checked by building core's own one."""

    refused_keys: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("if", "when", "condition", "conditions", "depends_on", "parent"),
        "there are no conditional dimensions: remove it, and let the training ignore the value where it has no meaning",
    )

    @abstractmethod
    def to_core(self) -> Dimension:
        """Return core's dimension; raise ExperimentError where there is none."""

    def __post_init__(self) -> None:
        self.to_core()


class FloatPart(_DimensionPart, frozen=True, kw_only=True, tag="float"):
    """A real number in [low, high]: uniform, log-uniform, or `low`, `low + step`, ... up to `high`."""

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def to_core(self) -> Dimension:
        if self.step is None:
            return Float(low=self.low, high=self.high, log=self.log)
        _refuse_log_step(self.log, self.step)
        return stepped(self.low, self.high, self.step, integer=False)


class IntPart(_DimensionPart, frozen=True, kw_only=True, tag="int"):
    """An integer in [low, high]: uniform, uniform by `step`, or with a uniform logarithm."""

    low: int
    high: int
    log: bool = False
    step: int | None = None

    def to_core(self) -> Dimension:
        if self.log:
            _refuse_log_step(self.log, self.step)
            return IntegerLog(low=self.low, high=self.high)
        return stepped(self.low, self.high, 1 if self.step is None else self.step, integer=True)


class CategoricalPart(_DimensionPart, frozen=True, kw_only=True, tag="categorical"):
    """One of `choices`, equally likely and without order; any JSON values."""

    choices: Annotated[list[Any], Meta(min_length=1)]

    def to_core(self) -> Dimension:
        return Categorical(choices=tuple(self.choices))


class OrderedPart(_DimensionPart, frozen=True, kw_only=True, tag="ordered"):
    """One of `values`, equally likely, from least to greatest; any JSON values."""

    values: Annotated[list[Any], Meta(min_length=1)]

    def to_core(self) -> Dimension:
        return Categorical(choices=tuple(self.values), ordered=True)


class ConstantPart(_DimensionPart, frozen=True, kw_only=True, tag="constant"):
    """A fixed value in every configuration."""

    value: Any

    def to_core(self) -> Dimension:
        return Constant(value=self.value)


DimensionPart = FloatPart | IntPart | CategoricalPart | OrderedPart | ConstantPart


def _refuse_log_step(log: bool, step: float | None) -> None:
    if log and step is not None:
        raise ExperimentError(
            f"`log` and `step` exclude each other, but got log=true, step={step}; list the points as `type: ordered`"
        )


class WorkloadPart(FilePart, frozen=True, kw_only=True):
    """What a trial trains: an installed workload's name (or module:Class) and its options."""

    is_named: ClassVar[bool] = True

    name: Name
    options: Options = field(default_factory=dict)


class AdapterPart(FilePart, frozen=True, kw_only=True):
    """An adapter of the matrix: an installed one's name (or module:Class), its options, where it puts the framework, and the
    environment that it has of its own."""

    is_named: ClassVar[bool] = True

    name: Name
    options: Options = field(default_factory=dict)
    platform: Name | None = None
    environment: EnvironmentSpec | None = None


class ObjectivePart(FilePart, frozen=True, kw_only=True):
    """What is optimized; left out: the workload's default. `goal`: the value from which on it is reached, or several by name, the
    hardest last. `stop`: each framework ends a run once the goal is met."""

    metric: Name | None = None
    mode: Literal["min", "max"] | None = None
    goal: Annotated[dict[PlainName, float], Meta(min_length=1, max_length=20)] | float | None = None
    stop: bool = False


class BudgetPart(FilePart, frozen=True, kw_only=True):
    """Bounds of each run. `trials` may be left out where the sampler is a list or a grid."""

    trials: Count | None = None
    epochs_per_trial: Count | None = None
    epochs_total: Count | None = None
    wall_clock_seconds: Annotated[Seconds | None, Meta(description="Of the trial step, in seconds.")] = None


class SeedRangePart(FilePart, frozen=True, kw_only=True):
    """`count` seeds from `first` on."""

    count: Annotated[int, Meta(ge=1, le=MOST_SEEDS)]
    first: Seed = 0


class DrawPart(FilePart, frozen=True, kw_only=True):
    """`sample` different configurations drawn from the search space by core's own generator."""

    sample: Annotated[int, Meta(ge=1, le=100_000)]
    seed: Seed = 0


class StopPart(FilePart, frozen=True, kw_only=True):
    """Stop one configuration, given itself or by its `index` (from 0) in `configurations`, after an epoch (from 1)."""

    index: Annotated[int, Meta(ge=0)] | None = None
    configuration: Annotated[dict[str, Any], Meta(min_length=1)] | None = None
    after_epoch: Count

    def __post_init__(self) -> None:
        if (self.index is None) == (self.configuration is None):
            raise ValueError("exactly one of `index` and `configuration` must be given")


class AnalysisPart(FilePart, frozen=True, kw_only=True):
    """What is frozen before the first run: the metrics that decide, the smallest differences that matter, confidence."""

    primary_metric: MetricName = QUESTIONS["time"]
    questions: Annotated[
        dict[PlainName, MetricName],
        Meta(min_length=1, max_length=20, description="One primary metric per question; all others are descriptive."),
    ] = field(default_factory=lambda: dict(QUESTIONS))
    margin_percent: Annotated[float, Meta(ge=0)] = 5.0
    confidence: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    quality_margin: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="Of the selected model's test score; null: the workload's own.")
    ] = None
    weights: Annotated[
        Annotated[dict[PlainName, Annotated[float, Meta(gt=0, le=1e6)]], Meta(min_length=1)] | None,
        Meta(description="Of the tasks, for one score over them; of those that are not named: 1."),
    ] = None
    family_size: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Pairs that a question may have in a setting: Bonferroni's m. 15 are all pairs of six adapters.",
        ),
    ] = 15


class AnchorsPart(FilePart, frozen=True, kw_only=True):
    """What regret is normalised by, both of the objective's metric on *validation*: 1 is random search, 0 the best known."""

    random_search: Annotated[float, Meta(description="Median over seeds of what random search selects with the full budget.")]
    best_known: Annotated[float, Meta(description="The best known value.")]
    source: Annotated[str, Meta(min_length=1, max_length=300), Meta(description="Where both are from.")]

    def __post_init__(self) -> None:
        if self.random_search == self.best_known:
            raise ValueError(f"random_search and best_known must differ, but both are {self.best_known}")


class RulesPart(FilePart, frozen=True, kw_only=True):
    """Which rules a file keeps: their version, the tier, and the experiment that it is `of`."""

    version: Annotated[int, Meta(ge=1, le=1)]
    tier: Literal["baseline", "tweaked"]
    of: Annotated[PlainName, Meta(description="An experiment that comes with tuneoff.")]


class CarbonPart(FilePart, frozen=True, kw_only=True):
    """Carbon intensity of the grid: of a zone of the table, a constant, or a series over time."""

    zone: Annotated[Text | None, Meta(description="A country by its ISO 3166-1 code of three letters, or WORLD.")] = None
    g_per_kwh: Annotated[
        Annotated[float, Meta(ge=0, le=MOST_G_PER_KWH)] | None, Meta(description="A constant, in gCO2eq/kWh.")
    ] = None
    series: Annotated[Text | None, Meta(description="Path of a CSV file with the columns time,g_per_kwh.")] = None
    source: Annotated[Text | None, Meta(description="Where a constant or a series comes from.")] = None
    date: Annotated[Date | None, Meta(description="Of a constant or a series: a year, a month or a day.")] = None

    def __post_init__(self) -> None:
        stated = [name for name in ("zone", "g_per_kwh", "series") if getattr(self, name) is not None]
        if len(stated) != 1:
            names = " and ".join(stated) or "none"
            raise ValueError(f"exactly one of `zone`, `g_per_kwh` and `series` must be given, but got {names}")
        if self.zone is not None and (self.source is not None or self.date is not None):
            raise ValueError("`source` and `date` of a zone are the table's; remove them, or give `g_per_kwh`")


def _carbon(value: Any) -> Any:
    if isinstance(value, dict) or value == NONE:
        return value
    raise Refused("must be a mapping with `zone`, `g_per_kwh` or `series`, or none", value)


def _path(value: Any) -> Any:
    if isinstance(value, str):
        return value
    raise Refused("must be the path of a price file, or none", value)


def _workers(value: Any) -> Any:
    """Let the number of workers follow from their devices, where it is left out."""
    devices = value.get("devices") if isinstance(value, dict) else None
    each = value.get("per_device", 1) if devices else None
    if not (isinstance(devices, list) and type(each) is int and each > 0) or "count" in value:
        return value
    return {**value, "count": len(devices) * each}


class ExperimentFile(FilePart, frozen=True, kw_only=True):
    """A whole file. `tasks`, `matrix` and `zip` are taken out and multiplied before the rest is checked, once per variant."""

    name: PlainName | None = None
    workload: WorkloadPart
    search_space: Annotated[dict[str, DimensionPart], Meta(min_length=1)] | None = None
    objective: ObjectivePart = ObjectivePart()
    sampler: Strategy = Strategy(name="random")
    pruner: Strategy = Strategy(name="none")
    configurations: Annotated[list[dict[str, Any]], Meta(min_length=1)] | DrawPart | None = None
    first_configurations: Annotated[
        Annotated[list[dict[str, Any]], Meta(min_length=1)] | None,
        Meta(description="Tried in this order before the sampler proposes any, which is told of them; part of the budget."),
    ] = None
    stops: Annotated[list[StopPart], Meta(min_length=1)] | None = None
    budget: BudgetPart = BudgetPart()
    workers: Annotated[Workers, Written(_workers)] = Workers()
    timeouts: Timeouts = Timeouts()
    failures: Failures = Failures()
    copies: Annotated[
        int,
        Meta(ge=1, le=100, description="Jobs of an entry that run at the same time, each with its share of this machine."),
    ] = 1
    seeds: str | Annotated[list[Seed], Meta(min_length=1)] | SeedRangePart = field(default_factory=lambda: [0])
    adapters: Annotated[list[Annotated[AdapterPart, Written(named)]], Meta(min_length=1, max_length=100)]
    platform: Name | None = None
    reports: Annotated[
        Literal["needed", "every_epoch"],
        Meta(description="Epochs reported to a framework: as its documents have it (with a pruner every one), or every one."),
    ] = "needed"
    warm_up: Annotated[bool, Meta(description="One discarded run per adapter before the first counted one.")] = True
    power: PowerSettings = PowerSettings()
    carbon: Annotated[CarbonPart | Literal["none"], Written(_carbon), Meta(description="Carbon intensity of the grid.")] = (
        CarbonPart(zone=WORLD)
    )
    prices: Annotated[Text, Written(_path), Meta(description="Path of a price file, or none; left out: the one that ships.")] = ""
    analysis: AnalysisPart = AnalysisPart()
    anchors: Annotated[AnchorsPart | None, Meta(description="What regret is normalised by; of each task its own.")] = None
    rules: Annotated[RulesPart | None, Meta(description="How far the file is from an experiment that comes with tuneoff.")] = None
    tasks: Annotated[
        dict[str, dict[str, Any]] | None,
        Meta(description="Names of tasks, each with dotted keys and values: claims across tasks rest on these."),
    ] = None
    matrix: Annotated[Axes | None, Meta(description="Dotted keys with lists of values; all combinations are run.")] = None
    zip: Annotated[list[Axes] | None, Meta(description="Groups of dotted keys with equally long lists, paired.")] = None
    include: Annotated[
        Text | Annotated[list[Text], Meta(min_length=1)] | None,
        Meta(description="Files whose content this one builds on; paths are relative to this file, which wins."),
    ] = None

    def __post_init__(self) -> None:
        for dimension in self.search_space or {}:
            if not dimension.isidentifier() or not dimension.isascii() or dimension.startswith("_"):
                raise ValueError(
                    f"search_space: a dimension's name must be letters, digits and underscores after a letter, "
                    f"but got {dimension!r}; rename it"
                )
        try:
            seeds = self.seed_list
        except ValueError as error:
            raise ValueError(f"seeds: {error}") from error
        if len(set(seeds)) != len(seeds):
            raise ValueError(f"seeds: must differ, but got {seeds}; remove the repeated ones")

    @property
    def listed(self) -> int:
        """How many configurations are given or to be drawn."""
        first = len(self.first_configurations or ())
        return first + (
            self.configurations.sample if isinstance(self.configurations, DrawPart) else len(self.configurations or ())
        )

    @property
    def seed_list(self) -> list[int]:
        """The seeds in order."""
        if isinstance(self.seeds, SeedRangePart):
            return list(range(self.seeds.first, self.seeds.first + self.seeds.count))
        return read_seeds(self.seeds) if isinstance(self.seeds, str) else self.seeds


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the file."""
    schema = reading.json_schema(ExperimentFile, "tuneoff experiment")
    parts = schema["$defs"]
    del parts["PowerSettings"]["properties"]["folder"], parts["Strategy"]["properties"]["options"]
    parts["Strategy"]["additionalProperties"] = True
    text = json.dumps(schema)
    for part in ("WorkloadPart", "AdapterPart", "Strategy", "PowerSettings"):  # for which a name may stand
        reference = f'"$ref": "#/$defs/{part}"'
        text = text.replace(reference, f'"anyOf": [{{"type": "string"}}, {{{reference}}}]')
    result: dict[str, Any] = json.loads(text)
    return result


def price_file_schema() -> dict[str, Any]:
    """Return the JSON Schema of a price file."""
    return reading.json_schema(Prices, "tuneoff prices")
