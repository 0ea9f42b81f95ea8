"""The `power:` part of the experiment file."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from tuneoff.experiment.part import Options, Part
from tuneoff.experiment.power_settings import NO_METER, PowerSettings

_DEFAULTS = PowerSettings()
Name = Annotated[str, Field(min_length=1)]


class PowerPart(Part):
    """How energy is metered: a meter's name (or module:Class), its options, how often it is read, a second meter beside it."""

    meter: Name = _DEFAULTS.meter
    options: Options = Field(default_factory=dict, description="Of the meter; of `auto` by the meters' names.")
    interval_seconds: Annotated[float, Field(ge=0.02, le=10)] = _DEFAULTS.interval_seconds
    second: Name | None = Field(default=None, description="A meter that is read too, as a second opinion.")

    @model_validator(mode="after")
    def _two_meters(self) -> PowerPart:
        if self.second is not None and NO_METER in (self.meter, self.second):
            given = f"meter {self.meter!r} and second {self.second!r}"
            raise ValueError(f"`second` stands beside another meter, but got {given}; remove it")
        if self.second == self.meter:
            raise ValueError(f"`second` must be another meter than `meter`, but both are {self.meter!r}; remove `second`")
        return self

    def to_core(self, folder: str = "") -> PowerSettings:
        """Return the settings; `folder`: where relative paths begin."""
        return PowerSettings(
            meter=self.meter,
            options=dict(self.options),
            interval_seconds=self.interval_seconds,
            second=self.second,
            folder=folder,
        )
