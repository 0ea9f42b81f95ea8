"""Two results folders made by hand: what changed beyond noise is told, and nothing else is called a change."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from builders.made_choices import FROZEN, MACHINE, SEEDS, made_results, runs_of
from builders.made_runs import METRIC
from builders.present import present
from builders.refusals import refusal
from corpus.figures import figure, written
from tuneoff.experiment.spec import RunSpec
from tuneoff.judge.comparison.diff import Change, Comparison, compared
from tuneoff.judge.comparison.diff_output import lines, to_json
from tuneoff.judge.results import Results
from tuneoff.measure.use import SHARE
from tuneoff.record.metric_value import metric_value
from tuneoff.record.run_record import FlagRecord, RunRecord

pytest.importorskip("scipy")
Runs = list[tuple[RunSpec, RunRecord]]


def changed(runs: Runs, factor: float = 1.0, noise: float = 0.01, name: str = "", **more: Any) -> Runs:
    """Return the runs again: times multiplied by `factor` and by chance, all else the same; `more` replaces of every record."""
    again = []
    for spec, record in runs:
        chance = random.Random(f"{name} {spec.adapter} {spec.seed}")
        metrics = dict(record.metrics)
        if "time.jct" in metrics:
            metrics["time.jct"] = metric_value((metrics["time.jct"].value or 0) * factor * chance.lognormvariate(0, noise), "ms")
        again.append((spec, replace(record, metrics=metrics, **more)))
    return again


def folder(*groups: Sequence[tuple[RunSpec, RunRecord | None]], name: str = "b", **more: Any) -> Results:
    return made_results(*groups, folder=Path(name), **more)


def since(*groups: Sequence[tuple[RunSpec, RunRecord | None]], baseline: str | None = None) -> Comparison:
    return compared(OLD, folder(*groups), baseline)


def change(comparison: Comparison, adapter: str, question: str) -> Change:
    (of_question,) = [of for of in comparison.changes if (of.adapter, of.question.name) == (adapter, question)]
    return of_question


def times(runs: Runs) -> list[float]:
    return [present(record.metrics["time.jct"].value) for _, record in runs]


SERIAL, OPTUNA = runs_of("serial"), runs_of("optuna")
OLD = folder(SERIAL, OPTUNA, name="a")
SLOWER = (changed(SERIAL, 1.3), changed(OPTUNA, 1.3))
FEW = runs_of("serial", seeds=SEEDS[:9])
WIDE = {**FROZEN, "margin_percent": 50.0}
FLAG = (FlagRecord(name="disturbed", text="x"),)


def at_family_size(**frozen: Any) -> Comparison:
    """Compare ten seeds that all grew by more than the margin, but one."""
    signs = {seed: 0.8 if seed == 0 else 1.2 + seed / 100 for seed in SEEDS}
    new = [pair for seed, factor in signs.items() for pair in changed([SERIAL[seed]], factor, noise=0)]
    old, now = (folder(runs, name=name, analysis={**FROZEN, **frozen}) for runs, name in ((SERIAL, "a"), (new, "b")))
    return compared(old, now)


def twice(noise: float) -> Comparison:
    """Compare an entry that is named twice: both became slower, and differ by this much from each other."""
    again = changed(runs_of("serial", replicate=1), noise=noise, name="x")
    return compared(folder(SERIAL, again, name="a"), folder(changed(SERIAL, 1.15), changed(again, 1.15, name="y")))


def disturbed_baseline() -> Comparison:
    def watched(runs: Runs, where: str, **more: Any) -> Runs:
        share = {SHARE: metric_value(0, "%")}
        return [
            (spec, replace(of, metrics={**of.metrics, **share}, execution_id=f"{of.execution_id}{where}", **more))
            for spec, of in runs
        ]

    new = folder(watched(changed(SERIAL, 0.5), "b", flags=FLAG), watched(changed(OPTUNA), "b"))
    return compared(folder(watched(SERIAL, "a"), watched(OPTUNA, "a"), name="a"), new, "serial")


def elsewhere(**machine: Any) -> Comparison:
    return since(*(changed(runs, 3.0, environment={**MACHINE, **machine}) for runs in (SERIAL, OPTUNA)))


def newer_versions() -> Comparison:
    newer = {**MACHINE, "versions": {"tuneoff": "0.2.0", "numpy": "2.0"}}
    old, new = ({"framework": "Optuna", "framework_version": version} for version in ("5.0.0", "5.1.0"))
    return compared(
        folder(changed(OPTUNA, noise=0, versions=old), name="a"),
        folder(changed(OPTUNA, noise=0, environment=newer, versions=new)),
    )


def a_bit(**more: Any) -> Comparison:
    spec, record = SERIAL[3]
    (attempt,) = record.trials[0].attempts
    epoch = msgspec.structs.replace(
        attempt.epochs[0], metrics={METRIC: present(attempt.epochs[0].metrics[METRIC]) * (1 + 2**-52)}
    )
    trial = replace(record.trials[0], attempts=(msgspec.structs.replace(attempt, epochs=(epoch,)),))
    return since(changed([*SERIAL[:3], (spec, replace(record, trials=(trial,))), *SERIAL[4:]], noise=0, **more), OPTUNA)


def emulated() -> Comparison:
    runs = runs_of("katib", platform="emulated")
    return compared(folder(runs, name="a"), folder(changed(runs, 3)))


SITUATIONS: Mapping[str, Callable[[], Comparison]] = {
    "the same folder": lambda: compared(OLD, OLD),
    "noise": lambda: since(changed(SERIAL), changed(OPTUNA)),
    "worse": lambda: since(changed(SERIAL), changed(OPTUNA, 1.3)),
    "better": lambda: since(changed(SERIAL), changed(OPTUNA, 0.7)),
    "a family of one": lambda: at_family_size(family_size=1),
    "a family of fifteen": at_family_size,
    "nine seeds": lambda: compared(folder(FEW, name="a"), folder(changed(FEW, 3.0))),
    "an entry twice": lambda: twice(0.01),
    "an entry twice that differs as much": lambda: twice(0.5),
    "the baseline changed too": lambda: since(*SLOWER),
    "less the baseline's change": lambda: since(changed(SERIAL, 1.5), changed(OPTUNA, 1.5), baseline="serial"),
    "less the quality of the baseline": lambda: since(
        runs_of("serial", quality=0.8), runs_of("optuna", quality=0.8), baseline="serial"
    ),
    "a baseline that is gone": lambda: since(changed(OPTUNA, 2.0), baseline="serial"),
    "a baseline that lacks a seed": lambda: since(SERIAL[:9], OPTUNA, baseline="serial"),
    "a baseline that failed": lambda: since(runs_of("serial", failed=(3,)), OPTUNA, baseline="serial"),
    "a baseline that was disturbed": disturbed_baseline,
    "another processor": lambda: elsewhere(cpu={**MACHINE["cpu"], "name": "Other"}),
    "fewer processors": lambda: elsewhere(cpus_available=[0]),
    "another architecture": lambda: elsewhere(machine="aarch64"),
    "newer versions": newer_versions,
    "a slower calculation": lambda: since(
        *(
            changed(runs, environment={**MACHINE, "machine_before": {"load_1min": 0.0, "sentinel_ns": 1500}})
            for runs in (SERIAL, OPTUNA)
        )
    ),
    "a bit": a_bit,
    "a bit on another architecture": lambda: a_bit(environment={**MACHINE, "machine": "aarch64"}),
    "a failure": lambda: since(SERIAL, runs_of("optuna", failed=(4,))),
    "a recovery": lambda: compared(folder(SERIAL, runs_of("optuna", failed=(4,)), name="a"), OLD),
    "unfinished": lambda: since(SERIAL, [*OPTUNA[:7], *((spec, None) for spec, _ in OPTUNA[7:])]),
    "a flag": lambda: since(changed(SERIAL[:1], noise=0, flags=FLAG) + SERIAL[1:], OPTUNA),
    "other experiments": lambda: since(SERIAL[:8], runs_of("optuna", trials=99), runs_of("ray-tune")),
    "an emulated platform": emulated,
    "a wider margin later": lambda: compared(OLD, folder(*SLOWER, analysis=WIDE)),
    "a wider margin before": lambda: compared(folder(SERIAL, OPTUNA, analysis=WIDE), folder(*SLOWER)),
    "a worse quality": lambda: since(SERIAL, runs_of("optuna", quality=0.8)),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_comparison_is_told(name: str, snapshot: SnapshotAssertion) -> None:
    found = SITUATIONS[name]()
    told = json.loads(
        json.dumps({**to_json(found), "a": "", "b": "", "is_judged": found.is_judged}, allow_nan=False, default=str)
    )
    assert "\n".join([*lines(found), written(figure(told))]) == snapshot


def test_what_the_baseline_changed_by_is_taken_off_the_others() -> None:
    """On a machine that is 1.5 times as slow today, a framework that is 1.3 times as slow by itself is 1.95 times as slow."""
    serial, optuna = changed(SERIAL, 1.5, noise=0.1), changed(OPTUNA, 1.95)
    for baseline, factor in ((None, 1.95), ("serial", 1.3)):
        verdict = present(change(since(serial, optuna, baseline=baseline), "optuna", "time").verdict)
        assert math.exp(present(verdict.interval).estimate) == pytest.approx(factor, rel=0.1)
        slower = [now / before if baseline else 1.0 for before, now in zip(times(SERIAL), times(serial), strict=True)]
        assert [row.one for row in verdict.differences] == pytest.approx(
            [time / by for time, by in zip(times(optuna), slower, strict=True)]
        )
        assert [row.other for row in verdict.differences] == pytest.approx(times(OPTUNA))


def test_folders_without_a_common_run_are_refused_in_one_line_with_the_difference() -> None:
    said = refusal(compared, OLD, folder(runs_of("serial", trials=99)))
    assert "a (made) and b (made) have no run in common: budget.trials 10 became 99" in said
    assert "have no run in common: other seeds" in refusal(compared, OLD, folder(runs_of("serial", seeds=[77])))
    assert "have no run in common; run the same file twice" in refusal(compared, OLD, folder(runs_of("ray-tune")))
