"""The display of a live state: at most so many lines of at most so many columns, the least important left out first.

Its map: a row per cell of the matrix where they fit, else one per adapter, else all in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.cells import cell_len, set_cell_size

from tuneoff.base.output import printable
from tuneoff.run.progress import LiveRun
from tuneoff.tell.live import sentences
from tuneoff.tell.live.state import Activity, LiveState, SeedRow

# Letters and shapes that every terminal has: they tell the statuses apart without colour.
SIGNS = {"done": "#", "failed": "F", "timeout": "T", "interrupted": "I", "skipped": "-", "running": ">", "planned": "."}
IMPORTANCE = ("running", "failed", "timeout", "interrupted", "planned", "done", "skipped")  # which shows of several runs
STYLES = {
    "done": "good",
    "failed": "bad",
    "timeout": "bad",
    "interrupted": "warn",
    "skipped": "dim",
    "running": "live",
    "planned": "dim",
}
GAP = "  "
LEAST_LABEL = 8  # characters of a label that is cut

Part = tuple[str, str]  # text and style; "" is plain
Line = tuple[Part, ...]
MAP_SHARE = 3  # the map may have a third of the height
BAR = 20  # columns of the trials' bar
BAR_FROM = 100  # columns of a terminal that has room for it


@dataclass(frozen=True, slots=True)
class Picture:
    """The map's lines. `runs_per_sign`: more than 1 where the plan is too large for one sign per run."""

    lines: tuple[Line, ...]
    runs_per_sign: int = 1


def picture(rows: Sequence[SeedRow], width: int, most_lines: int) -> Picture:
    """Return the map in at most `most_lines` lines (at least 1) of at most `width` columns."""
    return _by_row(rows, width, most_lines) or _by_adapter(rows, width, most_lines) or _as_one(rows, width, most_lines)


def _by_row(rows: Sequence[SeedRow], width: int, most_lines: int) -> Picture | None:
    """Return one sign per run, the rows in as few columns as the lines allow; None where it does not fit."""
    seeds = max((len(row.cells) for row in rows), default=0)
    texts = [printable(row.text) for row in rows]
    longest = max(map(len, texts), default=0)
    for label in dict.fromkeys((longest, min(longest, max(LEAST_LABEL, width - 1 - seeds)), min(longest, LEAST_LABEL))):
        columns = max(1, -(-len(rows) // most_lines))
        if columns * (label + 1 + seeds + len(GAP)) - len(GAP) <= width:
            blocks = [_block(text, row, label, seeds) for text, row in zip(texts, rows, strict=True)]
            height = -(-len(rows) // columns)
            return Picture(tuple(_joined(blocks[place::height]) for place in range(height)))
    return None


def _block(text: str, row: SeedRow, label: int, seeds: int) -> Line:
    signs = "".join(SIGNS[cell.status] if cell is not None else " " for cell in row.cells)
    styled = _styled(signs)
    blank = seeds - len(signs)
    return ((f"{cut(text, label):<{label}} ", ""), *styled, *([(" " * blank, "")] if blank else []))


def _joined(blocks: Sequence[Line]) -> Line:
    parts: list[Part] = []
    for place, block in enumerate(blocks):
        parts += ([(GAP, "")] if place else []) + list(block)
    return tuple(parts)


def _by_adapter(rows: Sequence[SeedRow], width: int, most_lines: int) -> Picture | None:
    """Return some lines per adapter, with signs for one or more runs each; None where the adapters alone are too many."""
    runs: dict[str, list[str]] = {}
    for row in rows:
        runs.setdefault(printable(row.adapter), []).extend(cell.status for cell in row.cells if cell is not None)
    label = min(max(map(len, runs), default=0), max(LEAST_LABEL, width // 3))
    room = width - label - 1
    if not runs or len(runs) > most_lines or room < LEAST_LABEL:
        return None
    lines_each = most_lines // len(runs)
    per_sign = max(-(-len(statuses) // (room * lines_each)) for statuses in runs.values())
    lines: list[Line] = []
    for adapter, statuses in runs.items():
        for place, signs in enumerate(_wrapped(statuses, per_sign, room)):
            lines.append(((f"{cut(adapter, label) if not place else '':<{label}} ", ""), *_styled(signs)))
    return Picture(tuple(lines), per_sign)


def _as_one(rows: Sequence[SeedRow], width: int, most_lines: int) -> Picture:
    statuses = [cell.status for row in rows for cell in row.cells if cell is not None]
    per_sign = max(1, -(-len(statuses) // (width * most_lines)))
    return Picture(tuple(_styled(signs) for signs in _wrapped(statuses, per_sign, width)), per_sign)


def _wrapped(statuses: Sequence[str], per_sign: int, width: int) -> list[str]:
    """Return the signs of so many runs each, in lines."""
    signs = "".join(SIGNS[most_important(statuses[start : start + per_sign])] for start in range(0, len(statuses), per_sign))
    return [signs[start : start + width] for start in range(0, len(signs), width)]


def most_important(statuses: Sequence[str]) -> str:
    """Return the status that a sign for several runs shows: what needs attention is never hidden by what does not."""
    return min(statuses, key=IMPORTANCE.index)


def _styled(signs: str) -> Line:
    style = {sign: STYLES[status] for status, sign in SIGNS.items()} | {" ": ""}
    return tuple(("".join(run), key) for key, run in groupby(signs, key=lambda sign: style[sign]))


def cut(text: str, width: int) -> str:
    """Return the text without its middle, where it is too long: names differ at both ends."""
    if len(text) <= width:
        return text
    if width < LEAST_LABEL:
        return text[:width]
    end = (width - 2) // 2
    return f"{text[: width - 2 - end]}..{text[len(text) - end :]}"


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
