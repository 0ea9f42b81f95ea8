"""From `carbon:` and `prices:` of an experiment file to what a matrix's runs are charged."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from tuneoff.errors import ExperimentError
from tuneoff.experiment.accounting.declared import Accounting, Intensity, Prices
from tuneoff.experiment.accounting.parts import NONE, CarbonPart, PriceFile
from tuneoff.experiment.accounting.series import read_series
from tuneoff.experiment.accounting.zones import WORLD, zone
from tuneoff.experiment.part import one_line
from tuneoff.experiment.yaml_reader import read_yaml

DEFAULT_PRICES = Path(__file__).parent / "tables" / "prices.yaml"
WORLD_MEAN = CarbonPart(zone=WORLD)
NO_CARBON = "the experiment file says `carbon: none`"
NO_PRICES = "the experiment file says `prices: none`"


def resolve(carbon: CarbonPart | Literal["none"] = WORLD_MEAN, prices: str | None = None) -> Accounting:
    """Return the accounting of a file: without `carbon` the world's mean, without `prices` those that ship.

    Raises:
        ExperimentError: an unknown zone, or a file that cannot be read or breaks a rule; one line with the key.
    """
    try:
        intensity = resolve_intensity(carbon)
    except ExperimentError as error:
        raise ExperimentError(f"carbon: {error}") from error
    try:
        found = None if prices == NONE else read_prices(Path(prices) if prices else DEFAULT_PRICES)
    except ExperimentError as error:
        raise ExperimentError(f"prices: {error}") from error
    return Accounting(
        intensity=intensity,
        intensity_reason=NO_CARBON if intensity is None else "",
        prices=found,
        prices_reason=NO_PRICES if found is None else "",
    )


def resolve_intensity(carbon: CarbonPart | Literal["none"]) -> Intensity | None:
    """Return the intensity that a file asks for, None where it asks for none.

    Raises:
        ExperimentError: an unknown zone, or a bad series.
    """
    if not isinstance(carbon, CarbonPart):
        return None
    source, date = carbon.source or "", carbon.date or ""
    if carbon.series is not None:
        return read_series(Path(carbon.series), source=source, date=date)
    if carbon.g_per_kwh is not None:
        return Intensity(kind="constant", values=(carbon.g_per_kwh,), source=source or "the experiment file", date=date)
    found = zone(carbon.zone or WORLD)
    return Intensity(kind="zone", values=(found.g_per_kwh,), zone=found.code, source=found.source, date=str(found.year))


def read_prices(path: Path) -> Prices:
    """Read a price file.

    Raises:
        ExperimentError: it cannot be read or breaks a rule; one line with the file, the key, the value.
    """
    content = read_yaml(path, what="a price file", needs="`name`, `source`, `date` and the prices")
    try:
        return PriceFile.model_validate(content).to_core()
    except ValidationError as error:
        raise ExperimentError(f"{path}: {one_line(error)}") from error
