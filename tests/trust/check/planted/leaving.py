"""Adapters that leave something behind, or open the machine to its network."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from tuneoff_adapters.serial import SerialAdapter

NAME = "tuneoff-planted"
SHARED_MEMORY = Path("/dev/shm")
SLEEP = "import time; time.sleep(60)"
LISTEN = f"import socket; s = socket.create_server(('127.0.0.1', 0)); print('listens', flush=True); {SLEEP}"


class LeaksAProcess(SerialAdapter):
    """Starts a process and forgets it."""

    def deploy(self) -> None:
        super().deploy()
        subprocess.Popen([sys.executable, "-S", "-c", SLEEP], start_new_session=True)


class LeavesAPort(SerialAdapter):
    """Starts a server and forgets it."""

    def deploy(self) -> None:
        super().deploy()
        server = subprocess.Popen([sys.executable, "-S", "-c", LISTEN], start_new_session=True, stdout=subprocess.PIPE)
        assert server.stdout is not None
        server.stdout.readline()  # it listens


class LeavesSharedMemory(SerialAdapter):
    """Makes a piece of shared memory and forgets it."""

    def deploy(self) -> None:
        super().deploy()
        (SHARED_MEMORY / f"{NAME}-{self.context.execution_id}").write_bytes(b"left")


class LeavesATemporaryFile(SerialAdapter):
    """Puts a temporary file beside the folder that it was given."""

    def deploy(self) -> None:
        super().deploy()
        (self.context.temporary_dir.parent / f"{NAME}-{self.context.execution_id}").touch()


class LeavesAHomeFile(SerialAdapter):
    """Keeps its settings in the home folder."""

    def deploy(self) -> None:
        super().deploy()
        (Path.home() / f".{NAME}-{self.context.execution_id}").touch()


class LeavesACluster(SerialAdapter):
    """Makes something outside this machine and does not remove it."""

    def deploy(self) -> None:
        super().deploy()
        self.context.outside.write_text("a thing in a cluster that does not exist; there is nothing to remove\n")


class ListensToTheNetwork(SerialAdapter):
    """Has a server that others can reach."""

    def deploy(self) -> None:
        super().deploy()
        self._server = socket.create_server(("0.0.0.0", 0))

    def undeploy(self) -> None:
        super().undeploy()
        if hasattr(self, "_server"):
            self._server.close()
