"""Two programs of the test of clocks. `python -m multihost.dated_events write RUN_DIR EXECUTION COUNT`: on a host, an event with
its wall clock whenever a file asks for it. `... ask FOLDER COMMAND PYTHON COUNT`: the coordinator, which notes when that was.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from builders.specs import make_context, toy_spec
from tuneoff.base import clock
from tuneoff.record.events.writer import EventWriter
from tuneoff_platforms.remote.contact import Contact
from tuneoff_platforms.remote.host import Host, answers
from waiting import until


def write(run_dir: str, execution_id: str, count: str) -> None:
    events = EventWriter(run_dir, execution_id, "worker")
    for number in range(int(count)):
        until(lambda number=number: Path(run_dir, f"ask{number}").exists())  # type: ignore[misc]
        events.write("flag", name="dated", text=str(time.time_ns()))
        Path(run_dir, f"done{number}").touch()


def ask(folder: str, template: str, python: str, count: str) -> None:
    context = make_context(toy_spec("ray-tune"), Path(folder))
    contact = Contact(context, None, 60.0)
    contact.add([Host("h2", template, python, Path(folder) / "log")])
    contact.keep()
    words = f"exec {python} -m multihost.dated_events write {context.run_dir} {context.execution_id} {count} &"
    command = ["sh", "-c", f"{{ {words} }} >/dev/null 2>&1"]
    answers({"h2": contact.nodes[0].send("run", command=command, environment={}, seconds=10)}, 20)
    asked = []
    for number in range(int(count)):
        began_ns = clock.monotonic_ns()
        Path(context.run_dir, f"ask{number}").touch()
        until(lambda number=number: Path(context.run_dir, f"done{number}").exists())  # type: ignore[misc]
        asked.append((began_ns, clock.monotonic_ns(), time.time_ns()))
        time.sleep(1.0)  # the clocks drift apart
    contact.end()
    print(json.dumps({"run_dir": str(context.run_dir), "asked": asked}))


if __name__ == "__main__":
    (write if sys.argv[1] == "write" else ask)(*sys.argv[2:])
