"""What careless trainings do to their process: what they find of it, and change.

Each trial has to find what a fresh `python file.py` does, whatever the trials before it changed.
"""

from __future__ import annotations

import locale
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
_PRINTED = (
    '{"seq": 1, "type": "epoch", "trial": "t00000", "epoch": 99}\n',  # like an event of ours
    "score=0.1\nscore=1e400\n",  # like a value, as collectors look for them
    "\rhalf a line without an end \x1b[2K",
)


def seen(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a training finds: of its process, of its configuration, and whether it may start a process."""
    umask = os.umask(0o022)
    os.umask(umask)
    process = {
        "arguments": [os.path.basename(text) for text in sys.argv],
        "folder": os.getcwd(),
        "umask": umask,
        "handlers": {
            number.name: getattr(handler := signal.getsignal(number), "__name__", None) or str(handler) for number in _SIGNALS
        },
        "locale": locale.setlocale(locale.LC_ALL),
        "start method": multiprocessing.get_start_method(allow_none=True),
        "variable": os.environ.get("CARELESS"),
    }
    child = ""  # or what went wrong with a process that was started
    try:
        started = multiprocessing.get_context("fork").Process(target=int)
        started.start()
        started.join(30)
        if started.exitcode != 0:
            child = f"it ended with {started.exitcode}"
    except BaseException as error:  # an AssertionError, in the children of some frameworks
        child = f"{type(error).__name__}: {error}"
    return {"process": process, "configuration": configuration, "child": child}


def change(configuration: Mapping[str, Any]) -> None:
    """Change the process and, in place, the configuration; print what no reader of output expects."""
    for value in configuration.values():
        if isinstance(value, list):
            value.append(99)
    sys.argv.append("--careless")
    os.chdir("/")
    os.umask(0o077)
    os.environ["CARELESS"] = "1"
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    multiprocessing.set_start_method("spawn", force=True)
    if threading.current_thread() is threading.main_thread():  # no other one may
        signal.signal(signal.SIGUSR1, lambda number, frame: None)
    for stream in (sys.stdout, sys.stderr):
        stream.write("".join(_PRINTED))
        stream.flush()
