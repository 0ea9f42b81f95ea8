"""`python -m tuneoff_adapters.katib.pod TRIAL NAME=VALUE ...`: the program of a trial's pod.

It decodes Katib's parameters, runs the trial with its events on standard output, reports each epoch in the file that Katib's
collector reads, and passes the best checkpoint of a completed trial out after its events; it does not end before that collector
has begun. Whatever else it or its workload
prints goes to standard error. It is imported anew for each trial, so it imports little.

Exit codes: those of `python -m tuneoff.run.trial`, and 5 for a trial that its script stopped, so that Katib counts it as failed
and never as its best.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tuneoff.base.identity import configuration_digest
from tuneoff.base.layout import POD
from tuneoff.base.process_limits import die_with_parent, end_with
from tuneoff.errors import ExperimentError
from tuneoff.run.trial.children import hold_children
from tuneoff.run.trial.run_trial import Decision, run_trial
from tuneoff.run.trial.trial_process import trial_process
from tuneoff_adapters.katib.space import KatibSpace
from tuneoff_adapters.kubernetes import in_pod, layout
from tuneoff_adapters.kubernetes.layout import OBJECTIVE

PRUNED = 5
EXIT_CODES = {"completed": 0, "failed": 1, "refused": 4, "cancelled": 4, "pruned": PRUNED}


_GRAIN = timedelta(microseconds=1)  # what Katib's database keeps
MOST_SECONDS = 30.0  # that a pod waits at its end
SETTLED_SECONDS = 1.0  # age of a collector that has surely listed the processes, which is the first that it does
LOOK_SECONDS = 0.1
KATIB_VARIABLE = "KATIB_TRIAL_NAME"  # in the environment of what Katib's webhook has wrapped
_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


def create_mark(metrics_file: str, shell: int) -> None:
    """Make the file in which the shell that Katib's webhook puts around the pod's program will note that training is complete.

    Where the collector stops a trial, it writes there first. If it made the file too, it would be root's, the shell (which is
    not root) could not overwrite it, and the collector would wait for that for ever. The text reads as a failure until then, to
    the collector and to the shell, which complains about an empty file.

    `shell`: its process number.
    """
    descriptor = os.open(Path(metrics_file).parent / f"{shell}.pid", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    os.fchmod(descriptor, 0o666)  # whoever the collector is
    os.write(descriptor, b"running\n")
    os.close(descriptor)


class FileReport:
    """Appends a line per epoch, and stops the trial after `last_epoch` (`pruner: scripted`); Katib's own stop is a SIGTERM."""

    def __init__(self, path: str, metric: str, last_epoch: int | None = None) -> None:
        self._metric, self._last_epoch = metric, last_epoch
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._latest: datetime | None = None

    def __call__(self, epoch: int, metrics: Mapping[str, float]) -> Decision:
        """Write the report; the trial's `report`.

        Raises:
            ValueError: the value is not finite.
        """
        now = datetime.now(UTC)
        self._latest = now if self._latest is None else max(now, self._latest + _GRAIN)
        os.write(self._file, report_line(self._latest, metrics[self._metric]).encode())  # one call: never half a line
        is_last = self._last_epoch is not None and epoch >= self._last_epoch
        return Decision.STOP if is_last else Decision.CONTINUE


def report_line(moment: datetime, value: float) -> str:
    """Return the line for a value reported at `moment` (UTC).

    Raises:
        ValueError: the value is not finite.
    """
    if not math.isfinite(value):
        raise ValueError(f"a report to Katib must be a finite number, but got {value!r}")
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z {OBJECTIVE}={float(value)!r}\n"


def wait_for_collector(
    katib_trial: str, shell: int | None = None, proc: Path = _PROC, sleep: Callable[[float], None] = time.sleep
) -> float:
    """Wait until the collector of the trial has listed the pod's processes; return how many seconds that took.

    Returns at once where this is not a container of a pod with a collector. `shell`: the process that started this one.
    """
    shell = os.getppid() if shell is None else shell
    waited = 0.0
    if not is_beside_others(shell, proc):
        return waited
    while waited < MOST_SECONDS and not _has_begun(katib_trial, shell, proc):
        sleep(LOOK_SECONDS)
        waited += LOOK_SECONDS
    return waited


def is_beside_others(shell: int, proc: Path = _PROC) -> bool:
    """Tell whether the shell was started by Katib in a container whose pod shares its process numbers.

    Then it has no parent (that is outside), and is not the first process: that is the pod's own.
    """
    return KATIB_VARIABLE in os.environ and shell > 1 and _parent(proc / str(shell)) == 0


def _has_begun(katib_trial: str, shell: int, proc: Path) -> bool:
    """Tell whether there is another container's first process with the trial among its arguments, and for long enough."""
    for folder in (proc / name for name in os.listdir(proc) if name.isdecimal()):
        if int(folder.name) in (1, shell) or _parent(folder) != 0:
            continue
        if katib_trial in _arguments(folder):
            fields = _fields(folder)
            up_seconds = float((proc / "uptime").read_text().split()[0])
            return (up_seconds - int(fields[19]) / _TICKS if fields else 0.0) >= SETTLED_SECONDS
    return False


def _arguments(folder: Path) -> list[str]:
    try:
        return (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:  # it ended meanwhile
        return []


def _fields(folder: Path) -> list[str]:
    """Return the fields of `stat` after the program's name, the third first; none where the process has ended."""
    try:
        return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _parent(folder: Path) -> int | None:
    fields = _fields(folder)
    return int(fields[1]) if fields else None


def main(arguments: Sequence[str]) -> int:
    """Run the trial and return the exit code."""
    metrics_file = os.environ.get(layout.METRICS_FILE_VARIABLE, layout.METRICS_FILE)
    Path(metrics_file).parent.mkdir(parents=True, exist_ok=True)
    # first of all: until it exists, the collector looks for it in a busy loop, and uses up a core
    os.close(os.open(metrics_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644))
    create_mark(metrics_file, os.getppid())
    die_with_parent()
    output = os.dup(1)  # the writer of events takes standard output for itself
    katib_trial, values = arguments[0], parameters(arguments[1:])
    context = in_pod.own_context()
    hold_children(context.execution_id, in_container=True)
    process = trial_process(context, POD)  # before anything else: from here on the process is seen
    process.is_replaceable, events = True, process.events
    settings = json.loads((in_pod.config_dir() / layout.TRANSLATION_KEY).read_text())
    in_pod.compare_code(settings.get(layout.CODE, "unknown"), events)
    try:
        configuration = KatibSpace.from_json(settings).decode(values)
    except ExperimentError as error:
        print(f"trial {katib_trial} has no configuration: {error}", file=sys.stderr)
        return EXIT_CODES["failed"]
    trial_id = layout.trial_id(katib_trial)
    report = FileReport(metrics_file, context.metric, settings[layout.STOPS].get(configuration_digest(configuration)))
    outcome = run_trial(context, trial_id, configuration, report, framework_id=katib_trial, role=POD)
    if outcome.state == "completed":
        in_pod.pass_checkpoint_out(context, trial_id, output, settings[layout.CHECKPOINT_BYTES])
        wait_for_collector(katib_trial)
    return EXIT_CODES[outcome.state]


def parameters(arguments: Sequence[str]) -> Mapping[str, str]:
    """Return the texts that Katib put in place of its parameters, from `NAME=VALUE` words."""
    return {name: value for name, _, value in (word.partition("=") for word in arguments)}


if __name__ == "__main__":
    end_with(main)
