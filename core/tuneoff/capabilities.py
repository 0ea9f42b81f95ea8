"""What an adapter can do; `plan` refuses the rest, with the reason, before anything starts."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Support(enum.Enum):
    """Whether something is offered; the two kinds of no are different answers."""

    YES = "yes"
    NOT_BY_FRAMEWORK = "not by the framework"
    NOT_BY_TUNEOFF = "not by tuneoff yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One sampler, pruner or feature: whether it is offered, what it really is, and what it needs."""

    support: Support = Support.YES
    implementation: str = ""  # the framework's class, e.g. "optuna.samplers.TPESampler"
    needs: tuple[str, ...] = ()  # importable modules beyond the adapter's own, e.g. ("cmaes",)
    install: str = ""  # the command's last word, e.g. "tuneoff[optuna]"
    note: str = ""  # what differs from the same name in other frameworks
    same_as: str | None = None  # `default` that is the sampler of this name: run once, and said so


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The adapter's declaration: names that the plan checks, and features that the conformance kit checks.

    `package` and `module` name the framework's distribution and import ("" for none); `minimum_version` is refused below.
    """

    framework: str
    package: str = ""
    module: str = ""
    minimum_version: str = ""
    below_version: str = ""
    install: str = ""
    platforms: tuple[str, ...] = ("local",)
    samplers: Mapping[str, Offer] = field(default_factory=dict)
    pruners: Mapping[str, Offer] = field(default_factory=dict)
    resume: Support = Support.NOT_BY_TUNEOFF
    retry: Support = Support.NOT_BY_TUNEOFF
    long_lived_workers: bool = True  # False: one process per trial
    notes: tuple[str, ...] = ()
