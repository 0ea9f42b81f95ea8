"""The metrics collector's settings: the webhook writes them as arguments of its container, and the node reads them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from katib_emulation.node.metric_lines import MetricFormat
from katib_emulation.node.stopping import StopRule

CONTAINER = "metrics-logger-and-collector"
DEFAULT_PATH = "/var/log/katib/metrics.log"


@dataclass(frozen=True, slots=True)
class CollectorSettings:
    """What the collector of one trial does."""

    trial: str
    path: str  # of the metrics file, as the container sees it
    format: MetricFormat
    maximize: bool
    rules: tuple[StopRule, ...] = ()

    @property
    def directory(self) -> str:
        """The folder of the metrics file, where the marks of ended processes lie too."""
        return str(PurePosixPath(self.path).parent)

    @classmethod
    def of_trial(cls, trial: Mapping[str, Any]) -> CollectorSettings | None:
        """Return the settings that a Trial asks for; None where its metrics are not collected from a file."""
        spec = trial["spec"]
        collector = spec.get("metricsCollector") or {}
        kind = (collector.get("collector") or {}).get("kind") or "StdOut"
        if kind not in ("StdOut", "File"):
            return None
        source = collector.get("source") or {}
        file = source.get("fileSystemPath") or {}
        objective = spec["objective"]
        is_json = kind == "File" and file.get("format") == "JSON"
        return cls(
            trial=trial["metadata"]["name"],
            path=file.get("path") or DEFAULT_PATH if kind == "File" else DEFAULT_PATH,
            format=MetricFormat(
                names=(objective["objectiveMetricName"], *(objective.get("additionalMetricNames") or ())),
                kind="JSON" if is_json else "TEXT",
                filters=tuple((source.get("filter") or {}).get("metricsFormat") or ()),
            ),
            maximize=objective.get("type") == "maximize",
            rules=tuple(
                StopRule(rule["name"], str(rule["value"]), rule["comparison"], int(rule.get("startStep") or 0))
                for rule in spec.get("earlyStoppingRules") or ()
            ),
        )

    def arguments(self) -> list[str]:
        """Return the arguments of the collector's container."""
        arguments = ["-t", self.trial, "-m", ";".join(self.format.names)]
        arguments += ["-o-type", "maximize" if self.maximize else "minimize", "-path", self.path]
        if self.format.filters:
            arguments += ["-f", ";".join(self.format.filters)]
        arguments += ["-format", self.format.kind]
        for rule in self.rules:
            arguments += ["-stop-rule", f"{rule.name};{rule.value};{rule.comparison};{rule.start_step}"]
        return arguments

    @classmethod
    def of_arguments(cls, arguments: Sequence[str]) -> CollectorSettings:
        """Read what `arguments` wrote."""
        pairs = list(zip(arguments[::2], arguments[1::2], strict=True))
        given = dict(pairs)
        kind: Literal["TEXT", "JSON"] = "JSON" if given["-format"] == "JSON" else "TEXT"
        filters = tuple(given["-f"].split(";")) if "-f" in given else ()
        rules = [value.split(";") for flag, value in pairs if flag == "-stop-rule"]
        return cls(
            trial=given["-t"],
            path=given["-path"],
            format=MetricFormat(tuple(given["-m"].split(";")), kind, filters),
            maximize=given["-o-type"] == "maximize",
            rules=tuple(StopRule(name, value, comparison, int(step)) for name, value, comparison, step in rules),
        )
