"""`python -m tuneoff.run.lifecycle RUN_DIR [--undeploy=SECONDS]`: the coordinator, the process of a run that drives the adapter.

What it is to un-deploy it reads from standard input, all else from the folder's files. Exit codes: 0 every step succeeded, 2 a
step failed, 3 interrupted (SIGTERM) and un-deployed, 70 a fault outside the steps. In a file of this name, as multiprocessing has
each worker import any other program anew, with all that it imports.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from types import FrameType

from tuneoff.base.layout import END, LATER
from tuneoff.base.process_limits import die_with_parent
from tuneoff.base.processes import become_subreaper, descendants, end_all
from tuneoff.base.targets import load_target
from tuneoff.record.run_context import read_context
from tuneoff.run.lifecycle import GUARDIAN_SECONDS, UNCAUGHT, run_lifecycle, undeploy_only


def main(arguments: list[str]) -> int:
    become_subreaper()  # what loses its parent becomes a child of this process, where it is found
    signal.signal(signal.SIGHUP, _end_with_parent)
    die_with_parent(signal.SIGHUP)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    run_dir = Path(arguments[0])
    undeploy = next((text for text in arguments[1:] if text.startswith("--undeploy=")), None)
    events_in = run_dir / LATER if (run_dir / END).exists() else run_dir  # those of a run that has ended are sealed
    context = read_context(run_dir, None if undeploy is None else json.load(sys.stdin), events_in)
    adapter_class = load_target(context.spec.adapter_target)
    if undeploy is None:
        code = run_lifecycle(adapter_class, context)
    else:
        code = undeploy_only(adapter_class, context, float(undeploy.partition("=")[2]))
    context.events.sync()
    return code


def _end_with_parent(signum: int, frame: FrameType | None) -> None:
    """The command was killed: do nothing more, as if killed too, but hold what is below together until the guardian has ended it.

    Where that was killed too, this process ends all below it, and itself.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # its handler would end the wait
    time.sleep(GUARDIAN_SECONDS)
    end_all(lambda: descendants(os.getpid()))
    os._exit(1)


if __name__ == "__main__":
    try:
        exit_code = main(sys.argv[1:])
    except Exception:  # told from a code that an adapter ended this process with
        traceback.print_exc()
        exit_code = UNCAUGHT
    logging.shutdown()
    sys.stdout.flush()
    os._exit(exit_code)  # a framework's threads may not hold up the end of a run that is un-deployed
