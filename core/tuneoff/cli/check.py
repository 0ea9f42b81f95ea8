"""`tuneoff check`: whether an adapter, or a workload, keeps the contract that a comparison rests on, by real runs of it."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneoff.base.commands import command
from tuneoff.base.output import columns, note, one_line, write, write_exactly, write_json
from tuneoff.cli.command import ListedAction
from tuneoff.cli.folders import folder_path

if TYPE_CHECKING:
    from tuneoff.trust.check.evidence import Subject
    from tuneoff.trust.check.model import Check, Named
    from tuneoff.trust.check.run_checks import Report

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
    from tuneoff.errors import ExperimentError
    from tuneoff.trust.check.checks import CHECKS
    from tuneoff.trust.check.model import chosen
    from tuneoff.trust.check.run_checks import FAILS

    if arguments.workload is not None:
        return _check_workload(arguments)
    checks = chosen(CHECKS, arguments.only or ())
    if arguments.list:
        return _list(checks, arguments.json)
    if not arguments.adapters:
        raise ExperimentError(f"at least one adapter must be named, but got none; see: {command('adapters')}")
    reports = _reports(arguments, checks)
    codes = {report.exit_code for report in reports}
    code = FAILS if FAILS in codes else max(codes)
    if arguments.json:
        from tuneoff.trust.check.run_checks import to_json

        write_json({"exit_code": code, "adapters": [to_json(report) for report in reports]})
    elif arguments.markdown:
        from tuneoff.trust.check.run_checks import markdown

        write_exactly("\n".join(markdown(reports)))
    else:
        write("\n\n".join(_text(report) for report in reports))
    return code


def _check_workload(arguments: argparse.Namespace) -> int:
    from tuneoff.cli.selection import overridden_plan
    from tuneoff.errors import ExperimentError
    from tuneoff.experiment.names import training_name
    from tuneoff.trust.check.model import chosen
    from tuneoff.trust.check.run_checks import CONFORMS, FAILS, NOT_KNOWN
    from tuneoff.trust.workload_check.checks import CHECKS, check_workload

    if arguments.adapters:
        raise ExperimentError("--workload checks a workload alone, but adapters are named too; leave them out")
    if arguments.keep or arguments.platform or arguments.options or arguments.markdown:
        raise ExperimentError("--workload takes --only, --list and --json alone, but got an option for adapters; leave it out")
    chosen_checks = chosen(CHECKS, arguments.only or (), listed=("--workload", "FILE"))
    if arguments.list:
        return _list(chosen_checks, arguments.json)
    plan = overridden_plan(arguments.workload)
    experiment = plan.counted[0].spec.experiment
    name = training_name(experiment.workload, plan.name)
    every = check_workload(experiment, note)
    found = [(check, of) for check, of in every if check in chosen_checks]
    verdicts = [of.verdict for _, of in found]
    cannot_train = all(of.verdict == "not tested" for _, of in every)
    code = FAILS if "failed" in verdicts or cannot_train else NOT_KNOWN if set(verdicts) == {"not tested"} else CONFORMS
    if arguments.json:
        checks = [
            {"id": check.id, "verdict": of.verdict, "text": of.text, "reason": check.reason, "way_out": check.way_out}
            for check, of in found
        ]
        write_json({"workload": experiment.workload.name, "name": name, "exit_code": code, "checks": checks})
        return code
    is_whole = len(found) == len(CHECKS)
    reasons = {of.text for _, of in found}
    if set(verdicts) == {"not tested"} and len(reasons) == 1:  # for one reason
        word = "NOT KNOWN" if code == NOT_KNOWN else "DOES NOT CONFORM" if is_whole else "NOT TESTED"
        write(f"{name}: {word}: {one_line(reasons.pop())}")
        return code
    rows = [
        (check.id, of.verdict.upper(), f"{of.text}; {check.way_out}")
        if of.verdict == "failed"
        else (check.id, of.verdict, of.text)
        for check, of in found
    ]
    write(columns(("check", "verdict", "what was seen, or the way out"), rows))
    untested = ", ".join(check.id for check, of in found if of.verdict == "not tested")
    good = "CONFORMS" if is_whole else f"PASSED: {len(found)} of the {len(CHECKS)} checks were asked for"
    answer = f"{good}{untested and f', as far as was tested (not: {untested})'}"
    write(f"{name}: {({FAILS: 'DOES NOT CONFORM', NOT_KNOWN: 'NOT KNOWN'}).get(code, answer)}")
    return code


def _reports(arguments: argparse.Namespace, checks: Sequence[Check]) -> list[Report]:
    from tuneoff.cli.selection import share_folder
    from tuneoff.trust.check.make import subject_of
    from tuneoff.trust.check.run_checks import answer, check_adapter, make_empty

    options = _options(arguments.options)
    found = [subject_of(name, arguments.platform, options) for name in dict.fromkeys(arguments.adapters)]
    subjects = [subject for number, subject in enumerate(found) if subject not in found[:number]]  # serial and serial@local
    folders = _folders(arguments.keep, subjects)
    for folder in folders:
        if folder is not None:
            make_empty(folder)  # before the first run: what is found later costs finished reports
    share_folder()
    reports = []
    for subject, keep in zip(subjects, folders, strict=True):
        if len(subjects) == 1:
            return [check_adapter(subject, checks, keep, note)]
        reports.append(check_adapter(subject, checks, keep, functools.partial(_note_of, subject.label)))
        note(answer(reports[-1]))  # the others may take long
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


def _text(report: Report) -> str:
    from tuneoff.trust.check.run_checks import HEADER, answer, rows

    table = [(name, verdict, one_line(text)) for name, verdict, text in rows(report)]
    return f"{columns(HEADER, table)}\n{answer(report)}"


def _list(checks: Sequence[Named], as_json: bool) -> int:
    if as_json:
        write_json([{"id": check.id, "reason": check.reason, "way_out": check.way_out} for check in checks])
    else:
        write(columns(("check", "why", "way out"), [(check.id, check.reason, check.way_out) for check in checks]))
    return 0
