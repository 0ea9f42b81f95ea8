"""Experiments of Katib and what the SDK's user sees of them: recorded on a real cluster, and held against the emulation.

    PYTHONPATH=tests python -m emulated.tracing KUBECONFIG IMAGE FOLDER [NAME ...]

writes a trace per experiment. `IMAGE` needs `sh`, `sleep` and `date`.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from emulated.trace_cases import CASES, PARALLEL, Object, manifest
from waiting import until

GROUP = "/apis/kubeflow.org/v1beta1"
KINDS = {
    "Experiment": f"{GROUP}/namespaces/{{}}/experiments",
    "Suggestion": f"{GROUP}/namespaces/{{}}/suggestions",
    "Trial": f"{GROUP}/namespaces/{{}}/trials",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Event": "/api/v1/namespaces/{}/events",
}
SECONDS = 600.0  # for one experiment
WATCH_SECONDS = 2  # of one watch; the next one goes on where it ended
SETTLE_SECONDS = 3.0  # after its end, for what follows


class Recorder:
    """Watches the kinds of a namespace, a thread each, and keeps every state of every object with its time."""

    def __init__(self, client: Any, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self.seen: list[tuple[float, str, str, Object]] = []  # (monotonic, kind, ADDED | MODIFIED | DELETED, object)
        self.requests: list[str] = []  # of the SDK: method, path, status
        self._stop = threading.Event()
        rest = client.custom_api.api_client.rest_client
        ask = rest.request

        def request(method: str, url: str, *arguments: Any, **keywords: Any) -> Any:
            answer = ask(method, url, *arguments, **keywords)
            self.requests.append(f"{method} {url.split(namespace)[-1]} {answer.status}")
            return answer

        rest.request = request
        self._threads = [threading.Thread(target=self._follow, args=(kind,), daemon=True) for kind in KINDS]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End, at the latest when the server ends the watches."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _follow(self, kind: str) -> None:
        from kubernetes import watch

        api = self._client.core_api.api_client

        def listing(**query: Any) -> Any:
            names = {"resource_version": "resourceVersion", "timeout_seconds": "timeoutSeconds"}
            return api.call_api(
                KINDS[kind].format(self._namespace), "GET",
                query_params=[(names.get(name, name), value) for name, value in query.items() if value is not None],
                auth_settings=["BearerToken"], _return_http_data_only=True, _preload_content=False,
            )  # fmt: skip

        version = None
        while not self._stop.is_set():
            watching = watch.Watch(return_type="object")
            for event in watching.stream(listing, resource_version=version, timeout_seconds=WATCH_SECONDS):
                self.seen.append((time.monotonic(), kind, event["type"], event["object"]))
            version = watching.resource_version or version


def record(client: Any, namespace: str, name: str, image: str) -> Object:
    """Run the experiment `name` of CASES, and return its trace."""
    case = CASES[name]
    recorder = Recorder(client, namespace)
    start = time.monotonic()
    try:
        client.create_experiment(manifest(name, case, image), namespace)
        if case.action is not None:
            until(lambda: _runs_trials(recorder, case.spec.get("parallelTrialCount", PARALLEL)), SECONDS)
            case.action(client, name, namespace)
        until(lambda: _is_over(recorder, case.end), SECONDS)
        if case.end:
            until(lambda: time.monotonic() - max(at for at, *_ in recorder.seen) > SETTLE_SECONDS, SECONDS)
            client.delete_experiment(name, namespace)
        until(lambda: _is_all_gone(recorder), SECONDS)
    finally:
        recorder.close()
    return trace(recorder, start)


def _runs_trials(recorder: Recorder, count: int) -> bool:
    """Whether so many pods run trials, and the experiment says so: with fewer it is chance what the action meets."""
    seen = [(kind, thing) for _, kind, _, thing in list(recorder.seen)]
    running = [thing for kind, thing in seen if kind == "Pod" and _phase(thing) == "Running" and _is_trial(thing)]
    pods = {thing["metadata"]["name"] for thing in running}
    said = any(kind == "Experiment" and (thing.get("status") or {}).get("trialsRunning") == count for kind, thing in seen)
    return len(pods) >= count and said


def _is_over(recorder: Recorder, condition: str) -> bool:
    for _, kind, change, thing in reversed(recorder.seen):
        if kind == "Experiment":
            return (
                change == "DELETED" if not condition else any(line.startswith(f"{condition}=True") for line in _conditions(thing))
            )
    return False


def _is_all_gone(recorder: Recorder) -> bool:
    last = {(kind, thing["metadata"]["name"]): change for _, kind, change, thing in list(recorder.seen) if kind != "Event"}
    return all(change == "DELETED" for change in last.values())


def trace(recorder: Recorder, start: float) -> Object:
    """Return what was seen: per kind each object's states without repetition, events, requests of the SDK; seconds."""
    things: dict[str, dict[str, list[Any]]] = {}
    events: list[list[Any]] = []
    for at, kind, change, thing in sorted(recorder.seen, key=lambda seen: seen[0]):
        seconds = round(at - start, 2)
        if kind == "Event":
            if change == "ADDED":
                events.append([seconds, thing["involvedObject"]["kind"], thing["type"], thing["reason"], thing["message"]])
            continue
        if kind == "Pod" and not _is_trial(thing):
            kind = "Service pod"  # of the suggestion
        states = things.setdefault(kind, {}).setdefault(thing["metadata"]["name"], [])
        state = "deleted" if change == "DELETED" else _state(kind, thing)
        if not states or states[-1][1] != state:
            states.append([seconds, state])
    return {
        "objects": {kind: list(named.items()) for kind, named in things.items()},
        "events": events,
        "requests": recorder.requests,
    }


def outline(found: Object) -> Object:
    """Return what two traces of one experiment must share: no names, times, or states that a watch may skip.

    Per kind the sorted last states before the deletion, each with all conditions that were true; what events say;
    the requests of the SDK.
    """
    kinds = {}
    for kind, named in found["objects"].items():
        lasts = []
        for _, states in named:
            alive = [state for _, state in states if state != "deleted"]
            ever = {line.split("=")[0] for state in alive for line in state.get("conditions", []) if "=True" in line}
            lasts.append({**alive[-1], "ever": sorted(ever), "is_deleted": states[-1][1] == "deleted"})
        kinds[kind] = sorted(lasts, key=json.dumps)
    events = sorted({f"{kind} {level} {reason}" for _, kind, level, reason, _ in found["events"]})
    return {"objects": kinds, "events": events, "requests": sorted(set(found["requests"]))}


def _state(kind: str, thing: Object) -> Object:
    """Return what is worth comparing of an object's status."""
    status = thing.get("status") or {}
    state: Object = {"conditions": _conditions(thing)}
    if kind == "Experiment":
        state |= {key: value for key, value in status.items() if key.startswith("trial") and isinstance(value, int)}
        state["has_optimum"] = bool((status.get("currentOptimalTrial") or {}).get("bestTrialName"))
    elif kind == "Suggestion":
        state["suggestionCount"] = status.get("suggestionCount", 0)
    elif kind == "Trial":
        metrics = (status.get("observation") or {}).get("metrics") or []
        state["metrics"] = sorted(f"{metric['name']} {sorted(set(metric) - {'name'})}" for metric in metrics)
    elif kind == "Job":
        state |= {key: status[key] for key in ("active", "succeeded", "failed") if status.get(key)}
    elif kind == "Pod":
        containers = sorted(status.get("containerStatuses") or [], key=lambda one: str(one["name"]))
        state = {"phase": _phase(thing), "containers": [_container(one) for one in containers]}
    return state


def _conditions(thing: Object) -> list[str]:
    """Return `type=status reason` of each condition, in the order in which they stand."""
    return [
        f"{one['type']}={one['status']} {one.get('reason', '')}".rstrip()
        for one in (thing.get("status") or {}).get("conditions") or []
    ]


def _container(status: Object) -> str:
    (state, more) = next(iter((status.get("state") or {"unknown": {}}).items()))
    return f"{status['name']} {state} {more.get('reason', '')} {more.get('exitCode', '')}".rstrip()


def _phase(thing: Object) -> str:
    return str((thing.get("status") or {}).get("phase"))


def _is_trial(thing: Object) -> bool:
    return "job-name" in (thing["metadata"].get("labels") or {})


def record_apart(kubeconfig: Path | str, name: str, image: str) -> Object:
    """Record an experiment in a namespace of its own; return its trace."""
    from kubeflow.katib import KatibClient

    namespace = f"trace-{name}"
    client = KatibClient(config_file=str(kubeconfig), namespace=namespace)
    labels = {"katib.kubeflow.org/metrics-collector-injection": "enabled"}
    client.core_api.create_namespace({"metadata": {"name": namespace, "labels": labels}})
    try:
        return record(client, namespace, name, image)
    finally:
        client.core_api.delete_namespace(namespace)


def main(kubeconfig: str, image: str, folder: str, *names: str) -> None:
    """Record the experiments, and write a file per trace."""
    for name in names or CASES:
        found = record_apart(kubeconfig, name, image)
        Path(folder, f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
        print(f"{name}: {len(found['events'])} events, {len(found['requests'])} requests of the SDK", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
