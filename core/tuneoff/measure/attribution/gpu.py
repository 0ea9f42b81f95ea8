"""Energy of accelerators (domains `gpu-N`): dynamic by share of device time, static evenly over the slots that train on one."""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence

from tuneoff.experiment.spec import Workers
from tuneoff.measure.attribution.method import Uses, grid_of, on_grid, priced, split
from tuneoff.measure.attribution.pieces import EnergyAccount, EnergyPiece, merged
from tuneoff.measure.attribution.tree import PARTS
from tuneoff.measure.spans import AttemptKey, busy, started_attempts
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Samples
from tuneoff.record.samples.schema import EnergySeries

NO_USER = "which processes used the accelerators is not known"
NO_GPU_BASELINE = "the idle power of the accelerators is not known"
Busy = dict[str, list[tuple[int, int, AttemptKey]]]  # by process: when it trained, and for whom
Span = tuple[int, int, list[tuple[str, float]]]  # from, to, who used how much of the device's time


def with_gpus(
    attributed: EnergyAccount, run: RunRecord, samples: Samples, uses: Uses, gpus: Mapping[str, EnergySeries]
) -> EnergyAccount:
    """Return the same account with the energy of the host's accelerators in it.

    The dynamic energy of an interval is shared by what its processes used of the device: by attempts that were busy in it,
    else by overhead. Processes that are not of the run are `others`, and so is a device on which no slot trains. Where nobody
    knows the processes, but slots have devices, those that train on a device's slots share it evenly.
    """
    grid = grid_of(uses)
    training: Busy = defaultdict(list)
    for key, attempt in started_attempts(run):
        training[attempt.process or ""].extend((start, end, key) for start, end in busy(attempt))
    for spans in training.values():
        spans.sort()
    users: dict[str, list[Span]] = defaultdict(list)  # by device, between two samples each: processes that train, or parts
    for before, sample in itertools.pairwise(samples.usage):
        for domain in gpus:
            shares = [(_owner(uses, pid, sample.t), share) for name, pid, share in sample.gpu if name == domain and share > 0]
            users[domain].append((before.t, sample.t, shares))
    trained = trained_on_gpu(run)
    node, reasons = list(attributed.node) if attributed.node is not None else None, dict(attributed.reasons)
    attempts: dict[AttemptKey, list[EnergyPiece]] = defaultdict(list)
    parts: dict[str, list[EnergyPiece]] = defaultdict(list)
    is_known = not trained or any(owner in training for spans in users.values() for span in spans for owner, _ in span[2])
    workers = run.run_spec().experiment.workers
    is_assumed = not is_known and bool(workers.devices)
    if is_assumed:
        users, is_known = _by_slots(run, training, users, workers), True
    for domain, series in gpus.items():
        if domain not in samples.header.idle_watts and not trained:
            continue  # nobody of the run uses it, and it cannot be split: it is left out, of the node's energy too
        totals = [series.energy(start, end) for start, end in itertools.pairwise(grid)]
        if node is not None:
            node += on_grid(grid, totals)
        idle_watts = samples.header.idle_watts.get(domain)
        if idle_watts is None or not is_known:
            continue
        static, dynamic = split(grid, totals, idle_watts)
        _share_dynamic(EnergySeries(grid, [0.0, *itertools.accumulate(dynamic)]), users[domain], training, attempts, parts)
        names = {owner for _, _, shares in users[domain] for owner, _ in shares}
        slots = {attempt.slot for _, attempt in started_attempts(run) if attempt.process in names}
        if not slots:
            parts["others"].extend(on_grid(grid, static))
        rates = [
            energy / (max(1, len(slots)) * (end - start))
            for energy, (start, end) in zip(static, itertools.pairwise(grid), strict=True)
        ]
        for slot, slot_parts in uses.slots:
            if slot.slot in slots:
                for key, held in slot.busy.items():
                    attempts[key].extend(priced(held, grid, rates))
                for name, held in slot_parts.items():
                    parts[name].extend(priced(held, grid, rates))
    missing = NO_USER if not is_known else NO_GPU_BASELINE if any(g not in samples.header.idle_watts for g in gpus) else None
    if missing is not None and trained:  # what these attempts used is unknown; no part of it is shown as if it were all
        reasons["trials"] = missing
        untrained = {key: pieces for key, pieces in attributed.attempts.items() if key not in trained}
        reasons.update(dict.fromkeys(("overhead", "idle", "outside"), missing))
        return EnergyAccount(attempts=untrained, parts=_attributable(attributed.parts, reasons), node=node, reasons=reasons)
    all_parts = {name: sorted([*attributed.parts.get(name, ()), *parts.get(name, ())]) for name in {*attributed.parts, *parts}}
    together = merged(attributed.attempts, {key: pieces for key, pieces in attempts.items() if key in attributed.attempts})
    kept = _attributable(all_parts, reasons)
    return EnergyAccount(attempts=together, parts=kept, node=node, reasons=reasons, is_assumed=is_assumed)


def trained_on_gpu(run: RunRecord) -> set[AttemptKey]:
    """Return the attempts that trained on an accelerator."""
    return {key for key, attempt in started_attempts(run) if attempt.device is not None and attempt.device != "cpu"}


def _attributable(parts: Mapping[str, Sequence[EnergyPiece]], reasons: Mapping[str, str]) -> dict[str, Sequence[EnergyPiece]]:
    return {name: pieces for name, pieces in parts.items() if name not in reasons}


def _owner(uses: Uses, pid: int, t: int) -> str:
    owners = uses.tree.owners.get(pid, [])
    index = bisect.bisect_right(owners, t, key=lambda item: item[0])
    return owners[index - 1][1] if index else "others"


def _by_slots(run: RunRecord, training: Busy, users: Mapping[str, list[Span]], workers: Workers) -> dict[str, list[Span]]:
    """Return, in place of the users of each device, the processes that trained on its slots then, with equal shares."""
    processes: dict[str, set[str]] = defaultdict(set)
    trained = trained_on_gpu(run)
    for key, attempt in started_attempts(run):
        if key in trained and attempt.slot is not None:
            processes[f"gpu-{workers.device_of(attempt.slot)}"].add(attempt.process or "")
    return {
        domain: [
            (start, end, [(process, 1.0) for process in sorted(processes[domain]) if _within(training[process], start, end)])
            for start, end, _ in spans
        ]
        for domain, spans in users.items()
    }


def _within(spans: list[tuple[int, int, AttemptKey]], start: int, end: int) -> list[tuple[int, int, AttemptKey]]:
    """Return what of a process's busy time lies in an interval."""
    inside = []
    first = bisect.bisect_right(spans, start, key=lambda span: span[0]) - 1
    for begin, finish, key in spans[max(0, first) :]:
        if begin >= end:
            break
        if finish > start:
            inside.append((max(begin, start), min(finish, end), key))
    return inside


def _share_dynamic(
    energy: EnergySeries,
    users: list[Span],
    training: Busy,
    attempts: dict[AttemptKey, list[EnergyPiece]],
    parts: dict[str, list[EnergyPiece]],
) -> None:
    for start, end, shares in users:
        total = sum(share for _, share in shares)
        used = energy.energy(start, end) if total > 0 else 0.0
        if used <= 0:
            continue
        for owner, share in shares:
            used_share = used * share / total
            if owner in PARTS:
                parts[owner].append(EnergyPiece(start, end, used_share))
                continue
            spans = _within(training[owner], start, end)
            length = sum(finish - begin for begin, finish, _ in spans)
            if not length:
                parts["overhead"].append(EnergyPiece(start, end, used_share))
            for begin, finish, key in spans:
                attempts[key].append(EnergyPiece(begin, finish, used_share * (finish - begin) / length))
