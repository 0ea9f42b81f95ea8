"""How busy were the workers, and what stopped early or failed?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from tuneoff.base.format import counted
from tuneoff.measure.presence import presence_of
from tuneoff.measure.segments import OnSlot, waits
from tuneoff.measure.spans import boundaries
from tuneoff.record.run_record import RunRecord
from tuneoff.tell.plots.canvas import SMALL, Sheet, letters, patch_key, plain_numbers, rectangles
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.made import Row, made
from tuneoff.tell.plots.texts import lines, value_text
from tuneoff.tell.plots.theme import INK, MUTED, PAPER, SERIES
from tuneoff.tell.plots.view import WHY, View, most_note, run_name

MOST_ATTEMPTS = 800  # of a run: above, a bar stands for a stretch of time
STRETCHES = 300
MOST_SLOTS = 16
MOST_ADAPTERS = 12
FAR = 8.0  # runs whose lengths differ by more than this factor have scales of their own
LOOKS: dict[str, tuple[str, str | None]] = {  # by what the slot did; idle is left white
    "completed": (SERIES[4], None),
    "pruned": (SERIES[1], "////"),
    "failed": (SERIES[6], "xxxx"),
    "tried again": (SERIES[2], "\\\\\\\\"),
    "cancelled": (SERIES[3], "||||"),
    "overhead": (MUTED, None),
}
_STATES = {"timed_out": "failed", "superseded": "tried again"}
_RARE = ("failed", "tried again", "cancelled", "pruned")  # shown in a stretch, however short


@dataclass(frozen=True, slots=True)
class Piece:
    """What a slot did from when to when, in seconds since the run's start."""

    slot: int
    what: str
    start: float
    end: float


def draw(view: View) -> Drawing | None:
    """Draw one run per adapter: a line per slot."""
    chosen = list(view.representative())[:MOST_ADAPTERS]
    found = [
        (group, run, why, pieces(run.record))
        for group, run, why in chosen
        if run.record is not None and not run.ref.is_continued  # the pause between its executions is no time of the run
    ]
    found = [item for item in found if item[3]]
    if not found:
        return None
    slots = [min(MOST_SLOTS, 1 + max(piece.slot for piece in drawn)) for _, _, _, drawn in found]
    ends = [_end(run.record, drawn) for _, run, _, drawn in found if run.record is not None]
    is_shared = max(ends) <= FAR * min(ends)
    used = [what for what in LOOKS if any(piece.what == what for item in found for piece in item[3])]
    keys = [patch_key(_key(what), *LOOKS[what]) for what in used]
    sheet = Sheet(
        "How busy were the workers, and what stopped early or failed?",
        [0.19 * count + 0.06 for count in slots],
        left=0.55,
        legend=keys,
        below=0.08 if is_shared else 0.42,
        foot=0.34 if is_shared else 0.0,
    )
    rows: list[Row] = []
    parts = []
    thinned = False
    for place, (group, run, why, drawn) in enumerate(found):
        label = view.style(group.label).label
        axes = sheet.panel(place, title=lines(f"{label}: {why}", letters(sheet.panel_width), 1))
        visible = [piece for piece in drawn if piece.slot < MOST_SLOTS]
        coarse = len(visible) > 2 * MOST_ATTEMPTS or sum(piece.what != "overhead" for piece in visible) > MOST_ATTEMPTS
        thinned |= coarse
        end = max(ends) if is_shared else ends[place]
        if coarse:
            visible = stretches(visible, end / STRETCHES)
        _panel(axes, visible, slots[place], end, last=place == len(found) - 1 or not is_shared)
        rows += [(view.label(group.label), run.ref.seed, piece.slot, piece.what, piece.start, piece.end) for piece in visible]
        parts.append(f"{label} ({why}): {_said(run.record, drawn)}" if run.record is not None else label)
    return made(
        sheet,
        "gantt",
        caption=(
            f"{WHY}. A line is a worker's slot; an empty place is idle time, thin grey is overhead: a process without a trial, "
            "or a trial that waits in its report."
        ),
        parts=parts,
        runs=[(run_name(view, group, run), run.ref.run_id) for group, run, _, _ in found],
        columns=("adapter", "seed", "slot", "what", "start_s", "end_s"),
        rows=rows,
        notes=(
            most_note(view, MOST_ADAPTERS),
            "" if is_shared else "The runs have scales of their own.",
            f"Runs of more than {MOST_ATTEMPTS} trials are thinned to {STRETCHES} stretches of time, each showing what filled "
            "most of it; a failure is kept however short it was."
            if thinned
            else "",
            f"Of a run with more slots the first {MOST_SLOTS} are shown."
            if any(piece.slot >= MOST_SLOTS for item in found for piece in item[3])
            else "",
        ),
    )


def pieces(run: RunRecord) -> list[Piece]:
    """Return what each slot did, in order of time; attempts by how they ended, overhead inside and around them."""
    presence = presence_of(run)
    slots = presence.slots
    found = [
        Piece(slot, "overhead", one.start_ns / 1e9, one.end_ns / 1e9)
        for slot, around in presence.around.items()
        for one in around
    ]
    least = max((item.ended_ns for items in slots.values() for item in items), default=0) // 2000  # too short to be seen
    for slot, items in slots.items():
        for item in items:
            found.append(Piece(slot, _what(item), item.started_ns / 1e9, item.ended_ns / 1e9))
            found += [
                Piece(slot, "overhead", start / 1e9, end / 1e9) for start, end in waits(item.attempt) if end - start > least
            ]
    return sorted(found, key=lambda piece: (piece.slot, piece.start))


def stretches(drawn: Sequence[Piece], width: float) -> list[Piece]:
    """Return one piece per stretch of time and slot: what filled most of it, but what went wrong in it always shows."""
    filled: dict[tuple[int, int], dict[str, float]] = {}
    for piece in drawn:
        for number in range(int(piece.start / width), int(piece.end / width) + 1):
            share = min(piece.end, (number + 1) * width) - max(piece.start, number * width)
            if share > 0 or piece.end == piece.start:
                there = filled.setdefault((piece.slot, number), {})
                there[piece.what] = there.get(piece.what, 0.0) + share
    found: list[Piece] = []
    for (slot, number), there in sorted(filled.items()):
        wrong = [what for what in _RARE[:3] if what in there]
        inside = sum(there.values())
        if not wrong and inside < width / 2:
            continue
        what = wrong[0] if wrong else max(there, key=lambda name: there[name])
        start, end = number * width, (number + 1) * width
        if found and found[-1].slot == slot and found[-1].what == what and abs(found[-1].end - start) < width / 1000:
            found[-1] = Piece(slot, what, found[-1].start, end)
        else:
            found.append(Piece(slot, what, start, end))
    return found


def _what(item: OnSlot) -> str:
    return _STATES.get(item.attempt.state, item.attempt.state)


def _key(what: str) -> str:
    return {"completed": "trained to its end", "pruned": "stopped early (pruned)"}.get(what, what)


def _panel(axes: Axes, drawn: Sequence[Piece], slots: int, end: float, *, last: bool) -> None:
    for what, (colour, hatch) in LOOKS.items():
        half = 0.1 if what == "overhead" else 0.36
        boxes = [(piece.start, piece.end, piece.slot - half, piece.slot + half) for piece in drawn if piece.what == what]
        edge = 0.25 if what != "overhead" and len(drawn) < MOST_ATTEMPTS else 0.0
        rectangles(axes, boxes, facecolor=colour, edgecolor=PAPER, hatch=hatch, linewidth=edge, zorder=3 if half < 0.2 else 2)
    failed = [piece for piece in drawn if piece.what == "failed"][:60]
    axes.plot(
        [piece.end for piece in failed],
        [piece.slot for piece in failed],
        "X",
        color=SERIES[6],
        markeredgecolor=PAPER,
        markersize=7,
        markeredgewidth=0.6,
        zorder=4,
    )
    axes.set_xlim(0, end * 1.01)
    axes.set_ylim(slots - 0.4, -0.6)
    axes.set_yticks(range(slots), [str(slot) for slot in range(slots)], size=SMALL)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    plain_numbers(axes, "x", most=6)
    axes.set_ylabel("slot", size=SMALL, color=INK)
    axes.tick_params(axis="x", labelbottom=last)
    if last:
        axes.set_xlabel("seconds since the start of deploy", size=SMALL)


def _end(run: RunRecord, drawn: Sequence[Piece]) -> float:
    undeployed = boundaries(run).undeployed_ns
    return max((undeployed or 0) / 1e9, max(piece.end for piece in drawn), 1e-6)


def _said(run: RunRecord, drawn: Sequence[Piece]) -> str:
    counts = [
        f"{number} {_key(what)}"
        for what in LOOKS
        if what != "overhead" and (number := sum(piece.what == what for piece in drawn))
    ]
    shares = [
        f"{name} {value_text(metric.value)} %"
        for name, key in (("of the slots' time idle", "slots.idle_share"), ("overhead", "slots.overhead_share"))
        if (metric := run.metrics.get(key)) is not None and metric.value is not None
    ]
    slots = counted(len({piece.slot for piece in drawn}), "slot")
    return f"{slots}, attempts: {', '.join(counts) or 'none'}{'; ' if shares else ''}{', '.join(shares)}"
