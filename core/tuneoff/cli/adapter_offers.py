"""All that one adapter declares: what it offers and by what, and whether the framework lacks the rest, or tuneoff does yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tuneoff.base.output import columns, one_line

if TYPE_CHECKING:
    from tuneoff.capabilities import Capabilities, Offer
    from tuneoff.registry import AdapterListing

Row = tuple[str, str, str, str]


def details(listing: AdapterListing, capabilities: Capabilities) -> str:
    """Return the state of an adapter, its platforms, one row per sampler, pruner and feature, and its notes."""
    framework = " ".join(part for part in (listing.framework, listing.framework_version) if part)
    lines = [f"{listing.plugin.name}: {listing.state}" + (f", framework {framework}" if framework else "")]
    if listing.text:
        lines.append(listing.text)
    lines += [f"platforms: {_platforms(capabilities)}", ""]
    lines.append(columns(("kind", "name", "offered", ""), list(_rows(capabilities))))
    if capabilities.changed_defaults:
        lines += ["", "changed against the framework's defaults:", *(one_line(text) for text in capabilities.changed_defaults)]
    if capabilities.notes:
        lines += ["", *(one_line(note) for note in capabilities.notes)]
    return "\n".join(lines)


def _platforms(capabilities: Capabilities) -> str:
    names = []
    for number, name in enumerate(capabilities.platforms):
        marks = ["the default"] if number == 0 else []
        if name in capabilities.emulated_platforms:
            marks.append(f"{'' if 'emulated' in name else 'emulated: '}a local stand-in, in no ranking")
        names.append(f"{name} ({', '.join(marks)})" if marks else name)
    return ", ".join(names) or "-"


def _rows(capabilities: Capabilities) -> Iterator[Row]:
    yield from _offers("sampler", capabilities.samplers, capabilities.install)
    yield from _offers("pruner", capabilities.pruners, capabilities.install)
    yield ("feature", "retry", capabilities.retry.value, "failures.retries: a trial whose worker died is tried again")
    yield ("feature", "resume", capabilities.resume.value, "an interrupted run goes on with its finished trials")
    workers = "its workers live for the whole run" if capabilities.long_lived_workers else "one process per trial"
    yield ("feature", "long_lived_workers", "yes" if capabilities.long_lived_workers else "no", workers)


def _offers(kind: str, offers: Mapping[str, Offer], install: str) -> Iterator[Row]:
    """Yield what is offered first, then what tuneoff lacks yet, then what the framework lacks."""
    from tuneoff.capabilities import Support

    places = (Support.YES, Support.NOT_BY_TUNEOFF, Support.NOT_BY_FRAMEWORK)
    for name, offer in sorted(offers.items(), key=lambda item: places.index(item[1].support)):
        yield (kind, name, offer.support.value, _remark(offer, install))


def _remark(offer: Offer, install: str) -> str:
    from tuneoff.base.packages import install_command, missing_modules

    missing = missing_modules(offer.needs)
    parts = [
        f"= {offer.same_as}" if offer.same_as else "",
        offer.implementation,
        f"needs {', '.join(missing)}: {install_command(offer.install or install or missing[0])}" if missing else "",
        offer.note,
    ]
    return one_line("; ".join(part for part in parts if part))
