"""Adapters of a framework of a few lines, each with one known defect in how it draws; `Honest` has none."""

from __future__ import annotations

import functools
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from tuneoff.adapter import Adapter, Best, Capabilities, Offer
from tuneoff.base.space import Stepped
from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.translation import FrameworkSpace, Native, NativeFloat, NativeIndex, SpaceTranslation
from tuneoff.trust.space_test.verify import PREFIX
from tuneoff_adapters.serial import SerialAdapter


class Honest(Adapter):
    """Draws native values from one generator and decodes them as core does."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        framework="none", samplers={"random": Offer(implementation="none")}, pruners={"none": Offer(implementation="none")}
    )

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        generator = random.Random(self.seed())
        for _ in range(count):
            units = self.units(generator)
            yield self.decode({name: self.value(kind, units[name]) for name, kind in self.translation.native.items()})

    def framework_space(self) -> FrameworkSpace:
        native = self.translation.native
        return FrameworkSpace(
            ends={name: self.ends(kind) for name, kind in native.items()},
            decode=self.decode,
            encode=self.translation.encode,
        )

    @functools.cached_property
    def translation(self) -> SpaceTranslation:
        return SpaceTranslation(self.context.spec.experiment.search_space)

    def seed(self) -> int:
        return self.context.spec.sampler_seed

    def units(self, generator: random.Random) -> dict[str, float]:
        return {name: generator.random() for name in self.translation.native}

    def value(self, kind: Native, unit: float) -> float:
        if isinstance(kind, NativeIndex):
            return int(unit * kind.size)
        low, high = (kind.low, kind.high) if isinstance(kind, NativeFloat) else kind.bounds
        if isinstance(kind, NativeFloat) and not kind.log:
            return low + unit * (high - low)
        return math.exp(math.log(low) + unit * math.log(high / low))

    def ends(self, kind: Native) -> tuple[Any, Any]:
        if isinstance(kind, NativeIndex):
            return 0, kind.size - 1
        return (kind.low, kind.high) if isinstance(kind, NativeFloat) else kind.bounds

    def decode(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.translation.decode(values)

    def deploy(self) -> None: ...

    def setup(self) -> None: ...

    def run_trials(self) -> None: ...

    def collect_results(self) -> Best | None:
        return None

    def undeploy(self) -> None: ...


class OneMore(Honest):
    """Draws as it should, and one parameter more than the space has."""

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        return ({**values, "momentum": 0.9} for values in super().draw(count))


class ExclusiveUpper(Honest):
    """Takes the upper bound of integers for excluded, so that the greatest value never comes."""

    def value(self, kind: Native, unit: float) -> float:
        if isinstance(kind, NativeIndex) and kind.ordered:
            return int(unit * (kind.size - 1))
        return super().value(kind, unit)

    def ends(self, kind: Native) -> tuple[Any, Any]:
        return (0, kind.size - 2) if isinstance(kind, NativeIndex) and kind.ordered else super().ends(kind)


class ExclusiveUpperUntold(ExclusiveUpper):
    """The same, but the draws alone can show it."""

    def framework_space(self) -> FrameworkSpace:
        raise NotImplementedError("the framework does not tell")


class TranslationBreaks(Honest):
    """Draws as it should, and breaks when it has to tell its space."""

    def framework_space(self) -> FrameworkSpace:
        raise RuntimeError("no such attribute of the framework")


class DecodeBreaks(Honest):
    """Draws as it should; what turns the framework's least and greatest values back breaks."""

    def framework_space(self) -> FrameworkSpace:
        def decode(values: Mapping[str, Any]) -> Mapping[str, Any]:
            raise AttributeError("value")

        return FrameworkSpace(ends=super().framework_space().ends, decode=decode)


class OneBeyond(Honest):
    """Leaves the space by one at the upper bound of integers, and nobody looks."""

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        generator = random.Random(self.seed() + 1)
        space = self.context.spec.experiment.search_space
        for configuration in super().draw(count):
            beyond = {
                name: item.low + item.step * item.size
                for name, item in space.searched.items()
                if isinstance(item, Stepped) and item.integer and generator.random() < 1 / (item.size + 1)
            }
            yield {**configuration, **beyond}


class OneBeyondRefused(Honest):
    """The same, but core's translation refuses the value."""

    def value(self, kind: Native, unit: float) -> float:
        return int(unit * (kind.size + 1)) if isinstance(kind, NativeIndex) else super().value(kind, unit)


class StarvedEnds(Honest):
    """Rounds a float to an integer, as Katib's own integers are drawn: of four values, 1/6, 1/3, 1/3 and 1/6."""

    def value(self, kind: Native, unit: float) -> float:
        if isinstance(kind, NativeIndex) and kind.ordered:
            return round(unit * (kind.size - 1))
        return super().value(kind, unit)


class SkewedEnds(Honest):
    """Gives two draws of a float in a hundred an end of the range."""

    def value(self, kind: Native, unit: float) -> float:
        if isinstance(kind, NativeFloat):
            scrambled = unit * 7919 % 1.0  # independent of where in the range the value lies
            if scrambled < 0.02:
                return kind.low if scrambled < 0.01 else kind.high
        return super().value(kind, unit)


class IgnoresLog(Honest):
    """Draws logarithmic floats uniformly."""

    def value(self, kind: Native, unit: float) -> float:
        if isinstance(kind, NativeFloat):
            return kind.low + unit * (kind.high - kind.low)
        return super().value(kind, unit)


class PassesOnAnother(Honest):
    """Passes on another choice than the one drawn; every choice comes as often as it should."""

    def decode(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        native = self.translation.native
        swapped = {name: kind.size - 1 - values[name] for name, kind in native.items() if isinstance(kind, NativeIndex)}
        return self.translation.decode({**values, **swapped})


class Correlated(Honest):
    """Takes the number of the first dimension for the second one too, in one draw of four."""

    def units(self, generator: random.Random) -> dict[str, float]:
        units = super().units(generator)
        first, second = list(units)[:2]
        if generator.random() < 0.25:
            units[second] = units[first]
        return units


class IgnoresSeed(Honest):
    """Draws the same configurations whatever the seed is."""

    def seed(self) -> int:
        return 42


class Unseeded(Honest):
    """Takes its seed from the operating system."""

    def seed(self) -> int:
        return int.from_bytes(os.urandom(8), "big")


class RepeatsItself(Honest):
    """Begins again after 100 configurations."""

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        known = list(super().draw(100))
        return (known[number % len(known)] for number in range(count))


class Breaks(Honest):
    """The framework raises."""

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        yield from super().draw(count // 2)
        raise RuntimeError("the sampler\nbroke")


class Dies(Honest):
    """The process ends by itself."""

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        print("no words from here on", file=sys.stderr, flush=True)
        os._exit(3)


class Hangs(Honest):
    """Never gives its second configuration, and starts processes that would outlive it."""

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        yield next(super().draw(1))
        for new_session in (False, True):
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=new_session)
        (self.context.temporary_dir / "rubbish").touch()
        time.sleep(600)


class Short(Honest):
    """Gives fewer configurations than asked for."""

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        return super().draw(count - 1)


class OwnSpaceOnly(Honest):
    """Serves no dimension but the file's own."""

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        names = [name for name, _ in spec.experiment.search_space if name.startswith(PREFIX)]
        return f"it knows no dimension {names[0]!r}" if names else None


class OnlyRuns(SerialAdapter):
    """Cannot draw without running trials."""

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        raise NotImplementedError("it has a sampler only while it runs")


class OnlyRunsStarved(OnlyRuns):
    """The same, and integers never have their greatest value."""

    def propose(self) -> Iterator[Any]:
        space = self.context.spec.experiment.search_space
        narrow = {name: item for name, item in space.searched.items() if isinstance(item, Stepped)}
        for proposed in super().propose():
            trial, configuration = proposed[:2]
            lowered = {
                name: item.value_at(min(item.index_of(configuration[name]), item.size - 2)) for name, item in narrow.items()
            }
            yield trial, {**configuration, **lowered}, *proposed[2:]


class OnlyRunsAnother(OnlyRuns):
    """The same, and trials get another configuration than was handed over; it comes as often as it should."""

    def setup(self) -> None:
        super().setup()
        send = self._pool.send

        def send_another(worker: int, task: tuple[str, Mapping[str, Any], int]) -> None:
            trial, configuration, attempt = task
            send(worker, (trial, {**configuration, "x": 1.0 - configuration["x"]}, attempt))

        self._pool.send = send_another  # type: ignore[method-assign, assignment]
