"""SLURM on hosts for tests: a controller on the first, a node on each of the others. Real programs of the distribution."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from namespaced_hosts import CGROUPS, Hosts, hosts
from waiting import until

NEEDED = {"slurmctld": "slurmctld", "slurmd": "slurmd", "munged": "munge", "sbatch": "slurm-client"}
CPUS, MEMORY_MB = 2, 2000  # of a node, as SLURM is told

CONFIGURATION = """ClusterName=tests
SlurmctldHost={controller}({controller_address})
AuthType=auth/munge
AuthInfo=socket=/tmp/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation=/tmp/state
SlurmdSpoolDir=/tmp/spool
SlurmctldPidFile=/tmp/slurmctld.pid
SlurmdPidFile=/tmp/slurmd.pid
SlurmctldLogFile=/tmp/slurmctld.log
SlurmdLogFile=/tmp/slurmd.log
ProctrackType=proctrack/{tracking}
TaskPlugin=task/{tasks}
MpiDefault=none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=400
SlurmdTimeout=10
KillWait=2
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
{nodes}
PartitionName=low Nodes=ALL Default=YES PriorityTier=1
PartitionName=high Nodes=ALL PriorityTier=2 PreemptMode=OFF
"""


def missing() -> str | None:
    """Return why SLURM cannot run here, or None."""
    lacking = sorted(package for program, package in NEEDED.items() if _program(program) is None)
    return f"not installed: {', '.join(lacking)}; run: .ci/install SLURM {' '.join(NEEDED.values())}" if lacking else None


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def limits_memory() -> bool:
    """Whether SLURM limits the memory of jobs here: by control groups of the first version."""
    return (CGROUPS / "memory" / "cgroup.procs").exists()


class Slurm:
    """SLURM's daemons on hosts that are up; `nodes`: all but the first."""

    def __init__(self, made: Hosts) -> None:
        self.hosts, (self.controller, *self.nodes) = made, made.names
        self.conf = made.shared / "slurm.conf"

    def up(self) -> None:
        shared, limits = self.hosts.shared, limits_memory()
        (shared / "munge.key").write_bytes(os.urandom(128))
        (shared / "munge.key").chmod(0o400)
        nodes = [f"NodeName={name} NodeAddr={self.hosts.address(name)} CPUs={CPUS} RealMemory={MEMORY_MB}" for name in self.nodes]
        self.conf.write_text(
            CONFIGURATION.format(
                controller=self.controller,
                controller_address=self.hosts.address(self.controller),
                tracking="cgroup" if limits else "linuxproc",
                tasks="cgroup" if limits else "none",
                nodes="\n".join(nodes),
            )
        )
        (shared / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nConstrainRAMSpace=yes\n")
        self._munge(self.controller)
        self.hosts.run(self.controller, f"mkdir -p /tmp/state && SLURM_CONF={self.conf} slurmctld")
        for name in self.nodes:
            self.start_node(name)
        self.wait_idle()

    def start_node(self, name: str) -> None:
        """Start a node's daemons, after its host was powered on."""
        self._munge(name)
        self.hosts.run(name, f"mkdir -p /tmp/spool && SLURM_CONF={self.conf} slurmd")

    def wait_idle(self) -> None:
        """Wait until all nodes are free."""
        until(lambda: self.call("sinfo -h -N -p low -o %t").split() == ["idle"] * len(self.nodes), 60)

    def call(self, words: str) -> str:
        return self.hosts.run(self.controller, f"SLURM_CONF={self.conf} {words}").stdout

    def down(self) -> None:
        """Remove the control groups that the daemons made; to be called when the hosts are down."""
        for name in self.nodes:
            for made in CGROUPS.glob(f"*/slurm_{name}"):
                for folder, _, _ in os.walk(made, topdown=False):
                    with contextlib.suppress(OSError):
                        Path(folder).rmdir()

    def _munge(self, name: str) -> None:
        key = f"--key-file={self.hosts.shared}/munge.key --socket=/tmp/munge.socket --seed-file=/tmp/munge.seed"
        self.hosts.run(name, f"munged --force {key} --pid-file=/tmp/munged.pid --log-file=/tmp/munged.log")


@contextlib.contextmanager
def slurm(nodes: int) -> Iterator[Slurm]:
    """Give SLURM with so many nodes, and a host before them; or skip the test with the reason."""
    if (reason := missing()) is not None:
        pytest.skip(reason)
    with contextlib.ExitStack() as stack:
        after = stack.enter_context(contextlib.ExitStack())  # ends later than the hosts
        made = Slurm(stack.enter_context(hosts(nodes + 1)))
        after.callback(made.down)
        made.up()
        yield made
