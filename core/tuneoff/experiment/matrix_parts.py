"""The parts of the file that hold for a whole matrix and define no run: the analysis, its anchors, carbon, and the price file.

As people write them: what is decided on which metrics, and what runs are charged.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from tuneoff.experiment.accounting.declared import Prices
from tuneoff.experiment.metric_catalogue import QUESTIONS, is_metric, unknown_metric
from tuneoff.experiment.part import Name, Part, PlainName, show


def _known_metric(name: str) -> str:
    if not is_metric(name):
        raise ValueError(unknown_metric(name))
    return name


MetricName = Annotated[Name, AfterValidator(_known_metric)]


class AnalysisPart(Part):
    """What is frozen before the first run: the metrics that decide, the smallest differences that matter, confidence."""

    primary_metric: MetricName = QUESTIONS["time"]
    questions: Annotated[dict[PlainName, MetricName], Field(min_length=1, max_length=20)] = Field(
        default_factory=lambda: dict(QUESTIONS), description="One primary metric per question; all others are descriptive."
    )
    margin_percent: Annotated[float, Field(ge=0)] = 5.0
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    quality_margin: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="Of the selected model's test score; null: the workload's own."
    )
    family_size: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=15, description="Pairs that a question may have in a setting: Bonferroni's m. 15 are all pairs of six adapters."
    )


class AnchorsPart(Part):
    """What regret is normalised by, both of the objective's metric on *validation*: 1 is random search, 0 the best known."""

    random_search: float = Field(description="Median over seeds of what random search selects with the full budget.")
    best_known: float = Field(description="The best value that anybody knows.")
    source: Annotated[str, Field(min_length=1, max_length=300)] = Field(description="Where both are from.")

    @model_validator(mode="after")
    def _apart(self) -> AnchorsPart:
        if self.random_search == self.best_known:
            raise ValueError(f"random_search and best_known must differ, but both are {self.best_known}")
        return self


NONE = "none"
Text = Annotated[str, Field(min_length=1)]
MOST_G_PER_KWH = 100_000.0  # no grid has a tenth of it; products of greater figures could come out infinite
Intensity = Annotated[float, Field(ge=0, le=MOST_G_PER_KWH)]
Amount = Annotated[float, Field(ge=0, le=1e9)]  # so that no product of it comes out infinite


def _date(text: str) -> str:
    if not re.fullmatch(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?", text):
        raise ValueError(f"must be a year, a month or a day, e.g. 2026-03, but got {show(text)}")
    return text


Date = Annotated[str, AfterValidator(_date)]


class CarbonPart(Part):
    """Carbon intensity of the grid: of a zone of the table, a constant, or a series over time."""

    zone: Text | None = Field(default=None, description="A country by its ISO 3166-1 code of three letters, or WORLD.")
    g_per_kwh: Intensity | None = Field(default=None, description="A constant, in gCO2eq/kWh.")
    series: Text | None = Field(default=None, description="Path of a CSV file with the columns time,g_per_kwh.")
    source: Text | None = Field(default=None, description="Where a constant or a series comes from.")
    date: Date | None = Field(default=None, description="Of a constant or a series: a year, a month or a day.")

    @model_validator(mode="after")
    def _one_of_three(self) -> CarbonPart:
        stated = [name for name in ("zone", "g_per_kwh", "series") if getattr(self, name) is not None]
        if len(stated) != 1:
            names = " and ".join(stated) or "none"
            raise ValueError(f"exactly one of `zone`, `g_per_kwh` and `series` must be given, but got {names}")
        if self.zone is not None and (self.source is not None or self.date is not None):
            raise ValueError("`source` and `date` of a zone are the table's; remove them, or give `g_per_kwh`")
        return self


def _carbon(value: Any) -> Any:
    """Tell what may be written where something else than a mapping or "none" is."""
    if isinstance(value, dict | CarbonPart) or value == NONE:
        return value
    if isinstance(value, str):
        way_out = f"; write {{series: {value}}}" if value.endswith(".csv") else f"; write {{zone: {value}}}"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        way_out = f"; write {{g_per_kwh: {value}}}"
    else:
        way_out = "; for none write carbon: none" if value is None else ""
    raise ValueError(f"must be a mapping with `zone`, `g_per_kwh` or `series`, or none, but got {show(value)}{way_out}")


def _path(value: Any) -> Any:
    if isinstance(value, str) and value:
        return value
    way_out = "; for none write prices: none" if value is None else "; put the prices in a file of their own" if value else ""
    raise ValueError(f"must be the path of a price file, or none, but got {show(value)}{way_out}")


def _form(value: Any) -> str:
    return "<text>" if isinstance(value, str) else "<mapping>"


Carbon = Annotated[
    Annotated[
        Annotated[CarbonPart, Tag("<mapping>")] | Annotated[Literal["none"], Tag("<text>")],
        Discriminator(_form),
    ],
    BeforeValidator(_carbon, json_schema_input_type=CarbonPart | Literal["none"]),
]
PricesPath = Annotated[str | None, BeforeValidator(_path, json_schema_input_type=Text)]


class PriceFile(Part):
    """A price file: USD; what is left out is not known, and what needs it is null with that reason."""

    name: Text
    source: Text
    date: Date
    premises: Literal["rented", "own"] = "rented"
    usd_per_vcpu_hour: Amount | None = None
    usd_per_gb_hour: Amount | None = None
    assumed_gb_per_vcpu: Amount | None = None
    usd_per_accelerator_hour: Amount | None = None
    head_node_usd_per_hour: Amount | None = None
    database_usd_per_hour: Amount | None = None
    usd_per_kwh: Amount | None = None
    billing_granularity_seconds: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    billing_minimum_seconds: Annotated[float, Field(ge=0, le=86_400)] = 0.0

    @model_validator(mode="after")
    def _own_premises_pay_for_energy(self) -> PriceFile:
        if self.premises == "own" and self.usd_per_kwh is None:
            raise ValueError("`premises: own` needs `usd_per_kwh`, the tariff that is paid in place of rent")
        return self

    def to_core(self) -> Prices:
        return Prices(**self.model_dump())


def price_file_schema() -> dict[str, Any]:
    """Return the JSON Schema of a price file."""
    schema = PriceFile.model_json_schema(mode="validation")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "tuneoff prices"
    return schema
