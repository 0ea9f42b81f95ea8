"""The live page: HTML with the state as it is now, which a small script keeps up to date; without script it reloads itself.

Everything that comes from the folder is escaped here, and set as text by the script.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from tuneoff.tell.live.screen import SIGNS

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
<p><a href="report/">Report</a> of what has ended (it may take some seconds)</p>
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
