"""The workload `optunahub`: a benchmark problem of OptunaHub, one objective, as a trial of one epoch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tuneoff.base.space import SearchSpace
from tuneoff.errors import ExperimentError
from tuneoff.workload import Configuration, Mode, TrialSeeds, Workload

DEFAULTS: dict[str, Any] = {"package": "benchmarks/bbob", "registry": None, "problem": "Problem", "arguments": {}}


class OptunaHub(Workload):
    """Options: `package` (as `benchmarks/bbob`), `registry` (a local folder that holds it; else OptunaHub's own, by network),
    `problem` (the class in it) and its `arguments`. The search space is the file's, in the problem's own names.
    """

    name: ClassVar[str] = "optunahub"
    preload: ClassVar[tuple[str, ...]] = ("optunahub",)
    requirements: ClassVar[tuple[str, ...]] = ("tuneoff[optunahub]",)
    metrics: ClassVar[Mapping[str, Mode]] = {}
    default_metric: ClassVar[str] = "value"
    default_epochs: ClassVar[int] = 1
    has_state: ClassVar[bool] = False
    has_test: ClassVar[bool] = False
    default_options: ClassVar[Mapping[str, Any] | None] = DEFAULTS

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        unknown = sorted(set(options) - set(DEFAULTS))
        if unknown:
            raise ExperimentError(f"optunahub knows the options {', '.join(DEFAULTS)}, but got {', '.join(unknown)}")
        self._options = {**DEFAULTS, **options}
        self._configuration: dict[str, Any] = {}

    @classmethod
    def default_space(cls) -> SearchSpace:
        raise ExperimentError("a problem of OptunaHub has its space by its arguments; write `search_space` in the file")

    @classmethod
    def refuse_foreign(cls, options: Mapping[str, Any]) -> str | None:
        return "it loads and runs a package"

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        import optunahub

        package, registry = self._options["package"], self._options["registry"]
        module = optunahub.load_local_module(package, registry_root=registry) if registry else optunahub.load_module(package)
        self._problem = getattr(module, self._options["problem"])(**self._options["arguments"])
        self._configuration = dict(configuration)

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        self._value = float(self._problem.evaluate(self._configuration))
        return {}

    def validate(self) -> Mapping[str, float]:
        return {"value": self._value}
