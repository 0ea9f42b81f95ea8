"""Classes of determinism, and the test behind the third."""

from __future__ import annotations

from dataclasses import replace

from builders.check_evidence import record, trial
from tuneoff.experiment.strategies import draws
from tuneoff.record.run_record import RunRecord
from tuneoff.trust.check import planned_runs as experiments
from tuneoff.trust.check.checks.seeds import classify

SPEC = experiments.random_search(8)


def run(levels: list[float]) -> RunRecord:
    return record(experiments.listed([(level, "sound") for level in levels]), [trial(n, level) for n, level in enumerate(levels)])


def drawn(seed: int, widths: tuple[int, ...] = (), count: int = 40) -> RunRecord:
    trials = []
    for number, configuration in zip(range(count), draws(SPEC.search_space, seed), strict=False):
        if widths:
            configuration["width"] = widths[number % len(widths)]
        trials.append(replace(trial(number, 0.5), configuration=configuration, digest=f"{seed}-{number}"))
    return record(SPEC, trials)


def test_equal_runs_are_bit_equal() -> None:
    assert classify([run([0.1, 0.2])] * 6).name == "D0"


def test_the_same_configurations_in_another_order_are_told_apart() -> None:
    assert classify([run([0.1, 0.2]), run([0.2, 0.1])] * 3).name == "D1"


def test_other_configurations_of_the_same_distribution() -> None:
    assert classify([drawn(seed) for seed in range(6)]).name == "D2"


def test_a_distribution_that_depends_on_the_load_is_no_class() -> None:
    assert classify([drawn(seed, (4, 5) if seed >= 3 else ()) for seed in range(6)]).name == "none"


def test_repetitions_that_are_copies_of_each_other_count_once() -> None:
    for seed in range(60):
        one, other = drawn(2 * seed, count=8), drawn(2 * seed + 1, count=8)
        assert classify([one, one, one, other, other, other]).name == "D2", seed


def test_what_both_halves_have_in_common_does_not_count() -> None:
    common, one, other = drawn(1), drawn(2, (4,)), drawn(3, (64,))
    alone, mixed = classify([one, one, other, other]), classify([common, one, common, other])
    assert alone == mixed
    assert mixed.name == "none"
