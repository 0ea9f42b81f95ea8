"""The hosts that tests make: what is a host's own, what they share, and how each fault looks from the other one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import namespaced_hosts
from namespaced_hosts import Hosts, hosts
from tuneoff.base.processes import is_alive
from waiting import until

pytestmark = pytest.mark.multihost
PATHS = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture(scope="module")
def two() -> Iterator[Hosts]:
    with hosts(2) as made:
        yield made


def by_ssh(two: Hosts, command: str) -> tuple[int, str]:
    """Run a command on h2 from h1, by the template; return its exit code and all that it printed."""
    done = two.run("h1", f"{two.template.format(host='h2')} '{command}' 2>&1", check=False)
    return done.returncode, done.stdout.strip()


def test_a_host_has_its_own_name_address_boot_id_processes_and_folders_and_shares_the_rest(two: Hosts) -> None:
    for name in two.names:
        two.run(name, f"echo {name} >/tmp/note; echo {name} >/dev/shm/note; echo {name} >$HOME/note; echo >{two.shared}/{name}")
    seen = (
        "hostname; cat /proc/sys/kernel/random/boot_id /tmp/note /dev/shm/note $HOME/note; ip -4 -o addr show eth0 | cut -d/ -f1"
    )
    here, there = two.run("h1", seen).stdout.split(), by_ssh(two, seen)[1].split()
    assert (here[0], *here[2:5]) == ("h1",) * 4
    assert (there[0], *there[2:5]) == ("h2",) * 4
    assert (here[-1], there[-1]) == (two.address("h1"), two.address("h2"))
    assert here[1] != there[1]
    assert here[1] != Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert int(two.run("h2", "ls -d /proc/[0-9]* | wc -l").stdout) < 20
    assert {path.name for path in two.shared.iterdir()} == {"h1", "h2"}


def test_a_pulled_cable_is_silence_and_a_plugged_one_heals(two: Hosts) -> None:
    two.pull("h2")
    started = time.monotonic()
    code, text = by_ssh(two, "true")
    assert (code, "timed out" in text or "No route" in text) == (255, True), text
    assert time.monotonic() - started > 2.5  # not refused: nobody answers
    two.plug("h2")
    assert by_ssh(two, "hostname") == (0, "h2")


def test_a_host_without_power_loses_its_processes_and_its_tmp_and_boots_anew(two: Hosts) -> None:
    boot = by_ssh(two, "cat /proc/sys/kernel/random/boot_id")
    by_ssh(two, "touch /tmp/gone; nohup sleep 987 >/dev/null 2>&1 &")
    assert by_ssh(two, "pgrep -f [s]leep.987")[0] == 0
    two.power_off("h2")
    assert by_ssh(two, "true")[0] == 255
    two.power_on("h2")
    assert by_ssh(two, "pgrep -f [s]leep.987; ls /tmp/gone")[0] != 0
    assert by_ssh(two, "cat /proc/sys/kernel/random/boot_id") != boot


def test_hosts_are_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert namespaced_hosts.missing() == "hosts for tests need root"
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name, path: None if name in ("ssh", "sshd") else name)
    assert "run: .ci/install 'hosts for tests' openssh-client openssh-server" in (namespaced_hosts.missing() or "")


def test_hosts_are_skipped_where_the_kernel_has_no_bridge(two: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert namespaced_hosts.missing() is None
    (tmp_path / "ip").write_text("#!/bin/sh\necho Unknown device type. >&2; exit 2\n")
    (tmp_path / "ip").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert namespaced_hosts.missing() == "no hosts of namespaces here: Unknown device type."


def test_hosts_end_with_the_process_that_made_them_even_if_it_is_killed(two: Hosts) -> None:
    folder = two.folder / "killed"
    (folder / "again").mkdir(parents=True)
    made = f"""
import os, pathlib, namespaced_hosts
made = namespaced_hosts.Hosts(pathlib.Path({str(folder)!r}), 1)
made.up()
print(*namespaced_hosts.children(made._processes["h1"].pid), flush=True)
input()
"""
    with subprocess.Popen([sys.executable, "-c", made], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=PATHS) as process:
        assert process.stdout is not None
        first = int(process.stdout.readline())
        assert is_alive(first)
        process.kill()
    try:
        until(lambda: not is_alive(first))
    finally:
        if is_alive(first):
            os.kill(first, signal.SIGKILL)
        rest = Hosts(folder / "again", 1)
        rest._set = f"t{process.pid}"
        rest.down()
