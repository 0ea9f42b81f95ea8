"""Dependencies point one way: adapters import core and never each other; the rooms of core import those below them only."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core" / "tuneoff"
HEAVY = (
    *("ray", "optuna", "syne_tune", "rustuna", "nevergrad", "hyperopt", "flaml", "smac", "ConfigSpace", "ax", "hydra"),
    "deephyper",
    *("neps", "kubernetes", "kubeflow", "torch", "torchvision", "sklearn"),
    *("pandas", "pyarrow", "scipy", "matplotlib", "jinja2"),
)
# parts of core that only reports import, and what they may import at once
ALLOWED: dict[tuple[str, ...], set[str]] = {
    ("judge", "stats"): {"numpy"},
    ("tell", "page"): {"jinja2"},
}
FLOORS = ("base", "experiment", "record", "measure", "run", "judge", "tell", "trust", "cli")  # an import only goes down
TOP = ("adapter.py", "errors.py", "meter.py", "registry.py", "workload.py")  # what any room may name
FOR_PLUGINS = ("adapter_parts", "ask_tell", "testing")  # and what no room may name
PLUGINS = ("tuneoff_adapters", "tuneoff_faults", "tuneoff_meters", "tuneoff_platforms", "tuneoff_workloads", "katib_emulation")
ADAPTERS = (
    *("serial", "optuna", "ray_tune", "syne_tune", "rustuna", "nevergrad", "hyperopt", "flaml", "smac", "ax", "hydra"),
    *("neps", "katib"),
    "deephyper",
)


@functools.cache
def imports(source: str, *, top_level_only: bool) -> frozenset[str]:
    """Return the modules that a source imports: all, or those that importing it imports."""
    tree = _parsed(source)
    nodes = ast.walk(tree)
    if top_level_only:
        nodes = _reached(statement for statement in tree.body if not _is_for_types(statement))
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return frozenset(found)


_parsed = functools.lru_cache(maxsize=1)(ast.parse)


def _is_for_types(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and isinstance(statement.test, ast.Name) and statement.test.id == "TYPE_CHECKING"


def _reached(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """Yield statements and all below them but what is in functions, which run later."""
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def forbidden(path: Path, source: str) -> set[str]:
    """Return the imports of a file that break the rule."""
    relative = path.relative_to(ROOT).parts
    everything = {name.split(".")[0] for name in imports(source, top_level_only=False)}
    at_import = {name.split(".")[0] for name in imports(source, top_level_only=True)}
    if relative[0] == "core":
        return (everything & {*PLUGINS, "ray", "optuna", "syne_tune", "torch"}) | (
            (at_import & {*HEAVY, "numpy"}) - ALLOWED.get(relative[2:4], set()) | _upward(relative[2], source)
        )
    if relative[0] == "workloads":
        return everything & {"tuneoff_adapters", "tuneoff_faults", "ray", "optuna", "syne_tune"}
    if relative[1] == "katib_emulation":  # usable alone, and no part of what it is compared with
        return (everything & {"tuneoff", *PLUGINS[:-1], "kubernetes", "kubeflow"}) | (at_import & {"optuna"})
    if relative[1] == "tuneoff_faults":  # what it breaks it only names
        return everything & {"tuneoff_adapters", "tuneoff_meters", "tuneoff_platforms", "katib_emulation"}
    own = relative[2].removesuffix(".py") if relative[1] == "tuneoff_adapters" else ""
    modules = {name.split(".")[1] for name in imports(source, top_level_only=False) if name.startswith("tuneoff_adapters.")}
    return (everything & {"tuneoff_workloads", "tuneoff_faults"}) | ((modules & set(ADAPTERS)) - {own})


def _upward(room: str, source: str) -> set[str]:
    """Return the imports of rooms above this one; what is on top of core is for plugins, and any room may name it."""
    on_top = room in TOP  # what these import at once, every room imports that names them
    if not (on_top or room in FLOORS):
        return set()
    above = {f"tuneoff.{name}" for name in (*FLOORS[3 if on_top else FLOORS.index(room) + 1 :], *FOR_PLUGINS)}
    return {name for name in imports(source, top_level_only=on_top) if ".".join(name.split(".")[:2]) in above}


FILES = sorted(path for folder in ("core", "adapters", "workloads") for path in (ROOT / folder).rglob("*.py"))


def test_no_file_imports_against_the_direction() -> None:
    found = {str(path.relative_to(ROOT)): forbidden(path, path.read_text()) for path in FILES}
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("core/tuneoff/x.py", "import tuneoff_adapters.serial"),
        ("core/tuneoff/measure/x.py", "def f():\n    from tuneoff_meters.rapl import RaplMeter"),
        ("core/tuneoff/x.py", "def f():\n    from optuna import create_study"),
        ("core/tuneoff/x.py", "import numpy as np"),
        ("core/tuneoff/record/x.py", "from tuneoff.run.trial.trial_process import TrialBudget"),
        ("core/tuneoff/run/x.py", "from tuneoff.ask_tell import AskTellAdapter"),
        ("core/tuneoff/meter.py", "from tuneoff.measure.power.model_meter import ModelMeter"),
        ("core/tuneoff/judge/x.py", "def f():\n    import tuneoff.tell.report.table"),
        ("core/tuneoff/judge/stats/x.py", "from scipy import stats"),
        ("core/tuneoff/tell/plots/x.py", "from matplotlib.figure import Figure"),
        ("workloads/tuneoff_workloads/x.py", "import ray"),
        ("adapters/tuneoff_adapters/optuna/x.py", "from tuneoff_adapters.ray_tune.session import start_ray"),
        ("adapters/tuneoff_adapters/serial.py", "from tuneoff_workloads.null import Null"),
        ("adapters/tuneoff_meters/x.py", "from tuneoff_adapters.serial import SerialAdapter"),
        ("adapters/tuneoff_adapters/serial.py", "from tuneoff_faults.plain import FaultTools"),
        ("adapters/tuneoff_faults/x.py", "from tuneoff_adapters.serial import SerialAdapter"),
        ("core/tuneoff/judge/x.py", "def f():\n    from tuneoff_faults.faults import FAULTS"),
        ("adapters/katib_emulation/x.py", "from tuneoff.base import clock"),
        ("adapters/katib_emulation/x.py", "from tuneoff_adapters.katib.plan import KatibPlan"),
    ],
)
def test_a_planted_import_against_the_direction_is_found(place: str, source: str) -> None:
    assert forbidden(ROOT / place, source) != set()


def mutual(files: Mapping[Path, str]) -> set[frozenset[str]]:
    """Return the pairs of names at the top of core that import each other, in whatever place; `files`: sources by path."""
    arrows = set()
    for path, source in files.items():
        here = path.relative_to(CORE).parts[0].removesuffix(".py")
        targets = {name.split(".")[1] for name in imports(source, top_level_only=False) if name.startswith("tuneoff.")}
        arrows |= {(here, target) for target in targets - {here}}
    return {frozenset(arrow) for arrow in arrows if arrow[::-1] in arrows}


def test_no_two_names_of_core_import_each_other() -> None:
    files = {path: path.read_text() for path in FILES if path.is_relative_to(CORE)}
    assert mutual(files) == set()
    planted = {
        CORE / "adapter_planted.py": "def f():\n    import tuneoff.run.finish",
        CORE / "run/x.py": "import tuneoff.adapter_planted",
    }
    assert mutual({**files, **planted}) == {frozenset({"adapter_planted", "run"})}


KATIB = ", ".join(
    f"tuneoff_adapters.{name}"
    for name in (
        *("katib.options", "katib.platforms", "katib.checks"),
        *("kubernetes.platform", "kubernetes.pool", "kubernetes.removal", "kubernetes.connection"),
    )
)
PLUGIN_MODULES = ", ".join(
    (
        *(entry.module for entry in entry_points(group="tuneoff.adapters") if entry.module.startswith("tuneoff_adapters.")),
        *(f"tuneoff_workloads.{name}" for name in ("mnist_mlp", "null", "sleep", "surrogate")),
        "tuneoff_faults.faulty",
    )
)
LIGHT: Mapping[str, tuple[str, set[str]]] = {  # what is done -> how, and what may not be imported for it
    "import plugins": (f"import {PLUGIN_MODULES}", {*HEAVY}),
    "import workloads": (
        f"import {PLUGIN_MODULES[PLUGIN_MODULES.index('tuneoff_workloads') :]}",
        {"torch", "numpy", "sklearn", "torchvision", "pandas", "pydantic", "yaml"},
    ),
    "check options and spaces": (
        "from tuneoff_workloads.mnist_mlp import MnistMlp; w = MnistMlp({'dataset': 'mnist'})\n"
        "w.check_space(w.default_space()); w.device()",
        {"torch", "numpy", "sklearn", "torchvision", "pandas", "pydantic", "yaml"},
    ),
    "start commands and the processes of runs": (
        "import tuneoff.cli.main, tuneoff.run.lifecycle, tuneoff.run.trial.__main__, tuneoff.run.supervisor.run",
        {*HEAVY, "numpy", "pydantic", "yaml"},
    ),
    "list adapters": (
        "from tuneoff.cli.main import main; main(['list', 'adapters'])",
        {*HEAVY, "msgspec", "numpy", "pydantic", "pydantic_core", "rich", "yaml", "cmaes"},
    ),
    "plan": (
        "import tuneoff.experiment.plan, tuneoff.registry as registry; registry.list_adapters(); registry.list_workloads()",
        {"optuna", "ray", "syne_tune", "torch", "pandas", "kubernetes"},
    ),
    "import what asks a cluster": (f"import {KATIB}", {"kubernetes", "kubeflow", "urllib3"}),
    "import what chooses a meter": ("import tuneoff_meters.nvml, tuneoff.measure.power.select_meter", {"pynvml"}),
    "tell versions": ("from tuneoff.record.environment import capture; capture()", {"torch", "numpy"}),
}


@pytest.mark.parametrize("what", LIGHT)
def test_nothing_heavy_is_imported_for_what_does_not_need_it(what: str) -> None:
    how, heavy = LIGHT[what]
    code = f"{how}\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.split(".")[0] for name in done.stderr.split()} & heavy == set()
