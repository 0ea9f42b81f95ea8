"""What an adapter can do, and whether its framework is there; what cannot be done is refused before anything starts."""

from __future__ import annotations

import enum
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal, get_args

from tuneoff.base.commands import install_command
from tuneoff.base.identity import is_finite
from tuneoff.base.numbers import exact_text
from tuneoff.base.packages import installed_version, module_exists, release
from tuneoff.errors import MissingPackageError, PluginError

LOCAL = "local"  # the only platform that everybody has
Reports = Literal["none", "at_end", "every_epoch"]  # of a trial, to the framework; at its end: of its best epoch
NO_LIMITER = "none"  # a `cpu_limiter`: neither core nor the platform limits CPU time
State = Literal["ready", "missing", "too old", "too new", "broken"]


class Support(enum.Enum):
    """Whether something is offered; the two kinds of no are different answers."""

    YES = "yes"
    NOT_BY_FRAMEWORK = "not by the framework"
    NOT_BY_TUNEOFF = "not by tuneoff yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What an option's value may be: its type and, of a number, its bounds (`above` is excluded); keywords only."""

    type: Literal["integer", "number", "flag"]
    least: float | None = None
    above: float | None = None
    most: float | None = None

    def admits(self, value: Any) -> bool:
        """Tell whether `value` may be given; a `number` may be an int, and a bool is a `flag` alone."""
        if self.type == "flag":
            return isinstance(value, bool)
        if not is_finite(value) or (self.type == "integer" and not isinstance(value, int)):
            return False
        if (self.least is not None and value < self.least) or (self.above is not None and value <= self.above):
            return False
        return self.most is None or value <= self.most

    @property
    def text(self) -> str:
        """What is asked for, e.g. "an integer >= 1"."""
        if self.type == "flag":
            return "true or false"
        bounds = ((">=", self.least), (">", self.above), ("<=", self.most))
        limits = " and ".join(f"{sign} {exact_text(bound)}" for sign, bound in bounds if bound is not None)
        return f"{'an integer' if self.type == 'integer' else 'a number'} {limits}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One sampler, pruner or feature: whether it is offered, what it really is, and what it needs; keywords only."""

    support: Support = Support.YES
    implementation: str = ""  # the framework's class, e.g. "optuna.samplers.TPESampler"
    needs: tuple[str, ...] = ()  # importable modules beyond the adapter's own, e.g. ("cmaes",)
    install: str = ""  # what pip installs for `needs`, e.g. "cmaes>=0.11"; "": as the capabilities' own
    minimum_version: str = ""  # the first release of the framework that has it; "": all that the adapter serves
    below_version: str = ""  # the first release of the framework with which it is not offered any more; "": none
    note: str = ""  # what differs from the same name in other frameworks
    same_as: str | None = None  # `default` that is the sampler of this name: run once, and said so
    options: Mapping[str, Option] = field(default_factory=dict)  # of a sampler; those of pruners are core's
    ordered_dimensions: int = 0  # of a sampler: how many searched dimensions with an order it needs at least
    most_points: int | None = None  # of a sampler: that a dimension with an order may have; None: as many as core allows
    least_width: float = 0.0  # of a sampler: that a float's `high - low` must have
    repeats: bool = True  # of a sampler; False: it proposes no configuration twice
    startup_trials: int = 0  # of a sampler of an `AskTellAdapter`: so many are drawn at random before its model is used

    def __post_init__(self) -> None:
        _must_be_support("support of an Offer", self.support)


def offered(offers: Mapping[str, Offer]) -> dict[str, Offer]:
    """Return those that are offered, by what a declaration lists, whatever its own `get` says."""
    return {name: offer for name, offer in offers.items() if offer.support is Support.YES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The adapter's declaration: names that the plan checks, and features that the conformance kit checks.

    `package` and `module` name the framework's distribution and import ("" for none); `minimum_version` is refused below.
    `head_node`, `database`: a machine and a database service that it needs beside the workers' slots, on every platform: who
    rents machines pays for them. `memory_limiter` and `cpu_limiter` name what limits a trial's memory and CPU time where core
    does not; the latter is `NO_LIMITER` where nothing does. `reports`: which epochs of a trial the framework's documents have it
    told where nothing stops trials: none, the best one when the trial ends, or every one; with a pruner it is told of every one.
    `changed_defaults`: what the adapter sets or supplies otherwise than a user of the framework finds it, where that moves a
    figure; stands beside the figures. What is otherwise on one of the platforms, `Adapter.capabilities_on` says.
    """

    framework: str
    package: str = ""
    module: str = ""
    minimum_version: str = ""
    below_version: str = ""
    install: str = ""  # what pip installs, e.g. "my-library>=1.2"; "": `package`
    apart: str = ""  # a release to suggest, where its pins forbid what others need; "": it is installed beside them
    platforms: tuple[str, ...] = (LOCAL,)
    samplers: Mapping[str, Offer] = field(default_factory=dict)
    pruners: Mapping[str, Offer] = field(default_factory=dict)
    retry: Support = Support.NOT_BY_TUNEOFF
    stops_at_goal: str = ""  # the framework's means to end a run once a trial has met the goal; "": none, so that core does it
    first_configurations: str = ""  # the framework's means to try given ones first, which its samplers learn from; "": none
    long_lived_workers: bool = True  # False: one process per trial
    reports: Reports = "every_epoch"  # none | at_end | every_epoch
    head_node: bool = False
    database: bool = False
    memory_limiter: str = ""  # e.g. "container"; "": core's control groups and watchdog
    cpu_limiter: str = ""  # e.g. "container"; "": core, as `workers.cpu_limit` asks
    changed_defaults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def reports_with(self, pruner: str, wanted: Reports = "none") -> Reports:
        """Return of which epochs the framework is told under a pruner of this name.

        `wanted`: what it is told if it can be told it; one that needs none and has no pruner of its own has no call for that.
        """
        pruners = offered(self.pruners).keys() - {"none", "scripted"}
        is_told_all = wanted == "every_epoch" and (self.reports != "none" or bool(pruners))
        return "every_epoch" if pruner != "none" or is_told_all else self.reports

    def __post_init__(self) -> None:
        if not self.platforms:
            raise ValueError(f"`platforms` must name at least one, but got {self.platforms!r}")
        _must_be_support("capabilities.retry", self.retry)
        if self.reports not in (allowed := get_args(Reports)):
            raise ValueError(f"capabilities.reports must be one of {', '.join(allowed)}, but got {self.reports!r}")
        for field_name in ("long_lived_workers", "head_node", "database"):
            value = getattr(self, field_name)
            if not isinstance(value, bool):
                raise TypeError(f"capabilities.{field_name} must be True or False, but got {value}")
        for kind, offers in (("samplers", self.samplers), ("pruners", self.pruners)):
            for name, offer in offers.items():
                if not isinstance(offer, Offer):
                    raise TypeError(f"capabilities.{kind}[{name!r}] must be an Offer (e.g. Offer()), but got {offer}")


def _must_be_support(what: str, value: object) -> None:
    if not isinstance(value, Support):
        raise TypeError(f"{what} must be a Support (e.g. Support.YES), but got {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageStatus:
    """State of a package, its version ("" where unknown), and for any state but `ready` one line with the way out."""

    state: State
    version: str = ""
    text: str = ""


def framework_status(adapter: str, capabilities: Capabilities) -> PackageStatus:
    """Return the state of the framework that `adapter` drives; imports nothing."""
    if not capabilities.package:
        return PackageStatus(state="ready")
    version, present = installed_version(capabilities.package), module_exists(capabilities.module)
    command = install_command(capabilities.install or capabilities.package)
    if version is None and not present:
        text = f"adapter {adapter!r} needs the {capabilities.package} package; run: {command}"
        if capabilities.apart:
            text = f"adapter {adapter!r} needs an environment of its own; write {adapter}=={capabilities.apart}"
        return PackageStatus(state="missing", text=text)
    if not present:
        text = f"{capabilities.package} {version} is installed, but its module {capabilities.module!r} is not; run: {command}"
        return PackageStatus(state="broken", version=version or "", text=text)
    if version is None:  # a source tree on the path: there is nothing to compare
        return PackageStatus(state="ready", version="unknown")
    if (problem := version_problem(adapter, capabilities, version)) is not None:
        state, rule = problem
        return PackageStatus(state=state, version=version, text=f"{rule}, but {version} is installed; run: {command}")
    return PackageStatus(state="ready", version=version)


def version_problem(adapter: str, capabilities: Capabilities, version: str) -> tuple[State, str] | None:
    """Return what a release of the framework is to an adapter that does not serve it, and which ones it serves; None: it does."""
    least, below = capabilities.minimum_version, capabilities.below_version
    is_old = bool(least) and release(version) < release(least)
    if not is_old and not (below and release(version) >= release(below)):
        return None
    wanted = ", ".join(f"{sign} {bound}" for sign, bound in ((">=", least), ("<", below)) if bound)
    return "too old" if is_old else "too new", f"adapter {adapter!r} needs {capabilities.package} {wanted}"


def import_framework(adapter: str, capabilities: Capabilities) -> ModuleType:
    """Import the framework's module and return it; the first thing that `deploy` does.

    Raises:
        MissingPackageError: it is not installed, or its version is out of range.
        PluginError: it is installed, but its import fails.
    """
    status = framework_status(adapter, capabilities)
    if status.state == "broken":
        raise PluginError(status.text)
    if status.state != "ready":
        raise MissingPackageError(status.text)
    try:
        return importlib.import_module(capabilities.module)
    except Exception as error:  # a broken installation fails in any way while it is imported
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise PluginError(
            f"{capabilities.package} {status.version} is installed, but importing {capabilities.module!r} fails: {cause}; "
            f"run: {install_command(capabilities.install or capabilities.package)}"
        ) from error
