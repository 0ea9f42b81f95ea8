"""The official result in a bundle: the answer as JSON and as text, and the page, which follow from the bundle's own records.

Each is marked with the digest of these records and with the tuneoff that made it. Checking them is making them again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import tuneoff
from tuneoff.base.code_digest import code_digest
from tuneoff.base.commands import printed_as
from tuneoff.base.files import read_json, read_regular, sha256_of
from tuneoff.base.format import counted
from tuneoff.base.identity import digest
from tuneoff.base.layout import END, PLAN, RUNS, SPEC
from tuneoff.base.output import printable
from tuneoff.errors import ResultsError
from tuneoff.experiment.plan import UNPACKED
from tuneoff.judge.answers.answers_json import choice_to_json, to_json
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.results import read_results
from tuneoff.record.endings import KILLED
from tuneoff.record.store import ended_executions
from tuneoff.tell.page.report import PAGE as REPORT
from tuneoff.tell.page.report import Links, page, render
from tuneoff.tell.page.runs import Facts
from tuneoff.tell.report.tables import report_lines
from tuneoff.trust.bundle.manifest import KIND, RESULTS
from tuneoff.trust.verify.findings import COMPARED, MOST_KEPT, Findings, Problem, show

OFFICIAL = ANSWER, TEXT, PAGE = "answer.json", "answer.txt", REPORT
MARK = "follows_from"  # in the answer: `records`, and `tuneoff` with its `code`, that made it
WIDTH = 100  # of the text
AROUND = 20  # characters before the first that differs, in a problem


def official(results: Path, made_by: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """Return the files by name, the same bytes wherever the folder lies and whoever makes them.

    Only what a bundle holds is read: no lock, and no matrix of faults. `made_by`: what the mark says of that; None: this tuneoff.

    Raises:
        ResultsError: a file in the folder is damaged.
    """
    folder = results.absolute()
    experiment = str(folder.parent / UNPACKED[1])
    with printed_as({str(folder): RESULTS, experiment: UNPACKED[1]}):
        stored = read_results(folder)
        begun = {path.parents[1].name: path.parent for path in folder.glob(f"{RUNS}/*/*/{SPEC}")}
        without = {run_id: (KILLED.status, KILLED.reason) for run_id, path in begun.items() if not os.path.lexists(path / END)}
        choice = choose(answers(replace(stored, plan=replace(stored.plan, path=experiment), without_record=without)))
        mark = {"records": records_digest(folder), **(made_by or _this())}
        value = {MARK: mark, "choice": choice_to_json(choice), **to_json(choice.answers)}
        marked = {"follows from the records": mark["records"], "made by": _maker(mark)}
        lines = [*report_lines(choice, WIDTH), *(f"{name}: {text}" for name, text in marked.items())]
        content = page(choice, folder.parent)
        content["links"] = Links(replace(stored, folder=folder.parent / RESULTS), folder.parent)
        content["faults"] = []
        content["basis"].append(Facts(title="Official result", rows=tuple((name, (text,)) for name, text in marked.items())))
        texts = (_json(value), "\n".join(map(printable, lines)), render(content))
    return {name: f"{text}\n".encode("utf-8", "backslashreplace") for name, text in zip(OFFICIAL, texts, strict=True)}


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, allow_nan=False)


def _this() -> dict[str, str]:
    return {"tuneoff": tuneoff.__version__, "code": code_digest()}


def _maker(mark: Mapping[str, str]) -> str:
    return f"tuneoff {mark['tuneoff']}, code {mark['code'][:12]}"


def records_digest(results: Path) -> str:
    """Return the digest of all that the answer follows from: the plan, and each end with the seals of its raw files.

    Raises:
        ResultsError: one cannot be read.
    """
    try:
        ends = {"/".join(folder.parts[-2:]): sha256_of(folder / END) for folder in ended_executions(results)}
        return digest({PLAN: sha256_of(results / PLAN), **ends}, length=64)
    except OSError as error:
        raise ResultsError(f"{error.filename or results} cannot be read: {error.strerror}") from error


def manifest_beside(results: Path) -> Mapping[str, Any] | None:
    """Return the manifest of the unpacked bundle that a results folder is of, not checked; None: it is of none."""
    folder = results.absolute()
    try:
        manifest = read_json(folder.parent / UNPACKED[0]) if folder.name == RESULTS else None
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) and manifest.get("kind") == KIND else None


def check_official(results: Path) -> tuple[list[Problem], str]:
    """Return what of an unpacked bundle's official result does not follow from its records; and why that is not known, if so.

    It is not known where there is none, and where another tuneoff made it and this one would write something else: of the same
    records, both may be right.
    """
    top = results.absolute().parent
    certain, differing = (Findings(where=f"../{ANSWER}") for _ in range(2))
    contents: dict[str, bytes] = {}
    for name in OFFICIAL:
        try:
            contents[name] = read_regular(top / name)
        except OSError as error:
            certain.add("file", "", f"cannot be read: {error.strerror}", where=f"../{name}")
    if not contents:
        return [], "the bundle has no answer and no page: an earlier tuneoff made it, or they were removed"
    stored: Any = None
    made_by = None
    try:
        stored = json.loads(contents[ANSWER])
        made_by = {name: str(stored[MARK][name]) for name in ("tuneoff", "code")}
        if f"{_json(stored)}\n".encode() != contents[ANSWER]:
            differing.add("schema", "", "is not as tuneoff writes it")
        if (records := stored[MARK]["records"]) != (here := records_digest(results)):
            certain.add("seal", f"{MARK}.records", f"it follows from {show(records)}, but these are {show(here)}", records, here)
    except (ValueError, TypeError, LookupError, RecursionError):
        if ANSWER in contents:
            certain.add("schema", MARK, "cannot be read")
    except ResultsError as error:
        certain.add("file", "", str(error))
    try:
        derived = official(results, made_by)
    except Exception as error:  # altered files may break any rule of the derivation: that is a finding, not a fault
        certain.add("value", "", f"cannot be made of these records: {type(error).__name__}: {error}")
        derived = contents
    for name, due in derived.items():
        content = contents.get(name, due)  # of which one is missing is named already
        if name == ANSWER and stored is not None and content != due:
            differing.compare("value", stored, json.loads(due))
        elif content != due:
            what, text = _first_difference(content.decode(errors="replace"), due.decode())
            differing.add("value", what, text, where=f"../{name}")
    problems = certain.problems
    others = [problem for problem in differing.problems if problem.what != f"{MARK}.records"]
    if others and not problems and made_by is not None and made_by != _this():
        makers = f"another tuneoff made the answer ({_maker(made_by)}), and this one ({_maker(_this())}) would write another"
        return [], f"{makers}; the first of {counted(len(others), 'difference')}: {others[0].line}"
    return [*problems, *others][:MOST_KEPT], ""


def _first_difference(stored: str, derived: str) -> tuple[str, str]:
    """Return the line in which two texts differ first, and what each has there."""
    shorter = min(len(stored), len(derived))
    start = next((index for index in range(shorter) if stored[index] != derived[index]), shorter)
    begin = max(0, start - AROUND, derived.rfind("\n", 0, start) + 1)
    texts = [text[begin:].partition("\n")[0] for text in (stored, derived)]
    return f"line {derived.count(chr(10), 0, start) + 1}", COMPARED.format("", *map(show, texts))
