"""Negative controls: each planted adapter fails in the check that is meant for it, and in no other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from trust.check.controls import ALL_RUNS, failures, make_some, planted_surroundings
from trust.check.planted.expected import CONTROLS, EXPECTED, Control
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.evidence import AdapterEvidence

AT_ONCE = 3  # most wait: for epochs that last a while, for a limit of time
# Runs that begin first.
LONG = {"early-ends", "faulty", "scripted", "interrupted", "failed-trial", "coordinator-killed", "wall-clock"}

MakeEvidence = Callable[[Control], AdapterEvidence]


@pytest.fixture(scope="module")
def evidence_of(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeEvidence]:
    """Return the runs of a control; those of all that are asked for are made once, several at a time."""
    folder = tmp_path_factory.mktemp("planted")
    chosen = {_control(item) for item in request.session.items}
    with planted_surroundings(folder / "home"), ThreadPoolExecutor(AT_ONCE) as pool:
        made = {
            control.adapter: pool.submit(make_some, control, folder / control.adapter.replace(":", "-"))
            for control in sorted(CONTROLS, key=lambda control: LONG.isdisjoint(control.runs))
            if control in chosen
        }
        yield lambda control: made[control.adapter].result()


def _control(item: pytest.Item) -> object:
    """Return the control that a test of this session is about, if it is about one."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("control") if callspec is not None else None


def test_every_check_has_a_control() -> None:
    assert set(EXPECTED.values()) == {check.id for check in CHECKS}


def test_controls_are_named_once() -> None:
    assert len(EXPECTED) == len(CONTROLS)


@pytest.mark.slow(first=True)
@pytest.mark.timeout(0 if ALL_RUNS in os.environ else 600)
@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.adapter)
def test_it_fails_in_its_own_check_alone(control: Control, evidence_of: MakeEvidence) -> None:
    found = failures(CHECKS, evidence_of(control))
    assert set(found) == {control.check}, found
