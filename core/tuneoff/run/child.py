"""A program in a process of its own session: it has a limit of time, is looked at meanwhile, and is ended with who waits for it.

A module that answers one request is such a program: `python -m MODULE REQUEST.json` writes its answer beside the request.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneoff.base.layout import LOG
from tuneoff.base.process_limits import as_parent, die_with_parent
from tuneoff.base.processes import end_all, in_session, kill, last_words
from tuneoff.run.supervisor.execution import import_path

REQUEST, ANSWER = "request.json", "answer.json"
_LOOK_SECONDS = 0.02
_SPARED_SECONDS = 10.0  # in which a program whose parts were ended at the limit may end by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    """How a program ended: its exit code (negative: a signal), or None where it had to be killed at the limit."""

    code: int | None
    seconds: float
    words: str  # the last line of its output

    @property
    def text(self) -> str:
        """How it ended, in words that follow "the process"."""
        return f"ended with exit code {self.code}: {self.words or 'it printed nothing'}"


def run_child(
    command: Sequence[str],
    log: Path,
    seconds: float,
    environment: Mapping[str, str],
    *,
    cwd: Path | None = None,
    look: Callable[[int], None] = lambda pid: None,
    is_stopped: Callable[[], bool] = lambda: False,
    end_parts: Callable[[int], None] | None = None,
    remains: Callable[[int], Iterable[int]] = lambda pid: (),
) -> ChildEnd:
    """Run a program until its end, for at most `seconds`, or until `is_stopped`; `look(pid)` is called meanwhile.

    Its output is appended to `log`. `environment`: its own, beside this process's `import_path`. `end_parts`: what ends at the
    limit, where the program is then to clean up by itself. `remains`: what may not outlive it.
    """
    started = time.monotonic()
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # a terminal's Ctrl-C comes through us, once
            env={**environment, **import_path()},
        )
    code: int | None = None
    try:
        while (code := process.poll()) is None and time.monotonic() - started < seconds and not is_stopped():
            look(process.pid)
            time.sleep(_LOOK_SECONDS)
        took = time.monotonic() - started
        if code is None and end_parts is not None:
            end_parts(process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_SPARED_SECONDS)
    finally:
        if process.poll() is None:
            kill(process.pid)
        process.wait()
        end_all(lambda: remains(process.pid))
    return ChildEnd(code=code, seconds=took, words=last_words(log, otherwise=""))


def ask(
    module: str,
    folder: Path,
    request: Mapping[str, Any],
    seconds: float,
    environment: Mapping[str, str] = os.environ,
    *,
    python: str = sys.executable,
    look: Callable[[int], None] = lambda pid: None,
    is_stopped: Callable[[], bool] = lambda: False,
    remains: Callable[[int], Iterable[int]] = in_session,
) -> tuple[Any, ChildEnd]:
    """Let a module answer a request in `folder`, and return its answer and how it ended; the answer is None where there is none.

    The process dies with this one. See `run_child`.
    """
    path = folder / REQUEST
    path.write_text(json.dumps(request))
    command = [python, "-m", module, str(path)]
    end = run_child(
        command, folder / LOG, seconds, {**environment, **as_parent()}, look=look, is_stopped=is_stopped, remains=remains
    )
    answer = folder / ANSWER
    return (json.loads(answer.read_text()) if end.code is not None and answer.exists() else None), end


def answer_request(answer: Callable[[Any], Any]) -> None:
    """Be such a module: give the request that the command line names to `answer`, and write down what it returns."""
    die_with_parent()
    path = Path(sys.argv[1])
    content = json.dumps(answer(json.loads(path.read_text())))
    partial = path.with_name(f".{ANSWER}")
    partial.write_text(content)
    partial.rename(path.with_name(ANSWER))
