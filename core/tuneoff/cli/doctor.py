"""`tuneoff doctor`: what this machine and this installation can run, one line per check."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneoff.base.findings import Finding, Verdict
from tuneoff.base.output import columns, one_line, write, write_json
from tuneoff.base.terminal import output_as_errors
from tuneoff.base.tracebacks import described
from tuneoff.cli.folders import RESULTS
from tuneoff.errors import DataError, MissingPackageError, PluginError, ResultsError, TuneoffError

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan
    from tuneoff.workload import Workload

GIB = 2**30
MIN_MEMORY_BYTES = 2 * GIB  # a Ray cluster and two torch processes
MIN_SHARED_MEMORY_BYTES = GIB  # Ray's object store lies there
MIN_DISK_BYTES = GIB
NAME = "doctor"
HELP = "check Python, machine, frameworks, conflicts, data and the results folder"
EXAMPLE = "tuneoff doctor digits"


def machine() -> Iterator[Finding]:
    """Check Python, platform, cores, memory, control groups and shared memory."""
    from tuneoff.record.environment import capture
    from tuneoff.run.supervisor.cgroups import group_sites

    version = ".".join(map(str, sys.version_info[:3]))
    yield _check("python", sys.version_info >= (3, 11), version, "tuneoff needs Python 3.11; make a new environment", exit_code=3)
    linux = sys.platform == "linux"
    yield _check("platform", linux, sys.platform, "limits and clean-up after a kill need Linux; there they are guaranteed")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield _check("cores", cores >= 2, f"{cores} usable", "two workers share one core; set workers.count to 1")
    environment = capture()
    total, available = environment["memory_total_bytes"], environment["memory_available_bytes"]
    if total is None or available is None:
        yield _say("memory", "warning", "unknown: /proc/meminfo cannot be read")
    else:
        text = f"{available / GIB:.1f} GiB available of {total / GIB:.1f} GiB"
        yield _check("memory", available >= MIN_MEMORY_BYTES, text, "close other programs, or use fewer workers")
    sites = group_sites(("memory", "cpu"))
    memory, cpu = sites["memory"], sites["cpu"]
    text = f"memory limits by {memory.text}" if memory.parent else f"memory limits by the watchdog alone ({memory.text})"
    text += f", CPU quotas by {cpu.text}" if cpu.parent else f", no CPU quotas for workers.cpu_limit ({cpu.text})"
    way_out = "for hard limits run as root or with delegated memory and cpu controllers"
    yield _check("cgroup", memory.parent is not None and cpu.parent is not None, text, way_out)
    yield _space(
        "/dev/shm", Path("/dev/shm"), MIN_SHARED_MEMORY_BYTES, "Ray is slow with less than 1 GiB; docker run --shm-size=2g"
    )


def power(plan: Plan | None) -> Iterator[Finding]:
    """Check which power meter the plan gets, or this host without one, and that every plugin is a meter."""
    from tuneoff.experiment.power_settings import PowerSettings
    from tuneoff.measure.power.metering import open_power
    from tuneoff.registry import broken_power_meters

    try:
        opened = open_power(plan.power if plan is not None else PowerSettings())
    except TuneoffError as error:
        yield _failed("power", error)
    else:
        has_all = opened.meter is not None and not opened.problems
        text = opened.line().removeprefix("power: ")
        opened.close()
        yield _say("power", "passed" if has_all else "warning", text)
    for number, text in enumerate(broken_power_meters(), 1):
        yield _say(f"power meter {number}", "warning", text)


def adapters(plan: Plan | None) -> Iterator[Finding]:
    """Check the framework of each installed adapter; one that the plan needs must be there."""
    from tuneoff.registry import list_adapters

    needed = {run.spec.adapter for run in plan.counted} if plan is not None else set()
    for listing in list_adapters():
        name = f"adapter {listing.plugin.name}"
        if listing.state == "ready":
            text = f"{listing.framework} {listing.framework_version}".strip()
            yield _say(name, "passed", "no framework needed" if text == "none" else text)
        elif listing.state == "missing" and listing.plugin.name not in needed:
            yield _say(name, "warning", listing.text)
        else:
            error = PluginError if listing.state == "broken" else MissingPackageError
            yield _failed(name, error(listing.text))


def platforms(plan: Plan | None) -> Iterator[Finding]:
    """Check what this machine needs for each installed platform; one that the plan needs must be there."""
    from tuneoff.registry import list_platforms

    needed = {run.spec.platform for run in plan.counted} if plan is not None else set()
    for listing in list_platforms():
        name = f"platform {listing.plugin.name}"
        if not listing.text:
            yield _say(name, "passed", "all that it needs is here")
        elif listing.loaded is None:
            yield _failed(name, PluginError(listing.text))
        else:
            yield _failed(name, MissingPackageError(listing.text), "failed" if listing.plugin.name in needed else "warning")


def of_plugins(image: str | None) -> Iterator[Finding]:
    """Yield what platforms check themselves, and adapters of what their frameworks need beside a version; each function once."""
    from tuneoff.base.targets import load_target
    from tuneoff.registry import list_adapters, list_platforms

    plugins = [*(listing.loaded for listing in list_platforms()), *(listing.adapter for listing in list_adapters())]
    targets = dict.fromkeys(plugin.doctor for plugin in plugins if plugin is not None and plugin.doctor is not None)
    for target in targets:
        try:
            yield from load_target(target)(image)
        except (Exception, SystemExit) as error:
            code = error.exit_code if isinstance(error, TuneoffError) else PluginError.exit_code
            yield _say(target, "failed", described(error), code)


def data(plan: Plan | None) -> Iterator[Finding]:
    """Check each workload's packages and data: as the plan asks for it (fetched where missing), else with its defaults."""
    from tuneoff.base.identity import canonical_json
    from tuneoff.registry import list_workloads, workload_class

    folder = os.environ.get("TUNEOFF_DATA_DIR")
    if folder is not None and not Path(folder).is_dir():
        text = f"TUNEOFF_DATA_DIR must be a folder, but {folder} is not; correct or unset it"
        yield _failed("data folder", DataError(text))
    else:
        yield _say("data folder", "passed", folder or "TUNEOFF_DATA_DIR is not set: a cache folder is used")
    specs = [run.spec.experiment.workload for run in plan.counted] if plan is not None else []
    needed = {canonical_json([spec.name, dict(spec.options)]): spec for spec in specs}
    for spec in needed.values():
        yield _workload(f"data {spec.name}", workload_class(spec.name), spec.options, verdict="failed")
    for listing in list_workloads():
        name = f"workload {listing.plugin.name}"
        if listing.loaded is None:
            yield _failed(name, PluginError(listing.text))
        elif listing.plugin.name not in {spec.name for spec in specs}:
            options = {option: value for option, value in (listing.loaded.default_options or {}).items() if value is not None}
            yield _workload(name, listing.loaded, options, verdict="warning")


def results_folder(path: Path) -> Finding:
    """Check that results can be written there, and the space that is left."""
    existing = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        text = f"{existing} must be writable, but is not; go to another folder, or use --output"
        return _failed("results", ResultsError(text))
    return _space("results", existing, MIN_DISK_BYTES, "free some, or use --output")


def _say(name: str, verdict: Verdict, text: str, exit_code: int = 0) -> Finding:
    return Finding(id=name, verdict=verdict, text=text, exit_code=exit_code)


def _failed(name: str, error: TuneoffError, verdict: Verdict = "failed") -> Finding:
    """Return what an error says; `verdict`: another one, where it keeps nothing from running."""
    return _say(name, verdict, str(error), error.exit_code)


def _check(name: str, holds: bool, text: str, way_out: str, *, exit_code: int = 0) -> Finding:
    """Return a check that holds or not; it fails where it has an exit code, else it warns."""
    if holds:
        return _say(name, "passed", text)
    return _say(name, "failed" if exit_code else "warning", f"{text}; {way_out}", exit_code)


def _space(name: str, path: Path, least: int, way_out: str) -> Finding:
    try:
        free = shutil.disk_usage(path).free
    except OSError as error:
        return _say(name, "warning", f"{path} cannot be read: {error.strerror}; {way_out}")
    return _check(name, free >= least, f"{free / GIB:.1f} GiB free in {path}", way_out)


def _workload(name: str, workload: type[Workload], options: Mapping[str, Any], *, verdict: Verdict) -> Finding:
    from tuneoff.base.commands import install_command
    from tuneoff.base.packages import missing_modules

    missing = missing_modules(workload.preload)
    if missing:
        text = f"needs {', '.join(missing)}; run: {install_command(*missing)}"
        return _failed(name, MissingPackageError(text), verdict)
    try:
        with output_as_errors():
            dataset = workload(options).prepare()
    except TuneoffError as error:
        return _failed(name, error, verdict)
    size = f", {dataset.size_bytes / 1e6:.1f} MB" if dataset.size_bytes else ""
    return _say(name, "passed", f"{dataset.name} {dataset.version}{size}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        nargs="?",
        help="also check what this experiment file needs: its frameworks, and its data (fetched where they are missing)",
    )
    parser.add_argument("--image", metavar="NAME", help="also run an image of Katib's trials, and check that it has this tuneoff")
    parser.add_argument("--json", action="store_true", help="write JSON: a list with one object per check")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.cli.selection import overridden_plan

    plan = overridden_plan(arguments.file) if arguments.file is not None else None
    groups = (machine(), power(plan), adapters(plan), platforms(plan), of_plugins(arguments.image), data(plan))
    checks = [*(check for group in groups for check in group), results_folder(RESULTS)]
    levels = {"passed": "ok", "not applicable": "ok", "failed": "fail"}
    rows = [(levels.get(check.verdict, "warn"), check.id, check.text, check.exit_code) for check in checks]
    if arguments.json:
        write_json([dict(zip(("level", "name", "text", "exit_code"), row, strict=True)) for row in rows])
    else:
        write(columns(("level", "check", ""), [(level, name, one_line(text)) for level, name, text, _ in rows]))
    return next((check.exit_code for check in checks if check.verdict == "failed"), 0)
