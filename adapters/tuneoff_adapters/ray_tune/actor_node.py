"""A node of a Ray cluster as the coordinator has it: an agent in an actor of Ray's."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from tuneoff.base import clock
from tuneoff.errors import InfrastructureError
from tuneoff_adapters.hosts.agent import Agent
from tuneoff_adapters.hosts.host import Timed


class ActorNode:
    """An agent in an actor of Ray's."""

    def __init__(self, name: str, node_id: str) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.name = name
        there = NodeAffinitySchedulingStrategy(node_id, soft=False)
        self._actor = ray.remote(num_cpus=0, max_concurrency=2)(Agent).options(scheduling_strategy=there).remote()

    def send(self, do: str, **arguments: Any) -> Future[Timed]:
        found: Future[Timed] = Future()

        def pass_on(done: Future[Any]) -> None:
            arrived_ns, error = clock.monotonic_ns(), done.exception()
            if error is None:
                found.set_result(Timed(done.result(), arrived_ns))
            else:
                found.set_exception(InfrastructureError(f"node {self.name}: {str(error).strip().splitlines()[0]}"))

        getattr(self._actor, do).remote(**arguments).future().add_done_callback(pass_on)
        return found

    def close(self, at_once: bool = False) -> None:
        import ray

        ray.kill(self._actor)
