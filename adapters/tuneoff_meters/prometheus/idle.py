"""What the nodes drew before a matrix began: the server remembers it, and whether they were idle then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tuneoff.base.clock import NANOSECONDS
from tuneoff.measure.power.metering import IDLE_LIMIT
from tuneoff.measure.power.reading import mean_watts
from tuneoff.meter import MeterError, PowerSample
from tuneoff_meters.prometheus.api import PrometheusApi
from tuneoff_meters.prometheus.nodes import host_names


def idle_before(
    samples: Sequence[PowerSample], now_ns: int, seconds: float, busy: Mapping[str, float]
) -> dict[str, float] | None:
    """Return the mean power of each domain in the last `seconds` in W, or None where it is not known to be idle power.

    `busy`: the share of each node's processor time that was in use then. Nothing tells whether an accelerator was idle.
    """
    domains = {sample.domain for sample in samples}
    nodes = {domain.rpartition("/")[0] for domain in domains}
    watts = mean_watts([sample for sample in samples if sample.t >= now_ns - seconds * NANOSECONDS])
    has_gpu = any(domain.rpartition("/")[2].startswith("gpu-") for domain in domains)
    was_idle = not has_gpu and all(busy.get(node, 1.0) <= IDLE_LIMIT for node in nodes)
    return watts if was_idle and set(watts) == domains else None


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
