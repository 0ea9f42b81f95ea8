"""Run a measuring process and read the JSON that it prints last; whatever it leaves is ended."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.settings import ROOT
from tuneoff.base.process_limits import thread_environment
from tuneoff.base.processes import end_all, in_session, with_mark

MARK = "TUNEOFF_SPEED_CHILD"


class MeasurementError(Exception):
    """A measuring process failed or took too long."""


def child_environment() -> dict[str, str]:
    """Return the environment of every measured process: one compute thread, and compiled modules kept as usual."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH", "")]))
    return {**kept, **thread_environment(1), "PYTHONPATH": path, "PYTHONHASHSEED": "0"}


def run_module(
    module: str, arguments: Sequence[str] = (), *, timeout_seconds: float = 600.0, group: Path | None = None
) -> tuple[dict[str, Any], float]:
    """Run `python -m module` with one compute thread; return the JSON object on its last line and its wall time in seconds.

    Raises:
        MeasurementError: it failed, printed no JSON, or took longer than `timeout_seconds`.
    """
    output, wall_seconds = run_child(module, arguments, timeout_seconds=timeout_seconds, group=group)
    try:
        answer: dict[str, Any] = json.loads(_last_line(output))
    except ValueError as error:
        raise MeasurementError(f"{module} must print JSON last, but printed {_last_line(output)[:200]!r}") from error
    return answer, wall_seconds


def run_child(
    module: str, arguments: Sequence[str] = (), *, timeout_seconds: float = 600.0, group: Path | None = None
) -> tuple[str, float]:
    """Run `python -m module` with one compute thread; return what it printed and its wall time in seconds; end what it leaves.

    `group`: a control group to run it in.

    Raises:
        MeasurementError: it failed, or took longer than `timeout_seconds`.
    """
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="sp", ignore_cleanup_errors=True) as temporary:
        everything = {**child_environment(), "TMPDIR": temporary, MARK: mark}
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            cwd=ROOT,
            env=everything,
            preexec_fn=None if group is None else functools.partial(_join, group),
        )
        try:
            output, complaints = process.communicate(timeout=timeout_seconds)
            wall_seconds = time.monotonic() - started
        except subprocess.TimeoutExpired as error:
            raise MeasurementError(f"{module} took longer than {timeout_seconds:g} s") from error
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            end_all(lambda: {*with_mark(MARK, mark), *in_session(process.pid)})
    if process.returncode != 0:
        raise MeasurementError(f"{module} ended with exit code {process.returncode}: {_last_line(complaints)}")
    return output, wall_seconds


def _join(group: Path) -> None:
    (group / "cgroup.procs").write_text("0")  # this process


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "(nothing was printed)"
