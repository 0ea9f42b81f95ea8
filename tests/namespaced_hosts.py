"""Hosts for tests: namespaces of this machine's kernel on a switch without a way out, reached by a real `ssh {host}`.

A host has an address, a name, a boot id, processes, /tmp, /run, /dev/shm and a home folder of its own; the rest of the file
system is shared, as by NFS, but stays in reach of a host without its cable. All hosts have one kernel: their clocks agree, and
`nproc` counts the machine's processors in each.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tuneoff.base.processes import children
from waiting import until

REPOSITORY = Path(__file__).parent.parent
NEEDED = {
    "ip": "iproute2",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    **dict.fromkeys(("nsenter", "setpriv", "unshare"), "util-linux"),
}
TRIED = """ip link add br0 type bridge && ip link add eth0 type veth peer name h1 && ip link set h1 master br0 || exit 1
[ -e /proc/$$/task/$$/children ] || { echo /proc/PID/task/TID/children is missing >&2; exit 1; }"""
CGROUPS = Path("/sys/fs/cgroup")
HOME = "/tmp/home"
WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")  # ends a host with the process of the tests, even a killed one

# its first process reaps: else every ended daemon of the host would stay as a zombie
BOOT = """
hostname {name}
mount --bind {folder}/boot_id /proc/sys/kernel/random/boot_id
mount --bind {hosts} /etc/hosts
{kept}
mount --rbind {folder}/tmp /tmp
mount -t tmpfs tmpfs /run && mkdir /run/sshd
mount -t tmpfs tmpfs /dev/shm
/usr/sbin/sshd -f {sshd} && touch {folder}/booted
trap : CHLD; while :; do sleep 3600 & wait $!; done
"""
SSHD = """HostKey {folder}/key
AuthorizedKeysFile {folder}/key.pub
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
PidFile none
SetEnv HOME={home}
"""
SSH = """IdentityFile {folder}/key
GlobalKnownHostsFile {folder}/known_hosts
UserKnownHostsFile none
BatchMode yes
ConnectTimeout 3
LogLevel ERROR
"""


def missing() -> str | None:
    """Return why no hosts can be made here, or None."""
    if os.geteuid() != 0:
        return "hosts for tests need root"
    lacking = sorted({package for name, package in NEEDED.items() if _program(name) is None})
    if lacking:
        return f"not installed: {', '.join(lacking)}; run: .ci/install 'hosts for tests' {' '.join(lacking)}"
    tried = subprocess.run(
        ["unshare", "--net", "--uts", "--mount", "--ipc", "--pid", "--fork", "--mount-proc", "sh", "-c", TRIED],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if tried.returncode == 0 else f"no hosts of namespaces here: {tried.stderr.strip()}"


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class Hosts:
    """`count` hosts, h1, h2, ...; `shared` is a folder that all have."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.shared = folder / "shared"
        self.shared.mkdir()
        self.names = [f"h{number}" for number in range(1, count + 1)]
        self._set = f"t{os.getpid()}"  # begins the names of what the kernel keeps
        self._processes: dict[str, subprocess.Popen[bytes]] = {}  # unshare; the host's first process is its child

    @property
    def template(self) -> str:
        """The command that a host is reached by from another one."""
        return f"ssh -F {self.folder}/ssh_config {{host}}"

    def address(self, name: str) -> str:
        return f"10.77.0.{10 + int(name[1:])}"

    def up(self) -> None:
        """Make the switch and the hosts, and start them."""
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / "key")], check=True)
        (self.folder / "known_hosts").write_text(f"* {(self.folder / 'key.pub').read_text()}")
        (self.folder / "sshd_config").write_text(SSHD.format(folder=self.folder, home=HOME))
        (self.folder / "ssh_config").write_text(SSH.format(folder=self.folder))
        lines = ["127.0.0.1 localhost", *(f"{self.address(name)} {name}" for name in self.names)]
        (self.folder / "hosts").write_text("\n".join(lines) + "\n")
        switch = f"{self._set}-switch"
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "br0", "type", "bridge")
        _ip("-n", switch, "link", "set", "br0", "up")
        for name in self.names:
            own = self._network(name)
            _ip("netns", "add", own)
            _ip("-n", switch, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", own)
            _ip("-n", switch, "link", "set", name, "master", "br0", "up")
            _ip("-n", own, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", own, "link", "set", device, "up")
            self.power_on(name)

    def power_on(self, name: str) -> None:
        """Start a host that is off, with an empty /tmp; each start is another boot."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "tmp/home").mkdir(parents=True)
        (folder / "tmp").chmod(0o1777)
        (folder / "boot_id").write_text(f"{uuid.uuid4()}\n")
        kept = [path for path in (REPOSITORY, Path(sys.prefix)) if path.is_relative_to("/tmp")]
        bound = "\n".join(f"mkdir -p {folder}{path} && mount --bind {path} {folder}{path}" for path in kept)
        names = {"name": name, "folder": folder, "hosts": self.folder / "hosts", "sshd": self.folder / "sshd_config"}
        script = BOOT.format(**names, kept=bound)
        parts = ["--uts", "--mount", "--ipc", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"]
        network = f"--net=/run/netns/{self._network(name)}"  # `ip netns exec` would mount an empty /sys
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [*WITH_PARENT, "nsenter", network, "unshare", *parts, "bash", "-c", script],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.plug(name)
        until(lambda: (folder / "booted").exists())

    def power_off(self, name: str) -> None:
        """End a host as a power failure does: nothing more comes from it, and its peers are told nothing."""
        self.pull(name)
        process = self._processes.pop(name)
        for pid in children(process.pid) or [process.pid]:  # a host's first process takes all others along, unshare takes that
            os.kill(pid, signal.SIGKILL)
        process.wait()

    def pull(self, name: str) -> None:
        """Pull its cable."""
        _ip("-n", f"{self._set}-switch", "link", "set", name, "down")

    def plug(self, name: str) -> None:
        """Plug its cable in."""
        _ip("-n", f"{self._set}-switch", "link", "set", name, "up")

    def command(self, name: str, script: str) -> list[str]:
        """Return the command that runs a shell script at a host's console, whatever its network does."""
        (first,) = children(self._processes[name].pid)
        environment = ["env", "-i", f"HOME={HOME}", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"]
        entered = ["nsenter", f"--target={first}", "--net", "--uts", "--mount", "--ipc", "--pid", "--wd=/"]
        return [*entered, *environment, "sh", "-c", script]

    def run(self, name: str, script: str, *, check: bool = True, seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a shell script at a host's console."""
        done = subprocess.run(
            self.command(name, script), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    def down(self) -> None:
        """End the hosts and remove all that was made."""
        for name in list(self._processes):
            self.power_off(name)
        for name in (*map(self._network, self.names), f"{self._set}-switch"):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def _network(self, name: str) -> str:
        return f"{self._set}-{name}"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextlib.contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """Give so many hosts, or skip the test with the reason."""
    if (reason := missing()) is not None:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="hosts-", dir="/var/tmp") as folder:  # each host has a /tmp of its own
        made = Hosts(Path(folder), count)
        try:
            made.up()
            yield made
        finally:
            made.down()
