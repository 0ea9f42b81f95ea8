"""Choose the power meter of this host: a given one, or the best that answers (several as one), and why no better one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tuneoff.base.targets import unknown_option
from tuneoff.errors import TuneoffError
from tuneoff.experiment.power_settings import AUTO
from tuneoff.meter import MeterDescription, MeterError, OptionError, PowerMeter
from tuneoff.record.samples.schema import PowerSample

_NOTHING: Mapping[str, Any] = {}
_OF_AUTO = {  # that `auto` chooses from, by place: no distribution is scanned for them
    "rapl": "tuneoff_meters.rapl:RaplMeter",
    "nvml": "tuneoff_meters.nvml:NvmlMeter",
    "model": "tuneoff.measure.power.model_meter:ModelMeter",
}
_GPUS = Path("/proc/driver/nvidia/gpus")  # the driver's list, whether or not its library is there


def choose(name: str = AUTO, options: Mapping[str, Any] = _NOTHING) -> tuple[str, PowerMeter, str]:
    """Open the meter of that name with its options; return its name, the meter, and why there is no better one ("" for the best).

    `name` is one of the registry, or "module:Class". `auto` takes the best that this host has, and the model at worst: rapl+nvml,
    rapl, nvml+model (estimated as a whole: a modelled CPU beside measured GPUs), model. Its options are those of the meters by
    their names, e.g. `{"rapl": {"root": ...}}`.

    Raises:
        MeterError: a meter given by name cannot be used, or there is no such meter. `auto` fails only by a wrong option.
    """
    if name != AUTO:
        return name, open_meter(name, options), ""
    check_options(AUTO, options)
    cpu, no_cpu = _tried("rapl", options)
    if cpu is not None and cpu.description.domains == ("psys",):
        return "rapl", cpu, "psys is the whole platform: GPUs, if any, are in it, and none was read"
    gpu, no_gpu = _tried("nvml", options)
    if cpu is not None and gpu is not None:
        return "rapl+nvml", JointMeter({"rapl": cpu, "nvml": gpu}), ""
    if cpu is not None:
        return "rapl", cpu, no_gpu if _has_gpu() else ""  # where there is none, how to read it is no news
    model = open_meter(_OF_AUTO["model"], options.get("model", _NOTHING))
    if gpu is not None:
        return "nvml+model", JointMeter({"nvml": gpu, "model": model}), no_cpu
    return "model", model, f"{no_cpu}; {no_gpu if _has_gpu() else 'no GPU (no NVIDIA driver)'}"


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options of a meter that are wrong wherever it is opened; nothing is started and nobody asked.

    Raises:
        OptionError: there is one.
        MeterError: the meter has no use here, whatever its options.
        PluginError: the meter is broken.
    """
    from tuneoff.registry import power_meter_class

    if name == AUTO:
        if problem := unknown_option(f"meter {AUTO}", options, sorted(_OF_AUTO)):
            raise OptionError(problem)
        for part, part_options in options.items():
            if not isinstance(part_options, Mapping):
                rule = f"must be a mapping of that meter's options, but got {part_options!r}"
                raise OptionError(f"meter auto: `{part}` {rule}; write {{{part}: {{OPTION: VALUE}}}}")
            check_options(_OF_AUTO[part], part_options)
        return
    loaded = power_meter_class(name)
    loaded.check_options(options)
    if loaded.is_inert:
        open_meter(name, options).close()


def open_meter(name: str, options: Mapping[str, Any]) -> PowerMeter:
    """Open the meter of that name, or at "module:Class".

    Raises:
        MeterError: there is none, it is broken, or cannot be used.
    """
    from tuneoff.registry import power_meter_class

    try:
        meter = power_meter_class(name)(options)
        described = getattr(meter, "description", None)
        if not isinstance(described, MeterDescription):
            raise MeterError(f"power meter {name!r} must have a MeterDescription, but has {described!r}; tell its author")
    except MeterError:
        raise
    except TuneoffError as error:
        raise MeterError(str(error)) from error
    except Exception as error:  # another's code may fail in any way
        problem = " ".join(f"{type(error).__name__}: {error}".split())
        raise MeterError(f"power meter {name!r} fails when it is opened: {problem}; take another, or tell its author") from error
    return meter


def _tried(name: str, options: Mapping[str, Any]) -> tuple[PowerMeter | None, str]:
    """Return a meter, or why there is none; a wrong option is raised: nobody asked for another meter."""
    try:
        return open_meter(_OF_AUTO[name], options.get(name, _NOTHING)), ""
    except OptionError:
        raise
    except MeterError as error:
        return None, str(error)


def _has_gpu() -> bool:
    try:
        return any(_GPUS.iterdir())
    except OSError:
        return False


class JointMeter(PowerMeter):
    """Reads its parts one after the other; `measured` only if every part is, for the energy of the node is their sum."""

    def __init__(self, parts: Mapping[str, PowerMeter]) -> None:
        """`parts` are opened meters by their names."""
        self._parts = dict(parts)
        self._kept: list[PowerSample] = []
        described = [part.description for part in self._parts.values()]
        self.description = MeterDescription(
            kind="measured" if all(description.kind == "measured" for description in described) else "estimated",
            source="; ".join(description.source for description in described),
            domains=tuple(domain for description in described for domain in description.domains),
            detail="; ".join(filter(None, (description.detail for description in described))),
            coefficients=next(filter(None, (description.coefficients for description in described)), None),
            longest_gap_seconds=min(description.longest_gap_seconds for description in described),
        )

    def read(self) -> Sequence[PowerSample]:
        """Return the samples of all parts.

        Raises:
            MeterError: a part cannot be read; what the others gave is returned by the next call.
        """
        problems = []
        for part in self._parts.values():
            try:
                self._kept.extend(part.read())
            except MeterError as error:
                problems.append(str(error))
        if problems:
            raise MeterError("; ".join(problems))
        samples, self._kept = self._kept, []
        return samples

    def gpu_shares(self) -> Sequence[tuple[str, int, float]]:
        """Return what the parts know of processes on GPUs: see `NvmlMeter.gpu_shares`."""
        return [share for part in self._parts.values() for share in part.gpu_shares()]

    def gpu_memory(self) -> Sequence[tuple[str, int, int]]:
        """Return what the parts know of processes' memory on GPUs."""
        return [used for part in self._parts.values() for used in part.gpu_memory()]

    def close(self) -> None:
        """Close every part; may be called twice."""
        for part in self._parts.values():
            part.close()
