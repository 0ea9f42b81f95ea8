"""What Syne Tune is offered with, and the protocol of its reports."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

from builders.spaces import SPACE
from builders.specs import toy_spec
from tuneoff.adapter import Support
from tuneoff.base.space import Constant, SearchSpace
from tuneoff.experiment.spec import RunSpec
from tuneoff_adapters.syne_tune import offers, reporter
from tuneoff_adapters.syne_tune.adapter import SyneTuneAdapter

YES = [name for name, offer in offers.CAPABILITIES.samplers.items() if offer.support is Support.YES and not offer.below_version]


def refusal(sampler: str, pruner: str = "none", **changes: Any) -> str | None:
    options = changes.pop("options", {})
    space = changes.pop("space", SPACE)
    return offers.refusal(toy_spec("syne-tune", space=space, sampler=sampler, sampler_options=options, pruner=pruner))


def with_options(options: dict[str, Any]) -> RunSpec:
    return toy_spec("syne-tune", space=SPACE, options=options)


@pytest.mark.parametrize("sampler", YES)
def test_every_offer_names_a_class_that_exists(sampler: str) -> None:
    from syne_tune.optimizer import baselines

    assert inspect.isclass(getattr(baselines, offers.CLASSES[sampler]))
    assert inspect.isclass(getattr(baselines, offers.HALVING_CLASSES.get(sampler, "ASHA")))


@pytest.mark.parametrize(
    ("sampler", "pruner", "way_out"),
    [("rea", "asha", "tpe, bore, cqr"), ("gp", "hyperband", "another pruner"), ("tpe", "median", "use random")],
)
def test_combinations_that_syne_tune_lacks_are_refused_with_a_way_out(sampler: str, pruner: str, way_out: str) -> None:
    reason = refusal(sampler, pruner)
    assert reason is not None
    assert repr(sampler) in reason
    assert way_out in reason
    assert "\n" not in reason


def test_asynchronous_halving_is_named_by_the_class_that_serves_both() -> None:
    spec = toy_spec("syne-tune", space=SPACE, sampler="tpe", pruner="asha")
    names = SyneTuneAdapter.strategies(spec)
    assert names["sampler"] == names["pruner"] == "syne_tune.optimizer.baselines.BOHB"
    assert "sleep_time=0.05" in names["tuner"]


@pytest.mark.parametrize(
    ("sampler", "options", "words"),
    [
        ("tpe", {"num_candidates": 0}, "an integer >= 1"),
        ("tpe", {"num_candidates": 1.5}, "an integer >= 1"),
        ("tpe", {"top_n_percent": 100}, "an integer >= 1 and <= 99"),
        ("tpe", {"min_bandwidth": 0}, "a number > 0"),
        ("tpe", {"num_min_data_points": 2}, "at least the number of dimensions, 7"),
    ],
)
def test_wrong_sampler_options_are_refused(sampler: str, options: dict[str, Any], words: str) -> None:
    assert words in (refusal(sampler, options=options) or "")


def test_adapter_options_are_checked() -> None:
    assert offers.refusal(with_options({"poll_seconds": 0.2})) is None
    assert offers.poll_seconds(with_options({"poll_seconds": 0.2})) == 0.2
    assert "above 0" in (offers.refusal(with_options({"poll_seconds": 0})) or "")


def test_a_model_needs_something_to_search() -> None:
    space = SearchSpace({"kind": Constant(value=1)})
    assert refusal("random", space=space) is None
    assert "use random" in (refusal("tpe", space=space) or "")


@pytest.mark.parametrize(("options", "dimensions", "needed"), [({}, 4, 34), ({"num_min_data_points": 5}, 4, 10), ({}, 1, 14)])
def test_tpe_knows_when_its_model_is_first_used(options: dict[str, int], dimensions: int, needed: int) -> None:
    from syne_tune.config_space import uniform
    from syne_tune.optimizer.schedulers.searchers.kde import KernelDensityEstimator

    assert offers.first_modelled_trial("tpe", options, dimensions) == needed
    searcher = KernelDensityEstimator({f"x{index}": uniform(0, 1) for index in range(dimensions)}, **options)
    has_model = [searcher._check_data_shape_and_good_size((told, dimensions)) is not None for told in range(1, 60)]
    assert has_model.index(True) + 1 == needed


PRINTING_TRIAL = """
import os, subprocess, sys
print("half a line of what is loaded at the start", end="", flush=True)
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.trial.run_trial import Decision
from tuneoff_adapters.syne_tune.reporter import PrintedReport

context = TrialContext(run_dir="", execution_id="", workload="", metric="val loss", mode="min", epochs=2, trials=1)
report = PrintedReport(context)
print("[tune-metric]: {never read}")
sys.stdout.flush()
assert report(1, {"val loss": 0.1 + 0.2, "other": 5.0}) is Decision.CONTINUE
subprocess.run(["echo", "a child prints too"], check=True)
report(2, {"val loss": 1e-300})
"""


def test_syne_tune_reads_what_a_trial_prints_and_nothing_else() -> None:
    from syne_tune.report import retrieve

    done = subprocess.run([sys.executable, "-c", PRINTING_TRIAL], capture_output=True, text=True, check=True)
    reports = retrieve(done.stdout.splitlines(keepends=True))
    assert [(report["epoch"], report[reporter.OBJECTIVE]) for report in reports] == [(1, 0.1 + 0.2), (2, 1e-300)]
    assert [report["st_worker_iter"] for report in reports] == [0, 1]
    first, *others = done.stdout.splitlines()
    assert first == "half a line of what is loaded at the start"
    assert [line.startswith("[tune-metric]: {") for line in others] == [True, True]
    assert "never read" in done.stderr
    assert "a child prints too" in done.stderr


def test_the_line_has_the_keys_of_syne_tunes_own_reporter(capsys: pytest.CaptureFixture[str]) -> None:
    from syne_tune import Reporter
    from syne_tune.report import retrieve

    Reporter()(**{reporter.TIME_ATTRIBUTE: 1, reporter.OBJECTIVE: 0.5})
    theirs = capsys.readouterr().out
    ours = reporter.report_line(1, 0.5, timestamp=12.5, worker_seconds=0.25, count=0)
    (their_report,), (our_report,) = retrieve([theirs]), retrieve([ours])
    assert sorted(their_report) == sorted(our_report)
    assert ours.partition("{")[0] == theirs.partition("{")[0]
