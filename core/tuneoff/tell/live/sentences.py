"""The live state in words: the same sentences on a terminal, as text and in a browser."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from tuneoff.base.format import counted, duration_text
from tuneoff.base.output import printable
from tuneoff.tell.live.state import Activity, Current, LiveState
from tuneoff.tell.report.progress import end_text, trials_text

NOT_JUDGED = "Not judged yet: the report judges when the seeds that the plan names have ended."
JUDGED = "All planned runs have ended: the verdicts are in the report."
MOST_FAILURES = 5


def headline(state: LiveState) -> str:
    """Return how far the matrix is, with its name: "digits: 13 of 24 runs ended, 1 failed"."""
    return f"{printable(state.name)}: {ended(state)}"


def ended(state: LiveState) -> str:
    """Return how many runs have ended, and how many of them failed."""
    failed = "".join(f", {state.counts[status]} {status}" for status in ("failed", "timeout") if state.counts[status])
    return f"{state.ended} of {counted(state.total, 'run')} ended{failed}"


def so_far(state: LiveState) -> list[str]:
    """Return the median time and the best validation value of each framework's runs that are done, one text each."""
    return [
        printable(f"{one.label} {duration_text(one.seconds)}{f', best {one.best:.5g}' if one.best is not None else ''}")
        for one in state.so_far
    ]


def judged(state: LiveState) -> str:
    """Return what can be said of verdicts: a view of what is not complete gives none, or it would be one look more."""
    return JUDGED if state.activity is Activity.FINISHED else NOT_JUDGED


def left(state: LiveState) -> str:
    """Return the time left in all, or nothing where it cannot be told."""
    return f"about {duration_text(state.seconds_left)} left in all" if state.seconds_left is not None else ""


def activity(state: LiveState) -> str:
    """Return whether anybody works in the folder, and if not, how to go on."""
    if state.activity is Activity.WORKING:
        return f"process {state.pid} works here" if state.pid is not None else "a command works here"
    if state.activity is Activity.FINISHED:
        return "all planned runs have ended"
    if state.activity is Activity.ELSEWHERE:
        return f"begun on host {printable(state.host or '')}; whether it still works there cannot be told from here"
    remaining = state.total - state.ended
    runs = f"{counted(remaining, 'run')} {'is' if remaining == 1 else 'are'} left"
    return f"nobody works here any more, and {runs}; to go on, with the options that it was begun with: {resume(state)}"


def resume(state: LiveState) -> str:
    """Return the command that goes on with the folder."""
    return printable(f"tuneoff compare {shlex.quote(state.file)} --resume --output {shlex.quote(state.folder)}")


def current_title(current: Current) -> str:
    """Return the current run's place and name."""
    return f"[{current.position}/{current.total}] {printable(current.name)}"


def current_text(current: Current) -> str:
    """Return where the current run stands: step, trials, incumbent, rate, time left."""
    return printable(trials_text(current.live))


def between(state: LiveState) -> str:
    """Return what is said where no run is under way."""
    return "the next run is being prepared" if state.activity is Activity.WORKING else ""


def failures(state: LiveState) -> Iterator[str]:
    """Yield one line per run that failed or timed out; of many, the last ones."""
    found = state.failures
    if len(found) > MOST_FAILURES:
        yield f"{len(found) - MOST_FAILURES} failures more"
    for cell in found[-MOST_FAILURES:]:
        yield printable(f"{cell.name}: {end_text(cell.status, cell.reason, 0.0)}")


def lines(state: LiveState) -> Iterator[str]:
    """Yield the state as plain lines, of any length."""
    yield "; ".join(filter(None, (headline(state), left(state))))
    if state.so_far:
        yield f"so far: {'; '.join(so_far(state))}"
    yield activity(state)
    if state.current is not None:
        yield f"{current_title(state.current)}: {current_text(state.current)}"
    elif text := between(state):
        yield text
    yield from failures(state)
    yield from (printable(f"cannot be read: {problem}") for problem in state.problems)
