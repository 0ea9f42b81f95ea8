"""The experiment and matrix file as people write it. Units are in the key names; unknown keys are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    model_validator,
)

from tuneoff.experiment.accounting.declared import WORLD
from tuneoff.experiment.matrix_parts import AnalysisPart, AnchorsPart, Carbon, CarbonPart, PricesPath
from tuneoff.experiment.part import Count, DimensionPart, Name, Options, Part, PlainName, show
from tuneoff.experiment.power_settings import INTERVAL_SECONDS, PowerSettings
from tuneoff.experiment.seeds import MOST_SEEDS, read_seeds
from tuneoff.experiment.spec import CpuLimit, Timeouts, Workers
from tuneoff.experiment.variants import NAMED, named

_POWER = PowerSettings()
MeterName = Annotated[str, Field(min_length=1)]
_DEFAULTS, _WORKERS = Timeouts(), Workers()
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, Field(gt=0, le=1e9)]  # thirty years


class PowerPart(Part):
    """How energy is metered: a meter's name (or module:Class), its options, how often it is read."""

    meter: MeterName = _POWER.meter
    options: Options = Field(default_factory=dict, description="Of the meter; of `auto` by the meters' names.")
    interval_seconds: Annotated[float, Field(ge=INTERVAL_SECONDS[0], le=INTERVAL_SECONDS[1])] = _POWER.interval_seconds

    def to_core(self, folder: str = "") -> PowerSettings:
        """Return the settings; `folder`: where relative paths begin."""
        return PowerSettings(
            meter=self.meter,
            options=dict(self.options),
            interval_seconds=self.interval_seconds,
            folder=folder,
        )


def _by_name(value: Any, info: ValidationInfo) -> Any:
    """Return the mapping that a bare name stands for; the key is told to those who write something else."""
    key = info.field_name
    if isinstance(value, str | Mapping | Part):
        return named(value, key)
    if value is None:
        way_out = 'the workload of that name is "null" in quotes' if key == "workload" else "give a name"
    elif isinstance(value, list) and key in NAMED and key != "power":
        way_out = f"to vary it, write matrix: {{{key}: [...]}}"
    else:
        way_out = "put it in quotes if it is a name"
    named_by = NAMED.get(key or "", "name")
    raise ValueError(f"must be a name or a mapping with `{named_by}`, but got {show(value)}; {way_out}")


def _listed_seeds(value: Any) -> Any:
    return read_seeds(value) if isinstance(value, str) else value


def _is_mapping(value: Any) -> str:
    return "<mapping>" if isinstance(value, dict) else "<list>"


class WorkloadPart(Part):
    """What a trial trains: an installed workload's name (or module:Class) and its options."""

    name: Name
    options: Options = Field(default_factory=dict)


class StrategyPart(Part):
    """A sampler or pruner: its name; every other key is one of its options."""

    model_config = ConfigDict(extra="allow")

    name: Name

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class AdapterPart(Part):
    """An adapter of the matrix: an installed one's name (or module:Class), its options, and where it puts the framework."""

    name: Name
    options: Options = Field(default_factory=dict)
    platform: Name | None = None


class ObjectivePart(Part):
    """What is optimized; left out: the workload's default. `threshold`: the value that counts as reached."""

    metric: Name | None = None
    mode: Literal["min", "max"] | None = None
    threshold: float | None = None


class BudgetPart(Part):
    """Bounds of each run. `trials` may be left out where the sampler is a list or a grid."""

    trials: Count | None = None
    epochs_per_trial: Count | None = None
    epochs_total: Count | None = None
    wall_clock_seconds: Seconds | None = Field(default=None, description="Of the trial step, in seconds.")


class WorkersPart(Part):
    """Slots of each run: how many, vCPU of each, memory of each in MB (10^6 bytes), and what holds them to their vCPU."""

    count: Count = _WORKERS.count
    cpus: Annotated[float, Field(gt=0, le=100_000)] = _WORKERS.cpus
    memory_mb: Annotated[float, Field(gt=0, le=1e9)] | None = _WORKERS.memory_mb
    cpu_limit: CpuLimit = Field(
        default=_WORKERS.cpu_limit, description="Of each slot: a quota of CPU time, processors of its own, or none."
    )

    @model_validator(mode="after")
    def _whole_processors(self) -> WorkersPart:
        if self.cpu_limit == "affinity" and self.cpus != int(self.cpus):
            raise ValueError(f"cpu_limit: affinity needs whole processors, but cpus is {self.cpus:g}; use cpu_limit: quota")
        return self


class TimeoutsPart(Part):
    """Limits in seconds; `silence_seconds` is the longest time without an event of a running trial."""

    trial_seconds: Seconds = _DEFAULTS.trial_seconds
    silence_seconds: Seconds = _DEFAULTS.silence_seconds
    deploy_seconds: Seconds = _DEFAULTS.deploy_seconds
    setup_seconds: Seconds = _DEFAULTS.setup_seconds
    trials_seconds: Seconds = _DEFAULTS.trials_seconds
    collect_seconds: Seconds = _DEFAULTS.collect_seconds
    test_seconds: Seconds = _DEFAULTS.test_seconds
    metrics_seconds: Seconds = _DEFAULTS.metrics_seconds
    undeploy_seconds: Seconds = _DEFAULTS.undeploy_seconds


class FailuresPart(Part):
    """How failures of trials are met."""

    retries: Annotated[int, Field(ge=0, le=1_000_000_000)] = Field(
        default=0, description="Attempts beyond the first per trial, for faults of infrastructure and framework only."
    )
    max_failed_trials: Count | None = Field(
        default=None, description="More failed trials than this end the run; null: however many fail."
    )


class SeedRangePart(Part):
    """`count` seeds from `first` on."""

    count: Annotated[int, Field(ge=1, le=MOST_SEEDS)]
    first: Seed = 0


class DrawPart(Part):
    """`sample` different configurations drawn from the search space by core's own generator."""

    sample: Annotated[int, Field(ge=1, le=100_000)]
    seed: Seed = 0


class StopPart(Part):
    """Stop one configuration, given itself or by its `index` (from 0) in `configurations`, after an epoch (from 1)."""

    index: Annotated[int, Field(ge=0)] | None = None
    configuration: Annotated[dict[str, Any], Field(min_length=1)] | None = None
    after_epoch: Count

    @model_validator(mode="after")
    def _one_of_two(self) -> StopPart:
        if (self.index is None) == (self.configuration is None):
            raise ValueError("exactly one of `index` and `configuration` must be given")
        return self


Workload = Annotated[WorkloadPart, BeforeValidator(_by_name, json_schema_input_type=str | WorkloadPart)]
Strategy = Annotated[StrategyPart, BeforeValidator(_by_name, json_schema_input_type=str | StrategyPart)]
Power = Annotated[PowerPart, BeforeValidator(_by_name, json_schema_input_type=str | PowerPart)]
AdapterEntry = Annotated[AdapterPart, BeforeValidator(_by_name, json_schema_input_type=str | AdapterPart)]
SeedList = Annotated[list[Seed], Field(min_length=1)]
Seeds = Annotated[
    Annotated[
        Annotated[SeedList, Tag("<list>")] | Annotated[SeedRangePart, Tag("<mapping>")],
        Discriminator(_is_mapping),
    ],
    BeforeValidator(_listed_seeds, json_schema_input_type=str | SeedList | SeedRangePart),
]
Configurations = Annotated[
    Annotated[Annotated[list[dict[str, Any]], Field(min_length=1)], Tag("<list>")] | Annotated[DrawPart, Tag("<mapping>")],
    Discriminator(_is_mapping),
]
Axes = dict[str, Annotated[list[Any], Field(min_length=1)]]


class ExperimentFile(Part):
    """A whole file. `tasks`, `matrix` and `zip` are taken out and multiplied before the rest is checked, once per variant."""

    resolved_keys: ClassVar[tuple[str, ...]] = ("include",)

    name: PlainName | None = None
    workload: Workload
    search_space: Annotated[dict[str, DimensionPart], Field(min_length=1)] | None = None
    objective: ObjectivePart = ObjectivePart()
    sampler: Strategy = StrategyPart(name="random")
    pruner: Strategy = StrategyPart(name="none")
    configurations: Configurations | None = None
    stops: Annotated[list[StopPart], Field(min_length=1)] | None = None
    budget: BudgetPart = BudgetPart()
    workers: WorkersPart = WorkersPart()
    timeouts: TimeoutsPart = TimeoutsPart()
    failures: FailuresPart = FailuresPart()
    seeds: Seeds = Field(default_factory=lambda: [0])
    adapters: Annotated[list[AdapterEntry], Field(min_length=1, max_length=100)]
    platform: Name | None = None
    reports: Literal["needed", "every_epoch"] = Field(
        default="needed",
        description="Of which epochs a framework is told: as its documents have it (with a pruner every one), or every one.",
    )
    warm_up: bool = Field(default=True, description="One discarded run per adapter before the first counted one.")
    power: Power = PowerPart()
    carbon: Carbon = Field(default=CarbonPart(zone=WORLD), description="Carbon intensity of the grid.")
    prices: PricesPath = Field(default=None, description="Path of a price file, or none; left out: the one that ships.")
    analysis: AnalysisPart = AnalysisPart()
    anchors: AnchorsPart | None = Field(default=None, description="What regret is normalised by; of each task its own.")
    tasks: dict[str, dict[str, Any]] | None = Field(
        default=None, description="Names of tasks, each with dotted keys and values: claims across tasks rest on these."
    )
    matrix: Axes | None = Field(default=None, description="Dotted keys with lists of values; all combinations are run.")
    zip: list[Axes] | None = Field(default=None, description="Groups of dotted keys with equally long lists, paired.")

    @model_validator(mode="after")
    def _names(self) -> ExperimentFile:
        for dimension in self.search_space or {}:
            if not dimension.isidentifier() or not dimension.isascii() or dimension.startswith("_"):
                raise ValueError(
                    f"search_space: a dimension's name must be letters, digits and underscores after a letter, "
                    f"but got {dimension!r}; rename it"
                )
        seeds = self.seed_list
        if len(set(seeds)) != len(seeds):
            raise ValueError(f"seeds: must differ, but got {seeds}; remove the repeated ones")
        return self

    @property
    def listed(self) -> int:
        """How many configurations are given or to be drawn."""
        return self.configurations.sample if isinstance(self.configurations, DrawPart) else len(self.configurations or ())

    @property
    def seed_list(self) -> list[int]:
        """The seeds in order."""
        if isinstance(self.seeds, SeedRangePart):
            return list(range(self.seeds.first, self.seeds.first + self.seeds.count))
        return self.seeds


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the file, with `include` (which is resolved before the file is checked)."""
    schema = ExperimentFile.model_json_schema(mode="validation")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "tuneoff experiment"
    path = {"type": "string", "minLength": 1}
    schema["properties"]["include"] = {
        "description": "Files whose content this one builds on; paths are relative to this file, which wins.",
        "anyOf": [path, {"type": "array", "items": path, "minItems": 1}],
    }
    return schema
