"""The parts of the emulated cluster, put together: store, admission, controllers, node, HTTP."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuneoff_adapters.katib.emulated.admission import admit_experiment
from tuneoff_adapters.katib.emulated.controllers import Controllers
from tuneoff_adapters.katib.emulated.http.access import Access, Denial
from tuneoff_adapters.katib.emulated.http.api import Api
from tuneoff_adapters.katib.emulated.http.server import Server
from tuneoff_adapters.katib.emulated.installation import install
from tuneoff_adapters.katib.emulated.kinds import KATIB_VERSION
from tuneoff_adapters.katib.emulated.node.node import Node
from tuneoff_adapters.katib.emulated.observations import Observations
from tuneoff_adapters.katib.emulated.storage.journal import JournalError
from tuneoff_adapters.katib.emulated.storage.store import Store


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
