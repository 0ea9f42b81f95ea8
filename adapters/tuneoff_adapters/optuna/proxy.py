"""`python -m tuneoff_adapters.optuna.proxy HOST PORT`: Optuna's gRPC proxy over the database whose URL is on standard input."""

import sys

from optuna.storages import get_storage, run_grpc_proxy_server

if __name__ == "__main__":
    # by `get_storage`: over a bare `RDBStorage` the proxy has no cache, and each ask reads every trial
    run_grpc_proxy_server(get_storage(sys.stdin.read()), host=sys.argv[1], port=int(sys.argv[2]))
