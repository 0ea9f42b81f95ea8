"""A warning says which packages that training may use, or Python, differ between the environments of compared runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from builders.made_results import Entry, results, steady
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.warnings import results_warnings

SAME: Mapping[str, Any] = {"python": "3.11.7", "versions": {"numpy": "2.4.6", "optuna": "5.0.0"}}


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({**SAME, "versions": {"numpy": "1.26.0"}}, "numpy 1.26.0 (serial) and 2.4.6 (optuna)."),
        ({**SAME, "python": "3.12.1"}, "Python 3.12.1 (serial) and 3.11.7 (optuna)."),
        ({**SAME, "versions": {"numpy": "2.4.6", "optuna": "4.5.0"}}, None),  # the framework itself
        ({**SAME, "versions": {"numpy": None}}, None),  # not installed in one of them
        (SAME, None),
    ],
)
def test_what_differs_beside_the_framework_is_warned_of(other: Mapping[str, Any], text: str | None) -> None:
    environments = {"serial": other, "optuna": SAME}
    made = answers(results([Entry(name, steady(key=name), environment=of) for name, of in environments.items()]))
    raised = {warning.kind: warning.short for warning in results_warnings(made, {name: name for name in environments})}
    start = "Not only the frameworks differ between their environments: "
    assert raised.get("installed_differently") == (None if text is None else start + text)
