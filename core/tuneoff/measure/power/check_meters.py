"""Whether the power meters that a file names are there, as far as that is known before the host of the run."""

from __future__ import annotations

from tuneoff import registry
from tuneoff.base.suggest import unknown_name
from tuneoff.errors import ExperimentError, PluginError, UnknownNameError
from tuneoff.experiment.load import MatrixFile
from tuneoff.experiment.power_settings import AUTO, NO_METER
from tuneoff.measure.power.metering import refusal
from tuneoff.measure.power.select_meter import check_options
from tuneoff.meter import MeterError


def check_meters(file: MatrixFile) -> None:
    """Refuse a meter that nobody installed, and wrong options; whether it can be read is found on the host of the run."""
    for key, name in (("meter", file.power.meter), ("second", file.power.second)):
        if name is not None and not (key == "meter" and name in (AUTO, NO_METER)):
            try:
                registry.find("power_meter", name)
            except UnknownNameError as error:
                own = (AUTO, NO_METER) if key == "meter" else ()
                known = {*own, *(plugin.name for plugin in registry.scan("power_meter"))}
                text = f"{unknown_name('power meter', name, known)}; or give it as module:Class"
                raise UnknownNameError(f"{file.path}: power.{key}: {text}") from error
            except ExperimentError as error:
                raise type(error)(f"{file.path}: power.{key}: {error}") from error
    if file.power.meter != NO_METER:
        try:
            check_options(file.power.meter, file.power.placed_options)
        except MeterError as error:
            raise ExperimentError(f"{file.path}: {refusal(file.power, error)}") from error
        except (PluginError, UnknownNameError):  # it may be there on the host of the run
            return
