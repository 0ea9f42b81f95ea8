"""Serve the figures of a results folder on this machine for Prometheus: `python -m benchmarks.prometheus DIR [PORT]`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

HELP = {
    "tuneoff_runs": "Planned runs by status.",
    "tuneoff_left_seconds": "Estimated time until the matrix ends.",
    "tuneoff_run_info": "The run that runs now.",
    "tuneoff_run_trials": "Its trials by state.",
    "tuneoff_run_budget_trials": "Its budget in trials.",
    "tuneoff_run_epochs": "Epochs that its trials have trained.",
    "tuneoff_run_duration_seconds": "Time since its start.",
    "tuneoff_run_incumbent": "Best validation value of its completed trials.",
}


class Metrics(BaseHTTPRequestHandler):
    """Answers each request with the present state of a folder."""

    folder: str

    def do_GET(self) -> None:
        command = [sys.executable, "-m", "tuneoff", "watch", self.folder, "--once", "--json"]
        state = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        lines: dict[str, list[str]] = {}  # by metric
        for name, labels, value in samples(state):
            if value is not None:
                text = ",".join(f"{key}={json.dumps(label, ensure_ascii=False)}" for key, label in labels.items())
                about = [f"# HELP {name} {HELP[name]}", f"# TYPE {name} gauge"]
                lines.setdefault(name, about).append(f"{name}{{{text}}} {value}")
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.end_headers()
        self.wfile.write("".join(f"{line}\n" for of_metric in lines.values() for line in of_metric).encode())


def samples(state: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, str], float | None]]:
    """Yield name, labels and value of each figure of what `tuneoff watch --once --json` prints."""
    for status, count in state["counts"].items():
        yield "tuneoff_runs", {"status": status}, count
    yield "tuneoff_left_seconds", {}, state["seconds_left"]
    run = state["current"]
    if run is not None:
        yield "tuneoff_run_info", {key: run[key] for key in ("run_id", "name", "step")}, 1
        for trials in ("running", "completed", "pruned", "failed", "cancelled"):
            yield "tuneoff_run_trials", {"state": trials}, run[trials]
        yield "tuneoff_run_budget_trials", {}, run["trials"]
        yield "tuneoff_run_epochs", {}, run["epochs"]
        yield "tuneoff_run_duration_seconds", {}, run["seconds"]
        yield "tuneoff_run_incumbent", {"metric": run["metric"]}, run["incumbent"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("port", metavar="PORT", nargs="?", type=int, default=9464)
    options = parser.parse_args()
    Metrics.folder = options.folder
    server = HTTPServer(("127.0.0.1", options.port), Metrics)
    print(f"http://127.0.0.1:{server.server_port}/metrics", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
