"""Why a cell cannot be served, found out before anything starts."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

from tuneoff import registry
from tuneoff.base.capabilities import LOCAL, NO_LIMITER, Capabilities, Offer, Support, framework_status, offered
from tuneoff.base.commands import install_command
from tuneoff.base.packages import missing_modules
from tuneoff.base.process_limits import VISIBLE
from tuneoff.base.tracebacks import text_of
from tuneoff.errors import ExperimentError, PluginError, UnsupportedError
from tuneoff.experiment.environments import refusals
from tuneoff.experiment.spec import RunSpec, Strategy
from tuneoff.experiment.strategies import LISTED, release_refusal
from tuneoff.registry import AdapterClass

NO_PRUNER = Strategy(name="none")


class SkipCheck:
    """Tells why runs are skipped; looks up each package once. `has_plain`: some runs have no pruner."""

    def __init__(self, has_plain: bool = True) -> None:
        self._has_plain = has_plain
        self._status = functools.cache(lambda name, adapter: framework_status(name, adapter.capabilities))
        self._missing = functools.cache(missing_modules)

    def reason(self, spec: RunSpec, adapter: AdapterClass) -> str | None:
        """Return why `adapter` cannot serve `spec`, or None.

        Raises:
            ExperimentError: the adapter finds a mistake in the request, e.g. an option that it does not have.
            PluginError: the adapter's own check fails.
        """
        return next(self._reasons(spec, adapter), None)

    def _reasons(self, spec: RunSpec, adapter: AdapterClass) -> Iterator[str]:
        capabilities = adapter.capabilities_on(spec.platform)
        yield from declared_reasons(spec, capabilities, self._has_plain)
        yield from refusals(spec)
        status = self._status(spec.adapter, adapter)
        if status.state != "ready" and spec.environment is None:
            yield status.text
        for kind, strategy, offers in (
            ("sampler", spec.experiment.sampler, capabilities.samplers),
            ("pruner", spec.experiment.pruner, capabilities.pruners),
        ):
            offer = offers.get(strategy.name, Offer())
            what = f"{kind} {strategy.name!r} of adapter {spec.adapter!r}"
            if unfit := release_refusal(what, offer.minimum_version, spec, capabilities, offer.below_version):
                yield unfit
            missing = self._missing(offer.needs) if spec.environment is None else ()  # which has them
            if missing:
                command = install_command(offer.install or capabilities.install or missing[0])
                yield f"{what} needs {', '.join(missing)}; run: {command}"
        workload = spec.experiment.workload.name
        missing = self._missing(tuple(registry.workload_class(workload).preload))
        if missing:
            yield f"workload {workload!r} needs {', '.join(missing)}; run: {install_command(*missing)}"
        refused = _refuse(spec, adapter)
        if refused is not None:
            yield refused
        yield from _device_reasons(spec)
        if spec.experiment.copies > 1 and adapter.placement(spec) is not None:
            yield "`copies` share this machine, but trials of the adapter are on other hosts; use another platform, or copies: 1"


def declared_reasons(spec: RunSpec, capabilities: Capabilities, has_plain: bool = True) -> Iterator[str]:
    """Yield why an adapter cannot serve `spec`, by what it declares for its platform; `has_plain`: as of `SkipCheck`."""
    if spec.platform not in capabilities.platforms:
        offered = ", ".join(capabilities.platforms) or "none"
        yield f"adapter {spec.adapter!r} does not offer platform {spec.platform!r}; it offers: {offered}"
    yield from _offer(spec, capabilities, "sampler", has_plain=has_plain)
    yield from _offer(spec, capabilities, "pruner", has_plain=has_plain)
    retries = spec.experiment.failures.retries
    if retries and capabilities.retry is not Support.YES:
        by = capabilities.retry.value
        yield f"adapter {spec.adapter!r} repeats no trials ({by}), but `failures.retries` is {retries}; set it to 0"
    is_listed = spec.experiment.sampler.name in LISTED
    if spec.experiment.configurations and not is_listed and not capabilities.first_configurations:
        yield f"adapter {spec.adapter!r} has no means to try given configurations first; leave `first_configurations` out"
    limit, limiter = spec.experiment.workers.cpu_limit, capabilities.cpu_limiter
    if (limiter and limit == "affinity") or (limiter == NO_LIMITER and limit != "none"):
        what = "no limit" if limiter == NO_LIMITER else f"a quota by the {limiter}"
        yield f"`workers.cpu_limit` is {limit}, but adapter {spec.adapter!r} has {what} on platform {spec.platform!r}"


def _device_reasons(spec: RunSpec) -> Iterator[str]:
    devices, visible = spec.experiment.workers.devices, os.environ.get(VISIBLE)
    if devices and spec.platform != LOCAL:
        rule = f"`workers.devices` numbers those of this machine, but platform {spec.platform!r} has trials elsewhere"
        yield f"{rule}, with the devices that it gives them; use platform {LOCAL}, or remove workers.devices"
    elif visible is not None and (hidden := [str(device) for device in devices if str(device) not in visible.split(",")]):
        yield f"`workers.devices` has {', '.join(hidden)}, but {VISIBLE} is {visible!r}; name some of these, or unset it"


def _offer(spec: RunSpec, capabilities: Capabilities, kind: str, *, has_plain: bool) -> Iterator[str]:
    strategy = spec.experiment.sampler if kind == "sampler" else spec.experiment.pruner
    offers = capabilities.samplers if kind == "sampler" else capabilities.pruners
    offer = offers.get(strategy.name)
    if offer is None:
        names = ", ".join(offered(offers)) or "none"
        plain = kind == "pruner" and not has_plain and NO_PRUNER.name in offers
        way_out = f"; to compare it too: matrix: {{pruner: [{NO_PRUNER.name}, {strategy.name}]}}" if plain else ""
        yield f"adapter {spec.adapter!r} does not list {kind} {strategy.name!r}; it offers: {names}{way_out}"
    elif offer.support is not Support.YES:
        by_framework = offer.support is Support.NOT_BY_FRAMEWORK
        by = f"the framework ({capabilities.framework})" if by_framework else f"adapter {spec.adapter!r} yet"
        note = f": {offer.note}" if offer.note else ""
        yield f"{kind} {strategy.name!r} is not offered by {by}{note}"


def _refuse(spec: RunSpec, adapter: AdapterClass) -> str | None:
    try:
        return adapter.refuse(spec)
    except UnsupportedError as error:
        return str(error)
    except ExperimentError as error:  # the user's mistake, e.g. an option that the adapter does not have
        raise type(error)(f"adapter {spec.adapter!r}: {error}") from error
    except Exception as error:  # a plugin's own code may fail in any way
        cause = " ".join(f"{type(error).__name__}: {text_of(error)}".split())
        raise PluginError(f"adapter {spec.adapter!r} fails to check a run: {cause}; repair {spec.adapter_target}") from error
