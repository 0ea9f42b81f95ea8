"""The live state in words, the same sentences on a terminal, as text and in a browser; and as JSON values.

Control characters of names and errors are escapes in JSON: no reader obeys them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tuneoff.base.format import MISSING, counted, duration_text
from tuneoff.base.json_values import field_values
from tuneoff.base.json_values import values as json_values
from tuneoff.base.output import printable
from tuneoff.record.run_record import FAILED
from tuneoff.run.progress import LiveRun
from tuneoff.tell.live.state import Activity, Current, LiveState

NOT_JUDGED = "Not judged yet: the report judges when the seeds that the plan names have ended."
JUDGED = "All planned runs have ended: the verdicts are in the report."
MOST_FAILURES = 5
FORMAT_VERSION = 1


def headline(state: LiveState) -> str:
    """Return how far the matrix is, with its name: "digits: 13 of 24 runs ended, 1 failed"."""
    return f"{printable(state.name)}: {ended(state)}"


def ended(state: LiveState) -> str:
    """Return how many runs have ended, and how many of them failed."""
    failed = "".join(f", {state.counts[status]} {status}" for status in FAILED if state.counts[status])
    return f"{state.ended} of {counted(state.total, 'run')} ended{failed}"


def so_far(state: LiveState) -> list[str]:
    """Return the median job time and the best validation value of each framework."""
    texts = []
    for label, seconds, best in state.so_far:
        time = MISSING if seconds is None else "failed" if math.isinf(seconds) else duration_text(seconds)
        texts.append(printable(f"{label} {time}{f', best {best:.5g}' if best is not None else ''}"))
    return texts


def judged(state: LiveState) -> str:
    """Return what can be said of verdicts: a view of what is not complete gives none."""
    return JUDGED if state.activity is Activity.FINISHED else NOT_JUDGED


def time_left(state: LiveState) -> str:
    """Return the time left in all, or nothing where it cannot be told."""
    return f"about {duration_text(state.seconds_left)} left in all" if state.seconds_left is not None else ""


def activity(state: LiveState) -> str:
    """Return whether anybody works in the folder, and if not, how to go on."""
    if state.activity is Activity.WORKING:
        return f"process {state.pid} works here" if state.pid is not None else "a command works here"
    if state.activity is Activity.FINISHED:
        return "all planned runs have ended"
    if state.activity is Activity.ELSEWHERE:
        return f"started on host {printable(state.host or '')}; its state there is unknown here"
    remaining = state.total - state.ended
    runs = f"{counted(remaining, 'run')} {'is' if remaining == 1 else 'are'} left"
    return f"no command works here any more, and {runs}; to go on: {printable(state.resume_command)}"


def current_title(current: Current) -> str:
    """Return the current run's place and name."""
    return f"[{current.position}/{current.total}] {printable(current.name)}"


def between(state: LiveState) -> str:
    """Return what is said where no run is under way."""
    return "the next run is being prepared" if state.activity is Activity.WORKING else ""


def failures(state: LiveState) -> Iterator[str]:
    """Yield one line per run that failed or timed out; of many, the last ones."""
    cells = state.failures
    if len(cells) > MOST_FAILURES:
        yield f"{len(cells) - MOST_FAILURES} failures more"
    for cell in cells[-MOST_FAILURES:]:
        yield printable(f"{cell.name}: {end_text(cell.status, cell.reason, 0.0)}")


def trials_text(live: LiveRun) -> str:
    """Return where a run stands: trials, incumbent, rate, step or time left."""
    parts = [f"{live.ended}/{live.trials} trials"]
    kinds = {"running": live.running, "pruned": live.pruned, "failed": live.failed, "cancelled": live.cancelled}
    parts += [f"{count} {name}" for name, count in kinds.items() if count]
    if live.incumbent is not None:
        parts.append(f"best {live.incumbent:.5g}")
    if rate := rate_text(live):
        parts.append(rate)
    if live.step not in ("", "trial"):
        parts.append(f"step {live.step}")
    elif live.seconds_left is not None:
        parts.append(f"{duration_text(live.seconds_left)} left")
    return printable(", ".join(parts))


def rate_text(live: LiveRun) -> str:
    """Return how fast trials end; nothing before the first."""
    if not live.ended or live.seconds <= 0:
        return ""
    rate = live.ended / live.seconds
    return f"{rate:.1f} trials/s" if rate >= 1 else f"{60 * rate:.1f} trials/min"


def end_text(status: str, reason: str | None, seconds: float) -> str:
    """Return how a run ended, in one line."""
    took = f" in {duration_text(seconds)}" if seconds else ""
    why = f": {' '.join(reason.split())}" if reason and reason != status else ""
    return f"{status}{took}{why}"


def lines(state: LiveState) -> Iterator[str]:
    """Yield the state as plain lines, of any length."""
    yield from overview(state)
    yield from failures(state)
    yield from (printable(f"cannot be read: {problem}") for problem in state.problems)


def overview(state: LiveState) -> Iterator[str]:
    """Yield how far the matrix is, what it came to so far, who works in the folder or how to go on, and the current run."""
    yield "; ".join(filter(None, (headline(state), time_left(state))))
    if state.so_far:
        yield f"so far: {'; '.join(so_far(state))}"
    yield activity(state)
    if state.current is not None:
        yield f"{current_title(state.current)}: {trials_text(state.current.live)}"
    elif text := between(state):
        yield text


def to_json(state: LiveState) -> dict[str, Any]:
    """Return the state as JSON values."""
    values: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        **json_values(state, ("name", "plan_id", "folder", "file", "activity", "pid", "host", "exit_code")),
        "runs": state.total,
        **json_values(state, ("ended", "counts", "seconds_left", "seeds")),
        "rows": [
            {
                "name": row.text,
                "adapter": row.adapter,
                "cells": [field_values(cell, without=("seconds",)) if cell is not None else None for cell in row.cells],
            }
            for row in state.rows
        ],
        "so_far": [{"name": group.label, **json_values(group, ("seconds", "best"))} for group in state.so_far],
        "current": _current(state.current) if state.current is not None else None,
        "problems": list(state.problems),
        "texts": _texts(state),
    }
    visible: dict[str, Any] = _visible(values)
    return visible


def _current(current: Current) -> dict[str, Any]:
    live = current.live
    return {**field_values(live), **field_values(current, without=("live",)), **json_values(live, ("ended", "seconds_left"))}


def _texts(state: LiveState) -> dict[str, Any]:
    """Return the sentences that the display has too, and the current run's figures one by one, as the page has them."""
    figures: dict[str, str] = {}
    if state.current is not None:
        live = state.current.live
        best = f"{live.incumbent:.5g} {state.current.metric}" if live.incumbent is not None else "none yet"
        figures = {"step": live.step, "trials": f"{live.ended} of {live.trials}"}
        figures |= {name: str(getattr(live, name)) for name in ("running", "completed", "pruned", "failed")}
        figures |= {"incumbent": best, "rate": rate_text(live) or "not known yet"}
        figures["left"] = duration_text(live.seconds_left) if live.seconds_left is not None else "not known yet"
    return {
        "headline": headline(state),
        "ended": ended(state),
        "judged": judged(state),
        "left": time_left(state),
        "activity": activity(state),
        "current": current_title(state.current) if state.current is not None else between(state),
        "progress": trials_text(state.current.live) if state.current is not None else "",
        "figures": figures,
        "failures": list(failures(state)),
    }


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list) else value
