"""How Katib's services validate the settings of algorithms; the messages are theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from katib_emulation.suggestions.grid import Grid
from katib_emulation.suggestions.parameters import parameters_of

Settings = Iterable[Mapping[str, Any]]


def settings_of(part: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of `spec.algorithm` or `spec.earlyStopping` by name; the last one counts."""
    return {given.get("name", ""): given.get("value", "") for given in part.get("algorithmSettings", ())}


def validate_algorithm(experiment: Mapping[str, Any]) -> str | None:
    """Return why the service refuses the settings of `spec.algorithm`; None if it takes them."""
    algorithm = experiment["spec"]["algorithm"]
    name = algorithm["algorithmName"]
    known = {"random": ("random_state",), "grid": ("random_state",)}.get(
        name, ("n_startup_trials", "n_ei_candidates", "random_state")
    )
    spelling = "great" if name == "random" else "greate"  # the services' own words
    for given in algorithm.get("algorithmSettings", ()):
        setting, value = given.get("name", ""), given.get("value", "")
        if setting not in known:
            return f"unknown setting {setting} for algorithm {name}"
        try:
            if int(value) < 0:
                return "" if name == "grid" else f"{setting} should be {spelling} or equal than zero"
        except ValueError as error:
            return f"failed to validate {setting}({value}): {error}"
    return _validate_grid(experiment) if name == "grid" else None


def _validate_grid(experiment: Mapping[str, Any]) -> str | None:
    parameters = parameters_of(experiment)
    try:
        size = Grid(parameters, "").size
    except ValueError as error:
        return f"failed to validate parameters({', '.join(p.name for p in parameters)}): {error}"
    most = experiment["spec"].get("maxTrialCount", 0)
    return f"Max Trial Count: {most} > all possible search combinations: {size}" if most > size else None


def validate_early_stopping(early_stopping: Mapping[str, Any]) -> str | None:
    """Return why the medianstop service refuses its settings; None if it takes them."""
    least = {
        "min_trials_required": "min_trials_required must be greater than zero (>0)",
        "start_step": "start_step must be greater or equal than one (>=1)",
    }
    for given in early_stopping.get("algorithmSettings", ()):
        setting, value = given.get("name", ""), given.get("value", "")
        if setting not in least:
            return f"unknown setting {setting} for algorithm medianstop"
        try:
            if int(value) < 1:
                return least[setting]
        except ValueError as error:
            return f"failed to validate {setting}({value}): {error}"
    return None
