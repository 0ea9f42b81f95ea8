"""`tuneoff list adapters`: each adapter with its state, or one with all that it offers and does not. Imports no framework."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tuneoff.base.output import columns, one_line

if TYPE_CHECKING:
    from tuneoff.base.capabilities import Capabilities, Offer
    from tuneoff.registry import AdapterListing


Row = tuple[str, str, str, str]
HINT = "What is not offered, and whether the framework or tuneoff lacks it: tuneoff list adapters NAME"


def listed(names: Sequence[str]) -> tuple[list[dict[str, Any]], str, list[str]]:
    """Return adapters as JSON values and as text, with names each with all of its offers, and which of the named are broken."""
    from tuneoff.registry import list_adapters

    listings = list_adapters(names)
    whole = [(listing, listing.capabilities) for listing in listings if listing.capabilities is not None]
    text = "\n\n".join(details(*pair) for pair in whole) if names else _table(listings)
    broken = [listing.text for listing in listings if listing.capabilities is None] if names else []
    return [_to_json(listing) for listing in listings], text, broken


def _table(listings: list[AdapterListing]) -> str:
    from tuneoff.base.capabilities import offered
    from tuneoff.base.commands import install_command
    from tuneoff.base.packages import missing_modules

    rows = []
    notes = []
    for listing in listings:
        capabilities = listing.capabilities
        rows.append(
            (
                listing.plugin.name,
                listing.state,
                _framework(listing) or "-",
                _words(listing.platforms if capabilities else ()),
                _words(offered(capabilities.samplers) if capabilities else ()),
                _words(offered(capabilities.pruners) if capabilities else ()),
            )
        )
        if listing.text:
            notes.append(listing.text)
        elif capabilities is not None:
            users: dict[tuple[str, str], list[str]] = {}  # of each missing package: the offered samplers and pruners that need it
            for kind, offers in (("sampler", capabilities.samplers), ("pruner", capabilities.pruners)):
                for strategy, offer in offered(offers).items():
                    for module in missing_modules(offer.needs):
                        install = install_command(offer.install or capabilities.install or module)
                        users.setdefault((module, install), []).append(f"{kind} {strategy!r}")
            for (module, install), who in users.items():
                notes.append(f"{listing.plugin.name}: {' and '.join(who)} needs {module}; run: {install}")
    table = columns(("name", "status", "framework", "platforms", "samplers", "pruners"), rows)
    return "\n".join([table, "", *notes, HINT])


def _words(names: Any) -> str:
    return " ".join(names) or "-"


def _framework(listing: AdapterListing) -> str:
    return f"{listing.framework} {listing.framework_version}".strip()


def _to_json(listing: AdapterListing) -> dict[str, Any]:
    capabilities = listing.capabilities
    data: dict[str, Any] = {
        "name": listing.plugin.name,
        "status": listing.state,
        "text": listing.text or None,
        "target": listing.plugin.target,
        "distribution": listing.plugin.distribution or None,
        "distribution_version": listing.plugin.version or None,
        "framework": listing.framework or None,
        "framework_version": listing.framework_version or None,
    }
    if capabilities is None:
        return data
    return data | {
        "platforms": list(listing.platforms),
        "samplers": {name: _offer_to_json(offer) for name, offer in capabilities.samplers.items()},
        "pruners": {name: _offer_to_json(offer) for name, offer in capabilities.pruners.items()},
        "retry": capabilities.retry.value,
        "first_configurations": capabilities.first_configurations or None,
        "stops_at_goal": capabilities.stops_at_goal or None,
        "long_lived_workers": capabilities.long_lived_workers,
        "changed_defaults": list(capabilities.changed_defaults),
        "notes": list(capabilities.notes),
    }


def _offer_to_json(offer: Offer) -> dict[str, Any]:
    from tuneoff.base.packages import missing_modules

    return {
        "support": offer.support.value,
        "implementation": offer.implementation or None,
        "missing": missing_modules(offer.needs),
        "same_as": offer.same_as,
        "note": offer.note or None,
    }


def details(listing: AdapterListing, capabilities: Capabilities) -> str:
    """Return the state of an adapter, its platforms, one row per sampler, pruner and feature, and its notes."""
    framework = _framework(listing)
    lines = [f"{listing.plugin.name}: {listing.state}" + (f", framework {framework}" if framework else "")]
    lines += [listing.text] if listing.text else []
    default, *others = listing.platforms
    lines += [f"platforms: {', '.join((f'{default} (the default)', *others))}", ""]
    lines.append(columns(("kind", "name", "offered", ""), list(_rows(capabilities))))
    if capabilities.changed_defaults:
        lines += ["", "changed against the framework's defaults:", *(one_line(text) for text in capabilities.changed_defaults)]
    if capabilities.notes:
        lines += ["", *(one_line(note) for note in capabilities.notes)]
    return "\n".join(lines)


def _rows(capabilities: Capabilities) -> Iterator[Row]:
    yield from _offers("sampler", capabilities.samplers, capabilities.install)
    yield from _offers("pruner", capabilities.pruners, capabilities.install)
    yield ("feature", "retry", capabilities.retry.value, "failures.retries: a trial whose worker died is tried again")
    first = capabilities.first_configurations
    yield ("feature", "first_configurations", "yes" if first else "no", first)
    yield ("feature", "stop at the goal", "yes" if capabilities.stops_at_goal else "by tuneoff", capabilities.stops_at_goal)
    workers = "its workers live for the whole run" if capabilities.long_lived_workers else "one process per trial"
    yield ("feature", "long_lived_workers", "yes" if capabilities.long_lived_workers else "no", workers)


def _offers(kind: str, offers: Mapping[str, Offer], install: str) -> Iterator[Row]:
    """Yield what is offered first, then what tuneoff lacks yet, then what the framework lacks."""
    from tuneoff.base.capabilities import Support

    places = (Support.YES, Support.NOT_BY_TUNEOFF, Support.NOT_BY_FRAMEWORK)
    for name, offer in sorted(offers.items(), key=lambda item: places.index(item[1].support)):
        yield (kind, name, offer.support.value, _remark(offer, install))


def _remark(offer: Offer, install: str) -> str:
    from tuneoff.base.commands import install_command
    from tuneoff.base.packages import missing_modules

    missing = missing_modules(offer.needs)
    parts = [
        f"= {offer.same_as}" if offer.same_as else "",
        offer.implementation,
        offer.note,
        f"from release {offer.minimum_version} on" if offer.minimum_version else "",
        f"before release {offer.below_version}" if offer.below_version else "",
        f"needs {', '.join(missing)}: {install_command(offer.install or install or missing[0])}" if missing else "",
    ]
    return one_line("; ".join(part for part in parts if part))
