"""`tuneoff check`: what a comparison rests on: the contract of an adapter or a workload, equal search spaces, equal treatment."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneoff.base.commands import command
from tuneoff.base.output import columns, note, write, write_json
from tuneoff.cli.command import ListedAction, whole_number
from tuneoff.cli.folders import folder_path, make_empty, newest_folder
from tuneoff.cli.selection import add_offline
from tuneoff.errors import ExperimentError

if TYPE_CHECKING:
    from tuneoff.base.findings import Check, Report
    from tuneoff.trust.check.evidence import AdapterCheck

NAME = "check"
HELP = (
    "test whether adapters keep their contract, by small real runs; or a workload of your own (--workload), whether all draw "
    "from one search space (--space), whether the runs of a results folder were treated equally (--controls)"
)
EXAMPLE = "tuneoff check serial --only best undeploy.twice"
DIFFERENT = 1
DRAWS, FEWEST_DRAWS = 5000, 400
SECONDS = 300.0
TAKEN = {  # what may be given, by what is checked
    "adapters": ("adapters", "--option", "--only", "--keep", "--offline", "--list", "--json"),
    "--workload": ("--only", "--list", "--json"),
    "--space": ("adapters", "--draws", "--seed", "--timeout", "--offline", "--json"),
    "--controls": ("--json",),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "adapters", metavar="NAME", nargs="*", help="adapters: by name, NAME@PLATFORM, NAME==VERSION, or module:Class"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--workload",
        metavar="FILE",
        type=Path,
        help="check the workload of this experiment file by training it a few times",
    )
    what.add_argument(
        "--space",
        metavar="FILE",
        type=Path,
        help="test whether every framework of this file, or those named, draws from the same search space: bounds, "
        "distributions, independence, mapping, seeds",
    )
    what.add_argument(
        "--controls",
        metavar="DIR",
        type=folder_path,
        nargs="?",
        const=True,
        help="compare the runs of a results folder: equal values of equal configurations, equal quality of equal algorithms, "
        "noise; default: the newest one under results/",
    )
    parser.add_argument("--only", metavar="ID", action=ListedAction, help="only these checks or families, e.g. best")
    parser.add_argument(
        "--option", metavar="NAME=VALUE", type=_option, action="append", help="an option of the adapters (the value as JSON)"
    )
    parser.add_argument(
        "--keep", metavar="DIR", type=folder_path, help="keep the runs in this new folder; default: they are removed"
    )
    parser.add_argument(
        "--draws", metavar="N", type=whole_number(FEWEST_DRAWS), help=f"with --space: draws of each adapter; default: {DRAWS}"
    )
    parser.add_argument("--seed", metavar="N", type=whole_number(0), help="with --space: the first of four seeds; default: 0")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=whole_number(1),
        help=f"with --space: limit of each process that draws (five per adapter); default: {SECONDS:g}",
    )
    add_offline(parser)
    parser.add_argument("--list", action="store_true", help="list the checks with their reasons and ways out, and run nothing")
    parser.add_argument("--json", action="store_true", help="write JSON: every check, test or comparison with its verdict")


def _option(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, but got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def execute(arguments: argparse.Namespace) -> int:
    subject = next((name for name in list(TAKEN)[1:] if getattr(arguments, name[2:]) is not None), "adapters")
    values = {name: getattr(arguments, name.removeprefix("--")) for names in TAKEN.values() for name in names}
    used = [name for name, value in values.items() if value not in (None, []) and value is not False]
    if refused := [name for name in used if name not in TAKEN[subject]]:
        raise ExperimentError(f"{subject} must be without {', '.join(refused)}; leave out {', '.join(refused)}")
    if subject == "--space":
        return _space(arguments)
    if subject == "--controls":
        return _controls(newest_folder(needs_runs=True) if arguments.controls is True else arguments.controls, arguments.json)
    return _contract(arguments)


def _contract(arguments: argparse.Namespace) -> int:
    from tuneoff.base.findings import FAILS, chosen
    from tuneoff.cli.selection import overridden_plan
    from tuneoff.experiment.names import training_name
    from tuneoff.trust.check.checks import CHECKS
    from tuneoff.trust.workload_check.checks import CHECKS as OF_WORKLOADS
    from tuneoff.trust.workload_check.checks import check_workload

    file, only = arguments.workload, arguments.only or ()
    if file is not None:
        of_workload = chosen(OF_WORKLOADS, only, listed=("--workload", "FILE"))
        if arguments.list:
            return _list(of_workload, arguments.json)
        plan = overridden_plan(file)
        experiment = plan.counted[0].spec.experiment
        reports = [check_workload(experiment, training_name(experiment.workload, plan.name), of_workload, note)]
    else:
        checks = chosen(CHECKS, only)
        if arguments.list:
            return _list(checks, arguments.json)
        if not arguments.adapters:
            raise ExperimentError(f"at least one adapter must be named, but got none; see: {command('list', 'adapters')}")
        reports = _reports(arguments, checks)
    codes = {report.exit_code for report in reports}
    code = FAILS if FAILS in codes else max(codes)
    if arguments.json:
        entries = [report.to_json() for report in reports]
        write_json({"exit_code": code, "adapters": entries} if file is None else entries[0])
    else:
        write("\n\n".join(report.text() for report in reports))
    return code


def _space(arguments: argparse.Namespace) -> int:
    from tuneoff.cli.selection import check_something_runs, overridden_plan
    from tuneoff.run.environments import ready
    from tuneoff.trust.space_test.judgement_tables import exit_code, text, to_json
    from tuneoff.trust.space_test.statistics import FALSE_DISCOVERY_RATE
    from tuneoff.trust.space_test.verify import targets, verify

    draws = arguments.draws or DRAWS
    plan = overridden_plan(arguments.space, adapters=arguments.adapters or None)
    space_targets = targets(plan, draws)
    check_something_runs(replace(plan, runs=tuple(target.run for target in space_targets)))
    specs = [target.run.spec for target in space_targets if target.run.skip_reason is None]
    with ready(specs, note, offline=arguments.offline):
        seed, seconds = arguments.seed or 0, arguments.timeout or SECONDS
        outcomes = verify(plan, space_targets, draws=draws, seed=seed, seconds=seconds, tell=note)
    code = exit_code(outcomes)
    if arguments.json:
        about = {"file": str(arguments.space), "draws": draws, "false_discovery_rate": FALSE_DISCOVERY_RATE}
        write_json({**about, "exit_code": code, "adapters": [to_json(*outcome) for outcome in outcomes]})
    else:
        write(text(outcomes))
    return code


def _controls(results: Path, as_json: bool) -> int:
    from tuneoff.judge.controls.compute import controls
    from tuneoff.judge.controls.controls_output import lines, to_json
    from tuneoff.judge.results import read_results
    from tuneoff.tell.report.interference import interference, interference_json, interference_lines

    contents = read_results(results)
    result, between = controls(contents), interference(contents)
    code = DIFFERENT if result.contradicts else 0
    if as_json:
        answers = {**to_json(result), "interference": interference_json(between)}
        write_json({"results": str(results.resolve()), "exit_code": code, **answers})
    elif result.is_empty:
        write(f"nothing to compare: a control needs two frameworks with sampler fixed or random\n\n{results.resolve()}")
    else:
        write("\n".join([*lines(result), *interference_lines(between), "", str(results.resolve())]))
    return code


def _reports(arguments: argparse.Namespace, checks: Sequence[AdapterCheck]) -> list[Report]:
    from tuneoff.cli.selection import share_folder
    from tuneoff.trust.check.make import check_adapter, subject_of

    options = dict(arguments.option or ())
    named = [subject_of(name, options=options) for name in dict.fromkeys(arguments.adapters)]
    subjects = [subject for number, subject in enumerate(named) if subject not in named[:number]]  # serial and serial@local
    folders = [arguments.keep and arguments.keep / subject.label.replace("/", "-") for subject in subjects]
    for folder in filter(None, folders):
        make_empty(folder, "--keep")  # before the first run: what is found later costs finished reports
    share_folder()
    reports = []
    for subject, folder in zip(subjects, folders, strict=True):

        def tell(text: str, label: str = f"{subject.label}: " if len(subjects) > 1 else "") -> None:
            note(f"{label}{text}")

        reports.append(check_adapter(subject, checks, folder, tell, offline=arguments.offline))
        if len(subjects) > 1:
            note(reports[-1].answer())  # the others may take long
    return reports


def _list(checks: Sequence[Check[Any]], as_json: bool) -> int:
    if as_json:
        write_json([{"id": check.id, "reason": check.reason, "way_out": check.way_out} for check in checks])
    else:
        write(columns(("check", "why", "way out"), [(check.id, check.reason, check.way_out) for check in checks]))
    return 0
