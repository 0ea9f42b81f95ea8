"""Who reads and writes a results folder, by the names of the attack tests: each returns what it told."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import tuneoff
from builders.bundles import packed
from builders.killed_logs import SPEC
from builders.results_folders import Results
from tuneoff.base.files import pinned
from tuneoff.cli.main import main
from tuneoff.errors import TuneoffError
from tuneoff.record.endings import KILLED
from tuneoff.record.results_folder import ResultsFolder, note_begun
from tuneoff.record.store import write_bytes
from tuneoff.run.finish import recover
from tuneoff.run.supervisor.execution import new_execution, undeploy_outside, write_inputs
from tuneoff.run.supervisor.leftovers import clean_results
from tuneoff.tell.frames.tables import TABLES
from tuneoff.tell.live.site import LIVE, Site
from tuneoff.tell.live.watcher import Watcher
from tuneoff.trust.verify.results import verify

CUT_NAME = f"{SPEC.run_id}-0a1b2c"  # of the execution that was cut, as tuneoff names one
UNDEPLOY_SECONDS = 15.0
Actor = Callable[[Results, Path], bytes]


def _command(*arguments: str) -> Actor:
    def act(folder: Results, out: Path) -> bytes:
        words = [word.format(folder=folder.path, out=out) for word in arguments]
        code = main(words)
        assert code in (0, 1, 2, 5), f"tuneoff {' '.join(words)} ended with {code}"
        return b""

    return act


def _hold(folder: Results, out: Path) -> bytes:
    with ResultsFolder(folder.path, folder.plan, resume=True) as held:
        held.finish()
    return b""


def _begin(folder: Results, out: Path) -> bytes:
    note_begun(folder.path, SPEC.run_id, "x")
    return b""


def _new_run(folder: Results, out: Path) -> bytes:
    try:
        write_inputs(new_execution(SPEC, folder.path / "runs"))
    except OSError as error:  # the command makes one line of it
        raise TuneoffError(str(error)) from error
    return b""


def _cut(results: Results) -> None:
    """Remove the end of the execution that was cut, as if its command had been killed."""
    for path in results.path.glob(f"runs/*/{CUT_NAME}/end.json"):
        with suppress(OSError), pinned(path.parent) as folder:
            (folder / path.name).unlink()


def _recovered(folder: Results, out: Path) -> bytes:
    _cut(folder)
    recover(folder.path, folder.plan, KILLED)
    return b""


def _cleaned(folder: Results, out: Path) -> bytes:
    clean_results(folder.path)
    return b""


def _undeployed(folder: Results, out: Path) -> bytes:
    """In a fresh process, for which `tests` must be in PYTHONPATH; so it is none of the `ACTORS`."""
    specs = {run.run_id: replace(run.spec, adapter_target="hostile.noisy:Noisy") for run in folder.plan.runs}
    return "\n".join(undeploy_outside(folder.path, specs, UNDEPLOY_SECONDS)).encode()


def _undeployed_after_a_kill(folder: Results, out: Path) -> bytes:
    _cut(folder)
    return _undeployed(folder, out)


def _drawn(folder: Results, out: Path) -> bytes:
    write_bytes(folder.path / "report" / "report.html", b"<html>")
    write_bytes(folder.path / "reproduction.json", b"{}")
    return b""


def _served(folder: Results, out: Path) -> bytes:
    site = Site(Watcher(folder.path), lambda path: LIVE)
    paths = [f"/{path.relative_to(folder.path)}" for path in folder.path.glob("runs/*/*/run.json")]
    return b"".join(site.answer(path).body for path in ("/", "/state.json", *paths))


def _verified(folder: Results, out: Path) -> bytes:
    return "\n".join(problem.line for problem in verify(folder.path).problems).encode()


def _bundled(folder: Results, out: Path) -> bytes:
    found = packed(folder.path, out / "b.tar.gz", allow_unverified=True, checkpoints=True)
    return gzip.decompress(found.path.read_bytes())


def _loaded(folder: Results, out: Path) -> bytes:
    frames = tuneoff.load(folder.path)
    return "".join(frames.read(table).to_json() for table in TABLES).encode()


WRITERS: dict[str, Actor] = {
    "hold": _hold,
    "begin": _begin,
    "new run": _new_run,
    "clean": _cleaned,
    "draw": _drawn,
    "recover": _recovered,
}
ACTORS: dict[str, Actor] = {
    **WRITERS,
    "status": _command("watch", "--runs", "{folder}"),
    "watch": _command("watch", "--once", "{folder}"),
    "serve": _served,
    "verify": _verified,
    "bundle": _bundled,
    "load": _loaded,
    "csv": _command("export", "{folder}"),
    "parquet": _command("export", "{folder}", "--format", "parquet"),
}


UNDEPLOYS: dict[str, Actor] = {"un-deploy": _undeployed, "un-deploy after a kill": _undeployed_after_a_kill}
