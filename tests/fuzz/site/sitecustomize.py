"""Guards every Python process that starts with this folder in PYTHONPATH and the guard's setting in its environment."""

import os
import runpy
from pathlib import Path

_guard = runpy.run_path(str(Path(__file__).parents[1] / "guard.py"))
if _guard["VARIABLE"] in os.environ:
    _guard["install"](os.environ[_guard["VARIABLE"]])
