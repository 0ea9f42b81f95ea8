"""From what the process of a run told to the run as the checks read it: with its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tuneoff.adapter import Adapter
from tuneoff.errors import TuneoffError
from tuneoff.experiment.spec import RunSpec
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Flag
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import read_run
from tuneoff.record.verdict import Verdict
from tuneoff.run.finish import finish
from tuneoff.trust.check.evidence import Made
from tuneoff.trust.check.footprint import Left
from tuneoff.trust.check.listeners import ListeningSocket
from tuneoff.trust.check.machine import Machine


def finished(name: str, spec: RunSpec, notes: Path, answer: Mapping[str, Any], adapter: type[Adapter]) -> Made:
    """Derive the record of a run, or say why there is none, and add what its supervisor flagged as left behind."""
    folder = Path(answer["folder"])
    verdict = None if answer["verdict"] is None else Verdict(**answer["verdict"])
    record: RunRecord | None = None
    problem = ""
    try:
        finish(folder, spec, verdict, adapter, {"limits": answer["limits"]})
        record = read_run(folder)  # as everybody else will read it
    except (TuneoffError, ValueError) as error:
        problem = " ".join(f"{type(error).__name__}: {error}".split())
    holders = {ListeningSocket(item["inode"], item["address"], item["port"]): item["pid"] for item in answer["listeners"]}
    return Made(
        name=name,
        experiment=spec.experiment,
        folder=folder,
        notes_folder=notes,
        stored=record,
        problem=problem,
        listeners=tuple(holders),
        left=(*(Left(**item) for item in answer["left"]), *flagged_left(_flags(folder) if record is not None else [], holders)),
        end_seconds=answer["end_seconds"],
        machine=Machine(**answer["machine"]),
    )


def _flags(folder: Path) -> list[str]:
    """Return what was flagged as left behind; of the same flag a record keeps one text and a count."""
    events = (event for _, event in EventLog(folder / EVENTS) if isinstance(event, Flag))
    return [event.text for event in events if event.name == "left_behind"]


def flagged_left(texts: Sequence[str], holders: Mapping[ListeningSocket, int]) -> list[Left]:
    """Return what the supervisor had to end or to remove itself; a process that listened is a port that was left.

    `holders`: the listeners of the run with the process that held each. Shared memory and what is outside this machine are
    looked for by whoever made the run, and an `undeploy` that did not end is seen in the events.
    """
    found: list[Left] = []
    for text in texts:
        kind, _, rest = text.partition(" ")
        if kind == "process":
            pid = int(rest.partition(":")[0])
            ports = [f"{item.address}:{item.port}" for item, holder in holders.items() if holder == pid]
            found.append(Left("port", f"{', '.join(ports)} of {text}") if ports else Left("process", text))
        elif kind in ("folder", "cgroup"):
            found.append(Left("temporary file", text))
    return found
