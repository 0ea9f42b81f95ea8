"""Accounting as JSON: the same wherever it came from."""

from __future__ import annotations

import pickle

import msgspec
import pytest

from tuneoff.experiment.accounting.declared import Accounting, Intensity, Prices, to_json

PRICES = Prices(name="n", source="s", date="d", usd_per_vcpu_hour=1.0)
INTENSITY = Intensity(kind="zone", values=(1.0,), zone="DEU", source="s", date="2023")
WRITTEN = msgspec.json.decode(
    b'{"name": "n", "source": "s", "date": "d", "billing_granularity_seconds": 1.0, "billing_minimum_seconds": 0.0}', type=Prices
)  # a price file may write what is a default


@pytest.mark.parametrize("own", [PRICES, INTENSITY, WRITTEN, Accounting(), Accounting(intensity=INTENSITY, prices=WRITTEN)])
def test_what_another_process_sent_is_the_same_json(own: Accounting | Intensity | Prices) -> None:
    """Verification hands the plan's accounting to its processes."""
    sent = pickle.loads(pickle.dumps(own))
    assert sent == own
    assert to_json(sent) == to_json(own)


def test_defaults_that_nobody_wrote_are_left_out() -> None:
    assert to_json(pickle.loads(pickle.dumps(PRICES))) == {"name": "n", "source": "s", "date": "d", "usd_per_vcpu_hour": 1.0}
    assert "billing_minimum_seconds" in to_json(pickle.loads(pickle.dumps(WRITTEN)))
