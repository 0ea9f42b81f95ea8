"""The faults: what goes wrong in a run, whether once or always, and whether a right answer is left then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tuneoff.judge.fault_results import CONTROL
from tuneoff_faults.faulty import Kind

Strike = Literal["driver", "part"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFault:
    """One thing that goes wrong in the trial of one configuration, the best one, at an epoch of it."""

    name: str
    text: str
    kind: Kind | None  # of the workload `faulty`; None: nothing goes wrong
    once: bool = False  # a second try of the trial goes well
    at_epoch: int = 2
    is_sound: bool = False  # the configuration has a right result, once it is trained to its end
    strike: Strike | None = None  # what is broken from outside, while the trial waits


NO_FAULT = TrialFault(name=CONTROL, text="nothing goes wrong: the control", kind=None, is_sound=True)


def _of_trial(name: Kind, text: str, *, at_epoch: int = 2, once: bool = False, is_sound: bool = False) -> TrialFault:
    return TrialFault(name=name, text=text, kind=name, at_epoch=at_epoch, once=once, is_sound=is_sound)


def _from_outside(name: str, text: str, strike: Strike = "part") -> TrialFault:
    return TrialFault(name=name, text=text, kind="outside", once=True, is_sound=True, strike=strike)


FAULTS: tuple[TrialFault, ...] = (
    NO_FAULT,
    _of_trial("raise", "the training raises an exception"),
    _of_trial("nan", "all metrics are NaN from the second epoch on"),
    _of_trial("inf", "all metrics are infinite from the second epoch on"),
    _of_trial("no_report", "the training ends well, and nothing is ever reported", at_epoch=1),
    _of_trial("wrong_metric", "the metric is reported under another name", at_epoch=1),
    _of_trial("hang", "the training never ends"),
    _of_trial("exit_code", "the trial's process ends itself with exit code 3"),
    _of_trial("sigkill", "the trial's process is killed by SIGKILL, once", once=True, is_sound=True),
    _of_trial("out_of_memory", "the trial takes more memory than there is"),
    _of_trial("duplicate_report", "the second epoch is reported twice", is_sound=True),
    _of_trial("late_report", "the second epoch is reported after the third, the last", is_sound=True),
    _of_trial("disk_full", "the disk under all files of the run is full from then on", once=True, is_sound=True),
    _from_outside("head_killed", "the framework's head is killed by SIGKILL"),
    _from_outside("node_killed", "what runs the trials on a node is killed by SIGKILL"),
    _from_outside("storage_removed", "the storage's file is removed"),
    _from_outside("storage_locked", "the storage's lock is left by a holder that died"),
    _from_outside("driver_killed", "the program is killed by SIGKILL and started again", strike="driver"),
)
