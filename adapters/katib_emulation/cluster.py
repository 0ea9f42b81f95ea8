"""The parts of the emulated cluster, put together: store, controllers, node, HTTP."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

from katib_emulation.controllers import Controllers
from katib_emulation.http.api import Access, Api
from katib_emulation.http.server import Server
from katib_emulation.installation import install
from katib_emulation.node.node import Node
from katib_emulation.observations import Observations
from katib_emulation.storage.journal import JournalError
from katib_emulation.storage.store import Store


class Cluster:
    """One emulated cluster by the options of the command line; it serves from `start` to `stop`.

    Raises:
        JournalError: the folder is in use, damaged, or cannot be written.
    """

    def __init__(self, options: Namespace, token: str, on_failure: Callable[[JournalError], None]) -> None:
        self.store = Store(options.folder, on_failure)
        install(self.store, options.katib_version)
        observations = Observations(options.folder)
        self.node = Node(self.store, observations, options.folder, options.image, options.cpus, options.memory)
        self.controllers = Controllers(self.store, observations, options.lose_answers)
        api = Api(self.store, Access(options.deny))
        self.server = Server(api, self.node, token, options.access_log, options.katib_version)

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
