"""The display of a live state: at most so many lines of at most so many columns, the least important left out first."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size

from tuneoff.base.output import printable
from tuneoff.run.listener import LiveRun
from tuneoff.tell.live import sentences
from tuneoff.tell.live.picture import SIGNS, STYLES, Line, picture
from tuneoff.tell.live.state import Activity, LiveState

MAP_SHARE = 3  # the map may have a third of the height
BAR = 20  # columns of the trials' bar
BAR_FROM = 100  # columns of a terminal that has room for it


def screen(state: LiveState, width: int, height: int) -> list[Line]:
    """Return the lines of the display, each of text parts with a style, none wider than `width`."""
    shown = picture(state.rows, width, max(1, height // MAP_SHARE))
    about = f"{sentences.headline(state)}; {sentences.left(state)}" if sentences.left(state) else sentences.headline(state)
    first, *others = sentences.so_far(state) or [""]
    groups: list[list[Line]] = [
        [((text, "bold"),) for text in wrapped(about.split("; "), width, "; ")],
        list(shown.lines),
        _legend(state, width, shown.runs_per_sign),
        [((text, ""),) for text in wrapped([f"so far: {first}", *others], width, "; ")] if first else [],
        _current(state, width),
        [((sentences.activity(state), "warn"),)] if state.activity in (Activity.STOPPED, Activity.ELSEWHERE) else [],
        [((printable(f"cannot be read: {problem}"), "warn"),) for problem in state.problems[:1]],
    ]
    kept: list[list[Line]] = [[] for _ in groups]
    room = max(1, height)
    for index in (4, 0, 5, 1, 3, 2, 6):  # the most important first
        if groups[index] and len(groups[index]) <= room:
            kept[index] = groups[index]
            room -= len(groups[index])
    return [fitted(line, width) for group in kept for line in group]


def _legend(state: LiveState, width: int, runs_per_sign: int) -> list[Line]:
    """Return what the signs mean, with how many runs have each."""
    parts = [(f"{SIGNS[status]} {count} {status}", STYLES[status]) for status, count in state.counts.items() if count]
    if runs_per_sign > 1:
        parts.append((f"(a sign is {runs_per_sign} runs)", "dim"))
    lines: list[list[tuple[str, str]]] = [[]]
    used = 0
    for text, style in parts:
        if used and used + 2 + len(text) > width:
            lines.append([])
            used = 0
        lines[-1] += [("  ", "")] * bool(used) + [(text, style)]
        used += len(text) + 2 * bool(used)
    return [tuple(line) for line in lines if line]


def _current(state: LiveState, width: int) -> list[Line]:
    """Return the current run: its name, a bar of its trials, and its figures."""
    if state.current is None:
        text = sentences.between(state)
        return [((text, "dim"),)] if text else []
    bar = bar_text(state.current.live) + " " if width >= BAR_FROM else ""
    figures = wrapped(sentences.current_text(state.current).split(", "), width - len(bar) - 2, ", ")
    indent = " " * (2 + len(bar))
    lines: list[Line] = [((sentences.current_title(state.current), "live"),)]
    lines += [((f"  {bar}" if not place else indent, "live"), (text, "")) for place, text in enumerate(figures[:3])]
    return lines


def bar_text(live: LiveRun) -> str:
    """Return a bar of the trials that have ended and that run."""
    ended = min(BAR, BAR * live.ended // max(1, live.trials))
    running = min(BAR - ended, -(-BAR * live.running // max(1, live.trials)))
    return f"[{'=' * ended}{'-' * running}{' ' * (BAR - ended - running)}]"


def wrapped(parts: Iterable[str], width: int, between: str) -> list[str]:
    """Return parts joined to lines that are broken between them only."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(between) + len(part) <= width:
            lines[-1] += between + part
        else:
            if lines:
                lines[-1] += between.rstrip()
            lines.append(part)
    return lines


def fitted(line: Line, width: int) -> Line:
    """Return a line cut at the terminal's edge; wide characters count as two columns."""
    parts: list[tuple[str, str]] = []
    room = width
    for text, style in line:
        size = cell_len(text)
        if size > room:
            text, size = set_cell_size(text, room), room
        if text:
            parts.append((text, style))
        room -= size
    return tuple(parts)
