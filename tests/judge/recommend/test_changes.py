"""Two results folders made by hand: what changed beyond noise is found, and nothing else is called a change."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders.made_choices import FROZEN, MACHINE, SEEDS, made_results, runs_of
from builders.made_runs import METRIC
from builders.present import present
from builders.refusals import refusal
from tuneoff.experiment.spec import RunSpec
from tuneoff.judge.answers.answer import WITHOUT_DISTURBED, Outcome
from tuneoff.judge.comparison.diff import OTHER_MACHINE, Change, Comparison, compared
from tuneoff.judge.comparison.diff_output import lines, to_json
from tuneoff.judge.results import Results
from tuneoff.measure.use import SHARE
from tuneoff.record.metric_value import metric_value
from tuneoff.record.run_record import FlagRecord, RunRecord

pytest.importorskip("scipy")
Runs = list[tuple[RunSpec, RunRecord]]


def changed(runs: Runs, factor: float = 1.0, noise: float = 0.01, name: str = "", **more: Any) -> Runs:
    """Return the runs again: times multiplied by `factor` and by chance, all else the same; `more` replaces of every record."""
    found = []
    for spec, record in runs:
        chance = random.Random(f"{name} {spec.adapter} {spec.seed}")
        metrics = dict(record.metrics)
        if "time.jct" in metrics:
            metrics["time.jct"] = metric_value((metrics["time.jct"].value or 0) * factor * chance.lognormvariate(0, noise), "ms")
        found.append((spec, replace(record, metrics=metrics, **more)))
    return found


def change(found: Comparison, adapter: str, question: str) -> Change:
    (one,) = [one for one in found.changes if (one.adapter, one.question.name) == (adapter, question)]
    return one


def times(runs: Runs) -> list[float]:
    return [present(record.metrics["time.jct"].value) for _, record in runs]


def folder(*groups: Sequence[tuple[RunSpec, RunRecord | None]], name: str = "b", **more: Any) -> Results:
    return made_results(*groups, folder=Path(name), **more)


SERIAL, OPTUNA = runs_of("serial"), runs_of("optuna")
OLD = folder(SERIAL, OPTUNA, name="a")


def test_a_folder_compared_with_itself_has_not_changed() -> None:
    found = compared(OLD, OLD)
    assert not found.has_changed
    assert found.environment == ()
    assert {one.outcome for one in found.changes} == {Outcome.EQUIVALENT}
    assert lines(found)[0] == "nothing changed beyond noise: 4 questions without a change that matters, 0 not decided"


def test_noise_alone_is_no_change() -> None:
    assert not compared(OLD, folder(changed(SERIAL), changed(OPTUNA))).has_changed


@pytest.mark.parametrize(("factor", "outcome"), [(1.3, Outcome.WORSE), (0.7, Outcome.BETTER)])
def test_a_planted_change_of_a_time_is_found_where_it_was_planted(factor: float, outcome: Outcome) -> None:
    found = compared(OLD, folder(changed(SERIAL), changed(OPTUNA, factor)))
    assert [(one.adapter, one.question.name, one.outcome) for one in found.beyond] == [("optuna", "time", outcome)]
    assert found.has_changed
    assert lines(found)[0] == "changed beyond noise:"
    assert lines(found)[1].startswith(f"  optuna random: time is {outcome.value}, {factor:.1f}")


def test_changes_are_judged_at_the_family_size_that_was_frozen() -> None:
    """Ten seeds that all grew by more than the margin, but one: enough for one comparison, too little for one of fifteen."""
    signs = {seed: 0.8 if seed == 0 else 1.2 + seed / 100 for seed in SEEDS}
    new = [pair for seed, factor in signs.items() for pair in changed([SERIAL[seed]], factor, noise=0)]
    alone = {**FROZEN, "family_size": 1}
    outcomes = [
        change(compared(folder(SERIAL, name="a", analysis=frozen), folder(new, analysis=frozen)), "serial", "time").outcome
        for frozen in (alone, FROZEN)
    ]
    assert outcomes == [Outcome.WORSE, Outcome.UNDECIDED]


def test_below_ten_seeds_nothing_is_judged_however_different_it_is() -> None:
    few = runs_of("serial", seeds=SEEDS[:9])
    found = compared(folder(few, name="a"), folder(changed(few, 3.0)))
    assert not found.has_changed
    assert change(found, "serial", "time").outcome is Outcome.NOT_JUDGED
    assert lines(found)[0].startswith("nothing is judged")
    assert any("3.0x" in line and "not judged" in line for line in lines(found))  # and the change is shown


def test_equal_entries_show_the_noise_of_each_folder_and_are_no_change_of_their_own() -> None:
    again = runs_of("serial", replicate=1)
    found = compared(folder(SERIAL, again, name="a"), folder(changed(SERIAL), changed(again, name="x")))
    assert {one.name for one in found.changes} == {"serial random"}
    assert [(one.side, one.pair) for one in change(found, "serial", "time").noise] == [
        ("A", "serial#2 against serial"),
        ("B", "serial#2 against serial"),
    ]


@pytest.mark.parametrize(("noise", "is_told"), [(0.5, True), (0.01, False)])
def test_a_change_that_equal_entries_show_too_says_so(noise: float, is_told: bool) -> None:
    """Without it a small sure change was announced as beyond noise, beside an A/A pair that differs by more."""
    again = changed(runs_of("serial", replicate=1), noise=noise, name="x")
    found = compared(folder(SERIAL, again, name="a"), folder(changed(SERIAL, 1.15), changed(again, 1.15, name="y")))
    (told,) = [line for line in lines(found) if line.startswith("  serial random: time is worse")]
    assert ("no larger than a framework's difference from itself" in told) is is_told


def test_when_the_plain_pool_changed_too_the_framework_is_not_blamed_alone() -> None:
    found = compared(OLD, folder(changed(SERIAL, 1.3), changed(OPTUNA, 1.3)))
    text = "\n".join(lines(found))
    assert "the baseline: this is the machine, or tuneoff" in text
    assert "serial, the baseline, changed too" in text


def test_what_the_baseline_changed_by_is_taken_off_the_others() -> None:
    """On a machine that is 1.5 times as slow today, a framework that is 1.3 times as slow by itself is 1.95 times as slow."""
    serial, optuna = changed(SERIAL, 1.5, noise=0.1), changed(OPTUNA, 1.95)
    for baseline, factor in ((None, 1.95), ("serial", 1.3)):
        found = compared(OLD, folder(serial, optuna), baseline)
        verdict = present(change(found, "optuna", "time").verdict)
        assert math.exp(present(verdict.interval).estimate) == pytest.approx(factor, rel=0.1)
        slower = [now / before if baseline else 1.0 for before, now in zip(times(SERIAL), times(serial), strict=True)]
        expected = [time / by for time, by in zip(times(optuna), slower, strict=True)]
        assert [row.one for row in verdict.differences] == pytest.approx(expected)
        assert [row.other for row in verdict.differences] == pytest.approx(times(OPTUNA))
        assert change(found, "serial", "time").outcome is Outcome.WORSE, "its own change stays what it is"
        assert ("less what serial changed by" in "\n".join(lines(found))) is (baseline is not None)
        assert to_json(found)["baseline"] == baseline
    both = compared(OLD, folder(changed(SERIAL, 1.5), changed(OPTUNA, 1.5)), "serial")
    assert change(both, "optuna", "time").outcome is Outcome.EQUIVALENT
    of_quality = present(change(both, "optuna", "quality").verdict).differences
    assert {row.difference for row in of_quality} == {0.0}, "nothing changed, to the last bit"


def test_nothing_is_less_by_what_a_baseline_that_is_not_done_changed_by() -> None:
    for new in (folder(changed(OPTUNA, 2.0)), folder(SERIAL[:9], OPTUNA), folder(runs_of("serial", failed=(3,)), OPTUNA)):
        found = compared(OLD, new, "serial")
        of_optuna = [one for one in found.changes if one.adapter == "optuna"]
        assert {(one.verdict, one.reason) for one in of_optuna} == {(None, "serial is not done in each seed of both")}


def test_what_disturbed_the_baseline_disturbs_what_is_less_by_its_change() -> None:
    def watched(runs: Runs, folder: str, **more: Any) -> Runs:
        share = {SHARE: metric_value(0, "%")}
        return [
            (spec, replace(one, metrics={**one.metrics, **share}, execution_id=f"{one.execution_id}{folder}", **more))
            for spec, one in runs
        ]

    flags = (FlagRecord(name="disturbed", text="x"),)
    old = folder(watched(SERIAL, "a"), watched(OPTUNA, "a"), name="a")
    new = folder(watched(changed(SERIAL, 0.5), "b", flags=flags), watched(changed(OPTUNA), "b"))
    found = compared(old, new, "serial")
    (told,) = [line for line in lines(found) if line.startswith("  optuna random: time is worse, 2.0")]
    assert "10 of 40 runs disturbed" in told
    assert "serial, the baseline" not in told
    verdict = present(change(found, "optuna", "time").verdict)
    assert not verdict.is_robust
    assert WITHOUT_DISTURBED in {choice.choice for choice in verdict.sensitivities}


def test_a_quality_is_less_by_what_the_baseline_s_is() -> None:
    found = compared(OLD, folder(runs_of("serial", quality=0.8), runs_of("optuna", quality=0.8)), "serial")
    assert change(found, "optuna", "quality").outcome is Outcome.EQUIVALENT
    assert change(found, "serial", "quality").outcome is Outcome.WORSE


@pytest.mark.parametrize(
    "machine",
    [
        {**MACHINE, "cpu": {**MACHINE["cpu"], "name": "Other"}},
        {**MACHINE, "cpus_available": [0]},
        {**MACHINE, "machine": "aarch64"},
    ],
)
def test_on_another_machine_times_are_not_compared_and_quality_is(machine: Mapping[str, Any]) -> None:
    found = compared(OLD, folder(changed(SERIAL, 3.0, environment=machine), changed(OPTUNA, 3.0, environment=machine)))
    assert not found.same_machine
    assert change(found, "optuna", "time").outcome is None
    assert change(found, "optuna", "time").reason == OTHER_MACHINE
    assert change(found, "optuna", "quality").outcome is Outcome.EQUIVALENT
    assert not found.has_changed
    text = "\n".join(lines(found))
    assert "another machine, so no time, energy or cost is compared" in text
    assert "not interleaved" not in text


def test_versions_that_differ_are_named_and_are_no_change_by_themselves() -> None:
    newer = {**MACHINE, "versions": {"tuneoff": "0.2.0", "numpy": "2.0"}}
    versions = {"framework": "Optuna", "framework_version": "5.1.0"}
    old = folder(changed(OPTUNA, noise=0, versions={**versions, "framework_version": "5.0.0"}), name="a")
    found = compared(old, folder(changed(OPTUNA, noise=0, environment=newer, versions=versions)))
    assert {row.name: (row.a, row.b) for row in found.environment} == {
        "tuneoff": ("0.1.0", "0.2.0"),
        "framework Optuna": ("5.0.0", "5.1.0"),
    }
    assert not found.has_changed


def test_the_calibration_is_compared() -> None:
    slower = {**MACHINE, "machine_before": {"load_1min": 0.0, "sentinel_ns": 1500}}
    found = compared(OLD, folder(changed(SERIAL, environment=slower), changed(OPTUNA, environment=slower)))
    assert found.sentinel == 1.5


def test_a_single_bit_is_found() -> None:
    spec, record = SERIAL[3]
    trial = record.trials[0]
    attempt = trial.attempts[0]
    epoch = attempt.epochs[0]
    next_number = present(epoch.metrics[METRIC]) * (1 + 2**-52)
    planted = msgspec.structs.replace(epoch, metrics={METRIC: next_number})
    planted_attempt = msgspec.structs.replace(attempt, epochs=(planted,))
    other = replace(record, trials=(replace(trial, attempts=(planted_attempt,)),))
    found = compared(OLD, folder([*SERIAL[:3], (spec, other), *SERIAL[4:]], OPTUNA))
    assert [(one.name, one.unequal, one.values) for one in found.unequal] == [("serial random", 1, 10)]
    assert found.has_changed
    assert any("seed 3" in line for line in lines(found))
    elsewhere = {**MACHINE, "machine": "aarch64"}
    there = compared(OLD, folder(changed([*SERIAL[:3], (spec, other), *SERIAL[4:]], environment=elsewhere)))
    assert there.unequal == ()
    assert not there.has_changed


def test_new_failures_and_recoveries_are_changes_and_named() -> None:
    failed = runs_of("optuna", failed=(4,))
    worse = compared(OLD, folder(SERIAL, failed))
    assert [(one.seed, one.is_failure, one.reason) for one in worse.ended] == [(4, True, "planted")]
    assert worse.has_changed
    better = compared(folder(SERIAL, failed, name="a"), OLD)
    assert [(one.seed, one.is_recovery) for one in better.ended] == [(4, True)]
    assert better.has_changed


def test_a_folder_that_is_unfinished_has_no_change_for_that() -> None:
    unfinished: list[tuple[RunSpec, RunRecord | None]] = [*OPTUNA[:7], *((spec, None) for spec, _ in OPTUNA[7:])]
    found = compared(OLD, folder(SERIAL, unfinished))
    assert found.ended == ()
    assert not found.has_changed


def test_flags_are_counted_on_both_sides() -> None:
    flagged = runs_of("serial")
    spec, record = flagged[0]
    flagged[0] = (spec, replace(record, flags=(FlagRecord(name="disturbed", text="x"),)))
    assert compared(OLD, folder(flagged, OPTUNA)).flags == {"disturbed": (0, 1)}


def test_what_is_in_one_folder_alone_or_is_another_experiment_is_left_out_and_said() -> None:
    other = runs_of("optuna", trials=99)
    found = compared(OLD, folder(SERIAL[:8], other, runs_of("ray-tune")))
    assert found.left_out == (
        "serial random: 2 seeds only in A",
        "optuna random: another experiment: budget.trials 10 became 99",
        "ray-tune random: only in B",
    )
    assert {one.adapter for one in found.changes} == {"serial"}


def test_folders_without_a_common_run_are_refused_in_one_line_with_the_difference() -> None:
    said = refusal(compared, OLD, folder(runs_of("serial", trials=99)))
    assert "a (made) and b (made) have no run in common: budget.trials 10 became 99" in said
    assert "have no run in common: other seeds" in refusal(compared, OLD, folder(runs_of("serial", seeds=[77])))
    assert "have no run in common; run the same file twice" in refusal(compared, OLD, folder(runs_of("ray-tune")))


def test_emulated_runs_are_in_no_change() -> None:
    emulated = runs_of("katib", platform="emulated")
    old, new = folder(emulated, name="a"), folder(changed(emulated, 3), name="b")
    found = compared(old, new)
    assert {one.outcome for one in found.changes} == {None}
    assert not found.has_changed


def test_another_frozen_analysis_is_named_and_the_old_one_judges() -> None:
    wide = {**FROZEN, "margin_percent": 50.0}
    found = compared(OLD, folder(changed(SERIAL, 1.3), changed(OPTUNA, 1.3), analysis=wide))
    assert found.analysis == {"margin_percent": ("5.0", "50.0")}
    assert found.beyond
    assert not compared(folder(SERIAL, OPTUNA, analysis=wide), folder(changed(SERIAL, 1.3), OPTUNA)).beyond


def test_a_changed_quality_is_found_and_its_direction_is_the_objectives() -> None:
    found = compared(OLD, folder(SERIAL, runs_of("optuna", quality=0.8)))
    assert change(found, "optuna", "quality").outcome is Outcome.WORSE


def test_the_json_has_every_pair_of_seeds() -> None:
    (time,) = [one for one in to_json(compared(OLD, OLD))["changes"] if (one["adapter"], one["question"]) == ("serial", "time")]
    assert [pair["seed"] for pair in time["differences"]] == list(SEEDS)
    assert {pair["difference"] for pair in time["differences"]} == {0.0}
