"""Draws in forks of this process, in place of the fresh processes of `tuneoff check --space`: imports count once for all of them.

For tests of what is said of the draws. That a fresh process draws, hangs, dies and is ended is tested with real ones.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tuneoff.run.child import ANSWER, ChildEnd
from tuneoff.trust.space_test import draw, verify


def draw_in_forks(patch: pytest.MonkeyPatch) -> None:
    """Let adapters draw in forks from now on."""
    patch.setattr(verify, "ask", _ask)


def _ask(
    module: str,
    folder: Path,
    request: Mapping[str, Any],
    seconds: float,
    environment: Mapping[str, str],
    *,
    python: str,
    is_stopped: Callable[[], bool],
    remains: Callable[[int], Iterable[int]],
) -> tuple[Any, ChildEnd]:
    """Answer as `tuneoff.run.child.ask` does, without a limit of time."""
    assert module == draw.__name__
    assert python == sys.executable
    assert not is_stopped()
    answer = folder / ANSWER
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.environ.update(environment)
            answer.write_text(json.dumps(draw.main(dict(request))))
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert list(remains(pid)) == []
    return json.loads(answer.read_text()) if code == 0 else None, ChildEnd(code=code, seconds=0.0, words="")
