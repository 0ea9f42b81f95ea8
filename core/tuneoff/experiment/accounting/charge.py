"""What one run is charged: the matrix's accounting, and the machines that its framework needs beside the slots."""

from __future__ import annotations

import msgspec

from tuneoff.capabilities import Capabilities
from tuneoff.experiment.accounting.declared import Accounting


def of_run(accounting: Accounting, capabilities: Capabilities) -> Accounting:
    """Return the accounting of a run of a framework, with whether it needs a head node and a database."""
    return msgspec.structs.replace(accounting, head_node=capabilities.head_node, database=capabilities.database)
