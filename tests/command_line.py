"""The command line called in the test's own process, and the files that it is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import fake_plugins
from tuneoff.cli.main import main
from tuneoff.run import execute as execution

LEAST: dict[str, Any] = {"workload": "curve", "adapters": ["plain"], "budget": {"trials": 5}, "warm_up": False}


@dataclass(frozen=True)
class Answer:
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The only line on standard error; nothing may be on standard output."""
        assert self.out == ""
        assert self.err.count("\n") == 1, self.err
        return self.err.rstrip("\n")


Call = Callable[..., Answer]
File = Callable[..., Path]


def caller(capsys: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs a command and returns its answer."""

    def run(*arguments: str | Path) -> Answer:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return run


class Outdated(fake_plugins.Plain):
    """Offers all that `plain` does, by a framework that is installed in a version too old."""

    capabilities = replace(
        fake_plugins.Plain.capabilities, package="PyYAML", module="yaml", minimum_version="99.1", install="PyYAML>=99.1"
    )


def register_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the fakes and `outdated` the only plugins."""
    fake_plugins.register(monkeypatch, fake_plugins.plugin("outdated", "command_line:Outdated"))


def forbid_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a run that starts a failure of the test."""

    def supervise(*arguments: object) -> None:
        pytest.fail("a run was started")

    monkeypatch.setattr(execution, "supervise", supervise)


def write_file(path: Path, content: dict[str, Any] | str) -> Path:
    """Write an experiment file; JSON is YAML."""
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path
