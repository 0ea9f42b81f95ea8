"""The lifecycle of a run: seven timed steps in order; core owns the order and the clock, the adapter does the work."""

from __future__ import annotations

import contextlib
import errno
import logging
import signal
import subprocess
from collections.abc import Iterator
from types import FrameType

from tuneoff.adapter import Adapter
from tuneoff.base.numbers import described_value, number_of
from tuneoff.base.tracebacks import origins, source_line
from tuneoff.errors import (
    DataError,
    ExperimentError,
    InfrastructureError,
    MissingPackageError,
    StepError,
    TuneoffError,
    UserError,
)
from tuneoff.record.events.schema import Charged, Step
from tuneoff.record.events.writer import EventWriter
from tuneoff.record.run_context import RunContext

log = logging.getLogger(__name__)

DONE, FAILED, INTERRUPTED = 0, 2, 3
UNCAUGHT = 70  # an exception outside the steps; any other code is that of an adapter or framework which ended the process
INTERRUPTED_SECONDS = 7.0  # from SIGTERM, that an un-deploy can rely on
GUARDIAN_SECONDS = 5.0  # which the guardian of a killed command has for its work
_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN)  # of processes


class Interrupted(BaseException):
    """SIGTERM: the supervisor asks the run to un-deploy and end."""


def run_lifecycle(adapter_class: type[Adapter], context: RunContext) -> int:
    """Run all seven steps and return the exit code. `undeploy` always runs, is always timed, and runs last.

    A failed step ends the run: the steps after it are skipped, all figures up to it are kept.
    """

    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise Interrupted

    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor decides what Ctrl-C means
    code, events = DONE, context.events
    adapter: Adapter | None = None
    try:
        with _step(events, "deploy"):
            adapter = adapter_class(context)
            adapter.deploy()
        with _step(events, "setup"):
            adapter.setup()
        with _step(events, "trial"):
            adapter.run_trials()
        with _step(events, "collect"):
            best = adapter.collect_results()
            value = number_of(best.value) if best is not None else None
            if best is None:
                events.write("best_known", trial=None)
            elif value is None and best.value is not None:
                raise StepError(f"the value of `Best` must be a number or None, but got {described_value(best.value)}")
            else:
                events.write("best_known", trial=best.trial_id, value=value)
        if best is not None:
            with _step(events, "test"):
                adapter.test(best)
        with _step(events, "metrics"):
            adapter.collect_metrics()
    except Interrupted:
        code = INTERRUPTED
    except StepError:
        code = FAILED
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # one interruption is enough: un-deploy runs to its end or its limit
        try:
            with _step(events, "undeploy"):
                _undeploy(adapter or adapter_class(context), context, INTERRUPTED_SECONDS if code == INTERRUPTED else None)
        except StepError:
            code = FAILED
    return code


def undeploy_only(adapter_class: type[Adapter], context: RunContext, seconds: float | None = None) -> int:
    """Un-deploy in a fresh process, after a coordinator was killed; `seconds`: how long that may take, if not as ever."""
    try:
        with _step(context.events, "undeploy"):
            _undeploy(adapter_class(context), context, seconds)
    except StepError:
        return FAILED
    return DONE


def _undeploy(adapter: Adapter, context: RunContext, seconds: float | None) -> None:
    limit = context.spec.experiment.timeouts.undeploy_seconds
    adapter.undeploy_seconds = limit if seconds is None else min(limit, seconds)
    adapter.undeploy()


@contextlib.contextmanager
def _step(events: EventWriter, step: Step) -> Iterator[None]:
    """Log the start and the end of a step; map whatever it raises to StepError."""
    events.write("step_started", step=step)
    try:
        yield
    except Interrupted:
        events.write("step_ended", step=step, error="interrupted")  # by whom and why, the supervisor knows
        raise
    except (Exception, SystemExit) as error:  # an adapter may fail in any way, by sys.exit too: the step failed, with its text
        log.exception("step %s failed", step)
        lines = str(error).strip().splitlines() or [""]
        line = lines[-1] if lines[0].startswith("Traceback ") else lines[0]  # Ray's errors hold a whole traceback
        text = line if isinstance(error, TuneoffError) else f"{type(error).__name__}: {line}{source_line(error)}"
        events.write("step_ended", step=step, error=text, charged=_charge(step, error))
        raise StepError(f"step {step} failed: {text}") from error
    events.write("step_ended", step=step)


def _charge(step: Step, error: BaseException) -> Charged:
    """Return who is charged with a failed step: it decides whether a resumed matrix repeats the run.

    A start that timed out is the infrastructure's: the same framework starts in time on a machine that is less busy.
    """
    is_deploy = step == "deploy"
    for cause in origins(error):
        is_machine = isinstance(cause, OSError) and cause.errno in _MACHINE
        is_late = is_deploy and isinstance(cause, TimeoutError | subprocess.TimeoutExpired)
        if is_machine or is_late or isinstance(cause, MemoryError | InfrastructureError):
            return "infrastructure"
    if isinstance(error, MissingPackageError | UserError) or (is_deploy and isinstance(error, ExperimentError | DataError)):
        return "user"
    return "workload" if step == "test" else "framework"
