"""Specifications: what a checked experiment file becomes. Frozen data that any process can read back from JSON.

What a file says in the same form (workers, timeouts, failures, strategies) is read from it as these classes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from tuneoff.base.capabilities import LOCAL, Reports
from tuneoff.base.identity import canonical_json, derive_seed, digest
from tuneoff.base.json_values import field_values
from tuneoff.base.reading import Written, read
from tuneoff.base.space import SearchSpace
from tuneoff.errors import ExperimentError
from tuneoff.workload import Mode

Name = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Seconds = Annotated[float, Meta(gt=0, le=1e9)]  # thirty years
CpuLimit = Literal["none", "quota", "affinity"]
Device = Annotated[int, Meta(ge=0, le=100_000)]

Requirement = Annotated[
    str,
    Meta(
        max_length=200,
        pattern=r"^[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?( ?([<>=!~]=|[<>])[\w.*+!-]+,?)*$",
        description="a package with its versions, e.g. sqlalchemy<2.1",
    ),
]
_RELEASE = r"^([0-9]+!)?[0-9]+([.][0-9]+){0,9}((a|b|rc)[0-9]+)?([.]post[0-9]+)?([.]dev[0-9]+)?$"

RUN_ID_FORMAT = 2  # raise it when the meaning of a run's identity changes; in 1 the sampler's seed had nothing of the task


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A sampler or pruner: its name; in a file every other key is one of its options."""

    is_named: ClassVar[bool] = True
    other_keys: ClassVar[str] = "options"

    name: Name
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSpec:
    """A workload by its entry-point name, where its class is ("module:Class"), and its options."""

    name: str
    target: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSpec:
    """What an adapter's own environment holds beside what all runs need: the framework's release (`NAME==VERSION`; None: as the
    adapter asks for it), further packages, and its Python (None: the command's)."""

    version: Annotated[str, Meta(pattern=_RELEASE, description="a release, e.g. 4.5.0")] | None = None
    packages: tuple[Requirement, ...] = ()
    python: (
        Annotated[str, Meta(pattern=r"^[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?$", description="a Python, e.g. '3.11'")] | None
    ) = None

    @property
    def text(self) -> str:
        """What follows the adapter's name in a label: `==4.5.0`, and in brackets what else was asked for."""
        others = [*([f"python {self.python}"] if self.python else []), *self.packages]
        return (f"=={self.version}" if self.version else "") + (f"[{', '.join(others)}]" if others else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What is optimized: a validation metric, its direction, and optionally the goal, from which value on it is reached.

    `goals`: by name where there are several, of which the goal is the hardest. `stop`: a run ends once its goal is met.
    """

    metric: str
    mode: Mode
    goal: float | None = None
    goals: Mapping[str, float] = field(default_factory=dict)
    stop: bool = False

    def is_better(self, value: float, than: float | None) -> bool:
        """Tell whether `value` is strictly better than `than` (None: nothing yet)."""
        return than is None or (value > than if self.mode == "max" else value < than)

    def is_met(self, value: float | None, goal: float | None = None) -> bool:
        """Tell whether a value meets a goal: the one given, else the objective's."""
        goal = self.goal if goal is None else goal
        return value is not None and goal is not None and not self.is_better(goal, than=value)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values: the goal under its first name, so that runs keep their ids, and what else is asked for."""
        others = {"goals": dict(self.goals), "stop": self.stop}
        stated = {name: value for name, value in others.items() if value}
        return {"metric": self.metric, "mode": self.mode, "threshold": self.goal, **stated}


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Bounds of a run, enforced by core: trials, epochs of a trial, epochs in total, seconds of the trial step."""

    trials: int
    epochs_per_trial: int
    epochs_total: int | None = None
    wall_clock_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Slots of a run: how many, vCPU of each (decimals allowed), memory of each in MB (10^6 bytes; None: no limit).

    `cpu_limit` says what holds a slot to its `cpus`: nothing but the number of a trial's threads, a quota of CPU time, or
    processors of its own. `devices`: the accelerators, by the numbers that NVML and the system give them, `per_device` slots on
    each in their order: so many slots there are; none: trials see what the command sees.
    """

    count: Count = 1
    cpus: Annotated[float, Meta(gt=0, le=100_000)] = 1.0
    memory_mb: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    cpu_limit: Annotated[CpuLimit, Meta(description="Of each slot: a quota of CPU time, processors of its own, or none.")] = (
        "none"
    )
    devices: tuple[Device, ...] = ()
    per_device: Annotated[Count, Meta(description="Slots that share each of the devices.")] = 1

    def __post_init__(self) -> None:
        if len(set(self.devices)) != len(self.devices):
            raise ExperimentError(f"devices must differ, but got {list(self.devices)}; per_device gives one several slots")
        if self.per_device > 1 and not self.devices:
            raise ExperimentError(f"per_device: {self.per_device} needs `devices`, but there are none; name them, or remove it")
        if self.devices and self.count != (slots := len(self.devices) * self.per_device):
            rule = f"{len(self.devices)} devices with per_device {self.per_device} are {slots} workers, but count is {self.count}"
            raise ExperimentError(f"{rule}; leave it out, or change devices or per_device")
        if self.cpu_limit == "affinity" and self.cpus != int(self.cpus):
            raise ExperimentError(f"cpu_limit: affinity needs whole processors, but cpus is {self.cpus:g}; use cpu_limit: quota")

    @property
    def threads(self) -> int:
        """Compute threads of a trial."""
        return max(1, int(self.cpus))

    def device_of(self, slot: int) -> int | None:
        """Return the device of a slot; None: it has none of its own, or there is no such slot."""
        index = slot // self.per_device
        return self.devices[index] if index < len(self.devices) else None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values: without devices, as all runs were, it has no keys for them."""
        return field_values(self, without=() if self.devices else ("devices", "per_device"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Limits in seconds; `silence_seconds` is the longest time without an event of a running trial."""

    trial_seconds: Seconds = 3600.0
    silence_seconds: Seconds = 600.0
    deploy_seconds: Seconds = 300.0
    setup_seconds: Seconds = 120.0
    trials_seconds: Seconds = 86400.0
    collect_seconds: Seconds = 120.0
    test_seconds: Seconds = 600.0
    metrics_seconds: Seconds = 60.0
    undeploy_seconds: Seconds = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """How failures of trials are met: retries per trial (infrastructure and framework faults only), and the most failed
    trials that a run survives (None: any number)."""

    retries: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000_000,
            description="Attempts beyond the first per trial, for faults of infrastructure and framework only.",
        ),
    ] = 0
    max_failed_trials: Annotated[
        Count | None, Meta(description="More failed trials than this end the run; null: however many fail.")
    ] = None


def _stored_objective(data: Any) -> Any:
    return {"goal" if key == "threshold" else key: data[key] for key in data} if isinstance(data, Mapping) else data


def _read_space(data: Any) -> SearchSpace:
    space = SearchSpace.from_json(data)
    for _, dimension in space:
        read(type(dimension), asdict(dimension), exact=True)  # its fields' types
    return space


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentSpec:
    """One cell's experiment: everything that defines it, and nothing that names a framework."""

    workload: WorkloadSpec
    search_space: Annotated[SearchSpace, Written(_read_space)]
    objective: Annotated[Objective, Written(_stored_objective)]
    sampler: Strategy
    pruner: Strategy
    budget: Budget
    workers: Workers = field(default_factory=Workers)
    timeouts: Timeouts = field(default_factory=Timeouts)
    failures: Failures = field(default_factory=Failures)
    configurations: tuple[Mapping[str, Any], ...] = ()  # in order: with `sampler: fixed` all, else those tried first
    stops: Mapping[str, int] = field(default_factory=dict)  # for `pruner: scripted`: configuration digest -> last epoch
    variant: Mapping[str, Any] = field(default_factory=dict)  # the `matrix:`/`zip:` values of this cell, for tables
    task_digest: str = ""  # of what the task changes against the file's base; "": nothing, or the file has no tasks
    copies: int = 1  # jobs that run at the same time, each with its share of this machine

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values: of one job alone, as all were, it has no key for copies."""
        return field_values(self, without=() if self.copies > 1 else ("copies",))


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class RunSpec:
    """A cell of the matrix: one experiment, one adapter, one platform, one seed, one replicate (A/A repetitions)."""

    experiment: ExperimentSpec
    adapter: str
    adapter_target: str  # "module:Class"
    platform: str = LOCAL
    seed: int = 0
    replicate: int = 0
    copy: int = 0  # of those that run at the same time; figures of the run are of the first
    options: Mapping[str, Any] = field(default_factory=dict)  # of the adapter
    warm_up: bool = False  # discarded from every table
    reports: Reports = "every_epoch"  # what the framework is told of a running trial
    local_options: tuple[str, ...] = ()  # names of options that say where and how patiently it is run, not what
    environment: EnvironmentSpec | None = None  # of the framework's own; None: the command's
    locked: tuple[Requirement, ...] = ()  # exact versions for that, as a reproduced run had; no part of what defines a run

    @functools.cached_property
    def run_id(self) -> str:
        """Content hash of what defines the run. Timeouts, table labels, import paths and local options are left out."""
        content = run_spec_to_json(self)
        del content["adapter_target"], content["experiment"]["timeouts"], content["experiment"]["variant"]
        del content["experiment"]["workload"]["target"]
        if self.reports == "every_epoch":  # as all runs were, before there was a choice
            del content["reports"]
        content.pop("locked", None)
        for name in content.pop("local_options"):
            content["options"].pop(name, None)
        return digest({"format": RUN_ID_FORMAT, **content})

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values: without an environment of its own, as all runs were, it has no key for that."""
        unused = () if self.environment is not None else ("environment", "locked")
        return field_values(self, without=unused if self.copy else (*unused, "copy"))

    @functools.cached_property
    def shared_key(self) -> str:
        """What the copies of a job share, as text: all but their number and their devices; of a job alone its run id."""
        if self.experiment.copies == 1:
            return self.run_id
        content = run_spec_to_json(self)
        content.pop("copy", None)
        content["experiment"]["workers"].pop("devices", None)
        return canonical_json(content)

    def scope_key(self, *aside: str) -> str:
        """Return what compared runs share, as text: sampler and pruner with options, and the variant, some keys aside."""
        experiment = self.experiment
        strategies = [[strategy.name, dict(strategy.options)] for strategy in (experiment.sampler, experiment.pruner)]
        others = {key: value for key, value in experiment.variant.items() if key not in ("sampler", "pruner", *aside)}
        return canonical_json([strategies, others])

    @property
    def sampler_seed(self) -> int:
        """Seed of the framework's sampler; unrelated to the other axes. A task has its own, other variants share one."""
        return derive_seed("sampler", self.seed, self.replicate, *filter(None, [self.experiment.task_digest]))


def run_spec_to_json(spec: RunSpec) -> dict[str, Any]:
    """Return a run's specification as JSON values."""
    return spec.to_json()


def run_spec_from_json(data: Any) -> RunSpec:
    """Read back what `run_spec_to_json` gave, from a file that anyone may have changed: each part must be of its type.

    Raises:
        ExperimentError: it is none, or a part is of another type.
    """
    try:
        spec: RunSpec = read(RunSpec, data, exact=True)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ExperimentError(f"a run's specification is damaged: {type(error).__name__}: {error}") from error
    return spec
