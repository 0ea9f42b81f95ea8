"""The live state as JSON values. Control characters of names and errors are escapes in it: no reader obeys them."""

from __future__ import annotations

from typing import Any

from tuneoff.base.format import duration_text
from tuneoff.base.output import printable
from tuneoff.tell.live import sentences
from tuneoff.tell.live.state import Current, LiveState, SeedCell
from tuneoff.tell.report.progress import rate_text

FORMAT_VERSION = 1


def to_json(state: LiveState) -> dict[str, Any]:
    """Return the state as JSON values."""
    values: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "name": state.name,
        "plan_id": state.plan_id,
        "folder": state.folder,
        "file": state.file,
        "activity": state.activity.value,
        "pid": state.pid,
        "host": state.host,
        "exit_code": state.exit_code,
        "runs": state.total,
        "ended": state.ended,
        "counts": dict(state.counts),
        "seconds_left": state.seconds_left,
        "seeds": list(state.seeds),
        "rows": [
            {
                "name": row.text,
                "adapter": row.adapter,
                "cells": [_cell(cell) if cell is not None else None for cell in row.cells],
            }
            for row in state.rows
        ],
        "so_far": [{"name": one.label, "seconds": one.seconds, "best": one.best} for one in state.so_far],
        "current": _current(state.current) if state.current is not None else None,
        "problems": list(state.problems),
        "texts": _texts(state),
    }
    visible: dict[str, Any] = _visible(values)
    return visible


def _cell(cell: SeedCell) -> dict[str, Any]:
    return {"run_id": cell.run_id, "name": cell.name, "seed": cell.seed, "status": cell.status, "reason": cell.reason}


def _current(current: Current) -> dict[str, Any]:
    live = current.live
    return {
        "run_id": current.run_id,
        "execution_id": current.execution_id,
        "name": current.name,
        "position": current.position,
        "total": current.total,
        "step": live.step,
        "seconds": live.seconds,
        "seconds_left": live.seconds_left,
        "trials": live.trials,
        "ended": live.ended,
        "running": live.running,
        "completed": live.completed,
        "pruned": live.pruned,
        "failed": live.failed,
        "cancelled": live.cancelled,
        "epochs": live.epochs,
        "metric": current.metric,
        "incumbent": live.incumbent,
    }


def _texts(state: LiveState) -> dict[str, Any]:
    """Return the sentences that the display has too."""
    return {
        "headline": sentences.headline(state),
        "ended": sentences.ended(state),
        "judged": sentences.judged(state),
        "left": sentences.left(state),
        "activity": sentences.activity(state),
        "current": sentences.current_title(state.current) if state.current is not None else sentences.between(state),
        "progress": sentences.current_text(state.current) if state.current is not None else "",
        "figures": _figures(state.current) if state.current is not None else {},
        "failures": list(sentences.failures(state)),
    }


def _figures(current: Current) -> dict[str, str]:
    """Return the current run's figures one by one, as the page has them."""
    live = current.live
    return {
        "step": live.step,
        "trials": f"{live.ended} of {live.trials}",
        "running": str(live.running),
        "completed": str(live.completed),
        "pruned": str(live.pruned),
        "failed": str(live.failed),
        "incumbent": f"{live.incumbent:.5g} {current.metric}" if live.incumbent is not None else "none yet",
        "rate": rate_text(live) or "not known yet",
        "left": duration_text(live.seconds_left) if live.seconds_left is not None else "not known yet",
    }


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list) else value
