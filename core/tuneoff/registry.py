"""Find plugins and commands by their entry points; nothing is scanned or imported before it is asked for."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from tuneoff.adapter import Adapter
from tuneoff.base.capabilities import Capabilities, State, framework_status
from tuneoff.base.packages import module_exists
from tuneoff.base.process_state import kept
from tuneoff.base.targets import file_of, load_target, unknown_name
from tuneoff.base.tracebacks import source_line
from tuneoff.errors import PluginError, UnknownNameError
from tuneoff.workload import Workload, as_workload

if TYPE_CHECKING:
    from tuneoff.meter import PowerMeter
    from tuneoff.platform import Platform

T = TypeVar("T")
Kind = Literal["adapter", "workload", "platform", "power_meter", "command"]
AdapterClass = type[Adapter]  # what an entry point of `tuneoff.adapters` names


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """An entry point: its name, where its class is ("module:Class"), and the distribution that brings it ("" for none)."""

    name: str
    target: str
    distribution: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterListing:
    """One line of `tuneoff list adapters`: the plugin, and the state of it and of its framework."""

    plugin: Plugin
    state: State
    text: str = ""  # for any state but `ready`: rule, value, way out
    framework: str = ""
    framework_version: str = ""
    adapter: AdapterClass | None = None  # None: the plugin itself is broken

    @property
    def capabilities(self) -> Capabilities | None:
        return None if self.adapter is None else self.adapter.capabilities

    @property
    def platforms(self) -> tuple[str, ...]:
        return () if self.adapter is None else self.adapter.platforms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """One line of a list of plugins; `text`: what is missing for it here, or wrong with a broken one."""

    plugin: Plugin
    text: str = ""
    loaded: type[T] | None = None  # None: it is broken


@functools.cache
def scan(kind: Kind) -> tuple[Plugin, ...]:
    """Return the entry points of the group `tuneoff.<kind>s`, sorted by name; read once per process."""
    plugins = []
    origins: dict[int, tuple[str, str]] = {}  # of each distribution once: its name and version parse a whole file
    for point in importlib.metadata.entry_points(group=f"tuneoff.{kind}s"):
        distribution = point.dist
        if distribution is not None and id(distribution) not in origins:
            metadata = distribution.metadata
            origins[id(distribution)] = (metadata["Name"], metadata["Version"])
        name, version = origins.get(id(distribution), ("", ""))
        target = point.value.replace(" ", "")
        plugins.append(Plugin(name=point.name, target=target, distribution=name, version=version))
    return tuple(sorted(plugins, key=lambda plugin: (plugin.name, plugin.distribution)))


def find(kind: Kind, name: str) -> Plugin:
    """Return the plugin of that name; a "module:Class" stands for itself.

    Raises:
        UnknownNameError: no plugin has that name.
        PluginError: two distributions bring one of that name.
    """
    if ":" in name:
        return Plugin(name=name, target=name)
    plugins = scan(kind)
    matches = [plugin for plugin in plugins if plugin.name == name]
    if not matches:
        names = {plugin.name for plugin in plugins}
        raise UnknownNameError(f"{unknown_name(_label(kind), name, names)}; or give it as module:Class")
    if len(matches) > 1:
        origins = " and ".join(_origin(plugin) for plugin in matches)
        rule = f"{_label(kind)} names must be unique, but {name!r} comes from {origins}"
        raise PluginError(f"{rule}; uninstall one, or give module:Class")
    return matches[0]


def installed(kind: Kind, name: str) -> Plugin:
    """Return the installed plugin of a name that somebody else gives, in a bundle or a folder: nothing but that is imported.

    Raises: as `find`; also where the name is a "module:Class".
    """
    if ":" in name:
        names = ", ".join(sorted({plugin.name for plugin in scan(kind)})) or "none"
        rule = f"a bundle brings no code, so {_label(kind)} {name!r} must be the name of an installed one"
        way_out = "; a module of your own: unpack the bundle beside it and run experiment.json" if kind == "workload" else ""
        raise UnknownNameError(f"{rule}; installed: {names}{way_out}")
    return find(kind, name)


def adapter_class(name: str) -> AdapterClass:
    """Return the adapter of that name, or at "module:Class".

    Raises:
        UnknownNameError: no plugin has that name, or there is no such module.
        PluginError: the plugin cannot be imported, or is not a complete adapter.
    """
    plugin = find("adapter", name)
    loaded: AdapterClass = _load("adapter", plugin, Adapter)
    if not isinstance(getattr(loaded, "capabilities", None), Capabilities):
        rule = "must declare `capabilities`, a Capabilities object"
        raise PluginError(f"adapter {plugin.name!r} {rule}, but {_place(plugin)} does not")
    return loaded


def workload_class(name: str) -> type[Workload]:
    """Return the workload of that name, or at "module:Class"; a function at "module:name" becomes one.

    Raises:
        UnknownNameError: no plugin has that name, or there is no such module.
        PluginError: the plugin cannot be imported, or is not a complete workload.
    """
    plugin = find("workload", name)
    loaded: type[Workload] = _load("workload", plugin, Workload)
    if loaded.has_test and loaded.test is Workload.test:
        rule = "must implement `test`, or set `has_test = False`"
        raise PluginError(f"workload {plugin.name!r} {rule}, but {_place(plugin)} does neither")
    lacking = [item for item in ("name", "metrics", "default_metric", "default_epochs") if not hasattr(loaded, item)]
    if lacking:
        raise PluginError(f"workload {plugin.name!r} must declare `{', '.join(lacking)}`, but {_place(plugin)} does not")
    return loaded


def platform_class(name: str) -> type[Platform]:
    """Return the platform of that name.

    Raises: as `power_meter_class`.
    """
    from tuneoff.platform import Platform

    return _load("platform", find("platform", name), Platform)


def list_platforms() -> list[Listing[Platform]]:
    """Return every installed platform; a broken one is a line, not an error."""
    listings = _listings("platform", platform_class)
    return [item if item.loaded is None else replace(item, text=item.loaded.missing() or "") for item in listings]


def power_meter_class(name: str) -> type[PowerMeter]:
    """Return what opens the power meter of that name, or at "module:Class".

    Raises:
        UnknownNameError: no plugin has that name, or there is no such module.
        PluginError: the plugin cannot be imported, or is not a `PowerMeter`.
    """
    from tuneoff.meter import PowerMeter

    return _load("power_meter", find("power_meter", name), PowerMeter)


def added_command(name: str) -> object:
    """Return the module that an installed package names as the command of that name.

    Raises: as `power_meter_class`.
    """
    return _loaded("command", find("command", name))


def list_adapters(names: Sequence[str] = ()) -> list[AdapterListing]:
    """Return these adapters with their state, by name or as "module:Class"; without names every plugin.

    A broken one is a line, not an error, and no framework is imported.

    Raises:
        UnknownNameError: no plugin has such a name, or there is no such module.
        PluginError: two distributions bring one of that name.
    """
    listings = []
    for item in _listings("adapter", adapter_class, names):
        if item.loaded is None:
            listings.append(AdapterListing(plugin=item.plugin, state="broken", text=item.text))
            continue
        capabilities = item.loaded.capabilities
        status = framework_status(item.plugin.name, capabilities)
        listings.append(
            AdapterListing(
                plugin=item.plugin,
                state=status.state,
                text=status.text,
                framework=capabilities.framework,
                framework_version=status.version,
                adapter=item.loaded,
            )
        )
    return listings


def list_workloads(names: Sequence[str] = ()) -> list[Listing[Workload]]:
    """Return these workloads, without names every plugin; a broken one is a line, not an error.

    Raises: as `list_adapters`.
    """
    return _listings("workload", workload_class, names)


def broken_power_meters() -> list[str]:
    """Return one line for each power meter plugin that cannot be imported or is none."""
    return [listing.text for listing in _listings("power_meter", power_meter_class) if listing.loaded is None]


def _listings(kind: Kind, load: Callable[[str], type[T]], names: Sequence[str] = ()) -> list[Listing[T]]:
    listings: list[Listing[T]] = []
    for plugin in [find(kind, name) for name in names] or scan(kind):
        try:
            listings.append(Listing(plugin=plugin, loaded=load(plugin.name)))
        except PluginError as error:
            listings.append(Listing(plugin=plugin, text=str(error)))
    return listings


def _load(kind: Kind, plugin: Plugin, base: type[Any]) -> type[Any]:
    loaded = _loaded(kind, plugin)
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise PluginError(
            f"{_label(kind)} {plugin.name!r} must be a subclass of {base.__name__}, but {_place(plugin)} is {loaded!r}"
        )
    if inspect.isabstract(loaded):
        lacking = ", ".join(sorted(getattr(loaded, "__abstractmethods__", ())))
        raise PluginError(f"{_label(kind)} {plugin.name!r} must implement every step, but {_place(plugin)} lacks: {lacking}")
    return loaded


def _loaded(kind: Kind, plugin: Plugin) -> object:
    """Return what the plugin's target names, whatever it is."""
    try:
        if plugin.name == plugin.target:
            _refuse_hidden(plugin.target)
        with kept() if kind == "workload" else contextlib.nullcontext():
            loaded = _import(plugin.target, is_installed=bool(plugin.distribution))
        return as_workload(loaded) if kind == "workload" else loaded
    except PluginError as error:
        module, cause = plugin.target.partition(":")[0], error.__cause__
        missing = cause.name if isinstance(cause, ModuleNotFoundError) else None  # or a package above it: nothing of it was run
        if plugin.name == plugin.target and missing is not None and f"{module}.".startswith(f"{missing}."):
            problem = f"{_label(kind)} {plugin.name!r} is not there: no module named {module!r}"
            way_out = "install its package, or run in the folder that holds it (or add that folder to PYTHONPATH)"
            raise UnknownNameError(f"{problem}; {way_out}") from error
        problem = f"{' '.join(str(error).split())}{source_line(error)}"
        raise PluginError(f"{_label(kind)} {plugin.name!r} is broken ({_origin(plugin)}): {problem}") from error


def _import(target: str, *, is_installed: bool) -> object:
    try:
        return load_target(target)
    except PluginError as error:
        folder, module = os.getcwd(), target.partition(":")[0].partition(".")[0]
        missing = isinstance(error.__cause__, ModuleNotFoundError) and error.__cause__.name == module
        if not missing or is_installed or folder in sys.path:
            raise
        # an uninstalled module lies beside the experiment; a console script has no current folder on its path
        if hiding := sorted(name for name in sys.stdlib_module_names & sys.modules.keys() if _file(folder, name)):
            rule = f"no file beside the experiment may have the name of a module of Python, but {_file(folder, hiding[0])} has"
            raise PluginError(f"{rule}; the processes of a run would import it in its place: rename it") from error
        sys.path.append(folder)
        return _import(target, is_installed=is_installed)


def _file(folder: str, module: str) -> str | None:
    """Return the file of a module or package that lies in a folder."""
    paths = (os.path.join(folder, name) for name in (f"{module}.py", os.path.join(module, "__init__.py")))
    return next(filter(os.path.isfile, paths), None)


def _refuse_hidden(target: str) -> None:
    """Raise PluginError where a file beside the experiment has the name of a module that would be imported in its place."""
    module = target.partition(":")[0].partition(".")[0]
    beside, other = _file(os.getcwd(), module) if module else None, file_of(module)
    if beside is not None and module_exists(module) and os.path.realpath(other) != os.path.realpath(beside):
        rule = f"`import {module}` must give {beside}, but gives {other}"
        raise PluginError(f"{rule}; rename the file, or put its folder first on PYTHONPATH")


def _label(kind: Kind) -> str:
    return kind.replace("_", " ")


def _origin(plugin: Plugin) -> str:
    return f"{plugin.distribution} {plugin.version}" if plugin.distribution else "not installed"


def _place(plugin: Plugin) -> str:
    return f"{plugin.target} of {_origin(plugin)}" if plugin.distribution else plugin.target
