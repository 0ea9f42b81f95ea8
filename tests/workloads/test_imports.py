"""Importing a workload imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "numpy", "sklearn", "torchvision", "pandas", "pydantic", "yaml")


@pytest.mark.parametrize("module", ["mnist_mlp", "null", "sleep", "surrogate", "faulty"])
def test_importing_a_workload_imports_nothing_heavy(module: str) -> None:
    script = (
        f"import sys, importlib; module = importlib.import_module('tuneoff_workloads.{module}'); "
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_checking_options_and_spaces_imports_nothing_heavy() -> None:
    script = (
        "import sys; from tuneoff_workloads.mnist_mlp import MnistMlp; w = MnistMlp({'dataset': 'mnist'}); "
        f"w.check_space(w.default_space()); w.device(); print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
