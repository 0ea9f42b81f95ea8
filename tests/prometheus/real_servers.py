"""The real `prometheus` and `prometheus-node-exporter` of the distribution, on free ports of this machine."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlencode

import pytest

from waiting import until

PROGRAMS = ("prometheus", "prometheus-node-exporter")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]
needs_servers = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (Debian's packages of these names)"
)

SCRAPE = "200ms"
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def get(url: str) -> bytes | None:
    """Return the answer to a GET, or None where none comes."""
    try:
        with _DIRECT.open(url, timeout=5) as answer:
            content: bytes = answer.read()
            return content
    except (OSError, urllib.error.URLError):
        return None


def query(url: str, text: str) -> list[tuple[dict[str, str], float]]:
    """Return the labels and values of an instant query."""
    content = get(f"{url}/api/v1/query?{urlencode({'query': text})}")
    assert content is not None
    return [(one["metric"], float(one["value"][1])) for one in json.loads(content)["data"]["result"]]


@contextlib.contextmanager
def prometheus(folder: Path, targets: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Run a server with a target of its own for each of these labels, scraped five times a second from 5 s after its start on.

    Yields its URL and the targets' addresses, where something may listen later.
    """
    folder.mkdir()
    addresses = [f"127.0.0.1:{free_port()}" for _ in targets]
    static = [{"targets": [address], "labels": dict(labels)} for address, labels in zip(addresses, targets, strict=True)]
    scrape = {"job_name": "test", "scrape_interval": SCRAPE, "scrape_timeout": SCRAPE, "static_configs": static}
    (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": [scrape]}))  # JSON is YAML
    url = f"http://127.0.0.1:{free_port()}"
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    command = ["prometheus", *options, f"--web.listen-address={url.removeprefix('http://')}"]
    with program(command, folder / "log.txt", f"{url}/-/ready"):
        yield url, addresses


@contextlib.contextmanager
def node_exporter(folder: Path, address: str, *options: str) -> Iterator[None]:
    """Serve an exporter of what a (fake) /sys below `folder` says."""
    fixed = [f"--web.listen-address={address}", "--collector.disable-defaults", "--collector.rapl", "--collector.cpu"]
    command = ["prometheus-node-exporter", *fixed, f"--path.sysfs={folder}", *options]
    with program(command, folder.with_suffix(".log"), f"http://{address}/metrics"):
        yield


class Powercap:
    """A fake /sys with RAPL zones whose counters a test sets."""

    def __init__(self, root: Path, zones: Mapping[str, str]) -> None:
        """`zones`: the names by folder, as {"intel-rapl:0": "package-0"}."""
        self.root = root
        self._base = root / "class" / "powercap"
        for folder, name in zones.items():
            (self._base / folder).mkdir(parents=True)
            (self._base / folder / "name").write_text(f"{name}\n")
            (self._base / folder / "max_energy_range_uj").write_text("262143328850\n")
            self.set(folder, 0.0)

    def set(self, zone: str, joules: float) -> None:
        """Let a zone's counter stand at some joules."""
        fresh = self._base / zone / "fresh"
        fresh.write_text(f"{round(joules * 1e6)}\n")
        fresh.replace(self._base / zone / "energy_uj")  # at once: the exporter reads at any time


def is_up(answers: str | int) -> bool:
    """Tell whether a page is there, or something takes connections at a port of 127.0.0.1."""
    if isinstance(answers, str):
        return get(answers) is not None
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", answers)) == 0


@contextlib.contextmanager
def program(command: Sequence[str], log: Path, answers: str | int) -> Iterator[None]:
    """Run a program until the block ends; it is up when the page `answers` is there, or something at that port."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        until(lambda: is_up(answers) or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
