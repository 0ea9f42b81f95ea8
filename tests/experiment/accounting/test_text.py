"""Accounting as JSON: the same wherever it came from."""

from __future__ import annotations

import pickle

import msgspec

from tuneoff.experiment.accounting.declared import Prices

PRICES = Prices(name="n", source="s", date="d", usd_per_vcpu_hour=1.0)
WRITTEN = msgspec.json.decode(
    b'{"name": "n", "source": "s", "date": "d", "billing_granularity_seconds": 1.0, "billing_minimum_seconds": 0.0}', type=Prices
)  # a price file may write what is a default


def test_defaults_that_nobody_wrote_are_left_out() -> None:
    assert pickle.loads(pickle.dumps(PRICES)).to_json() == {"name": "n", "source": "s", "date": "d", "usd_per_vcpu_hour": 1.0}
    assert "billing_minimum_seconds" in pickle.loads(pickle.dumps(WRITTEN)).to_json()
