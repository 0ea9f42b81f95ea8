"""What a training can change of its process, and a later one would notice: each finds it as a fresh `python file.py` does.

`ITEMS` is the whole list. The file as the only argument, the experiment's folder, the command's umask, Python's own signal
handlers and hooks, the environment's locale and an unset start method are set, whatever a framework made of them; all else is as
it was when the training's module had been imported, so what its import set is there in each trial. Between trials the process is
the framework's. Modules and classes are not in the list: what a training keeps there stays.
"""

from __future__ import annotations

import contextlib
import gc
import locale
import os
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuneoff.base.targets import file_of

Values = list[Any]  # one for each of `ITEMS`

_NOT_READ: Any = object()
_HANDLED = sorted(set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)  # by every Python
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_STREAMS = ("stdin", "stdout", "stderr")  # by descriptor
_HOOKS = (*_STREAMS, "excepthook", "displayhook", "unraisablehook")
_LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_CORE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)
_CONTEXT = "multiprocessing.context"
_CHOSEN_SEED = 2**32  # torch draws its own seed from far more numbers, and who seeds gives a smaller one


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing of a process: `read` gives a value that `restore` takes, and neither changes that value."""

    name: str
    read: Callable[..., Any]
    restore: Callable[..., object]
    module: str | None = None  # it is there once this is imported, which is then the first argument of both ...
    fresh: Any = None  # ... and its value then

    @property
    def arguments(self) -> tuple[Any, ...] | None:
        """Return the first arguments of both, None where its module is not imported."""
        return () if self.module is None else (sys.modules[self.module],) if self.module in sys.modules else None

    is_own: bool = False  # a command minds it: what a training's import makes of it there is undone
    is_limit: bool = False  # core sets it for a slot, so it is as the trial began
    is_drawn: bool = False  # a value of None: nobody has set it, and each trial draws it anew, as each process does


class TrainingState:
    """What each training in this process finds: set at the first `entered`, around the import of its module."""

    def __init__(self, target: str, folder: str | None, umask: int | None) -> None:
        self._target, self._folder, self._umask = target, folder, umask
        self._values: Values | None = None

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Have the process be the training's in this block, and afterwards what it was before."""
        before = _read()
        try:
            with _kept_descriptors():
                if self._values is None:
                    self._set()
                else:
                    _restore([_NOT_READ if item.is_limit else value for item, value in zip(ITEMS, self._values, strict=True)])
                yield
        finally:
            if self._values is None:
                self._values = _read()
                if self._values[_RANDOM] == before[_RANDOM]:  # the import did not seed it
                    self._values[_RANDOM] = None
            _restore([_NOT_READ if item.is_drawn and value is None else value for item, value in zip(ITEMS, before, strict=True)])

    def _set(self) -> None:
        sys.excepthook, sys.displayhook, sys.unraisablehook = sys.__excepthook__, sys.__displayhook__, sys.__unraisablehook__
        os.environ.pop("PYTHONSAFEPATH", None)  # core's own: a program of the training finds the modules beside it
        sys.argv = [file_of(self._target.partition(":")[0])]
        if self._folder is not None:
            _enter(self._folder)  # in a pod there need be no such folder: then it is the container's
        if self._umask is not None:
            os.umask(self._umask)
        if _is_main_thread():
            default = {number: signal.SIG_IGN if number in _IGNORED else signal.SIG_DFL for number in _HANDLED}
            _set_signals(({**default, signal.SIGINT: signal.default_int_handler}, set()))
        locale.setlocale(locale.LC_ALL, "C")
        with contextlib.suppress(locale.Error):
            locale.setlocale(locale.LC_CTYPE, "")
        if _CONTEXT in sys.modules:
            _set_start_method(sys.modules[_CONTEXT], None)


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Have this block, an import of a training where it does not run, change nothing that a command minds."""
    before = [value if item.is_own else _NOT_READ for item, value in zip(ITEMS, _read(), strict=True)]
    try:
        yield
    finally:
        _restore(before)


def _read() -> Values:
    return [_value(item) for item in ITEMS]


def _value(item: Item) -> Any:
    if (arguments := item.arguments) is None:
        return item.fresh
    try:
        return item.read(*arguments)
    except Exception:  # of a library whose version has it elsewhere; the folder was removed
        return _NOT_READ


def _restore(values: Values) -> None:
    for item, value in zip(ITEMS, values, strict=True):
        if value is not _NOT_READ and (arguments := item.arguments) is not None:
            with contextlib.suppress(Exception):
                item.restore(*arguments, value)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _signals() -> Any:
    if not _is_main_thread():  # no other thread may set handlers
        return _NOT_READ
    return {number: signal.getsignal(number) for number in _HANDLED}, signal.pthread_sigmask(signal.SIG_BLOCK, ())


def _set_signals(before: tuple[Mapping[signal.Signals, Any], set[Any]]) -> None:
    handlers, blocked = before
    for timer in _TIMERS:  # an alarm of the trial before would end this one
        signal.setitimer(timer, 0)
    for number, handler in handlers.items():
        if handler is not None and signal.getsignal(number) is not handler:  # None: C code has set it
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _enter(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.chdir(folder)


def umask() -> int:
    """Return this process's umask."""
    before = os.umask(0o022)  # the only way to read it
    os.umask(before)
    return before


def _environment() -> dict[bytes, bytes]:
    """Return the environment's bytes; a copy of `os.environ` decodes each value, which a short trial would notice."""
    values: dict[bytes, bytes] = vars(os.environb)["_data"]
    return values.copy()


def _set_environment(before: Mapping[bytes, bytes]) -> None:
    now = _environment()
    for name in now.keys() - before.keys():
        del os.environb[name]
    for name, value in before.items():
        if now.get(name) != value:
            os.environb[name] = value
    if now.get(b"TZ") != before.get(b"TZ"):
        time.tzset()


def _set_lists(before: list[tuple[str, list[str], list[str]]]) -> None:
    for name, values, items in before:
        values[:] = items
        setattr(sys, name, values)


def _set_hooks(before: Sequence[Any]) -> None:
    for name, hook in zip(_HOOKS, before, strict=True):
        setattr(sys, name, _reopened(_STREAMS.index(name), hook) if getattr(hook, "closed", False) else hook)


def _reopened(descriptor: int, stream: Any) -> Any:
    """Return a stream in place of one that was closed, which cannot be opened again."""
    mode = "w" if descriptor else "r"
    return open(descriptor, mode, buffering=1, encoding=stream.encoding, errors=stream.errors, closefd=False)


@contextlib.contextmanager
def _kept_descriptors() -> Iterator[None]:
    """Open the descriptors of the standard streams again that this block closes or puts something else at."""
    kept = []
    for descriptor in range(len(_STREAMS)):
        with contextlib.suppress(OSError):  # it is closed
            kept.append((descriptor, os.dup(descriptor), os.fstat(descriptor)))
    try:
        yield
    finally:
        for descriptor, copy, status in kept:
            is_open = False
            with contextlib.suppress(OSError):
                is_open = os.path.samestat(os.fstat(descriptor), status)
            with contextlib.suppress(OSError):  # the block has closed all that is open
                if not is_open:
                    os.dup2(copy, descriptor)
                os.close(copy)


def _set_interpreter(before: tuple[Any, ...]) -> None:
    recursion, interval, digits, is_collecting, thresholds = before
    sys.setrecursionlimit(recursion)
    sys.setswitchinterval(interval)
    sys.set_int_max_str_digits(digits)
    (gc.enable if is_collecting else gc.disable)()
    gc.set_threshold(*thresholds)


def _set_warnings(before: tuple[Any, ...]) -> None:
    filters, items, warnings.showwarning = before
    if warnings.filters is not filters or filters != items:
        filters[:] = items
        warnings.filters = filters
        warnings._filters_mutated()  # type: ignore[attr-defined]  # as `warnings.catch_warnings` does


def _limits() -> tuple[Any, ...]:
    soft = [resource.getrlimit(limit)[0] for limit in _LIMITS]
    return soft, os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0)


def _set_limits(before: tuple[Any, ...]) -> None:
    if _limits() == before:
        return
    for limit, soft in zip(_LIMITS, before[0], strict=True):
        with contextlib.suppress(ValueError, OSError):  # a hard limit that was lowered stays
            resource.setrlimit(limit, (soft, resource.getrlimit(limit)[1]))
    os.sched_setaffinity(0, before[2])
    os.setpriority(os.PRIO_PROCESS, 0, before[1])  # last: only root may take it back


def _set_start_method(context: Any, before: Any) -> None:
    context._default_context._actual_context = before  # its `set_start_method` works once


def _logging(logging: Any) -> tuple[Any, ...]:
    loggers = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    states = [
        (logger, logger.level, logger.propagate, logger.disabled, logger.handlers.copy()) for logger in (logging.root, *loggers)
    ]
    return logging.root.manager.disable, states


def _set_logging(logging: Any, before: tuple[Any, ...] | None) -> None:
    disabled, states = before or (logging.NOTSET, [(logging.root, logging.WARNING, True, False, [])])
    logging.disable(disabled)
    for logger, level, propagate, is_disabled, handlers in states:
        logger.propagate, logger.disabled, logger.handlers[:] = propagate, is_disabled, handlers
        if logger.level != level:
            logger.setLevel(level)


def _numpy(numpy: Any) -> tuple[Any, ...]:
    return numpy.geterr(), numpy.geterrcall(), numpy.get_printoptions()


def _set_numpy(numpy: Any, before: tuple[Any, ...]) -> None:
    if _numpy(numpy) != before:
        errors, call, printing = before
        numpy.seterr(**errors)
        numpy.seterrcall(call)
        numpy.set_printoptions(**printing)


_FRESH_NUMPY = (
    {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"},
    None,
    {"edgeitems": 3, "linewidth": 75, "precision": 8, "suppress": False, "threshold": 1000, "sign": "-", "floatmode": "maxprec"},
)


def _torch(torch: Any) -> dict[str, Any]:
    return {
        "type": str(torch.get_default_dtype()),
        "device": str(torch.get_default_device()),
        "has_gradients": torch.is_grad_enabled(),
        "deterministic": (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        "benchmark": torch.backends.cudnn.benchmark,
        "deterministic_cudnn": torch.backends.cudnn.deterministic,
        "precision": torch.get_float32_matmul_precision(),
        "finds_anomalies": torch.is_anomaly_enabled(),
        "threads": torch.get_num_threads(),
    }


def _set_torch(torch: Any, before: Mapping[str, Any]) -> None:
    """Set what differs alone: torch's own setters may import its compiler, which takes a second."""
    now = _torch(torch)
    setters: dict[str, Callable[[Any], object]] = {
        "type": lambda name: torch.set_default_dtype(getattr(torch, name.removeprefix("torch."))),
        "device": lambda name: torch.set_default_device(None if name == "cpu" else name),
        "has_gradients": torch.set_grad_enabled,
        "deterministic": lambda modes: torch.use_deterministic_algorithms(modes[0], warn_only=modes[1]),
        "benchmark": lambda is_on: setattr(torch.backends.cudnn, "benchmark", is_on),
        "deterministic_cudnn": lambda is_on: setattr(torch.backends.cudnn, "deterministic", is_on),
        "precision": torch.set_float32_matmul_precision,
        "finds_anomalies": torch.autograd.set_detect_anomaly,
        "threads": torch.set_num_threads,
    }
    for name, value in before.items():
        if value not in (None, now[name]):
            setters[name](value)


_FRESH_TORCH = {
    "type": "torch.float32",
    "device": "cpu",
    "has_gradients": True,
    "deterministic": (False, False),
    "benchmark": False,
    "deterministic_cudnn": False,
    "precision": "highest",
    "finds_anomalies": False,
    "threads": None,
}


def _set_torch_random(torch: Any, before: Any) -> None:
    if before is None:
        torch.seed()
    else:
        seed, state = before
        torch.manual_seed(seed)  # of other devices too
        torch.set_rng_state(state)


ITEMS = (
    Item(name="signal handlers, blocked signals, timers", read=_signals, restore=_set_signals, is_own=True),
    Item(name="current folder", read=os.getcwd, restore=_enter, is_own=True),
    Item(name="umask", read=umask, restore=os.umask, is_own=True),
    Item(name="environment, time zone", read=_environment, restore=_set_environment),
    Item(
        name="arguments, import path",
        read=lambda: [(name, values := getattr(sys, name), values.copy()) for name in ("argv", "path")],
        restore=_set_lists,
    ),
    Item(name="standard streams, hooks", read=lambda: [getattr(sys, name) for name in _HOOKS], restore=_set_hooks, is_own=True),
    Item(
        name="limits of the interpreter, garbage collector",
        read=lambda: (
            sys.getrecursionlimit(),
            sys.getswitchinterval(),
            sys.get_int_max_str_digits(),
            gc.isenabled(),
            gc.get_threshold(),
        ),
        restore=_set_interpreter,
    ),
    Item(name="limits, priority, processors", read=_limits, restore=_set_limits, is_limit=True),
    Item(
        name="locale",
        read=lambda: locale.setlocale(locale.LC_ALL),
        restore=lambda before: locale.setlocale(locale.LC_ALL, before),
        is_own=True,
    ),
    Item(
        name="warnings",
        read=lambda: (warnings.filters, list(warnings.filters), warnings.showwarning),
        restore=_set_warnings,
    ),
    Item(
        name="start method of processes",
        read=lambda context: context._default_context._actual_context,  # its `set_start_method` works once
        restore=_set_start_method,
        module=_CONTEXT,
    ),
    Item(name="logging", read=_logging, restore=_set_logging, module="logging"),
    Item(
        name="decimal context",
        read=lambda decimal: decimal.getcontext().copy(),
        restore=lambda decimal, before: decimal.setcontext((before or decimal.DefaultContext).copy()),
        module="decimal",
    ),
    Item(name="numpy: errors, printing", read=_numpy, restore=_set_numpy, module="numpy", fresh=_FRESH_NUMPY),
    Item(name="torch: types, devices, modes", read=_torch, restore=_set_torch, module="torch", fresh=_FRESH_TORCH),
    Item(
        name="random",
        read=lambda random: random.getstate(),
        restore=lambda random, before: random.seed() if before is None else random.setstate(before),
        module="random",
        is_drawn=True,
    ),
    Item(
        name="numpy: random",
        read=lambda numpy: numpy.random.get_state() if numpy.random.mtrand._rand._bit_generator.seed_seq is None else None,
        restore=lambda numpy, before: numpy.random.seed() if before is None else numpy.random.set_state(before),
        module="numpy",
        is_drawn=True,
    ),
    Item(
        name="torch: random",
        read=lambda torch: (seed, torch.get_rng_state()) if (seed := torch.initial_seed()) < _CHOSEN_SEED else None,
        restore=_set_torch_random,
        module="torch",
        is_drawn=True,
    ),
)
_RANDOM = [item.name for item in ITEMS].index("random")
