"""Several meters of one host as one: the CPU's and the GPUs'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tuneoff.meter import MeterDescription, MeterError, PowerMeter
from tuneoff.record.samples.schema import PowerSample


class JointMeter(PowerMeter):
    """Reads its parts one after the other; `measured` only if every part is, for the energy of the node is their sum."""

    def __init__(self, parts: Mapping[str, PowerMeter]) -> None:
        """`parts` are opened meters by their names."""
        self.parts = dict(parts)
        self.failed: set[str] = set()  # parts that could not be read at some time
        self._kept: list[PowerSample] = []
        described = [part.description for part in self.parts.values()]
        self.description = MeterDescription(
            kind="measured" if all(one.kind == "measured" for one in described) else "estimated",
            source="; ".join(one.source for one in described),
            domains=tuple(domain for one in described for domain in one.domains),
            detail="; ".join(filter(None, (one.detail for one in described))),
            coefficients=next((one.coefficients for one in described if one.coefficients is not None), None),
            longest_gap_seconds=min(one.longest_gap_seconds for one in described),
        )

    def read(self) -> Sequence[PowerSample]:
        """Return the samples of all parts.

        Raises:
            MeterError: a part cannot be read; what the others gave is returned by the next call.
        """
        problems = []
        for name, part in self.parts.items():
            try:
                self._kept.extend(part.read())
            except MeterError as error:
                self.failed.add(name)
                problems.append(str(error))
        if problems:
            raise MeterError("; ".join(problems))
        samples, self._kept = self._kept, []
        return samples

    def gpu_shares(self) -> Sequence[tuple[str, int, float]]:
        """Return what the parts know of processes on GPUs: see `NvmlMeter.gpu_shares`."""
        return [share for part in self.parts.values() for share in part.gpu_shares()]

    def close(self) -> None:
        """Close every part; may be called twice."""
        for part in self.parts.values():
            part.close()
