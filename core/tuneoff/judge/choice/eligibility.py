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


class No(StrEnum):
    """The kinds of no. `not known`: nobody tried it, so it is no yes."""

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

    kind: No
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


def check_request(request: Request, known: Sequence[AdapterListing]) -> None:
    """Refuse a platform, sampler or pruner that no adapter knows of.

    Raises:
        UnknownNameError: it is most likely mistyped.
    """
    declared = [listing.capabilities for listing in known if listing.capabilities is not None]
    for kind, wanted, names in (
        ("platform", request.platform, {name for one in declared for name in one.platforms}),
        ("sampler", request.sampler, {name for one in declared for name in one.samplers}),
        ("pruner", request.pruner, {name for one in declared for name in one.pruners}),
    ):
        if wanted is not None and wanted not in names:
            raise UnknownNameError(unknown_name(kind, wanted, names))


def candidate(listing: AdapterListing, request: Request) -> Candidate:
    """Return what an adapter's declaration says to a request.

    A framework that is not installed here may well have been measured elsewhere: that is a note, and an obstacle where nothing
    was measured.
    """
    name, capabilities = listing.plugin.name, listing.capabilities
    if capabilities is None:
        return Candidate(adapter=name, framework="", obstacles=(Obstacle(kind=No.ABSENT, text=listing.text),))
    if request.platform is not None:
        capabilities = capabilities.on(request.platform)
    notes = [listing.text] if listing.state != "ready" else []
    notes += [text for text in _missing(name, capabilities, request) if listing.state == "ready"]
    wanted = capabilities.platforms if request.platform is None else (request.platform,)
    real = tuple(one for one in wanted if one in capabilities.platforms and one not in capabilities.emulated_platforms)
    return Candidate(
        adapter=name,
        framework=capabilities.framework,
        obstacles=tuple(_obstacles(name, capabilities, request)),
        notes=tuple(notes),
        platforms=real,
    )


def _obstacles(name: str, capabilities: Capabilities, request: Request) -> Iterator[Obstacle]:
    yield from _platform(name, capabilities, request.platform)
    for kind, wanted, offers in _strategies(capabilities, request):
        yield from _offer(name, capabilities, kind, wanted, offers)
    if request.must_retry and capabilities.retry is not Support.YES:
        yield Obstacle(kind=No(capabilities.retry.value), text="trying a lost trial again")


def _platform(name: str, capabilities: Capabilities, wanted: str | None) -> Iterator[Obstacle]:
    if wanted is None:
        return
    if wanted not in capabilities.platforms:
        text = f"platform {wanted!r}: adapter {name!r} has only {', '.join(capabilities.platforms)}"
        yield Obstacle(kind=No.TUNEOFF, text=text)  # adapters declare no platforms that their frameworks lack
    elif wanted in capabilities.emulated_platforms:
        yield Obstacle(kind=No.UNKNOWN, text=f"platform {wanted!r} is a local stand-in: it recommends nothing")


def _strategies(capabilities: Capabilities, request: Request) -> Sequence[tuple[str, str, Mapping[str, Offer]]]:
    asked = (("sampler", request.sampler, capabilities.samplers), ("pruner", request.pruner, capabilities.pruners))
    return [(kind, wanted, offers) for kind, wanted, offers in asked if wanted is not None]


def _offer(name: str, capabilities: Capabilities, kind: str, wanted: str, offers: Mapping[str, Offer]) -> Iterator[Obstacle]:
    offer = offers.get(wanted)
    if offer is None:
        yield Obstacle(kind=No.TUNEOFF, text=f"{kind} {wanted!r}: adapter {name!r} does not list it")
    elif offer.support is not Support.YES:
        yield Obstacle(kind=No(offer.support.value), text=f"{kind} {wanted!r}" + (f": {offer.note}" if offer.note else ""))


def _missing(name: str, capabilities: Capabilities, request: Request) -> Iterator[str]:
    for kind, wanted, offers in _strategies(capabilities, request):
        offer = offers.get(wanted, Offer())
        missing = missing_modules(offer.needs)
        if missing:
            command = install_command(offer.install or capabilities.install or missing[0])
            yield f"{kind} {wanted!r} of adapter {name!r} needs {', '.join(missing)}; run: {command}"


def of_adapter(
    results: Sequence[FaultResult], adapter: str, emulated_platforms: Sequence[str], platform: str | None
) -> list[FaultResult]:
    """Return the results of an adapter, on the asked platform where one is asked for, and none of a stand-in."""
    return [one for one in results if _is_of(one.adapter, adapter, emulated_platforms, platform)]


def fault_obstacles(own: Sequence[FaultResult], request: Request) -> list[Obstacle]:
    """Return what the faults that an adapter must survive say against it; `own`: its results."""
    decisive = [one for one in own if one.setting == request.faults_by]
    found = [obstacle for fault in request.must_survive for obstacle in _survival(fault, decisive, request.faults_by)]
    return found + (_wrong(decisive, request.faults_by) if request.never_silently_wrong else [])


def fault_notes(own: Sequence[FaultResult], request: Request) -> list[str]:
    """Return what the other settings came to under the faults that must be survived: it decides nothing here."""
    other = DEFAULTS if request.faults_by == ADAPTER else ADAPTER
    found = []
    if request.never_silently_wrong:
        tried = [one for one in own if one.setting == request.faults_by and one.was_tried]
        found.append(f"{counted(len(tried), 'fault')} {_BY[request.faults_by]} were tried: silently wrong in none")
    for one in own:
        is_bad = one.outcome is not None and (
            (one.fault in request.must_survive and one.outcome not in SURVIVED)
            or (request.never_silently_wrong and one.outcome == FaultOutcome.WRONG)
        )
        if is_bad and one.setting == other:
            found.append(f"{_BY[other]}, {one.fault}: {one.outcome} ({one.file})")
    return found


def _survival(fault: str, decisive: Sequence[FaultResult], by: str) -> Iterator[Obstacle]:
    of_fault = [one for one in decisive if one.fault == fault]
    bad = [one for one in of_fault if one.outcome is not None and one.outcome not in SURVIVED]
    if bad:
        yield Obstacle(kind=No.FAULTS, text=f"{fault} {_BY[by]}: {bad[0].outcome}, {bad[0].reason} ({bad[0].file})")
    elif not any(one.outcome is not None or one.reason == NO_SUCH_PART for one in of_fault):
        reason = f": {of_fault[0].reason}" if of_fault else ""
        yield Obstacle(kind=No.UNKNOWN, text=f"{fault} {_BY[by]}: no result{reason}")


def _wrong(decisive: Sequence[FaultResult], by: str) -> list[Obstacle]:
    tried = [one for one in decisive if one.was_tried]
    if not tried:
        return [Obstacle(kind=No.UNKNOWN, text=f"faults {_BY[by]}: no result")]
    return [
        Obstacle(kind=No.FAULTS, text=f"{one.fault} {_BY[by]}: silently wrong, {one.reason} ({one.file})")
        for one in tried
        if one.outcome == FaultOutcome.WRONG
    ]


def _is_of(label: str, adapter: str, emulated_platforms: Sequence[str], platform: str | None) -> bool:
    """Tell whether a label is of the adapter, on a real platform, on the asked one where it names one."""
    if label == adapter:  # "module:Class" too
        return True
    found = _LABEL.fullmatch(label)
    if found is None or found["adapter"] != adapter:
        return False
    where = found["platform"]
    return where is None or (where not in emulated_platforms and "emulated" not in where and platform in (None, where))
