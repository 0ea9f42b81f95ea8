"""`tuneoff faults`: what becomes of a run under each fault, by the framework's own defaults and through its adapter."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tuneoff.base.commands import command
from tuneoff.base.output import note_on_terminal, write, write_exactly, write_json
from tuneoff.base.targets import unknown_name
from tuneoff.cli.command import ListedAction
from tuneoff.cli.folders import folder_path, make_empty
from tuneoff.cli.selection import add_adapters, add_offline, check_something_runs, overridden_plan

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan
    from tuneoff_faults.faults import TrialFault

NAME = "faults"
HELP = "break runs in many ways, by each framework's own defaults and through its adapter, and say what becomes of them"
EXAMPLE = "tuneoff faults --adapter serial --fault raise --by adapter"
UNSAFE = 1
AT_ONCE = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_adapters(parser, "only these frameworks, also module:Class and NAME@PLATFORM; default: all that have a plain program")
    parser.add_argument(
        "--fault", dest="faults", metavar="NAME", action=ListedAction, help="only these faults; default: all of them"
    )
    parser.add_argument(
        "--by", choices=("defaults", "adapter"), help="only by the framework's own defaults, or only through the adapter"
    )
    parser.add_argument("--at-once", metavar="N", type=int, default=AT_ONCE, help=f"runs at the same time; default: {AT_ONCE}")
    parser.add_argument("--keep", metavar="DIR", type=folder_path, help="keep the files of all runs in this new folder")
    add_offline(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="write JSON: each run with its outcome, reason and times")
    form.add_argument("--markdown", action="store_true", help="write tables in Markdown, for a page as docs/faults.md")


def execute(arguments: argparse.Namespace) -> int:
    from msgspec import structs

    from tuneoff.errors import ExperimentError
    from tuneoff_faults.cell import SETTINGS
    from tuneoff_faults.faults import FAULTS
    from tuneoff_faults.matrix import FILE, fault_tools, run_matrix, skip_reason
    from tuneoff_faults.tables import bad_ones, failed_controls, markdown, terminal

    faults = _chosen(arguments.faults)
    if arguments.at_once < 1:
        raise ExperimentError(f"--at-once must be at least 1, but got {arguments.at_once}")
    plan = overridden_plan(FILE, adapters=arguments.adapters)
    if all(skip_reason(run) for run in plan.counted):
        check_something_runs(plan)
    if arguments.keep is not None:
        make_empty(arguments.keep, "--keep")
    settings = [setting for setting in SETTINGS if arguments.by in (None, setting)]
    results = run_matrix(plan, faults, settings, arguments.at_once, note_on_terminal, arguments.keep, offline=arguments.offline)
    is_missed = any(result.is_missed for result in results)
    code = UNSAFE if bad_ones(results) or failed_controls(results) or is_missed else 0
    if arguments.json:
        runs = [{name: value for name, value in structs.asdict(result).items() if name != "file"} for result in results]
        names = [fault.name for fault in FAULTS]
        write_json({"about": _about(plan), "faults": names, "runs": runs, "exit_code": code})
    elif arguments.markdown:
        tools = {run.label: fault_tools(run.spec.adapter) for run in plan.counted if "defaults" in settings}
        write_exactly(markdown(results, tools, _about(plan), command(*arguments.argv)))
    else:
        write(terminal(results))
    return code


def _chosen(names: Sequence[str] | None) -> list[TrialFault]:
    """Return the faults of these names, all of them without any."""
    from tuneoff.errors import UnknownNameError
    from tuneoff_faults.faults import FAULTS

    all_names = [fault.name for fault in FAULTS]
    for name in names or ():
        if name not in all_names:
            raise UnknownNameError(unknown_name("fault", name, all_names))
    return [fault for fault in FAULTS if not names or fault.name in names]


def _about(plan: Plan) -> dict[str, str]:
    """Return what the results depend on: the date, versions, the machine."""
    from tuneoff.record.environment import capture
    from tuneoff.registry import adapter_class

    here = [run.spec.adapter for run in plan.counted if run.spec.environment is None]
    packages = [name for adapter in here if (name := adapter_class(adapter).capabilities.package)]
    environment = capture(packages)
    processors, model = len(environment["cpus_available"]), environment["cpu"]["name"]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "Python": environment["python"],
        "machine": f"{processors} processors" + (f", {model}" if model else ""),
        **{name: environment["versions"][name] or "not installed" for name in ("tuneoff", *packages)},
    }
