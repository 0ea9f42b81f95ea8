"""`python -m tuneoff_adapters.optuna.proxy SOCKET`: Optuna's gRPC proxy over the database whose URL is on standard input."""

import sys
from typing import Any

from optuna.storages import get_storage, run_grpc_proxy_server

if __name__ == "__main__":
    # by `get_storage`: over a bare `RDBStorage` the proxy has no cache, and each ask reads every trial
    socket: Any = sys.argv[1]  # Optuna joins host and port by a colon, and so are gRPC's names of sockets
    run_grpc_proxy_server(get_storage(sys.stdin.read()), host="unix", port=socket)
