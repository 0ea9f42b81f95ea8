"""Which adapters can do what is asked for, by what they declare; a no is of the framework, of tuneoff, or of this machine.

What faults must be survived is judged by what `tuneoff faults --json` found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tuneoff.base.commands import install_command
from tuneoff.base.format import counted
from tuneoff.base.packages import missing_modules
from tuneoff.base.targets import unknown_name
from tuneoff.capabilities import Capabilities, Offer, Support
from tuneoff.errors import UnknownNameError
from tuneoff.judge.choice.request import Request
from tuneoff.judge.fault_results import ADAPTER, DEFAULTS, NO_SUCH_PART, SURVIVED, FaultOutcome, FaultResult
from tuneoff.registry import AdapterListing

_BY = {ADAPTER: "through its adapter", DEFAULTS: "by its own defaults"}
_LABEL = re.compile(r"(?P<adapter>[^@{#]+)(@(?P<platform>[^{#]+?)( \(emulated\))?)?(\{.*)?(#\d+)?")


class Exclusion(StrEnum):
    """The kinds of no. `not known`: nobody tried it, so it is not a yes."""

    FRAMEWORK = "not by the framework"
    TUNEOFF = "not by tuneoff yet"
    ABSENT = "not installed"
    FAULTS = "not under faults"
    ELSEWHERE = "not on one machine"
    FILE = "not with the file"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One constraint that an adapter does not meet, and why."""

    kind: Exclusion
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An adapter and what stands against it; `notes` are to know and stand against nothing.

    `platforms`: those asked about on which it would run for real.
    """

    adapter: str
    framework: str
    obstacles: tuple[Obstacle, ...] = ()
    notes: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()

    @property
    def is_capable(self) -> bool:
        return not self.obstacles


def check_request(request: Request, listings: Sequence[AdapterListing]) -> None:
    """Refuse a platform, sampler or pruner that no adapter knows of.

    Raises:
        UnknownNameError: it is most likely mistyped.
    """
    declared = [listing.capabilities for listing in listings if listing.capabilities is not None]
    for kind, wanted, names in (
        ("platform", request.platform, {name for listing in listings for name in listing.platforms}),
        ("sampler", request.sampler, {name for capabilities in declared for name in capabilities.samplers}),
        ("pruner", request.pruner, {name for capabilities in declared for name in capabilities.pruners}),
    ):
        if wanted is not None and wanted not in names:
            raise UnknownNameError(unknown_name(kind, wanted, names))


def candidate_of(listing: AdapterListing, request: Request, faults: Sequence[FaultResult] = ()) -> Candidate:
    """Return what an adapter's declaration says to a request, and what the results of faults do.

    A framework that is not installed here may well have been measured elsewhere: that is a note, and an obstacle where nothing
    was measured.
    """
    name, adapter = listing.plugin.name, listing.adapter
    if adapter is None:
        return Candidate(adapter=name, framework="", obstacles=(Obstacle(kind=Exclusion.ABSENT, text=listing.text),))
    platforms, emulated = listing.platforms, adapter.capabilities.emulated_platforms
    capabilities = adapter.capabilities_on(request.platform or platforms[0])
    results = [result for result in faults if _is_of(result.adapter, name, emulated, request.platform)]
    notes = [listing.text] if listing.state != "ready" else []
    notes += [text for text in _missing(name, capabilities, request) if listing.state == "ready"]
    wanted = platforms if request.platform is None else (request.platform,)
    real = tuple(platform for platform in wanted if platform in platforms and platform not in emulated)
    return Candidate(
        adapter=name,
        framework=capabilities.framework,
        obstacles=(*_obstacles(name, capabilities, request), *_fault_obstacles(results, request)),
        notes=(*notes, *_fault_notes(results, request)),
        platforms=real,
    )


def _obstacles(name: str, capabilities: Capabilities, request: Request) -> Iterator[Obstacle]:
    platform = request.platform
    if platform is not None and platform not in capabilities.platforms:
        text = f"platform {platform!r}: adapter {name!r} has only {', '.join(capabilities.platforms)}"
        yield Obstacle(kind=Exclusion.TUNEOFF, text=text)  # adapters declare no platforms that their frameworks lack
    elif platform in capabilities.emulated_platforms:
        yield Obstacle(kind=Exclusion.UNKNOWN, text=f"platform {platform!r} is a local stand-in: it recommends nothing")
    for kind, wanted, offers in _strategies(capabilities, request):
        offer = offers.get(wanted)
        if offer is None:
            yield Obstacle(kind=Exclusion.TUNEOFF, text=f"{kind} {wanted!r}: adapter {name!r} does not list it")
        elif offer.support is not Support.YES:
            yield Obstacle(
                kind=Exclusion(offer.support.value), text=f"{kind} {wanted!r}" + (f": {offer.note}" if offer.note else "")
            )
    if request.must_retry and capabilities.retry is not Support.YES:
        yield Obstacle(kind=Exclusion(capabilities.retry.value), text="trying a lost trial again")


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


def _fault_obstacles(results: Sequence[FaultResult], request: Request) -> Iterator[Obstacle]:
    """Yield what the faults that an adapter must survive say against it; `results`: its own."""
    by = _BY[request.faults_by]
    decisive = [result for result in results if result.setting == request.faults_by]
    for fault in request.must_survive:
        of_fault = [result for result in decisive if result.fault == fault]
        bad = [result for result in of_fault if result.outcome is not None and result.outcome not in SURVIVED]
        if bad:
            yield Obstacle(kind=Exclusion.FAULTS, text=f"{fault} {by}: {bad[0].outcome}, {bad[0].reason} ({bad[0].file})")
        elif not any(result.outcome is not None or result.reason == NO_SUCH_PART for result in of_fault):
            reason = f": {of_fault[0].reason}" if of_fault else ""
            yield Obstacle(kind=Exclusion.UNKNOWN, text=f"{fault} {by}: no result{reason}")
    if not request.never_silently_wrong:
        return
    tried = [result for result in decisive if result.was_tried]
    if not tried:
        yield Obstacle(kind=Exclusion.UNKNOWN, text=f"faults {by}: no result")
    for result in tried:
        if result.outcome == FaultOutcome.WRONG:
            text = f"{result.fault} {by}: silently wrong, {result.reason} ({result.file})"
            yield Obstacle(kind=Exclusion.FAULTS, text=text)


def _fault_notes(results: Sequence[FaultResult], request: Request) -> list[str]:
    """Return what the other settings came to under the faults that must be survived: it decides nothing here."""
    other = DEFAULTS if request.faults_by == ADAPTER else ADAPTER
    notes = []
    if request.never_silently_wrong:
        tried = [result for result in results if result.setting == request.faults_by and result.was_tried]
        notes.append(f"{counted(len(tried), 'fault')} {_BY[request.faults_by]} were tried: silently wrong in none")
    for result in results:
        is_bad = result.outcome is not None and (
            (result.fault in request.must_survive and result.outcome not in SURVIVED)
            or (request.never_silently_wrong and result.outcome == FaultOutcome.WRONG)
        )
        if is_bad and result.setting == other:
            notes.append(f"{_BY[other]}, {result.fault}: {result.outcome} ({result.file})")
    return notes


def _is_of(label: str, adapter: str, emulated_platforms: Sequence[str], platform: str | None) -> bool:
    """Tell whether a label is of the adapter, on a real platform, on the asked one where it names one."""
    if label == adapter:  # "module:Class" too
        return True
    match = _LABEL.fullmatch(label)
    if match is None or match["adapter"] != adapter:
        return False
    where = match["platform"]
    return where is None or (where not in emulated_platforms and "emulated" not in where and platform in (None, where))
