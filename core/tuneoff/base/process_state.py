"""What a training can change of its process, and a later one would notice: each finds it as a fresh `python file.py` does.

`ITEMS` is the whole list. The file as the only argument, the experiment's folder, the command's umask, Python's own signal
handlers and hooks, the environment's locale and an unset start method are set, whatever a framework made of them; all else is as
it was when the training's module had been imported, so what its import set is there in each trial. Between trials the process is
the framework's. Modules and classes are not in the list: what a training keeps there stays.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` makes a member of an enumeration of each answer: 25 times as long
import contextlib
import functools
import gc
import importlib
import locale
import os
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tuneoff.base.targets import file_of

Values = list[Any]  # one for each of `ITEMS`

_NOT_READ: Any = object()
_HANDLED = sorted(map(int, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}))
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)  # by every Python
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_STREAMS = ("stdin", "stdout", "stderr")  # by descriptor
_HOOKS = (*_STREAMS, "excepthook", "displayhook", "unraisablehook")
_LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_CORE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)
_CONTEXT, _NUMPY_RANDOM = "multiprocessing.context", "numpy.random"
_SEED_BYTES = 16  # as NumPy's own from the system, of which `seed()` takes ten times as long, and Python's twice
_CHOSEN_SEED = 2**32  # torch draws its own seed from far more numbers, and who seeds gives a smaller one


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing of a process: `read` gives a value that `restore` takes, and neither changes that value.

    Where two values are equal nothing is restored.
    """

    name: str
    read: Callable[..., Any]
    restore: Callable[..., object]
    module: str | None = None  # it is there once this is imported, which is then the first argument of both ...
    fresh: Any = None  # ... and its value then
    is_own: bool = False  # a command minds it: what a training's import makes of it there is undone
    is_limit: bool = False  # core sets it for a slot, so it is as the trial began
    is_drawn: bool = False  # a value of None: nobody has set it, and each trial draws it anew, as each process does


class TrainingState:
    """What each training in this process finds: set at the first `entered`, around the import of its module."""

    def __init__(self, target: str, folder: str | None, umask: int | None) -> None:
        self._target, self._folder, self._umask = target, folder, umask
        self._values: Values | None = None
        importlib.import_module("random")  # by the training alone: whether that seeded it could not be told

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Have the process be the training's in this block, and afterwards what it was before."""
        before = _read()
        try:
            with _kept_descriptors():
                if self._values is None:
                    self._set()
                else:
                    _restore(self._values, before, sets_limits=False)
                yield
        finally:
            now = _read(with_drawn=self._values is None)
            if self._values is None:
                self._values = now.copy()
                if now[_RANDOM] == before[_RANDOM]:  # the import did not seed it
                    self._values[_RANDOM] = None
                if now[_OF_NUMPY] is not _NOT_READ and now[_OF_NUMPY][1] is None:
                    self._values[_OF_NUMPY] = None
            _restore(before, now)

    def _set(self) -> None:
        sys.excepthook, sys.displayhook, sys.unraisablehook = sys.__excepthook__, sys.__displayhook__, sys.__unraisablehook__
        os.environ.pop("PYTHONSAFEPATH", None)  # core's own: a program of the training finds the modules beside it
        sys.argv = [file_of(self._target.partition(":")[0])]
        if self._folder is not None:
            _enter(self._folder)  # in a pod there need be no such folder: then it is the container's
        if self._umask is not None:
            os.umask(self._umask)
        if _is_main_thread():
            handlers: dict[int, Any] = {number: signal.SIG_IGN if number in _IGNORED else signal.SIG_DFL for number in _HANDLED}
            handlers[signal.SIGINT] = signal.default_int_handler
            _set_signals((_same(*handlers.values()), set(), False))
        locale.setlocale(locale.LC_ALL, "C")
        with contextlib.suppress(locale.Error):
            locale.setlocale(locale.LC_CTYPE, "")
        if _CONTEXT in sys.modules:
            _set_start_method(sys.modules[_CONTEXT], None)
        if _NUMPY_RANDOM in sys.modules:
            random: Any = sys.modules[_NUMPY_RANDOM]
            random.set_bit_generator(random.MT19937())


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Have this block, an import of a training where it does not run, change nothing that a command minds."""
    before = [value if item.is_own else _NOT_READ for item, value in zip(ITEMS, _read(), strict=True)]
    try:
        yield
    finally:
        _restore(before, _read())


def _read(*, with_drawn: bool = True) -> Values:
    values = []
    for item in ITEMS:
        value = _NOT_READ
        try:
            if item.is_drawn and not with_drawn:
                pass
            elif item.module is None:
                value = item.read()
            else:
                value = item.read(sys.modules[item.module]) if item.module in sys.modules else item.fresh
        except Exception:  # of a library whose version has it elsewhere; the folder was removed
            pass
        values.append(value)
    return values


def _restore(values: Values, now: Values, *, sets_limits: bool = True) -> None:
    """Restore what differs from `now`, the values of this moment, and what is drawn."""
    for item, value, current in zip(ITEMS, values, now, strict=True):
        try:
            if value is _NOT_READ or (item.is_limit and not sets_limits) or (value == current and not item.is_drawn):
                continue
            if item.module is None:
                item.restore(value)
            elif item.module in sys.modules:
                item.restore(sys.modules[item.module], value)
        except Exception:  # each of the others is restored
            pass


def _same(*objects: Any) -> tuple[list[int], tuple[Any, ...]]:
    """Return a value that is equal where the objects are the same: those of a training may say that they equal anything."""
    return list(map(id, objects)), objects


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _signals() -> Any:
    if not _is_main_thread():  # no other thread may set handlers
        return _NOT_READ
    has_timer = any(map(any, map(signal.getitimer, _TIMERS)))
    return _same(*map(_signal.getsignal, _HANDLED)), _signal.pthread_sigmask(signal.SIG_BLOCK, ()), has_timer


def _set_signals(before: tuple[Any, ...]) -> None:
    (_, handlers), blocked, _ = before
    for timer in _TIMERS:  # an alarm of the trial before would end this one
        signal.setitimer(timer, 0)
    for number, handler, current in zip(_HANDLED, handlers, map(_signal.getsignal, _HANDLED), strict=True):
        if handler is not None and current is not handler:  # None: C code has set it
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
    for name, value in before.items() - now.items():
        os.environb[name] = value
    if now.get(b"TZ") != before.get(b"TZ"):
        time.tzset()


def _set_lists(before: tuple[Any, ...]) -> None:
    (_, lists), *copies = before
    for values, items in zip(lists, copies, strict=True):
        values[:] = items
    sys.argv, sys.path = lists


def _hooks() -> tuple[Any, ...]:
    hooks = [getattr(sys, name) for name in _HOOKS]
    return _same(*hooks), [getattr(stream, "closed", False) for stream in hooks[: len(_STREAMS)]]


def _set_hooks(before: tuple[Any, ...]) -> None:
    (_, hooks), _ = before
    for name, hook in zip(_HOOKS, hooks, strict=True):
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
            try:
                is_open = os.path.samestat(os.fstat(descriptor), status)
            except OSError:
                is_open = False
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
    (_, (filters, warnings.showwarning)), items = before
    filters[:] = items
    warnings.filters = filters
    warnings._filters_mutated()  # type: ignore[attr-defined]  # as `warnings.catch_warnings` does


def _limits() -> tuple[Any, ...]:
    soft = [resource.getrlimit(limit)[0] for limit in _LIMITS]
    return soft, os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0)


def _set_limits(before: tuple[Any, ...]) -> None:
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
    for logger, level, propagate, is_disabled, handlers in states:
        logger.level, logger.propagate, logger.disabled, logger.handlers[:] = level, propagate, is_disabled, handlers
    logging.disable(disabled)  # last: this has all loggers forget which levels they are enabled for


def _numpy(numpy: Any) -> tuple[Any, ...]:
    return numpy.geterr(), numpy.geterrcall(), numpy.get_printoptions()


def _set_numpy(numpy: Any, before: tuple[Any, ...]) -> None:
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


def _set_random(random: Any, before: Any) -> None:
    if before is None:
        random.seed(int.from_bytes(os.urandom(_SEED_BYTES), "big"))
    else:
        random.setstate(before)


@functools.cache
def _drawn_generator() -> Any:
    return sys.modules[_NUMPY_RANDOM].MT19937()


def _numpy_random(random: Any) -> tuple[Any, Any]:
    """Return NumPy's generator, and its state where somebody has set it."""
    generator = random.get_bit_generator()
    return generator, None if generator.seed_seq is not None else random.get_state()


def _set_numpy_random(random: Any, before: tuple[Any, Any] | None) -> None:
    """Put a generator in place: to read the state of the framework's own, and to set it again, would take 70 us."""
    generator, state = before or (_drawn_generator(), None)
    if generator not in (None, random.get_bit_generator()):
        random.set_bit_generator(generator)
    if before is None:
        random.seed(memoryview(os.urandom(_SEED_BYTES)).cast("I").tolist())
    elif state is not None:
        random.set_state(state)


def _set_torch_random(torch: Any, before: Any) -> None:
    if before is not None:
        seed, state = before
        torch.manual_seed(seed)  # of other devices too
        torch.set_rng_state(state)
    elif torch.initial_seed() < _CHOSEN_SEED or torch.cuda.is_initialized():
        torch.seed()
    else:  # nobody has set that of another device, which is drawn when it is first used
        torch.default_generator.seed()


ITEMS = (
    Item(name="signal handlers, blocked signals, timers", read=_signals, restore=_set_signals, is_own=True),
    Item(name="current folder", read=os.getcwd, restore=_enter, is_own=True),
    Item(name="umask", read=umask, restore=os.umask, is_own=True),
    Item(name="environment, time zone", read=_environment, restore=_set_environment),
    Item(
        name="arguments, import path",
        read=lambda: (_same(sys.argv, sys.path), sys.argv.copy(), sys.path.copy()),
        restore=_set_lists,
    ),
    Item(name="standard streams, hooks", read=_hooks, restore=_set_hooks, is_own=True),
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
        read=lambda: (_same(warnings.filters, warnings.showwarning), list(warnings.filters)),
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
        restore=_set_random,
        module="random",
        is_drawn=True,
    ),
    Item(
        name="numpy: random",
        read=_numpy_random,
        restore=_set_numpy_random,
        module=_NUMPY_RANDOM,
        fresh=(None, None),
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
_RANDOM, _OF_NUMPY = ([item.name for item in ITEMS].index(name) for name in ("random", "numpy: random"))
