"""A signal ends a check at once, whatever it waits for."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tuneoff.base.findings import not_tested
from tuneoff.base.interrupting import asked_to_end
from tuneoff.trust.check import make
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.make import make_evidence, subject_of
from tuneoff.trust.check.one_run import ask_run
from tuneoff.trust.check.planned_runs import DRAWS
from tuneoff.trust.space_test.draw import FAILED, Drawing

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
(INSIDE,) = [replace(check, reads=(DRAWS,)) for check in CHECKS if check.id == "space.inside"]

FOUR = replace(INSIDE, reads=("scripted", "failed-deploy", "failed-setup", "failed-test"))


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    assert [signal.getsignal(number) for number in SIGNALS] == before


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_drawing(number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(*arguments: Any) -> Drawing:
        signal.raise_signal(number)
        assert arguments[-1]()  # it is stopped
        return Drawing(state=FAILED)

    monkeypatch.setattr(make, "draw_in_process", draw)
    with pytest.raises(KeyboardInterrupt):
        make_evidence(subject_of("serial"), [INSIDE], tmp_path)


def test_a_signal_while_a_process_is_started_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = subprocess.Popen

    def interrupted(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        process = start(["sleep", "60"], **options)
        signal.raise_signal(signal.SIGTERM)
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with asked_to_end() as asked:
        assert ask_run(asked, "any.module", tmp_path, {}, 5) == "its process ended with exit code -15: it printed nothing"
        assert ask_run(asked, "any.module", tmp_path, {}, 5) == "interrupted"


def test_a_run_that_a_signal_ended_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[str]()

    def tell(text: str) -> None:
        told.append(text)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(make, "_make", lambda *arguments: not_tested("interrupted"))
    with pytest.raises(KeyboardInterrupt):
        make_evidence(subject_of("serial"), [FOUR], tmp_path, tell)
    assert [text.partition(";")[0] for text in told] == ["1 of 4 runs made"]


def test_a_draw_that_takes_too_long_names_no_option_of_another_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "DRAW_SECONDS", 0.01)
    text = make_evidence(subject_of("serial"), [INSIDE], tmp_path).missing[DRAWS].text
    assert text.endswith("had given 0 configurations; let it give 1000 in that time")
