"""Who used the energy: every part of a run on its own path, and the residual against the node's energy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tuneoff.metrics.evidence import Evidence
from tuneoff.metrics.segments import Interval
from tuneoff.metrics.values import Kind
from tuneoff.records.model import RunRecord

NO_SAMPLES = "no power was sampled in this run"
JOB_PARTS = ("overhead", "idle", "outside", "coordinator", "services", "test")  # and the trials: what the job used
OTHER_PARTS = ("suite", "other", "unreserved")  # what the node used besides


class Piece(NamedTuple):
    """Energy that was used evenly over an interval (ns since the run's start)."""

    start_ns: int
    end_ns: int
    joules: float


AttemptKey = tuple[str, int]  # trial id, position in `TrialRecord.attempts`


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyAccount:
    """A run's energy in pieces, in order of time; pieces may overlap. Empty with a `reason` where nothing is known.

    `attempts`: the busy segments of each attempt. `parts` of the job besides them: `overhead` (of slots), `idle` (slots within
    the slot window), `outside` (slots, neither busy nor overhead, outside of the slot window), `coordinator`, `services` (all
    other processes of the framework), `test`. Not of the job: `suite` (tuneoff's own supervision), `other` (processes that are
    not the run's), `unreserved` (idle power of processors that no slot reserves). `node`: what the node used as a whole.
    A part or attempt that is not there is unknown, never 0: `reasons` says why, and `job_reason` why the job as a whole is
    unknown (a meter that sees slots only knows it without a coordinator).
    """

    kind: Kind = "estimated"  # of what is attributed: derived (attributed from a counter) or estimated
    source: str = ""
    reason: str | None = None
    n_samples: int = 0
    coverage: float | None = None
    node_kind: Kind = "estimated"
    node_source: str = ""
    attempts: Mapping[AttemptKey, tuple[Piece, ...]] = field(default_factory=dict)
    parts: Mapping[str, tuple[Piece, ...]] = field(default_factory=dict)
    node: tuple[Piece, ...] | None = None  # None: the meter sees slots only
    reasons: Mapping[str, str] = field(default_factory=dict)  # of missing parts; `trials` of missing attempts; `node`
    job_reason: str | None = None


def energy_account(run: RunRecord, evidence: Evidence) -> EnergyAccount:
    """Return who used how much energy in a run."""
    return EnergyAccount(reason=NO_SAMPLES, job_reason=NO_SAMPLES)


def job_pieces(account: EnergyAccount) -> Iterator[Piece]:
    """Yield the energy of the job, trials first; all of it only where neither `reason` nor `job_reason` is set."""
    for pieces in account.attempts.values():
        yield from pieces
    for name in JOB_PARTS:
        yield from account.parts.get(name, ())


def joules(pieces: tuple[Piece, ...], within: Interval | None = None) -> float:
    """Return the energy of pieces, all of it or what lies in an interval."""
    if within is None:
        return sum(piece.joules for piece in pieces)
    total = 0.0
    for start, end, energy in pieces:
        overlap = min(end, within[1]) - max(start, within[0])
        if overlap > 0:
            total += energy if overlap == end - start else energy * overlap / (end - start)
    return total
