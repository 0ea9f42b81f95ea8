"""What every answer of the command line must be, whatever it was given: a documented exit code, one plain line per problem."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from hypothesis import currently_in_test_context, note

from fuzz.sandbox import Answer
from tuneoff.cli.main import EXIT_CODES

NEVER = {70, 130, 141}  # a fault of tuneoff; nobody interrupted it; nobody closed its output
ANSWERS = {0, 1, 7}  # are no errors: 7 is an inconclusive answer
LONGEST_LINE = 1500  # characters of a line on standard error
IN_JSON = ("plan", "watch", "verify")  # compare ends before its first run here, without a word
SHOWING = ("compare", "bundle")  # write progress beside errors
READ_ONLY = ("plan",)  # they run nothing, so no run can fail: never 1
SEEN: Counter[str] = Counter()  # what all cases met, and the exit codes of each command


def problems(answer: Answer) -> list[str]:
    """Return what an answer breaks, one line each; empty: nothing."""
    return [*answer.breaches, *_code(answer), *_errors(answer), *_output(answer)]


def failures(command: str, answer: Answer, more: Sequence[str] = ()) -> list[str]:
    """Return the call and what it breaks, one line each; `more`: what else is wrong."""
    SEEN[f"{command}: exit code {answer.code}"] += 1
    return [f"`tuneoff {' '.join(answer.argv)[:160]}`: {problem}" for problem in (*problems(answer), *more)]


def seen(what: str, details: str = "") -> None:
    """Count what a case met, and keep details for where it fails."""
    SEEN[what] += 1
    if currently_in_test_context():
        note(details or what)


def _code(answer: Answer) -> Iterator[str]:
    if answer.code is None:
        return
    allowed = set(EXIT_CODES) - NEVER
    if answer.argv and answer.argv[0] in READ_ONLY:
        allowed.discard(1)
    if answer.code not in allowed:
        yield f"exit code {answer.code}, which is not among {sorted(allowed)}: {_last(answer)}"
    for fault in answer.faults:
        yield f"kept a traceback: {signature(fault)}"


def _errors(answer: Answer) -> Iterator[str]:
    lines = answer.err.splitlines()
    if "Traceback (most recent call last)" in answer.err:
        yield f"traceback: {signature(answer.err)}"
        return
    if answer.code is None:
        return
    is_error = answer.code not in ANSWERS
    has_progress = answer.argv[0] in SHOWING if answer.argv else False
    if is_error and len(lines) != 1 and not has_progress:
        yield f"{len(lines)} lines on standard error for one error: {answer.err[:300]!r}"
    if is_error and has_progress and not _last(answer).startswith("tuneoff: "):
        yield f"exit code {answer.code} without its reason: {_last(answer)!r}"
    for line in lines:
        if not (line.startswith("tuneoff: ") or has_progress):
            yield f"a line on standard error that is not tuneoff's: {line[:200]!r}"
        if len(line) > LONGEST_LINE:
            yield f"a line of {len(line)} characters on standard error: {line[:120]!r}"
        yield from _unprintable("standard error", line)


def _output(answer: Answer) -> Iterator[str]:
    if answer.code not in ANSWERS:
        return
    if "--json" in answer.argv and answer.argv[0] in IN_JSON:
        try:
            json.loads(answer.out, parse_constant=_no_constant)
        except ValueError as error:
            yield f"its JSON cannot be read: {error}"
    for line in answer.out.splitlines():
        yield from _unprintable("standard output", line)


def _unprintable(where: str, line: str) -> Iterator[str]:
    found = sorted({character for character in line if unicodedata.category(character) in ("Cc", "Cs") and character != "\t"})
    if found:
        yield f"control characters {''.join(found)!r} on {where}: {line[:120]!r}"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def signature(trace: str) -> str:
    """Return a traceback's last line and the last place in tuneoff's own code."""
    lines = [line.strip() for line in trace.strip().splitlines()]
    places = [
        line for line in lines if line.startswith("File ") and "tuneoff" in line.partition(", line")[0].rpartition("/core/")[2]
    ]
    place = places[-1] if places else "no place of tuneoff's"
    return f"{lines[-1][:200]} at {place.rpartition('/')[2]}"


def _last(answer: Answer) -> str:
    lines = answer.err.splitlines()
    return lines[-1][:200] if lines else "nothing on standard error"
