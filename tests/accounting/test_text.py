"""Accounting as JSON: the same wherever it came from."""

from __future__ import annotations

import pickle

from tuneoff.accounting.model import Accounting, Intensity, Prices
from tuneoff.accounting.text import to_json


def test_what_another_process_sent_is_the_same_json() -> None:
    """Verification hands the plan's accounting to its processes: a default is then equal to the default, and not the same."""
    own = Accounting(
        intensity=Intensity(kind="constant", values=(1.0,)), prices=Prices(name="n", source="s", date="d", usd_per_vcpu_hour=1.0)
    )
    sent = pickle.loads(pickle.dumps(own))
    assert to_json(sent) == to_json(own)
    assert (to_json(sent.prices), to_json(sent.intensity)) == (to_json(own.prices), to_json(own.intensity))
    assert "premises" not in to_json(sent.prices)
    assert to_json(None) is None
