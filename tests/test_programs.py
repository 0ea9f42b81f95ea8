"""No program is needed that README does not ask for: what is looked up or started is usual on Linux, or named in .ci/optional."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
USUAL = {  # the first are README's, or this project's own; the others come with every Linux: coreutils, libc, util-linux
    *("python", "python3", "git", "make", "sh", "bash", "tuneoff"),
    *("uv",),  # of the extra `environments`, which dev has
    *("cat", "cp", "echo", "env", "grep", "head", "mkdir", "nice", "sleep", "true", "false"),
    *("ldd", "ldconfig", "unshare", "nsenter", "setpriv"),
}
CALLS = {"shutil.which", *(f"subprocess.{name}" for name in ("run", "Popen", "check_call", "check_output"))}
SCOPES = (ast.Module, ast.FunctionDef)
Scope = ast.Module | ast.FunctionDef
SOURCES = [
    path for name in ("core", "adapters", "workloads", "benchmarks", "tests") for path in sorted((ROOT / name).rglob("*.py"))
]


def optional() -> set[str]:
    """Return the programs that .ci/optional names."""
    lines = [line for line in (ROOT / ".ci/optional").read_text().splitlines() if not line.startswith("#")]
    return {Path(word).name for line in lines for word in line.split("|")[2].split()}


class Programs:
    """The programs that a module looks up or starts, as far as its own text says their names."""

    def __init__(self, source: str) -> None:
        self._module = ast.parse(source)
        self._nodes = {scope: list(_inside(scope)) for scope in ast.walk(self._module) if isinstance(scope, SCOPES)}

    def __iter__(self) -> Iterator[str]:
        for scope, nodes in self._nodes.items():
            for node in nodes:
                if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in CALLS:
                    yield from self._words(node.args[0], scope)

    def _words(self, node: ast.expr, scope: Scope, seen: frozenset[object] = frozenset()) -> Iterator[str]:
        """Yield what an expression can be: a word, or the first one of a command."""
        match node:
            case ast.Constant(value=str(word)):
                yield Path(word).name
            case ast.Name(id=name) if (name, scope) not in seen:
                for value, where in self._values(name, scope):
                    yield from self._words(value, where, seen | {(name, scope)})
            case ast.List(elts=[value, *_]) | ast.Tuple(elts=[value, *_]) | ast.Starred(value=value) | ast.BinOp(left=value):
                yield from self._words(value, scope, seen)
            case ast.IfExp(body=body, orelse=orelse):
                yield from self._words(body, scope, seen)
                yield from self._words(orelse, scope, seen)

    def _values(self, name: str, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        """Yield what a name is bound to, in a function or else in the module; and where that stands."""
        bound = False
        for node in self._nodes[scope]:
            match node:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                    bound = True
                    yield value, scope
                case ast.comprehension(target=target, iter=value) | ast.For(target=target, iter=value) if (
                    ast.unparse(target).strip("()").partition(",")[0] == name
                ):
                    bound = True
                    yield from ((element, scope) for element in self._elements(value, scope))
        if isinstance(scope, ast.FunctionDef):
            names = [argument.arg for argument in scope.args.args if argument.arg not in ("self", "cls")]
            if name in names:
                yield from self._arguments(scope.name, names.index(name))
            elif not bound:
                yield from self._values(name, self._module)

    def _elements(self, node: ast.expr, scope: Scope) -> Iterator[ast.expr]:
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                yield from elements
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    yield from [key] if key is not None else self._elements(value, scope)
            case ast.Call(func=ast.Attribute(attr="fromkeys"), args=[value, *_]):
                yield from self._elements(value, scope)
            case ast.Call(func=ast.Attribute(attr="items", value=value)):
                yield from self._elements(value, scope)
            case ast.Name(id=name):
                for value, where in self._values(name, scope):
                    yield from self._elements(value, where)

    def _arguments(self, function: str, index: int) -> Iterator[tuple[ast.expr, Scope]]:
        """Yield what the calls of a function of this module give as its argument."""
        for scope, nodes in self._nodes.items():
            for node in nodes:
                if (
                    isinstance(node, ast.Call)
                    and ast.unparse(node.func).rpartition(".")[2] == function
                    and len(node.args) > index
                ):
                    yield node.args[index], scope


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below one, without those of functions in it."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, SCOPES):
            yield from _inside(node)


def test_every_program_is_usual_or_in_the_list_of_optional_ones() -> None:
    texts = {path: path.read_text() for path in SOURCES}
    programs = {name: path for path, text in texts.items() if "subprocess" in text or "shutil" in text for name in Programs(text)}
    for path in (ROOT / "Makefile", *(ROOT / ".ci").iterdir()):
        programs |= dict.fromkeys(re.findall(r"command -v ([\w-]+)", path.read_text()), path)
    assert {"srun", "initdb", "redis-server", "prometheus", "chromium", "podman", "sshd", "openssl", "sleep"} <= set(programs)
    unlisted = {
        name: str(path.relative_to(ROOT))
        for name, path in programs.items()
        if name not in USUAL | optional() | {"apt-get", "tuneoff"}
    }
    assert unlisted == {}, "a program of README, or of .ci/optional"


@pytest.mark.parametrize(
    "source",
    [
        "shutil.which('planted')",
        "NEEDED = {'planted': 'package'}\nmissing = [name for name in NEEDED if shutil.which(name) is None]",
        "def find(name):\n    return shutil.which(name, path='/sbin')\nfind('planted')",
        "FIRST = ('/usr/bin/planted', '--all')\nsubprocess.run([*FIRST, 'sh'])",
        "command = ['planted']\nsubprocess.Popen(command if quick else ['sh'])",
    ],
)
def test_a_planted_program_is_seen(source: str) -> None:
    assert "planted" in set(Programs(source))


def test_readme_asks_for_these_programs_alone() -> None:
    assert "They need Linux, Python 3.11 or later, git, make, and a package index" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", ["srun", "redis-server", "podman"])
def test_optional_programs_can_be_hidden(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("#!/bin/sh\n")
    (tmp_path / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    find = ["sh", "-c", f"command -v git && command -v make && {name}"]
    assert subprocess.run(find, env=environment, capture_output=True, check=False).returncode == 0
    hidden = subprocess.run([ROOT / ".ci/bare", *find], env=environment, capture_output=True, text=True, check=False)
    assert hidden.returncode in (126, 127), hidden.stderr
    assert "/make" in hidden.stdout
