"""Adapters and a workload that do nothing, for tests of what happens before a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import pytest

from tuneoff import registry
from tuneoff.adapter import Adapter, Best, Capabilities, Offer, Support
from tuneoff.base.space import Float, SearchSpace, stepped
from tuneoff.errors import ExperimentError, UnsupportedError
from tuneoff.experiment.spec import RunSpec
from tuneoff.workload import Configuration, Mode, Scores, TrialSeeds, Workload


class _Idle(Adapter):
    def deploy(self) -> None: ...

    def setup(self) -> None: ...

    def run_trials(self) -> None: ...

    def collect_results(self) -> Best | None:
        return None

    def undeploy(self) -> None: ...


class Plain(_Idle):
    """Needs no framework; its default sampler is random."""

    capabilities = Capabilities(
        framework="none",
        samplers={
            "random": Offer(implementation="plain.Random"),
            "grid": Offer(),
            "fixed": Offer(),
            "default": Offer(same_as="random"),
            "tpe": Offer(support=Support.NOT_BY_FRAMEWORK),
        },
        pruners={"none": Offer(), "scripted": Offer(), "asha": Offer(support=Support.NOT_BY_TUNEOFF, note="later")},
        retry=Support.YES,
    )


class Rich(_Idle):
    """Drives an installed package; knows a sampler of its own, and refuses more than 100 trials."""

    capabilities = Capabilities(
        framework="PyYAML",
        package="PyYAML",
        module="yaml",
        minimum_version="5",
        install="rich-library",
        platforms=("local", "cluster"),
        samplers={
            "random": Offer(),
            "grid": Offer(),
            "fixed": Offer(),
            "default": Offer(same_as="tpe"),
            "tpe": Offer(),
            "gp": Offer(needs=("no_such_module",)),
            "own": Offer(),
        },
        pruners={name: Offer() for name in ("none", "median", "asha", "hyperband", "scripted")},
    )

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        for option in spec.options:
            if option != "storage":
                raise ExperimentError(f"unknown option {option!r}; known: storage")
        if spec.experiment.workers.count > 8:
            raise UnsupportedError("at most 8 workers")
        return "at most 100 trials" if spec.experiment.budget.trials > 100 else None


class Missing(_Idle):
    """Drives a framework that is not installed."""

    capabilities = Capabilities(
        framework="Nowhere",
        package="nowhere-tune",
        module="nowhere_tune",
        install="nowhere-tune",
        samplers=Rich.capabilities.samplers,
        pruners=Rich.capabilities.pruners,
    )


class Old(_Idle):
    """Drives a framework that is installed in a version too old."""

    capabilities = Capabilities(framework="PyYAML", package="PyYAML", module="yaml", minimum_version="99.1", install="PyYAML")


class Twofold(_Idle):
    """Has two platforms, none of them local."""

    capabilities = Capabilities(
        framework="none",
        platforms=("cluster", "emulated"),
        samplers=Plain.capabilities.samplers,
        pruners=Plain.capabilities.pruners,
        retry=Support.NOT_BY_FRAMEWORK,
        notes=("a note on the whole",),
    )


class Failing(_Idle):
    """Its own check of a run fails."""

    capabilities = Plain.capabilities

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        raise KeyError("oops")


class Unfinished(Adapter):
    """Implements no step."""

    capabilities = Capabilities(framework="none")


class Undeclared(_Idle):
    """Declares no capabilities."""


class Curve(Workload):
    """A workload with two metrics and one option."""

    name = "curve"
    metrics: ClassVar[Mapping[str, Mode]] = {"loss": "min", "accuracy": "max"}
    default_metric = "accuracy"
    default_epochs = 9

    def __init__(self, options: Mapping[str, Any]) -> None:
        for name, value in options.items():
            if name != "noise":
                raise ExperimentError(f"workload 'curve' has no option {name!r}; it has: noise")
            if not isinstance(value, int | float):
                raise ExperimentError(f"noise must be a number, but got {value!r}")
        super().__init__(options)

    @classmethod
    def default_space(cls) -> SearchSpace:
        return SearchSpace({"rate": Float(low=1e-4, high=1e-1, log=True), "width": stepped(1, 4, 1, integer=True)})

    def check_space(self, space: SearchSpace) -> None:
        if "rate" not in space.dimensions:
            raise ExperimentError("the workload 'curve' needs a dimension 'rate'; add it")

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None: ...

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        return {}

    def validate(self) -> Mapping[str, float]:
        return {"loss": 0.0, "accuracy": 0.0}

    def test(self) -> Scores:
        return Scores(values={})


class Careless(Curve):
    """Does not check its options, and fails on them."""

    name = "careless"

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__({})
        self.size = options["size"] * 2


class Heavy(Curve):
    """Needs a module that is not there."""

    name = "heavy"
    preload = ("no_such_module",)


ADAPTERS = {
    "plain": "Plain",
    "rich": "Rich",
    "missing": "Missing",
    "old": "Old",
    "failing": "Failing",
}
WORKLOADS = {"curve": "Curve", "heavy": "Heavy", "careless": "Careless"}


def plugin(name: str, target: str, distribution: str = "fakes") -> registry.Plugin:
    return registry.Plugin(name=name, target=target, distribution=distribution, version="1.0")


def register(
    monkeypatch: pytest.MonkeyPatch,
    *more: registry.Plugin,
    workloads: Iterable[registry.Plugin] = (),
    meters: Iterable[registry.Plugin] = (),
) -> None:
    """Make the fakes (and `more` adapters, `workloads` and `meters`) the only installed plugins."""
    found = {
        "adapter": [plugin(name, f"fake_plugins:{target}") for name, target in ADAPTERS.items()] + list(more),
        "workload": [plugin(name, f"fake_plugins:{target}") for name, target in WORKLOADS.items()] + list(workloads),
        "power_meter": list(meters),
        "platform": list(registry.scan("platform")),
        "command": list(registry.scan("command")),
    }

    def scan(kind: registry.Kind) -> tuple[registry.Plugin, ...]:
        return tuple(sorted(found[kind], key=lambda item: item.name))

    monkeypatch.setattr(registry, "scan", scan)
