"""Which line of whose code an error is said to come from, and what a log gives back."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tuneoff.base.targets import load_target
from tuneoff.base.tracebacks import described, logged_tracebacks, source_line
from tuneoff.errors import PluginError


def raised(call: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:
        call()
    error: BaseException = caught.value
    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # without this file's own frame
    return error


def function(file: str, body: str, module: str = "mine", **known: object) -> Callable[[], object]:
    """Return a function without arguments that is written in a file of that path, three lines down."""
    names: dict[str, object] = {"__name__": module, **known}
    exec(compile(f"\n\ndef call(): {body}\n", file, "exec"), names)
    found: Callable[[], object] = names["call"]  # type: ignore[assignment]
    return found


INSTALLED = f"{sysconfig.get_path('purelib')}/sklearn/fit.py"
DEBIAN = "/usr/lib/python3/dist-packages/sklearn/fit.py"
LIBRARY = f"{sysconfig.get_path('stdlib')}/json/decoder.py"


@pytest.mark.parametrize("inner", [INSTALLED, DEBIAN, LIBRARY, "<frozen importlib>"])
def test_the_place_is_the_innermost_line_of_one_s_own_code_whatever_library_raised(inner: str) -> None:
    library = function(inner, "1 / 0", "library")
    helper = function("/home/me/helpers.py", "library()", library=library)
    train = function("/home/me/train.py", "helper()", helper=helper)
    core = function("/home/me/tuneoff/core/run.py", "train()", "tuneoff.run.trial.run_trial", train=train)
    assert described(raised(core)) == "ZeroDivisionError: division by zero (helpers.py:3)"


def test_where_all_of_it_is_installed_the_place_is_the_plugin_s_own_first_line() -> None:
    library = function(INSTALLED, "1 / 0", "sklearn.fit")
    plugin = function(f"{sysconfig.get_path('purelib')}/their_plugin/train.py", "library()", "their_plugin", library=library)
    assert source_line(raised(plugin)) == " (train.py:3)"


def test_an_error_of_tuneoff_itself_has_no_place() -> None:
    assert source_line(raised(function("run.py", "1 / 0", "tuneoff.run.trial.run_trial"))) == ""
    assert described(ValueError()) == "ValueError"


@pytest.mark.parametrize(
    ("module", "package"),
    [("tuneoff_workloads.command", "tuneoff_workloads"), ("__main__", "tuneoff.trust.workload_check"), ("tuneoff", "")],
)
@pytest.mark.parametrize("folder", ["/home/me/tuneoff/workloads/", f"{sysconfig.get_path('purelib')}/tuneoff_workloads/"])
def test_a_user_is_shown_no_line_of_tuneoff_s_own_workloads_and_programs(module: str, package: str, folder: str) -> None:
    assert source_line(raised(function(f"{folder}train.py", "1 / 0", module, __package__=package))) == ""
    user = function("/home/me/train.py", "1 / 0", "__main__", __package__=None)
    assert source_line(raised(function(f"{folder}train.py", "user()", module, __package__=package, user=user))) == " (train.py:3)"


def test_a_framework_below_an_adapter_of_tuneoff_has_no_line_and_a_plugin_below_it_has() -> None:
    framework = function(INSTALLED, "1 / 0", "ray.tune")
    adapter = function("adapter.py", "framework()", "tuneoff_adapters.ray_tune.adapter", framework=framework)
    assert source_line(raised(function("run.py", "adapter()", "tuneoff.run.lifecycle", adapter=adapter))) == ""
    plugin = function(f"{sysconfig.get_path('purelib')}/their_plugin/train.py", "library()", "their_plugin", library=framework)
    trial = function("run_trial.py", "plugin()", "tuneoff.run.trial.run_trial", plugin=plugin)
    worker = function("worker.py", "trial()", "tuneoff_adapters.optuna.worker", trial=trial)
    assert source_line(raised(worker)) == " (train.py:3)"


def test_an_import_that_fails_has_the_line_of_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "breaks_at_import.py").write_text("\n\nraise OSError('no data')\n")
    monkeypatch.syspath_prepend(tmp_path)
    error = raised(partial(load_target, "breaks_at_import:Train"))
    assert isinstance(error, PluginError)
    assert source_line(error) == " (breaks_at_import.py:3)"


def test_a_log_gives_back_its_last_distinct_tracebacks(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    block = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nValueError: {}'
    log.write_text("\n".join(["noise", *(block.format(number // 2) for number in range(14)), "noise"]))
    assert logged_tracebacks(log) == [block.format(number) for number in range(2, 7)]
    assert logged_tracebacks(tmp_path / "none") == []
