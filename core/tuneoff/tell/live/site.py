"""What each address of `tuneoff serve` answers. Paths are compared with known ones and never become paths of files."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from tuneoff.base.files import read_regular
from tuneoff.base.output import plain_line
from tuneoff.errors import TuneoffError
from tuneoff.record.store import FILE_NAME, RUNS
from tuneoff.tell.live.page import POLICY, page
from tuneoff.tell.live.state import LiveState
from tuneoff.tell.live.state_json import to_json
from tuneoff.tell.live.watcher import Watcher

# The page's own policy, in it, allows its one script by its hash; both hold at once.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
LOOK_EVERY_SECONDS = 0.5  # however many ask
NO_POLICY = "default-src 'none'; frame-ancestors 'none'"
HTML, JSON, TEXT = "text/html; charset=utf-8", "application/json; charset=utf-8", "text/plain; charset=utf-8"
MOST_BYTES = 1 << 28  # of a record that is served

log = logging.getLogger(__name__)


def rendered(folder: Path) -> str:
    """Return the report of a results folder, with links as if it lay where `tuneoff report` writes it.

    Raises:
        MissingPackageError: a package of the report is missing.
        ResultsError: a file in the folder is damaged.
    """
    from tuneoff.tell.page.report import FOLDER, composed, need_packages

    need_packages()
    from tuneoff.judge.choice.choose import answered
    from tuneoff.judge.results import read_results

    return composed(answered(read_results(folder)), folder / FOLDER)


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


class Site:
    """Answers from any thread. `render`: makes the report of a results folder; writes nothing there."""

    def __init__(self, watcher: Watcher, render: Callable[[Path], str], clock: Callable[[], float] = time.monotonic) -> None:
        self._watcher, self._render, self._clock = watcher, render, clock
        self._lock, self._report_lock = threading.Lock(), threading.Lock()
        self._state: LiveState | None = None
        self._version: tuple[int, int] = (0, 0)
        self._looked = 0.0
        self._report: tuple[tuple[int, int], str] | None = None

    def answer(self, path: str) -> Answer:
        """Return the answer to a request for a path; every error is one line."""
        try:
            return self._answer(path)
        except TuneoffError as error:
            return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except Exception as error:  # the last resort: a reader never sees a traceback
            log.debug("a request failed", exc_info=True)
            return text_answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"a fault of tuneoff itself: {type(error).__name__}: {error}")

    def _answer(self, path: str) -> Answer:
        if path == "/":
            return Answer(content_type=HTML, body=page(to_json(self._look()[0])).encode(), policy=POLICY)
        if path == "/state.json":
            return Answer(content_type=JSON, body=json.dumps(to_json(self._look()[0]), allow_nan=False).encode())
        if path == "/report":
            return text_answer(HTTPStatus.PERMANENT_REDIRECT, "see report/", ("Location", "report/"))
        if path == "/report/":
            return Answer(content_type=HTML, body=self._made_report().encode(), policy=REPORT_POLICY)
        record = self._records().get(path)
        if record is not None:
            try:
                return Answer(content_type=JSON, body=read_regular(record, MOST_BYTES))
            except OSError as error:
                return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{record} cannot be read: {error.strerror}")
        return text_answer(HTTPStatus.NOT_FOUND, "there is no such page; see /")

    def _look(self) -> tuple[LiveState, tuple[int, int]]:
        with self._lock:
            now = self._clock()
            if self._state is None or now - self._looked >= LOOK_EVERY_SECONDS:
                self._state, self._looked = self._watcher.look(), now
                self._version = self._watcher.version
            return self._state, self._version

    def _records(self) -> dict[str, Path]:
        """Return the records that the report links to, by the address that it has for them."""
        self._look()
        with self._lock:
            folders = [Path(folder) for folder in self._watcher.ended]
        return {f"/{RUNS}/{folder.parent.name}/{folder.name}/{FILE_NAME}": folder / FILE_NAME for folder in folders}

    def _made_report(self) -> str:
        version = self._look()[1]
        with self._report_lock:  # one at a time: others that ask meanwhile get the same
            if self._report is None or self._report[0] != version:
                self._report = (version, self._render(self._watcher.results))
            return self._report[1]
