"""Adapters that accept what they cannot do."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import ClassVar

from tuneoff.adapter import Capabilities, Offer
from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.strategies import sampler_refusal
from tuneoff_adapters.serial import SerialAdapter


class _AnyName(dict[str, Offer]):
    """Has an offer for every name, and lists those that it was made with."""

    def __missing__(self, name: str) -> Offer:
        return Offer(implementation="whatever comes next")

    def get(self, name: str, default: object = None) -> Offer:
        return self[name]


class AcceptsAnySampler(SerialAdapter):
    """Accepts what it cannot do, and does something else."""

    capabilities: ClassVar[Capabilities] = replace(
        SerialAdapter.capabilities, samplers=_AnyName(SerialAdapter.capabilities.samplers)
    )


class RefusesItsOwn(SerialAdapter):
    """Declares a sampler, and refuses it when it is asked for."""

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        return "sampler 'grid' comes later" if spec.experiment.sampler.name == "grid" else super().refuse(spec)


class AcceptsAnyOption(SerialAdapter):
    """Does not look at its own options."""

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        return sampler_refusal(spec, cls.capabilities)


class AcceptsAnySamplerOption(SerialAdapter):
    """Does not look at the options of its samplers."""

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        return f"there are no options, but got {', '.join(spec.options)}" if spec.options else None


class ImportsToPlan(SerialAdapter):
    """Imports its framework to answer a plan."""

    capabilities: ClassVar[Capabilities] = replace(
        SerialAdapter.capabilities, framework="safetensors", package="safetensors", module="safetensors"
    )

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        importlib.import_module(cls.capabilities.module)
        return super().refuse(spec)
