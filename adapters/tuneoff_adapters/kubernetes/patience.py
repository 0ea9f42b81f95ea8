"""How long findings last: most pass by themselves, and count only once they stay."""

from __future__ import annotations

from collections.abc import Iterable

from tuneoff.base.clock import NANOSECONDS
from tuneoff_adapters.kubernetes.diagnosis import Finding


class Patience:
    """Remembers since when each object has been in trouble without a break, whatever its reason: reasons take turns."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._since: dict[str, int] = {}

    def overdue(self, findings: Iterable[Finding], now_ns: int) -> Finding | None:
        """Return the first finding that is final or has lasted too long at `now_ns` (monotonic), or None."""
        found = list(findings)
        self._since = {finding.subject: self._since.get(finding.subject, now_ns) for finding in found}
        limit = self.seconds * NANOSECONDS
        return next((one for one in found if one.is_final or now_ns - self._since[one.subject] >= limit), None)

    def forget(self) -> None:
        """Begin anew: what was seen is not what is, because the server was away."""
        self._since.clear()
