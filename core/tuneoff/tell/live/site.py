"""What each address of `tuneoff watch --serve` answers. Paths are compared with known ones and never become paths of files.

The page is the report of the folder, with the live state above it. A small script asks for that again, and loads the page anew
when a run has begun or ended; without script it reloads itself.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from tuneoff.base.layout import RECORD, RUNS
from tuneoff.base.output import plain_line, printable
from tuneoff.errors import ResultsError, TuneoffError
from tuneoff.measure.stored import read_run
from tuneoff.record.end import end_bytes, key_of
from tuneoff.record.store import encode
from tuneoff.tell.live import output
from tuneoff.tell.live.sentences import to_json
from tuneoff.tell.live.watcher import Watcher

LOOK_EVERY_SECONDS = 0.5  # however many ask
MOST_FIELDS = 10  # of a query
LIVE = "<!-- live -->"  # no text of a folder: those are escaped
NO_POLICY = "default-src 'none'; frame-ancestors 'none'"
# The page's own policy, in it, allows its one script by its hash; both hold at once.
PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HTML, JSON, TEXT = "text/html; charset=utf-8", "application/json; charset=utf-8", "text/plain; charset=utf-8"

log = logging.getLogger(__name__)


def rendered(folder: Path) -> str:
    """Return the report of a results folder, with links as if it lay in it, and `LIVE` where the live state belongs.

    A file that is damaged leaves no report, but the page says so below the live state.
    """
    from tuneoff.judge.answers.compute import answers
    from tuneoff.judge.choice.choose import choose
    from tuneoff.judge.results import read_results
    from tuneoff.tell.page.report import page, render

    try:
        return render(page(choose(answers(read_results(folder))), folder), live=LIVE)
    except ResultsError as error:
        return render({"name": folder.name, "facts": [], "problem": str(error)}, live=LIVE, template="unread.html")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response without what all have in common."""

    status: HTTPStatus = HTTPStatus.OK
    content_type: str = TEXT
    body: bytes = b""
    policy: str = NO_POLICY
    headers: tuple[tuple[str, str], ...] = field(default=())


def text_answer(status: HTTPStatus, text: str, *headers: tuple[str, str]) -> Answer:
    """Return an answer of one line."""
    return Answer(status=status, body=f"{plain_line(text)}\n".encode(errors="backslashreplace"), headers=headers)


def _json(value: Any) -> Answer:
    return Answer(content_type=JSON, body=json.dumps(value, allow_nan=False).encode())


class Site:
    """Answers from any thread. `render`: makes the page of a results folder, with `LIVE` in it; writes nothing there."""

    def __init__(self, watcher: Watcher, render: Callable[[Path], str]) -> None:
        self._watcher, self._render = watcher, render
        self._lock, self._page_lock = threading.Lock(), threading.Lock()
        self._state: dict[str, Any] | None = None
        self._version, self._looked = "", 0.0
        self._page = ("", "")  # version and HTML

    def answer(self, path: str, query: str = "") -> Answer:
        """Return the answer to a request for a path; every error is one line."""
        try:
            return self._output(query) if path == "/output.json" else self._answer(path)
        except TuneoffError as error:
            return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except Exception as error:  # the last resort: a reader never sees a traceback
            log.debug("a request failed", exc_info=True)
            return text_answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"a fault of tuneoff itself: {type(error).__name__}: {error}")

    def _answer(self, path: str) -> Answer:
        from tuneoff.tell.page.report import live_section, resource

        state, version, records = self._look()
        if path == "/":
            with self._page_lock:  # one at a time: others that ask meanwhile get the same
                if self._page[0] != version:
                    self._page = (version, self._render(self._watcher.results))
                body = self._page[1].replace(LIVE, live_section(state, version) + resource("output.html"), 1)
            return Answer(content_type=HTML, body=body.encode(), policy=PAGE_POLICY)
        if path == "/live":
            return Answer(content_type=HTML, body=live_section(state, version).encode())
        if path == "/state.json":
            return _json(state)
        if path in records:
            record, key = read_run(records[path]), key_of(end_bytes(records[path]))  # its run.json, as it is or as it will be
            return Answer(content_type=JSON, body=b"".join(encode(record, key)))
        return text_answer(HTTPStatus.NOT_FOUND, "there is no such page; see /")

    def _output(self, query: str) -> Answer:
        """Return which executions there are, of one of them its logs, or of one of these a part, as `output.part` has it."""
        try:
            fields = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_FIELDS))
        except ValueError as error:
            return text_answer(HTTPStatus.BAD_REQUEST, str(error))
        self._look()
        with self._lock:
            executions = {"/".join(folder.parts[-2:]): (folder, name, ended) for folder, name, ended in self._watcher.executions}
        if "execution" not in fields:
            return _json({"executions": [[key, printable(name)] for key, (_, name, _) in executions.items()]})
        if fields["execution"] not in executions:
            return text_answer(HTTPStatus.NOT_FOUND, "there is no such execution; see /")
        execution, _, has_ended = executions[fields["execution"]]
        logs = {log["name"]: log for log in output.listed(execution)}
        if "log" not in fields:
            return _json({"logs": list(logs)})
        if fields["log"] not in logs or not fields.get("from", "0").isdecimal():
            return text_answer(HTTPStatus.NOT_FOUND, "there is no such log, or place in it; see /")
        begin = int(fields["from"][:18]) if "from" in fields else None
        try:
            return _json(output.part(execution, logs[fields["log"]], begin, fields.get("find", ""), has_ended=has_ended))
        except OSError as error:
            return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, f"the log cannot be read: {error.strerror}")

    def _look(self) -> tuple[dict[str, Any], str, dict[str, Path]]:
        """Return the state, what tells whether the page is another one, and the records that it links to, by their addresses."""
        with self._lock:
            now = time.monotonic()
            if self._state is None or now - self._looked >= LOOK_EVERY_SECONDS:
                self._state, self._looked = to_json(self._watcher.look()), now
                self._version = self._watcher.version
            folders = [Path(folder) for folder in self._watcher.ended]
        records = {f"/{RUNS}/{folder.parent.name}/{folder.name}/{RECORD}": folder for folder in folders}
        return self._state, self._version, records
