"""Which line of whose code an error is said to come from, and what a log gives back."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from tuneoff.base.targets import load_target
from tuneoff.base.tracebacks import described, logged_tracebacks, source_line
from tuneoff.errors import PluginError

SITE = sysconfig.get_path("purelib")
INSTALLED, DEBIAN = (f"{SITE}/sklearn/fit.py", "sklearn.fit"), ("/usr/lib/python3/dist-packages/sklearn/fit.py", "sklearn.fit")
LIBRARY, FROZEN = (f"{sysconfig.get_path('stdlib')}/json/decoder.py", "json.decoder"), ("<frozen importlib>", "importlib")
HELPERS, TRAIN = ("/home/me/helpers.py", "mine"), ("/home/me/train.py", "mine")
PLUGIN = (f"{SITE}/their_plugin/train.py", "their_plugin")
CORE, TRIAL = ("run.py", "tuneoff.run.lifecycle"), ("run_trial.py", "tuneoff.run.trial.run_trial")
FRAMEWORK = (f"{SITE}/ray/tune.py", "ray.tune")
RAY, OPTUNA = ("adapter.py", "tuneoff_adapters.ray_tune.adapter"), ("worker.py", "tuneoff_adapters.optuna.worker")


def raised(call: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:
        call()
    error: BaseException = caught.value
    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # without this file's own frame
    return error


def function(file: str, module: str, body: str, package: str | None = None, **known: object) -> Callable[[], object]:
    """Return a function without arguments that is written in a file of that path, three lines down."""
    names: dict[str, object] = {"__name__": module, "__package__": package, **known}
    exec(compile(f"\n\ndef call(): {body}\n", file, "exec"), names)
    found: Callable[[], object] = names["call"]  # type: ignore[assignment]
    return found


@pytest.mark.parametrize(
    ("frames", "place"),  # from the outermost to the one that raises
    [
        *(((TRIAL, TRAIN, HELPERS, inner), " (helpers.py:3)") for inner in (INSTALLED, DEBIAN, LIBRARY, FROZEN)),
        ((PLUGIN, INSTALLED), " (train.py:3)"),  # of what is installed the first
        ((TRIAL,), ""),  # an error of tuneoff itself
        ((CORE, RAY, FRAMEWORK), ""),
        ((OPTUNA, TRIAL, PLUGIN, FRAMEWORK), " (train.py:3)"),
    ],
)
def test_the_place_is_a_line_of_one_s_own_code_whatever_library_raised(frames: Sequence[tuple[str, str]], place: str) -> None:
    call = function(*frames[-1], "1 / 0")
    for file, module in reversed(frames[:-1]):
        call = function(file, module, "inner()", inner=call)
    assert described(raised(call)) == f"ZeroDivisionError: division by zero{place}"


@pytest.mark.parametrize(
    ("module", "package"),
    [("tuneoff_workloads.command", "tuneoff_workloads"), ("__main__", "tuneoff.trust.workload_check"), ("tuneoff", "")],
)
@pytest.mark.parametrize("folder", ["/home/me/tuneoff/workloads/", f"{SITE}/tuneoff_workloads/"])
def test_a_user_is_shown_no_line_of_tuneoff_s_own_workloads_and_programs(module: str, package: str, folder: str) -> None:
    assert source_line(raised(function(f"{folder}train.py", module, "1 / 0", package))) == ""
    user = function("/home/me/train.py", "__main__", "1 / 0")
    assert source_line(raised(function(f"{folder}train.py", module, "user()", package, user=user))) == " (train.py:3)"


def test_an_import_that_fails_has_the_line_of_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "breaks_at_import.py").write_text("\n\nraise OSError('no data')\n")
    monkeypatch.syspath_prepend(tmp_path)
    error = raised(partial(load_target, "breaks_at_import:Train"))
    assert (type(error), source_line(error)) == (PluginError, " (breaks_at_import.py:3)")
    assert described(ValueError()) == "ValueError"


def test_a_log_gives_back_its_last_distinct_tracebacks(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    block = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nValueError: {}'
    log.write_text("\n".join(["noise", *(block.format(number // 2) for number in range(14)), "noise"]))
    assert logged_tracebacks(log) == [block.format(number) for number in range(2, 7)]
    assert logged_tracebacks(tmp_path / "none") == []
