"""A tiny Prometheus in the test's own process: it answers as the real one does (2.42), from series that a test gives."""

from __future__ import annotations

import bisect
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

LOOK_BACK = 300.0
Labels = Mapping[str, str]
Scraped = Sequence[tuple[float, float]]  # (seconds since 1970, value)
Answer = tuple[int, bytes]


@dataclass
class FakePrometheus:
    """What the server has, and how it misbehaves. `queries` are those for a range that came."""

    series: list[tuple[Labels, Scraped]] = field(default_factory=list)
    clock_ahead: float = 0.0  # seconds
    authorization: str = ""  # what a client must send
    warnings: tuple[str, ...] = ()  # of every good answer
    override: Callable[[str, Mapping[str, str]], Answer | None] | None = None  # (endpoint, parameters) -> its own answer
    url: str = ""
    queries: list[str] = field(default_factory=list)

    def add(self, name: str, scraped: Scraped, **labels: str) -> None:
        """Give the server a series."""
        self.series.append(({"__name__": name, **labels}, scraped))

    def answer(self, endpoint: str, parameters: Mapping[str, str]) -> Answer:
        """Return the answer to a query, as the real server words it."""
        own = self.override(endpoint, parameters) if self.override is not None else None
        if own is not None:
            return own
        query = parameters["query"]
        now = time.time() + self.clock_ahead
        if query == "time()":
            return success({"resultType": "scalar", "result": [round(now, 3), f"{now:.3f}"]})
        ranged = re.search(r"\[(\d+)ms(?::(\d+)ms)?\]$", query)
        if ranged is None:
            found = [{"metric": labels, "value": [now, f"{scraped[-1][1]:g}"]} for labels, scraped in self._matching(query)]
            return success({"resultType": "vector", "result": found})
        self.queries.append(query)
        end, (seconds, step) = float(parameters["time"]), (int(part or 0) / 1000 for part in ranged.groups())
        series = [
            (labels, self._within(scraped, end, seconds, step)) for labels, scraped in self._matching(query[: ranged.start()])
        ]
        return success({"resultType": "matrix", "result": [{"metric": of, "values": values} for of, values in series if values]})

    def _within(self, scraped: Scraped, end: float, seconds: float, step: float) -> list[tuple[float, str]]:
        """Return what was scraped in the time up to `end`; with a step, the last value before each whole multiple of it."""
        if not step:
            return [(moment, repr(value)) for moment, value in scraped if end - seconds < moment <= end]
        times = [moment for moment, _ in scraped]
        found = []
        for number in range(int((end - seconds) / step) + 1, int(end / step) + 1):
            at = bisect.bisect_right(times, number * step)
            if at and times[at - 1] > number * step - LOOK_BACK:
                found.append((number * step, repr(scraped[at - 1][1])))
        return found

    def _matching(self, query: str) -> list[tuple[Labels, Scraped]]:
        """Return the series whose name is in the query, and that its matchers allow."""
        names = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", re.sub(r'"[^"]*"|`[^`]*`', "", query)))
        patterns = re.findall(r'__name__=~"([^"]*)"', query)
        matchers = re.findall(r"([a-z_]+)(=~|!~)[\"`]([^\"`]*)[\"`]", query)
        found = []
        for labels, scraped in self.series:
            name = labels["__name__"]
            is_named = name in names or any(re.fullmatch(pattern, name) for pattern in patterns)
            if is_named and all(
                (operator == "=~") == bool(re.fullmatch(p, labels.get(key, ""))) for key, operator, p in matchers
            ):
                found.append((labels, scraped))
        return found


def success(data: Any) -> Answer:
    """Return a good answer."""
    return 200, json.dumps({"status": "success", "data": data}).encode()


def failure(code: int, kind: str, text: str) -> Answer:
    """Return a refusal with Prometheus' own error text."""
    return code, json.dumps({"status": "error", "errorType": kind, "error": text}).encode()


@contextmanager
def serving(fake: FakePrometheus) -> Iterator[FakePrometheus]:
    """Serve it on a free port of this machine while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            parameters = {name: values[0] for name, values in form.items()}
            if fake.authorization and self.headers.get("Authorization") != fake.authorization:
                code, content = 401, b"Unauthorized\n"
            else:
                code, content = fake.answer(self.path.rpartition("/")[2], parameters)
            if fake.warnings and code == 200:
                content = json.dumps({**json.loads(content), "warnings": fake.warnings}).encode()
            self.send_response(code)
            if code == 302:
                self.send_header("Location", content.decode())
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client that has given up

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
