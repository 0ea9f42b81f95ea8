"""What each address of `tuneoff serve` answers. Paths are compared with known ones and never become paths of files.

The live page has the state as it is now. A small script asks for it again and puts in what differs; without script it reloads
itself. Everything that comes from the folder is escaped here.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Any

from tuneoff.base.files import read_regular
from tuneoff.base.output import plain_line
from tuneoff.errors import TuneoffError
from tuneoff.record.store import FILE_NAME, RUNS
from tuneoff.tell.live.screen import SIGNS
from tuneoff.tell.live.sentences import to_json
from tuneoff.tell.live.state import Activity, LiveState
from tuneoff.tell.live.watcher import Watcher

RELOAD_SECONDS = 5  # without script
FIGURES = (
    ("step", "step"),
    ("trials", "trials ended"),
    ("running", "running"),
    ("completed", "completed"),
    ("pruned", "pruned"),
    ("failed", "failed"),
    ("incumbent", "best so far"),
    ("rate", "rate"),
    ("left", "left of this run"),
)
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


@functools.cache
def _resource(name: str) -> str:
    return (files("tuneoff.tell.live") / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


STYLE, SCRIPT = _resource("page.css"), _resource("page.js")
POLICY = (
    f"default-src 'none'; style-src {_digest(STYLE)}; script-src {_digest(SCRIPT)}; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def page(state: Mapping[str, Any]) -> str:
    """Return the page of a state, as `values.to_json` gives it."""
    texts = state["texts"]
    of = "" if state["activity"] == Activity.FINISHED else " of what has ended"
    title = escape(f"{state['name']}: {state['ended']} of {state['runs']}")
    return f"""<!doctype html>
<html lang="en" data-plan="{escape(state["plan_id"])}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{STYLE}</style>
<noscript><meta http-equiv="refresh" content="{RELOAD_SECONDS}"></noscript>
</head>
<body>
<header>
<h1>{escape(state["name"])}</h1>
<p id="ended">{escape(texts["ended"])}</p>
<p id="left">{escape(texts["left"])}</p>
<p id="activity" data-activity="{escape(state["activity"])}">{escape(texts["activity"])}</p>
<p id="connection" hidden>No answer from tuneoff serve: what is shown may be old.</p>
<p id="announce" class="unseen" role="status" aria-live="polite"></p>
</header>
<main>
<section aria-labelledby="now"><h2 id="now">Current run</h2>
<p id="current">{escape(texts["current"]) or "none"}</p>
{_progress(state)}
</section>
<section aria-labelledby="plan"><h2 id="plan">Plan</h2>
<ul id="counts" class="counts">{"".join(_count(status, count) for status, count in state["counts"].items())}</ul>
<p class="quiet">A row is a framework with a sampler, a pruner and a variant; a column is a seed.</p>
<div class="scroll" tabindex="0" role="region" aria-label="All planned runs">{_table(state)}</div>
</section>
<section aria-labelledby="failures"><h2 id="failures">Failures</h2>
<ul id="failed">{"".join(f"<li>{escape(line)}</li>" for line in texts["failures"])}</ul>
<p id="none" {"hidden" if texts["failures"] else ""}>none so far</p>
</section>
<section aria-labelledby="verdicts"><h2 id="verdicts">Verdicts</h2>
<p id="judged">{escape(texts["judged"])}</p>
<p id="report"><a href="report/">Report</a>{of} (it may take some seconds)</p>
</section>
<section id="unreadable" aria-labelledby="problems" {"" if state["problems"] else "hidden"}><h2 id="problems">Not readable</h2>
<ul id="problem">{"".join(f"<li>{escape(line)}</li>" for line in state["problems"])}</ul>
</section>
</main>
<footer><p><code>{escape(state["folder"])}</code></p></footer>
<script>{SCRIPT}</script>
</body>
</html>
"""


def _progress(state: Mapping[str, Any]) -> str:
    figures: Mapping[str, str] = state["texts"]["figures"]
    current = state["current"] or {"ended": 0, "trials": 1}
    rows = "".join(f'<div><dt>{name}</dt><dd id="run-{key}">{escape(figures.get(key, ""))}</dd></div>' for key, name in FIGURES)
    hidden = "" if state["current"] else "hidden"
    return (
        f'<div id="run" {hidden}><progress id="bar" aria-label="trials ended" max="{current["trials"]}" '
        f'value="{current["ended"]}"></progress><dl>{rows}</dl></div>'
    )


def _count(status: str, count: int) -> str:
    sign = escape(SIGNS[status])
    hidden = "" if count else " hidden"
    mark = f'<span class="sign" data-status="{status}" aria-hidden="true">{sign}</span>'
    return f'<li data-count="{status}"{hidden}>{mark} <b>{count}</b> {status}</li>'


def _table(state: Mapping[str, Any]) -> str:
    heads = "".join(f'<th scope="col">{seed}</th>' for seed in state["seeds"])
    rows = "".join(f'<tr><th scope="row">{escape(row["name"])}</th>{_cells(row["cells"])}</tr>\n' for row in state["rows"])
    head = f'<thead><tr><th scope="col">run</th>{heads}</tr></thead>'
    return f'<table id="map">{head}\n<tbody>{rows}</tbody></table>'


def _cells(cells: Sequence[Mapping[str, Any] | None]) -> str:
    return "".join(_cell(cell) if cell is not None else "<td></td>" for cell in cells)


def _cell(cell: Mapping[str, Any]) -> str:
    status = cell["status"]
    title = escape(f"{status}: {cell['reason']}" if cell["reason"] and cell["reason"] != status else status)
    return (
        f'<td data-status="{status}" title="{title}"><span aria-hidden="true">{escape(SIGNS[status])}</span>'
        f'<span class="unseen">{status}</span></td>'
    )


def rendered(folder: Path) -> str:
    """Return the report of a results folder, with links as if it lay where `tuneoff report` writes it.

    Raises:
        ResultsError: a file in the folder is damaged.
    """
    from tuneoff.judge.choice.choose import answered
    from tuneoff.judge.results import read_results
    from tuneoff.tell.page.report import FOLDER, composed

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
