"""Tiers: what a file that claims one may change of its experiment, refused by the plan, and found in a recorded one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tuneoff.base.packages import experiments
from tuneoff.cli.selection import overridden_plan
from tuneoff.errors import ExperimentError
from tuneoff.experiment.plan import RULES, Plan
from tuneoff.experiment.rules import TIERS, broken_rules

ROOT = Path(__file__).parents[2]
OPTUNA = {"name": "optuna", "options": {"storage": "sqlite"}}
FREE: dict[str, list[dict[str, Any]]] = {
    "baseline": [
        {},
        {"name": "mine", "seeds": [7, 8], "adapters": ["serial", "nevergrad"], "power": "none", "timeouts": {"trial_seconds": 9}},
    ],
    "tweaked": [{"sampler": "random", "failures": {"retries": 1}}, {"adapters": [OPTUNA]}, {"reports": "every_epoch"}],
}
BROKEN: dict[str, tuple[dict[str, Any], str]] = {  # of a baseline
    "budget.trials": ({"budget": {"trials": 13}}, "it is 13, there 12; set it so, or remove `rules`"),
    "sampler.name": ({"sampler": "random"}, "it is 'random', there 'default'; set it so, or write tier: tweaked"),
    "adapters.options": ({"adapters": [OPTUNA]}, "it is {'storage': 'sqlite'}, there {}; set it so, or write tier: tweaked"),
    "reports": ({"reports": "every_epoch", "adapters": ["nevergrad", "serial"]}, "it is 'every_epoch', there 'needed'"),
    "adapters.environment.packages": (
        {"adapters": [{"name": "nevergrad", "environment": {"packages": ["torch==2.5.0"]}}]},
        "it is ['torch==2.5.0'], there []; set it so, or remove `rules`",
    ),
    "analysis.questions": ({"analysis": {"questions": {"time": "time.trial"}}}, "it is {'time': 'time.trial'}, there {"),
    "warm_up": ({"warm_up": False}, "it is false, there true; set it so, or remove `rules`"),
    "analysis.anchors": ({"anchors": {"best_known": 1.0}}, "there {"),
    "copies": ({"copies": 2}, "it is 2, there 1; set it so, or remove `rules`"),
    "matrix.workers.count": ({"matrix": {"workers.count": [2]}}, "it is 2, there null"),
}


def plan(folder: Path, tier: str = "baseline", of: str = "digits", **changes: Any) -> Plan:
    path = folder / "file.yaml"
    rules = {"version": 1, "tier": tier, "of": of}
    path.write_text(json.dumps({"include": str(experiments()["digits"]), RULES: rules, **changes}))
    return overridden_plan(path)


@pytest.mark.parametrize(("tier", "changes"), [(tier, changes) for tier in FREE for changes in FREE[tier]])
def test_what_a_tier_leaves_free_may_differ(tmp_path: Path, tier: str, changes: dict[str, Any]) -> None:
    free = plan(tmp_path, tier, **changes)
    assert free.analysis[RULES]["tier"] == tier
    assert broken_rules(free) == ("", "")


@pytest.mark.parametrize("key", BROKEN)
def test_what_it_does_not_is_refused_by_key_and_found_in_a_record(tmp_path: Path, key: str) -> None:
    changes, text = BROKEN[key]
    with pytest.raises(ExperimentError) as caught:
        plan(tmp_path, **changes)
    assert f"file.yaml: rules: tier baseline of 'digits' may not change {key}: " in str(caught.value)
    assert text in str(caught.value)
    claim = plan(tmp_path).analysis[RULES]
    path = tmp_path / "without.yaml"
    path.write_text(json.dumps({"include": str(experiments()["digits"]), **changes}))
    recorded = overridden_plan(path)
    assert f"may not change {key}" in broken_rules(replace(recorded, analysis={**recorded.analysis, RULES: claim}))[0]


def test_every_variant_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    rules = {"version": 1, "tier": "baseline", "of": "S-Pruner"}
    path.write_text(
        json.dumps({"include": str(experiments()["S-Pruner"]), RULES: rules, "matrix": {"pruner": ["none", "scripted"]}})
    )
    with pytest.raises(ExperimentError, match=r"may not change pruner\.name: it is 'none', there '(median|asha)'"):
        overridden_plan(path)


@pytest.mark.parametrize("lacks", ["its runs of a seed", "its runs of a variant"])
def test_a_record_that_lacks_what_one_entry_was_bad_at_breaks_the_rules(tmp_path: Path, lacks: str) -> None:
    path = tmp_path / "all.yaml"
    rules = {"version": 1, "tier": "baseline", "of": "S-Pruner"}
    path.write_text(json.dumps({"include": str(experiments()["S-Pruner"]), RULES: rules}))
    whole = overridden_plan(path)
    assert broken_rules(whole) == ("", "")
    label, seed, pruner = next(
        (run.label, run.spec.seed, run.spec.experiment.pruner) for run in whole.counted if run.skip_reason is None
    )
    rest = [
        run
        for run in whole.runs
        if run.label != label or (run.spec.seed != seed if "seed" in lacks else run.spec.experiment.pruner != pruner)
    ]
    assert f"may not change runs of {label}: it is " in broken_rules(replace(whole, runs=tuple(rest)))[0]


def test_which_options_are_of_the_place_is_not_the_record_s_word(tmp_path: Path) -> None:
    free = plan(tmp_path)
    first = free.counted[0]
    tuned = replace(first, spec=replace(first.spec, options={"tuned": 1}, local_options=("tuned",)))
    text = broken_rules(replace(free, runs=tuple(tuned if run is first else run for run in free.runs)))[0]
    assert "may not change adapters.options: it is {'tuned': 1}, there {}" in text


def test_a_claim_of_another_experiment_is_not_known_and_of_none_refused(tmp_path: Path) -> None:
    free = plan(tmp_path)
    other = {**free.analysis[RULES], "digest": "0" * 16}
    assert broken_rules(replace(free, analysis={**free.analysis, RULES: other}))[1].startswith(
        "'digits' of this tuneoff is another"
    )
    with pytest.raises(ExperimentError, match=r"rules\.of: .*'digit'.*did you mean 'digits'"):
        plan(tmp_path, of="digit")
    with pytest.raises(ExperimentError, match=r"rules\.version: must be at most 1, but got 2"):
        plan(tmp_path, rules={"version": 2, "tier": "baseline", "of": "digits"})


def test_the_page_lists_what_the_code_leaves_free() -> None:
    text = (ROOT / "docs" / "rules.md").read_text()
    rows = {
        tier: set(re.findall(r"`([\w.]+)`", keys)) for tier, keys in re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE)
    }
    assert rows == {"baseline": set(TIERS["baseline"]), "tweaked": TIERS["tweaked"] - TIERS["baseline"]}
