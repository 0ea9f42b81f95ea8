"""Names of metrics: which there are, and what is known of the metric of a name."""

from __future__ import annotations

import re

from tuneoff.base.suggest import nearest
from tuneoff.experiment.metric import Metric
from tuneoff.experiment.metric_catalogue import METRICS

QUESTIONS = {  # and the primary metric of each
    "quality": "quality.test",
    "time": "time.jct_without_test",
    "overhead": "overhead.per_trial",
    "energy": "energy.per_completed_trial",
    "cost": "cost.per_completed_trial",
}


def metric_names() -> tuple[str, ...]:
    """Return every name by family; `N` stands for a slot, `NAME` for a score of the test or a stage of the framework."""
    return tuple(METRICS)


def general_name(name: str) -> str:
    """Return a metric's name with `N` for its slot and `NAME` for its score or stage: "test.accuracy" is a "test.NAME"."""
    return re.sub(r"^(test|stage)\..+", r"\1.NAME", re.sub(r"\[\d+\]$", "[N]", name))


def metric(name: str) -> Metric:
    """Return what is known of a metric; of one that no run can have, but a damaged plan may name, that it is a count."""
    found = METRICS.get(name) or METRICS.get(general_name(name))
    return found or Metric(name=name, title="no metric of this name is known", unit="count")


def is_metric(name: str) -> bool:
    """Tell whether a run can have a metric of that name."""
    return general_name(name) in METRICS and not name.endswith("[N]")


def unknown_metric(name: str) -> str:
    """Return one line: no metric of that name, the nearest one, and the others of its family, else the families."""
    family = name.partition(".")[0]
    families = dict.fromkeys(item.partition(".")[0] for item in METRICS)
    if family in families:
        known = f"known of {family!r}: {', '.join(item for item in metric_names() if item.startswith(f'{family}.'))}"
    else:
        known = f"a name begins with one of: {', '.join(f'{item}.' for item in families)}"
    return f"no metric named {name!r}{nearest(name, metric_names())}; {known}"
