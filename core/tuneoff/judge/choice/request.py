"""What a user asks of a framework, which adapters declare that they can do it, and which measured sizes surround what is asked.

A no is of the framework, of tuneoff, or of this machine. What faults must be survived is judged by what `tuneoff faults --json`
found. Nothing beyond the measured sizes is ever used.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tuneoff.base.capabilities import Capabilities, Offer, Support
from tuneoff.base.commands import install_command
from tuneoff.base.format import counted, figure
from tuneoff.base.packages import missing_modules
from tuneoff.errors import ExperimentError
from tuneoff.judge.fault_results import ADAPTER, DEFAULTS, NO_SUCH_PART, SURVIVED, FaultOutcome, FaultResult
from tuneoff.registry import AdapterListing

_BY = {ADAPTER: "through its adapter", DEFAULTS: "by its own defaults"}
_LABEL = re.compile(r"(?P<adapter>[^@{#]+)(@(?P<platform>[^{#]+?))?(\{.*)?(#\d+)?")
WORKERS, TRIAL_SECONDS, TRIALS = "workers", "trial_seconds", "trials"
_NAMES = {WORKERS: "worker", TRIALS: "trial"}
Range = tuple[float, float]
NEAR = 1.1  # nobody knows the length of a trial better: within this factor of a measured one it counts as measured
_LEAST = 1e-9


def size_text(name: str, ends: tuple[float, float]) -> str:
    """Return a size, or a range of it, in words: "2 workers", "0.4 to 0.5 s per trial"."""
    low, high = ends
    if name == TRIAL_SECONDS:
        return f"{figure(low)}{f' to {figure(high)}' if high != low else ''} s per trial"
    text = f"{low:g}" if high == low else f"{low:g} to {high:g}"
    return f"{text} {_NAMES[name]}{'' if low == high == 1 else 's'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The constraints; None or nothing: any. `faults_by`: whose settings must survive, the adapter's or the framework's own."""

    workers: int | None = None
    trial_seconds: float | None = None
    trials: int | None = None
    must_retry: bool = False
    platform: str | None = None
    sampler: str | None = None
    pruner: str | None = None
    must_survive: tuple[str, ...] = ()
    never_silently_wrong: bool = False
    faults_by: str = ADAPTER

    def __post_init__(self) -> None:
        for name, value in self.sizes.items():
            if not 0 < value < float("inf"):
                raise ExperimentError(f"--{name.replace('_', '-')} must be above 0, but got {value:g}")

    @property
    def sizes(self) -> Mapping[str, float]:
        """The sizes that must lie in what was measured."""
        sizes = {WORKERS: self.workers, TRIAL_SECONDS: self.trial_seconds, TRIALS: self.trials}
        return {name: value for name, value in sizes.items() if value is not None}

    @property
    def needs_faults(self) -> bool:
        """Whether the results of `tuneoff faults` decide."""
        return bool(self.must_survive) or self.never_silently_wrong

    def names(self) -> list[str]:
        """Return the constraints in words."""
        names = [size_text(name, (value, value)) for name, value in self.sizes.items()]
        named = {"platform": self.platform, "sampler": self.sampler, "pruner": self.pruner}
        names += [f"{kind} {name}" for kind, name in named.items() if name is not None]
        names += ["a lost trial is tried again"] if self.must_retry else []
        by = "its adapter" if self.faults_by == ADAPTER else "its own defaults"
        names += [f"survives {', '.join(self.must_survive)} by {by}"] if self.must_survive else []
        names += [f"never silently wrong by {by}"] if self.never_silently_wrong else []
        return names


class Bracket(NamedTuple):
    """The places of the settings that are used; `is_exact`: all of them are at the asked one. Without any, `outside` says
    why: by size what was asked for and what was measured, or nothing where only the combination was not."""

    used: tuple[int, ...] = ()
    is_exact: bool = False
    outside: Mapping[str, Range] | None = None


def bracket(wanted: Mapping[str, float], measured: Sequence[Mapping[str, Range]]) -> Bracket:
    """Return the measured settings that surround the asked one, the nearest on each side; all of them without any size.

    For each combination of sides (at most so many workers and at least so long trials, ...) one must have been measured. A
    setting that is at an asked size is on both of its sides. What lacks an asked size is not used.
    """
    candidates = {index: sizes for index, sizes in enumerate(measured) if all(name in sizes for name in wanted)}
    at = tuple(
        index for index, sizes in candidates.items() if all(_side(name, wanted[name], sizes[name]) == 0 for name in wanted)
    )
    if at:
        return Bracket(used=at, is_exact=True)
    used: set[int] = set()
    for sides in itertools.product((-1, 1), repeat=len(wanted)):
        distances = {}  # of those on these sides: the largest ratio of a size to the measured one, as a logarithm
        for index, sizes in candidates.items():
            at_sides = [_side(name, value, sizes[name]) for name, value in wanted.items()]
            if all(at in (0, side) for at, side in zip(at_sides, sides, strict=True)):
                distances[index] = max(
                    abs(math.log(max(sizes[name][1 if at < 0 else 0], _LEAST) / value)) if at else 0.0
                    for (name, value), at in zip(wanted.items(), at_sides, strict=True)
                )
        if not distances:
            ranges = spans(list(candidates.values()))
            outside = {name: ranges[name] for name in wanted if name in ranges and _side(name, wanted[name], ranges[name]) != 0}
            return Bracket(outside=outside)
        least = min(distances.values())
        used |= {index for index, distance in distances.items() if math.isclose(distance, least, rel_tol=1e-6, abs_tol=1e-9)}
    return Bracket(used=tuple(sorted(used)))


def spans(measured: Sequence[Mapping[str, Range]]) -> dict[str, Range]:
    """Return the least and the greatest of each size."""
    names = dict.fromkeys(name for sizes in measured for name in sizes)
    ends = {name: [sizes[name] for sizes in measured if name in sizes] for name in names}
    return {name: (min(low for low, _ in ranges), max(high for _, high in ranges)) for name, ranges in ends.items()}


def _side(name: str, wanted: float, measured: Range) -> int:
    """Return -1 if the measured range is below what is asked for, 1 if above, 0 if it holds it."""
    low, high = measured
    factor = NEAR if name == TRIAL_SECONDS else 1.0
    return -1 if high * factor < wanted else 1 if low / factor > wanted else 0


class Exclusion(StrEnum):
    """The kinds of no. `not known`: nobody tried it, so it is not a yes."""

    FRAMEWORK = "not by the framework"
    TUNEOFF = "not by tuneoff yet"
    ABSENT = "not installed"
    FAULTS = "not under faults"
    ELSEWHERE = "not on one machine"
    FILE = "not with the file"
    UNKNOWN = "not known"


class Obstacle(NamedTuple):
    """One constraint that an adapter does not meet, and why."""

    kind: Exclusion
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An adapter and what stands against it; `notes` are to know and stand against nothing.

    `platforms`: those asked about on which it would run for real.
    """

    adapter: str
    obstacles: tuple[Obstacle, ...] = ()
    notes: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()

    @property
    def is_capable(self) -> bool:
        return not self.obstacles


def candidate_of(listing: AdapterListing, request: Request, faults: Sequence[FaultResult] = ()) -> Candidate:
    """Return what an adapter's declaration says to a request, and what the results of faults do.

    A framework that is not installed here may well have been measured elsewhere: that is a note, and an obstacle where nothing
    was measured.
    """
    name, adapter = listing.plugin.name, listing.adapter
    if adapter is None:
        return Candidate(adapter=name, obstacles=(Obstacle(Exclusion.ABSENT, listing.text),))
    platforms = listing.platforms
    capabilities = adapter.capabilities_on(request.platform or platforms[0])
    results = [result for result in faults if _is_of(result.adapter, name, request.platform or platforms[0])]
    notes = [listing.text] if listing.state != "ready" else []
    notes += [text for text in _missing(name, capabilities, request) if listing.state == "ready"]
    if request.never_silently_wrong:
        tried = [result for result in results if result.setting == request.faults_by and result.was_tried]
        notes.append(f"{counted(len(tried), 'fault')} {_BY[request.faults_by]} were tried: silently wrong in none")
    other = DEFAULTS if request.faults_by == ADAPTER else ADAPTER  # whose outcomes decide nothing here
    for result in results:
        is_bad = result.outcome is not None and (
            (result.fault in request.must_survive and result.outcome not in SURVIVED)
            or (request.never_silently_wrong and result.outcome == FaultOutcome.WRONG)
        )
        if is_bad and result.setting == other:
            notes.append(f"{_BY[other]}, {result.fault}: {result.outcome} ({result.file})")
    wanted = platforms if request.platform is None else (request.platform,)
    return Candidate(
        adapter=name,
        obstacles=tuple(_obstacles(name, capabilities, request, results)),
        notes=tuple(notes),
        platforms=tuple(platform for platform in wanted if platform in platforms),
    )


def _obstacles(name: str, capabilities: Capabilities, request: Request, results: Sequence[FaultResult]) -> Iterator[Obstacle]:
    """Yield what an adapter does not offer, then what the faults that it must survive say against it; `results`: its own."""
    platform = request.platform
    if platform is not None and platform not in capabilities.platforms:
        text = f"platform {platform!r}: adapter {name!r} has only {', '.join(capabilities.platforms)}"
        yield Obstacle(Exclusion.TUNEOFF, text)  # adapters declare no platforms that their frameworks lack
    for kind, wanted, offers in _strategies(capabilities, request):
        offer = offers.get(wanted)
        if offer is None:
            yield Obstacle(Exclusion.TUNEOFF, f"{kind} {wanted!r}: adapter {name!r} does not list it")
        elif offer.support is not Support.YES:
            yield Obstacle(Exclusion(offer.support.value), f"{kind} {wanted!r}" + (f": {offer.note}" if offer.note else ""))
    if request.must_retry and capabilities.retry is not Support.YES:
        yield Obstacle(Exclusion(capabilities.retry.value), "trying a lost trial again")
    by = _BY[request.faults_by]
    decisive = [result for result in results if result.setting == request.faults_by]
    for fault in request.must_survive:
        of_fault = [result for result in decisive if result.fault == fault]
        bad = [result for result in of_fault if result.outcome is not None and result.outcome not in SURVIVED]
        if bad:
            yield Obstacle(Exclusion.FAULTS, f"{fault} {by}: {bad[0].outcome}, {bad[0].reason} ({bad[0].file})")
        elif not any(result.outcome is not None or result.reason == NO_SUCH_PART for result in of_fault):
            reason = f": {of_fault[0].reason}" if of_fault else ""
            yield Obstacle(Exclusion.UNKNOWN, f"{fault} {by}: no result{reason}")
    if not request.never_silently_wrong:
        return
    tried = [result for result in decisive if result.was_tried]
    if not tried:
        yield Obstacle(Exclusion.UNKNOWN, f"faults {by}: no result")
    for result in tried:
        if result.outcome == FaultOutcome.WRONG:
            text = f"{result.fault} {by}: silently wrong, {result.reason} ({result.file})"
            yield Obstacle(Exclusion.FAULTS, text)


def _strategies(capabilities: Capabilities, request: Request) -> Sequence[tuple[str, str, Mapping[str, Offer]]]:
    strategies = (("sampler", request.sampler, capabilities.samplers), ("pruner", request.pruner, capabilities.pruners))
    return [(kind, wanted, offers) for kind, wanted, offers in strategies if wanted is not None]


def _missing(name: str, capabilities: Capabilities, request: Request) -> Iterator[str]:
    for kind, wanted, offers in _strategies(capabilities, request):
        offer = offers.get(wanted, Offer())
        missing = missing_modules(offer.needs)
        if missing:
            command = install_command(offer.install or capabilities.install or missing[0])
            yield f"{kind} {wanted!r} of adapter {name!r} needs {', '.join(missing)}; run: {command}"


def _is_of(label: str, adapter: str, platform: str) -> bool:
    """Tell whether a label is of the adapter, and of the platform where it names one."""
    if label == adapter:  # "module:Class" too
        return True
    match = _LABEL.fullmatch(label)
    if match is None or match["adapter"] != adapter:
        return False
    return match["platform"] in (None, platform)
