"""`tuneoff check`: whether an adapter, or a workload, keeps the contract that a comparison rests on, by real runs of it."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneoff.base.commands import command
from tuneoff.base.output import columns, note, write, write_exactly, write_json
from tuneoff.cli.command import ListedAction
from tuneoff.cli.folders import folder_path, make_empty

if TYPE_CHECKING:
    from tuneoff.base.findings import Check, Report
    from tuneoff.trust.check.evidence import AdapterCheck, Subject
    from tuneoff.trust.workload_check.checks import WorkloadCheck

NAME = "check"
HELP = "test whether adapters keep their contract, by small real runs; with --workload, whether a training of your own does"
EXAMPLE = "tuneoff check serial --only best undeploy.twice"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("adapters", metavar="NAME", nargs="*", help="adapters: by name, NAME@PLATFORM, or module:Class")
    parser.add_argument(
        "--workload",
        metavar="FILE",
        type=Path,
        help="check the workload of this experiment file, by training it a few times",
    )
    parser.add_argument("--only", metavar="ID", action=ListedAction, help="only these checks or families, e.g. best")
    parser.add_argument("--platform", metavar="NAME", help="where each adapter puts its framework; default: its first platform")
    parser.add_argument(
        "--option", dest="options", metavar="NAME=VALUE", action="append", default=[], help="an option of the adapters (JSON)"
    )
    parser.add_argument(
        "--keep", metavar="DIR", type=folder_path, help="keep the runs in this new folder; default: they are removed"
    )
    parser.add_argument("--list", action="store_true", help="list the checks with their reasons and ways out, and run nothing")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="write JSON: every check with its verdict")
    form.add_argument("--markdown", action="store_true", help="write tables for a page of documentation")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.base.findings import FAILS, chosen, page
    from tuneoff.errors import ExperimentError
    from tuneoff.trust.check.checks import CHECKS
    from tuneoff.trust.check.run_checks import SHOWN
    from tuneoff.trust.workload_check.checks import CHECKS as OF_WORKLOADS

    file, only = arguments.workload, arguments.only or ()
    if file is not None:
        if arguments.adapters:
            raise ExperimentError("--workload checks a workload alone, but adapters are named too; leave them out")
        of_adapters = {"--keep": arguments.keep, "--platform": arguments.platform, "--option": arguments.options}
        if given := [name for name, value in of_adapters.items() if value]:
            raise ExperimentError(f"--workload takes no option for adapters; leave out {', '.join(given)}")
        of_workload = chosen(OF_WORKLOADS, only, listed=("--workload", "FILE"))
        if arguments.list:
            return _list(of_workload, arguments.json)
        reports = [_of_workload(file, of_workload)]
    else:
        checks = chosen(CHECKS, only)
        if arguments.list:
            return _list(checks, arguments.json)
        if not arguments.adapters:
            raise ExperimentError(f"at least one adapter must be named, but got none; see: {command('adapters')}")
        reports = _reports(arguments, checks)
    codes = {report.exit_code for report in reports}
    code = FAILS if FAILS in codes else max(codes)
    if arguments.json:
        entries = [report.to_json() for report in reports]
        write_json({"exit_code": code, "adapters": entries} if file is None else entries[0])
    elif arguments.markdown:
        write_exactly("\n".join(page(reports, SHOWN if file is None else ())))
    else:
        write("\n\n".join(report.text() for report in reports))
    return code


def _of_workload(file: Path, checks: Sequence[WorkloadCheck]) -> Report:
    from tuneoff.cli.selection import overridden_plan
    from tuneoff.experiment.names import training_name
    from tuneoff.trust.workload_check.checks import check_workload

    plan = overridden_plan(file)
    experiment = plan.counted[0].spec.experiment
    return check_workload(experiment, training_name(experiment.workload, plan.name), checks, note)


def _reports(arguments: argparse.Namespace, checks: Sequence[AdapterCheck]) -> list[Report]:
    from tuneoff.cli.selection import share_folder
    from tuneoff.trust.check.make import subject_of
    from tuneoff.trust.check.run_checks import check_adapter

    options = _options(arguments.options)
    found = [subject_of(name, arguments.platform, options) for name in dict.fromkeys(arguments.adapters)]
    subjects = [subject for number, subject in enumerate(found) if subject not in found[:number]]  # serial and serial@local
    folders = _folders(arguments.keep, subjects)
    for folder in folders:
        if folder is not None:
            make_empty(folder, "--keep")  # before the first run: what is found later costs finished reports
    share_folder()
    reports = []
    for subject, keep in zip(subjects, folders, strict=True):
        if len(subjects) == 1:
            return [check_adapter(subject, checks, keep, note)]
        reports.append(check_adapter(subject, checks, keep, functools.partial(_note_of, subject.label)))
        note(reports[-1].answer())  # the others may take long
    return reports


def _note_of(label: str, text: str) -> None:
    note(f"{label}: {text}")


def _folders(keep: Path | None, subjects: Sequence[Subject]) -> list[Path | None]:
    """Return where the runs of each adapter are kept, or None for each."""
    from tuneoff.errors import ExperimentError

    if keep is None:
        return [None] * len(subjects)
    names = [subject.label.replace("/", "-") for subject in subjects]
    twice = [name for number, name in enumerate(names) if name in names[:number]]
    if twice:
        raise ExperimentError(
            f"the runs of each adapter need a folder, but two would be kept in {twice[0]!r}; check one at a time"
        )
    return [keep / name for name in names]


def _options(texts: Sequence[str]) -> dict[str, Any]:
    import json

    from tuneoff.errors import ExperimentError

    options: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (name and sign):
            raise ExperimentError(f"--option must be NAME=VALUE, but got {text!r}")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


def _list(checks: Sequence[Check[Any]], as_json: bool) -> int:
    if as_json:
        write_json([{"id": check.id, "reason": check.reason, "way_out": check.way_out} for check in checks])
    else:
        write(columns(("check", "why", "way out"), [(check.id, check.reason, check.way_out) for check in checks]))
    return 0
