"""A metric as the catalogue has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

STEPS = {  # the parts of the job completion time, in order: where each begins and ends
    "deploy": "the call of `deploy` to its return",
    "setup": "the end of deploy to the first submission of a trial",
    "trial": "the first submission to the end of the last trial, in whatever state",
    "result_collection": "the end of the last trial to the moment when the best is known",
    "test": "best known to the return of the test step",
    "metric_collection": "the end of the test to the return of the metrics step",
    "undeploy": "the end of metric collection to the (last) return of un-deploy",
}
Better = Literal["lower", "higher", "objective"]  # objective: as the objective's metric is
Scale = Literal["difference", "ratio"]  # one − other in the metric's unit, or ln(one / other)
Survives = Literal["no", "summed", "counted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What is known of a metric before any run.

    `unit`: "" for a score, whose unit is its own name. `survives`: what a run that was continued has of it. "no": null, since it
    spans the pause. "summed": a sum over attempts, which no verdict rests on. "counted": a count or a score, which is judged too,
    and compared between machines.
    """

    name: str
    title: str
    unit: str
    better: Better = "lower"
    scale: Scale = "ratio"
    survives: Survives = "no"
    is_signed: bool = False  # it may be below 0
    heading: str = ""  # in tables
    shown: str = ""  # the unit in tables, where it is not the usual one


def family(
    prefix: str,
    unit: str,
    *rows: tuple[str, str] | tuple[str, str, str],
    better: Better = "lower",
    scale: Scale = "ratio",
    survives: Survives = "no",
    is_signed: bool = False,
    shown: str = "",
) -> Iterator[Metric]:
    """Yield metrics that share all but name, title and heading."""
    for name, title, *heading in rows:
        yield Metric(
            name=f"{prefix}{name}",
            title=title,
            unit=unit,
            better=better,
            scale=scale,
            survives=survives,
            is_signed=is_signed,
            heading="".join(heading),
            shown=shown,
        )
