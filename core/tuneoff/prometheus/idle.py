"""What the nodes drew before a matrix began: the server remembers it, and whether they were idle then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tuneoff.clock import NANOSECONDS
from tuneoff.power.baseline import IDLE_LIMIT
from tuneoff.power.meter import MeterError
from tuneoff.power.reading import mean_watts
from tuneoff.prometheus.api import PrometheusApi
from tuneoff.prometheus.nodes import host_names
from tuneoff.samples.schema import PowerSample


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Idle power by domain in W, and what a reader of it must know, one line each."""

    watts: Mapping[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def idle_before(samples: Sequence[PowerSample], now_ns: int, seconds: float, busy: Mapping[str, float] | None) -> Idle:
    """Return the mean power of the last `seconds`; `busy`: the share of each node's processor time that was in use then."""
    recent = [sample for sample in samples if sample.t >= now_ns - seconds * NANOSECONDS]
    watts = mean_watts(recent)
    problems = []
    unknown = sorted({sample.domain for sample in samples} - set(watts))
    if unknown:
        text = (
            f"the idle power of {', '.join(unknown)} is not known: it was scraped less than twice in the {seconds:.0f} s before"
        )
        problems.append(f"{text} the matrix; give `idle_watts`, or begin later")
    for node in sorted({domain.rpartition("/")[0] for domain in watts if not _is_device(domain)}):
        share = (busy or {}).get(node)
        if share is None:
            text = f"whether {node or 'the node'} was idle in the {seconds:.0f} s before the matrix is not known (no"
            problems.append(f"{text} node_cpu_seconds_total of it): their mean power is taken for its idle power")
        elif share > IDLE_LIMIT:
            text = f"the idle power of {node} was taken while {100 * share:.0f} % of its processors' time was in use"
            problems.append(f"{text}: it is too high, and what is attributed to trials too low")
    return Idle(watts=watts, problems=tuple(problems))


def busy_shares(api: PrometheusApi, seconds: float, host_labels: Sequence[str]) -> dict[str, float]:
    """Return the share of each node's processor time in use in the last `seconds`, in [0, 1], from node_exporter's metrics.

    Empty where the server has none of them: they are no power, and nothing else depends on them.
    """
    used = f'node_cpu_seconds_total{{mode!~"idle|iowait|steal|guest.*"}}[{seconds:.0f}s]'
    by = ", ".join(host_labels)
    processors = f'count by ({by}) (rate(node_cpu_seconds_total{{mode="idle"}}[{seconds:.0f}s]))'
    try:
        found = api.vector(f"sum by ({by}) (rate({used})) / {processors}")
        shares = [float(one["value"][1]) for one in found]
    except (MeterError, KeyError, IndexError, TypeError, ValueError):  # the power itself has just been found
        return {}
    return dict(zip(host_names([one["metric"] for one in found], host_labels), shares, strict=True))


def _is_device(domain: str) -> bool:
    """Tell whether a domain's idle power has nothing to do with processors."""
    return domain.rpartition("/")[2].startswith("gpu-")
