"""Defects in configurations: which are proposed, and which are passed on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from trust.check.planted.base import Altered, Task
from tuneoff.adapter import Offer
from tuneoff.experiment.strategies import draws
from tuneoff.run.trial.pool import Worker
from tuneoff.run.trial.trial_process import trial_process
from tuneoff_adapters.serial import SerialAdapter

Proposals = Iterator[tuple[str, Mapping[str, Any]]]


class RepeatsOne(SerialAdapter):
    """Under `min` it runs the first of the given configurations twice and the last never."""

    def propose(self) -> Proposals:
        proposals = list(super().propose())
        if self.context.spec.experiment.objective.mode == "min":
            proposals[-1] = (proposals[-1][0], proposals[0][1])
        return iter(proposals)


class IgnoresFirst(SerialAdapter):
    """Says that it tries given configurations first, and tries them last."""

    def propose(self) -> Proposals:
        proposals = list(super().propose())
        configurations = [configuration for _, configuration in proposals]
        count = len(self.context.spec.experiment.configurations)
        return ((name, item) for (name, _), item in zip(proposals, configurations[count:] + configurations[:count], strict=True))


class LearnsNothing(SerialAdapter):
    """Offers a sampler with a model, and draws at random."""

    capabilities = replace(
        SerialAdapter.capabilities, samplers={**SerialAdapter.capabilities.samplers, "tpe": Offer(implementation="none")}
    )


class PassesOnAnother(SerialAdapter):
    """Trains another kind than was proposed, each as often as before."""

    def setup(self) -> None:
        super().setup()
        send = self._pool.send

        def send_another(worker: int, task: Task) -> None:
            trial_id, configuration, attempt = task
            if "kind" in configuration:
                kind = {"a": "b", "b": "a"}.get(configuration["kind"], "c")
                task = Task(trial_id, {**configuration, "kind": kind}, attempt)
            send(worker, task)

        self._pool.send = send_another  # type: ignore[method-assign, assignment]


class _Redrawn(SerialAdapter):
    """Changes one value of each drawn configuration."""

    def redrawn(self, configuration: Mapping[str, Any]) -> Mapping[str, Any]:
        raise NotImplementedError

    def propose(self) -> Proposals:
        for trial_id, configuration in super().propose():
            yield trial_id, self.redrawn(configuration) if "depth" in configuration else configuration


class OneBeyond(_Redrawn):
    """Leaves the space by one at an upper bound."""

    def redrawn(self, configuration: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**configuration, "width": configuration["width"] + 1}


class ExclusiveUpper(_Redrawn):
    """Never draws an upper bound."""

    def redrawn(self, configuration: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**configuration, "depth": min(configuration["depth"], 2)}


class Unseeded(SerialAdapter):
    """Draws from a generator that the operating system seeds."""

    def seed(self) -> int:
        return int.from_bytes(os.urandom(6), "big")

    def propose(self) -> Proposals:
        spec = self.context.spec
        if spec.experiment.sampler.name != "random":
            yield from super().propose()
            return
        drawn = draws(spec.experiment.search_space, self.seed())
        for number in range(spec.experiment.budget.trials):
            yield f"t{number:05d}", next(drawn)


class IgnoresSeed(Unseeded):
    """Draws the same whatever the seed is."""

    def seed(self) -> int:
        return 42


class SeedsByWorker(Altered):
    """Seeds a trial by the worker that trains it."""

    @classmethod
    def prepare(cls, worker: Worker) -> None:
        process = trial_process(worker.context)
        process.context = replace(process.context, seed=process.context.seed + worker.index)
