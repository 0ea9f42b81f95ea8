"""The parts of the emulated cluster, put together: store, admission, controllers, node, HTTP."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from katib_emulation.admission import admit_experiment
from katib_emulation.controllers import Controllers
from katib_emulation.http.access import Access, Denial
from katib_emulation.http.api import Api
from katib_emulation.http.server import Server
from katib_emulation.installation import install
from katib_emulation.kinds import KATIB_VERSION
from katib_emulation.node.node import Node
from katib_emulation.observations import Observations
from katib_emulation.storage.journal import JournalError
from katib_emulation.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What can be set about a cluster."""

    folder: Path  # its objects, logs and volumes
    port: int = 0  # 0: a free one
    token: str | None = None  # None: whoever reaches the port is served
    images: Sequence[str] = ()  # what pods may name as their image; none: any
    cpus: float | None = None  # processors of the node; None: without end
    memory: int | None = None  # bytes of the node; None: without end
    denials: Collection[Denial] = ()
    access_log: Path | None = None
    katib_version: str = KATIB_VERSION  # that is served; NO_KATIB: none is installed


class Cluster:
    """One emulated cluster; it serves from `start` to `stop`.

    Raises:
        JournalError: the folder is in use, damaged, or cannot be written.
        OSError: the port is taken, or a file cannot be written.
    """

    def __init__(self, settings: Settings, on_failure: Callable[[JournalError], None]) -> None:
        self.store = Store(settings.folder, on_failure)
        install(self.store, settings.katib_version)
        observations = Observations(settings.folder)
        self.node = Node(self.store, observations, settings.folder, settings.images, settings.cpus, settings.memory)
        self.controllers = Controllers(self.store, observations)
        api = Api(self.store, Access(settings.denials), admit_experiment)
        self.server = Server(api, self.node, settings.port, settings.token, settings.access_log, settings.katib_version)

    def start(self) -> None:
        """Start the node, the controllers and the server."""
        self.node.start()
        self.controllers.start()
        self.server.start()

    def stop(self) -> None:
        """Serve no more, kill the pods' processes, and let go of the folder; the objects stay as they are."""
        self.server.stop()
        self.controllers.stop()
        self.node.stop()
        self.store.close()
