"""The emulated cluster as its own process, for tests."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from waiting import until

COMMAND = (sys.executable, "-m", "katib_emulation")


class Program:
    """A running server and its kubeconfig."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.kubeconfig = folder.with_name(f"{folder.name}.kubeconfig")
        command = [*COMMAND, str(folder), "--kubeconfig", str(self.kubeconfig), *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        until(lambda: self.kubeconfig.exists() or self.process.poll() is not None)

    @property
    def config(self) -> dict[str, Any]:
        """The kubeconfig."""
        found: dict[str, Any] = json.loads(self.kubeconfig.read_text())
        return found

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.config["clusters"][0]["cluster"]["server"].rpartition(":")[2])

    def ask(self, verb: str, path: str, body: Any = None) -> Any:
        """Send a request with the token of the kubeconfig; return the parsed answer."""
        token = self.config["users"][0]["user"]["token"]
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", content, headers, method=verb)
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)

    def runs_namespaces(self) -> list[str]:
        """Return the names of the namespaces that runs of tuneoff made."""
        names = [item["metadata"]["name"] for item in self.ask("GET", "/api/v1/namespaces")["items"]]
        return [name for name in names if name.startswith("tuneoff-")]

    def wait(self, seconds: float = 20) -> tuple[int, str]:
        """Wait for its end; return (exit code, what it wrote to stderr)."""
        _, errors = self.process.communicate(timeout=seconds)
        return self.process.returncode, errors


def failure(folder: Path, kubeconfig: Path, *options: str) -> str:
    """Run the program, which cannot start; return the single line that it must write."""
    command = [*COMMAND, str(folder), "--kubeconfig", str(kubeconfig), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1), ended.stderr
    return str(ended.stderr)


@contextlib.contextmanager
def program(folder: Path, *options: str) -> Iterator[Program]:
    """Run a server; it is ended at the end if it still runs."""
    running = Program(folder, *options)
    try:
        yield running
    finally:
        running.process.terminate()
        try:
            running.process.communicate(timeout=20)
        finally:
            running.process.kill()
