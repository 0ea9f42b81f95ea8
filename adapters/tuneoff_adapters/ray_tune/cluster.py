"""Ray on several hosts: started there for one run and ended with it, or a cluster that is there already."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from tuneoff.base import clock
from tuneoff.base.files import read_regular_text
from tuneoff.base.process_limits import THREAD_VARIABLES
from tuneoff.base.processes import MARK
from tuneoff.errors import InfrastructureError, StepError, UserError
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.ray_tune import start
from tuneoff_adapters.ray_tune.cluster_options import ADDRESS
from tuneoff_adapters.ray_tune.environment import OF_A_CLUSTER, OF_ONE_MACHINE, SETTINGS, TOKEN, prepare_environment
from tuneoff_adapters.ray_tune.session import kept_handler, read_record, shut_down, write_record
from tuneoff_platforms.remote.agent import Agent
from tuneoff_platforms.remote.contact import CHECK_SECONDS, Contact
from tuneoff_platforms.remote.host import PASSED_ON, AgentNode, Host, Timed, answers
from tuneoff_platforms.remote.options import BEAT_SECONDS, LOST, HostOptions, host_options, is_here, own_address, slots_of
from tuneoff_platforms.time_limits import SETUP_SHARE

UNCHECKED = "host_unchecked"  # flag
CURRENT = "ray_current_cluster"  # file of the head's, with its address
_PACKAGE = "ray"


class RayHosts:
    """Ray for one run on hosts of the user's, reached by their command. Its processes carry the run's mark on every host."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._options: HostOptions = host_options(context.spec.options)
        self._contact = Contact(context, None, self._options.lost_seconds)
        self._shares = slots_of(self._options.hosts, context.spec.experiment.workers.count)

    def start(self, load: Callable[[], Any]) -> dict[str, Any]:
        """Check the hosts, start Ray on them, connect to it, and return what was done, for the record."""
        context = self._context
        context.outside.write_text(
            f"Ray's processes on {', '.join(self._options.hosts)}; they end {self._options.lost_seconds:g} s after they last "
            f"heard from tuneoff; else end those with {MARK}={context.execution_id} in their environment, and remove "
            f"/tmp/tuneoff-*{_digest(context.execution_id)}\n"
        )
        folder = self._contact.folder = new_folder(context.execution_id)
        record = {"temporary_folder": folder, "environment": prepare_environment(on_cluster=True)}
        for problem in self._open(CHECK_SECONDS):
            raise InfrastructureError(problem)
        write_record(context, record)  # not before: whoever reads the name here could be faster than the hosts
        context.remember("folder", folder)
        self._contact.check(_PACKAGE)
        self._contact.keep()
        address_here = own_address(self._options.hosts)
        local_host = next((host for host in self._shares if is_here(host)), None)
        quiet = ["--disable-usage-stats", "--log-color=false"]
        below = f"{folder}/ray"  # Ray lets everybody write into its own
        head = ["--head", "--port=0", f"--node-ip-address={address_here}", "--include-dashboard=false", f"--temp-dir={below}"]
        by_name = {node.name: node for node in self._contact.nodes}
        self._run({by_name[local_host or "localhost"]: [*head, *quiet, f"--num-cpus={self._shares.get(local_host or '', 0)}"]})
        address = read_regular_text(Path(below) / CURRENT).strip()  # the port is Ray's choice: nobody else can have it
        joined = {
            by_name[host]: [f"--address={address}", *quiet, f"--num-cpus={count}"]
            for host, count in self._shares.items()
            if host != local_host
        }
        self._run(joined)
        ray = load()
        connect(ray, address, {})
        return {**record, "hosts": self._shares, "address": address}

    def stop(self, seconds: float) -> None:
        """End all of the run on every host within some time. Works in a fresh process too.

        Raises:
            StepError: something is left on a host that answers.
        """
        shut_down()
        if not self._contact.nodes:
            self._contact.folder, self._contact.makes_folder = _folder_of(self._context), False
            for problem in self._open(seconds / 2):
                self._context.flag(LOST, f"{problem}; its agent ends what is left there")
        leftovers = self._contact.end(seconds / 2)
        if leftovers:
            raise StepError(f"Ray must leave nothing, but left {', '.join(leftovers)}; end it by hand")
        self._context.outside.unlink(missing_ok=True)

    def _open(self, seconds: float) -> list[str]:
        """Reach all hosts at once, and return what is wrong with those that do not answer."""
        options, folder = self._options, self._context.work_dir
        names = list(options.hosts) if any(map(is_here, options.hosts)) else ["localhost", *options.hosts]
        local_nodes = {name: (None, sys.executable) for name in names if is_here(name)}
        ways = {name: local_nodes.get(name, (options.host_command, options.host_python)) for name in names}
        nodes = [Host(name, template, python, folder / f"host-{name}.log") for name, (template, python) in ways.items()]
        return self._contact.add(nodes, seconds)

    def _run(self, starts: dict[AgentNode, list[str]]) -> None:
        environment = {
            name: value for name, value in os.environ.items() if name.startswith(("RAY_", "TUNE_")) or name in THREAD_VARIABLES
        }
        runs, seconds = {}, SETUP_SHARE * self._context.spec.experiment.timeouts.deploy_seconds
        for node, words in starts.items():
            python = sys.executable if is_here(node.name) else self._options.host_python
            command = [python, "-m", start.__name__, str(seconds), "start", *words]
            runs[node.name] = node.send(
                "run", command=command, environment={**environment, "TMPDIR": self._contact.folder}, seconds=seconds
            )
        for name, ended in answers(runs, seconds + 10.0).items():
            if ended["code"] != 0:
                lines = [line for line in ended["output"].splitlines() if line.strip()] or [f"exit code {ended['code']}"]
                raise InfrastructureError(f"Ray could not be started on host {name}: {lines[-1].strip()}")


def new_folder(execution_id: str) -> str:
    """Return a name for the folder of temporary files on every host that nobody can guess; short: Ray has sockets there."""
    return f"/tmp/tuneoff-{secrets.token_hex(4)}{_digest(execution_id)}"


def _folder_of(context: RunContext) -> str | None:
    """Return that folder's name as it was written down, if it can be this execution's."""
    name = str((read_record(context) or {}).get("temporary_folder"))
    return name if re.fullmatch(rf"/tmp/tuneoff-[0-9a-f]{{8}}{_digest(context.execution_id)}", name) else None


def _digest(execution_id: str) -> str:
    return hashlib.sha256(execution_id.encode()).hexdigest()[:8]


class RayAddress:
    """A cluster of Ray that is there: an agent is an actor on each of its nodes, for as long as the run is connected."""

    def __init__(self, context: RunContext) -> None:
        self._context, self._address = context, str(context.spec.options[ADDRESS])
        self._contact = Contact(context, None, host_options(context.spec.options).lost_seconds)
        self._node_ids: set[str] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, load: Callable[[], Any]) -> dict[str, Any]:
        """Connect with the user's token, and check every node."""
        record = prepare_environment(on_cluster=True, own_token=False)
        has_token = any(os.environ.get(name) for name in (TOKEN, "RAY_AUTH_TOKEN_PATH"))
        has_token = has_token or os.path.exists(os.path.expanduser("~/.ray/auth_token"))
        if os.environ["RAY_AUTH_MODE"] == "token" and not has_token:
            raise UserError(
                f"Ray's cluster at {self._address} needs a token, but none is given; set RAY_AUTH_TOKEN_PATH to the file with "
                "the cluster's (RAY_AUTH_MODE=disabled for a cluster that asks for none)"
            )
        names = (*THREAD_VARIABLES, *PASSED_ON, *(name for name in SETTINGS if name not in (*OF_ONE_MACHINE, *OF_A_CLUSTER)))
        variables = {name: os.environ[name] for name in names if name in os.environ}
        ray = load()
        variables[MARK] = self._context.execution_id
        connect(ray, self._address, {"env_vars": variables})
        self._take_in(self._joined())
        self._contact.check(_PACKAGE)
        self._contact.keep()
        self._thread = threading.Thread(target=self._look, name="late nodes", daemon=True)
        self._thread.start()
        return {"environment": record, "address": self._address, "nodes": sorted(self._node_ids)}

    def _joined(self) -> list[tuple[str, str]]:
        """Return name and id of each node that is not known yet."""
        import ray

        alive = [(entry["NodeManagerAddress"], entry["NodeID"]) for entry in ray.nodes() if entry["Alive"]]
        return [(name, node_id) for name, node_id in alive if node_id not in self._node_ids]

    def _take_in(self, joined: list[tuple[str, str]], are_late: bool = False) -> list[AgentNode]:
        """Reach nodes at once.

        Raises:
            InfrastructureError: one of them cannot be reached.
        """
        self._node_ids.update(node_id for _, node_id in joined)
        nodes: list[AgentNode] = [ActorNode(name, node_id) for name, node_id in joined]
        for problem in self._contact.add(nodes, are_late=are_late):
            raise InfrastructureError(problem)
        return nodes

    def _look(self) -> None:
        """Take in nodes that join late, and flag those that would have been refused at the start: Ray starts trials there."""
        while not self._stop.wait(BEAT_SECONDS):
            try:
                joined = self._joined()
            except Exception:  # of several classes; what is wrong with the cluster, the driver meets itself
                continue
            for name, node_id in joined:
                try:
                    self._contact.check(_PACKAGE, self._take_in([(name, node_id)], are_late=True))
                except Exception as error:  # of Ray's too
                    if not self._stop.is_set():
                        text = " ".join(str(error).split())
                        self._context.flag(UNCHECKED, f"node {name} joined late, and Ray starts trials there, but {text}")

    def stop(self, seconds: float) -> None:
        """End the run's processes on all nodes; the cluster stays."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(BEAT_SECONDS)
        leftovers = self._contact.end(seconds / 2)
        shut_down()
        if leftovers:
            raise StepError(f"the run must leave nothing, but left {', '.join(leftovers)}; end it by hand")


def connect(ray: Any, address: str, runtime_env: dict[str, Any]) -> None:
    """Connect this process to a cluster as its driver.

    Raises:
        UserError: the cluster does not take the token.
        InfrastructureError: it cannot be reached.
    """
    with kept_handler():
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", runtime_env=runtime_env)
        except Exception as error:  # of several classes, some of which only Ray's C code knows
            if "InvalidAuthToken" in f"{error}{error.__cause__}":  # Ray tries for 20 s
                raise UserError(
                    f"Ray's cluster at {address} does not take this token; set RAY_AUTH_TOKEN_PATH to the file with the cluster's"
                ) from error
            raise InfrastructureError(
                f"Ray's cluster at {address} cannot be reached: {str(error).strip().splitlines()[0]}; this machine must be one "
                "of its nodes"
            ) from error


class ActorNode:
    """An agent in an actor of Ray's."""

    def __init__(self, name: str, node_id: str) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.name = name
        on_node = NodeAffinitySchedulingStrategy(node_id, soft=False)
        self._actor = ray.remote(num_cpus=0, max_concurrency=2)(Agent).options(scheduling_strategy=on_node).remote()

    def send(self, do: str, **arguments: Any) -> Future[Timed]:
        answer: Future[Timed] = Future()

        def pass_on(call: Future[Any]) -> None:
            arrived_ns, error = clock.monotonic_ns(), call.exception()
            if error is None:
                answer.set_result(Timed(call.result(), arrived_ns))
            else:
                answer.set_exception(InfrastructureError(f"node {self.name}: {str(error).strip().splitlines()[0]}"))

        getattr(self._actor, do).remote(**arguments).future().add_done_callback(pass_on)
        return answer

    def close(self, at_once: bool = False) -> None:
        import ray

        ray.kill(self._actor)
