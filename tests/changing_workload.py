"""A training that notes what it sees of its process and then changes all of it; run as a program it prints what it sees."""

from __future__ import annotations

import argparse
import decimal
import gc
import json
import locale
import logging
import multiprocessing
import os
import random
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy

ARGUMENTS = argparse.ArgumentParser().parse_args()  # as many scripts do when they are imported
random.seed(1)
numpy.random.seed(1)


def seen() -> dict[str, Any]:
    """Return what is the same in every fresh process that runs this file in one folder."""
    umask = os.umask(0o022)
    os.umask(umask)
    return {
        "arguments": sys.argv,
        "folder": os.getcwd(),
        "umask": umask,
        "handlers": {number.name: _name(signal.getsignal(number)) for number in signal.Signals if number.name[3:6] != "RTM"},
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "alarm": signal.getitimer(signal.ITIMER_REAL),
        "locale": locale.setlocale(locale.LC_ALL),
        "start method": multiprocessing.get_start_method(allow_none=True),
        "variable": os.environ.get("CHANGED"),
        "time zone": time.tzname,
        "import path": "/changed" in sys.path,
        "standard output": [sys.stdout is sys.stderr, sys.stdout.closed],
        "hook": _name(sys.excepthook),
        "recursion": sys.getrecursionlimit(),
        "collects": gc.isenabled(),
        "core files": resource.getrlimit(resource.RLIMIT_CORE)[0],
        "warnings": any(item[0] == "error" for item in warnings.filters),
        "logging": (logging.root.level, logging.root.manager.disable),
        "precision": decimal.getcontext().prec,
        "numpy": [numpy.geterr(), numpy.get_printoptions()["precision"]],
        "random": [random.random(), float(numpy.random.rand())],
    }


def _name(value: Any) -> str:
    return value if isinstance(value, str) else getattr(value, "__name__", None) or getattr(value, "name", None) or str(value)


def change() -> None:
    """Change all of it, as trainings do."""
    multiprocessing.set_start_method("spawn")  # works once in a process
    sys.argv.append("--changed")
    sys.path.insert(0, "/changed")
    os.chdir("/")
    os.umask(0o777)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda number, frame: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    signal.alarm(2)  # would end the next trial
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    os.environ.update(CHANGED="1", TZ="Asia/Tokyo")
    time.tzset()
    sys.stdout.close()
    sys.stdout = sys.stderr
    os.close(0)
    os.dup2(os.open("/dev/null", os.O_RDWR), 2)
    sys.excepthook = lambda *error: None
    sys.setrecursionlimit(77_777)
    gc.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    warnings.simplefilter("error")
    logging.disable(logging.CRITICAL)
    logging.root.setLevel(logging.DEBUG)
    decimal.getcontext().prec = 3
    numpy.seterr(all="raise")
    numpy.set_printoptions(precision=2)
    random.seed(9)
    numpy.random.seed(9)


class Stop(BaseException):
    """None of the exceptions that programs catch."""


class Mute(Exception):
    """Its own text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def train(configuration: dict[str, Any], seed: int, notes: str) -> Iterator[float]:
    """Note what is seen; then change it, add to a list of the configuration, and do what its `kind` says."""
    kind, layers = configuration["kind"], configuration["layers"]
    with open(notes, "a") as file:
        file.write(json.dumps({"kind": kind, "layers": layers, "pid": os.getpid(), "seen": seen()}) + "\n")
    change()
    layers.append(10)
    configuration["kind"] = "changed"
    yield 9.0
    match kind:
        case "exit":
            sys.exit(0)
        case "base":
            raise Stop("the end")
        case "mute":
            raise Mute
        case "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
            raise KeyboardInterrupt
        case "terminate":
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        case "abort":
            os.abort()
        case "leave":
            os._exit(3)
    yield float(len(layers))


if __name__ == "__main__":
    print(json.dumps(seen()))
