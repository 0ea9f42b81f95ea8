"""The pods of a run of katib@emulated without it: their commands, each by `sh -c`, in a plain loop with as many slots.

`python -m benchmarks.speed.bare.katib_bare FOLDER TRIALS SECONDS`

What a pod runs is tuneoff's own program for one trial, with the files that its config map holds; so what is left out is the
server, Katib's controllers, the adapter and the supervision.
"""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.speed.bare.objective import WORKERS, print_span
from benchmarks.speed.specs import make_spec
from tuneoff.record.events.writer import EventWriter
from tuneoff.record.run_context import RunContext
from tuneoff.run.supervisor.execution import new_execution, write_inputs
from tuneoff_adapters.katib.manifest import config_map_manifest
from tuneoff_adapters.katib.plan import KatibPlan, katib_plan
from tuneoff_adapters.kubernetes import layout


def plan_of(folder: Path, trials: int, seconds: float) -> KatibPlan:
    """Return the plan of such a run; its pods sleep for `seconds` (0: they compute a null trial)."""
    workload, options = ("sleep", {"epoch_seconds": seconds}) if seconds > 0 else ("null", {})
    execution = new_execution(make_spec("katib", workload, trials=trials, options=options, platform="emulated"), folder / "runs")
    events = EventWriter(execution.folder, execution.execution_id, "coordinator")
    context = RunContext(
        spec=execution.spec,
        run_dir=execution.folder,
        execution_id=execution.execution_id,
        trial_context=write_inputs(execution),
        events=events,
    )
    events.close()
    return katib_plan(context)


def config_folder(plan: KatibPlan, folder: Path) -> Path:
    """Write what the pods' config map holds, and return where."""
    config = folder / "config"
    config.mkdir()
    for name, text in config_map_manifest(plan)["data"].items():
        (config / name).write_text(text)
    return config


def draw(plan: KatibPlan, generator: random.Random) -> dict[str, str]:
    """Return a value of each parameter, as Katib writes it: all of them are of type `double`."""
    spaces = {parameter["name"]: parameter["feasibleSpace"] for parameter in plan.space.parameters()}
    return {name: repr(generator.uniform(float(space["min"]), float(space["max"]))) for name, space in spaces.items()}


def run_pod(plan: KatibPlan, config: Path, folder: Path, trial: str, values: Mapping[str, str]) -> None:
    """Run one pod's command to its end, in a folder of its own.

    Raises:
        CalledProcessError: it failed.
    """
    log = folder / "log"
    log.mkdir(parents=True)
    paths = {
        layout.CONFIG_DIR_VARIABLE: str(config),
        layout.RUN_DIR_VARIABLE: str(folder / "run"),
        layout.METRICS_FILE_VARIABLE: str(log / "metrics.log"),
    }
    words = [sys.executable, "-m", layout.POD_MODULE, trial, *(f"{name}={value}" for name, value in values.items())]
    line = f"{shlex.join(words)} && echo completed > {shlex.quote(str(log))}/$$.pid"
    with (folder / "output").open("ab") as output:
        subprocess.run(
            ["sh", "-c", line],
            env={**os.environ, **plan.environment, **paths},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            check=True,
        )


def main(folder: Path, trials: int, seconds: float) -> None:
    plan = plan_of(folder, trials, seconds)
    config = config_folder(plan, folder)
    generator = random.Random(0)
    waiting = ((f"{plan.experiment}-{number:08d}", draw(plan, generator)) for number in range(trials))
    lock = threading.Lock()
    ends: list[int] = []

    def work() -> None:
        while True:
            with lock:
                trial = next(waiting, None)
            if trial is None:
                return
            run_pod(plan, config, folder / "pods" / trial[0], *trial)
            ends.append(time.monotonic_ns())

    slots = [threading.Thread(target=work) for _ in range(WORKERS)]
    first_ns = time.monotonic_ns()
    for slot in slots:
        slot.start()
    for slot in slots:
        slot.join()
    print_span(first_ns, max(ends, default=first_ns), len(ends), trials)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
