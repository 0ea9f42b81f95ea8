"""Each planted defect is rejected, by the checks that are meant for it and by no other; without one nothing is."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pytest

from trust.space_test import planted
from trust.space_test.every_kind import PROBED, adapter_sample
from tuneoff.trust.space_test.judge import SpaceJudgement, judge
from tuneoff.trust.space_test.statistics import FALSE_DISCOVERY_RATE

DRAWS = 5000  # as the command draws unless told otherwise

MEANT = {
    planted.ExclusiveUpper: {"distribution", "ends", "mapping"},
    planted.ExclusiveUpperUntold: {"distribution", "ends"},
    planted.OneBeyond: {"bounds"},
    planted.StarvedEnds: {"distribution", "ends"},
    planted.SkewedEnds: {"ends"},
    planted.IgnoresLog: {"distribution", "ends"},
    planted.PassesOnAnother: {"mapping"},
    planted.Correlated: {"independence"},
    planted.IgnoresSeed: {"seeds"},
    planted.Unseeded: {"seeds"},
    planted.RepeatsItself: {"seeds"},
}


@functools.cache
def judged(adapter: type[planted.Honest], count: int = DRAWS) -> SpaceJudgement:
    with tempfile.TemporaryDirectory() as folder:
        return judge(PROBED, adapter_sample(adapter, count, Path(folder)))


def strong_kinds(judgement: SpaceJudgement) -> set[str]:
    """Return the kinds of what is certain, or would be rejected alone: of all that is rejected one in fifty may be chance."""
    alone = FALSE_DISCOVERY_RATE / len(judgement.p_values)
    return {finding.id for finding in judgement.findings if (p := finding.values["p"]) is None or p <= alone}


def rejected_names(judgement: SpaceJudgement, kind: str) -> set[str]:
    return {name for finding in judgement.findings if finding.id == kind for name in finding.values["dimensions"]}


def test_an_adapter_without_a_defect_is_accepted() -> None:
    judgement = judged(planted.Honest)
    assert (judgement.verdict, judgement.findings, judgement.notes) == ("accepted", (), ())
    assert judgement.draws == DRAWS
    assert judgement.mapping_tested


def test_a_parameter_that_is_not_in_the_space_is_rejected() -> None:
    (finding,) = judged(planted.OneMore, 400).findings
    assert (finding.id, finding.text) == ("bounds", "the draws name what is not in the space: momentum")


@pytest.mark.parametrize("adapter", list(MEANT), ids=lambda adapter: adapter.__name__)
@pytest.mark.slow
def test_a_planted_defect_is_rejected_by_what_is_meant_for_it(adapter: type[planted.Honest]) -> None:
    judgement = judged(adapter)
    assert judgement.verdict == "rejected"
    assert strong_kinds(judgement) == MEANT[adapter]


@pytest.mark.slow
def test_the_narrow_probes_show_an_excluded_bound_that_a_wide_integer_hides() -> None:
    judgement = judged(planted.ExclusiveUpperUntold)
    names = rejected_names(judgement, "distribution")
    assert {"probe_two", "probe_ten", "probe_tens", "size"} <= names
    assert "epochs" not in names  # of its 1001 values one is never drawn
    assert rejected_names(judged(planted.ExclusiveUpper), "mapping") >= {"epochs", "probe_two"}


@pytest.mark.slow
def test_a_defect_is_named_with_its_dimensions_alone() -> None:
    floats = {"share", "learning_rate", "probe_float", "probe_rate"}
    assert rejected_names(judged(planted.SkewedEnds), "ends") == floats
    assert rejected_names(judged(planted.IgnoresLog), "distribution") == {"learning_rate", "probe_rate"}
    assert rejected_names(judged(planted.Correlated), "independence") == {"share", "learning_rate"}
    assert rejected_names(judged(planted.OneBeyond), "bounds") == {"epochs", "batch", "probe_two", "probe_ten", "probe_tens"}


@pytest.mark.parametrize("adapter", [planted.ExclusiveUpper, planted.PassesOnAnother], ids=lambda adapter: adapter.__name__)
def test_a_finding_of_the_mapping_says_what_becomes_of_which_value(adapter: type[planted.Honest]) -> None:
    texts = [finding.text for finding in judged(adapter, 400).findings if "probe_ten" in finding.values["dimensions"]]
    if adapter is planted.PassesOnAnother:
        assert "the framework's minimum 0 becomes 9, but must become 0" in texts
    else:
        assert "the framework's maximum 8 becomes 8, but must become 9" in texts
