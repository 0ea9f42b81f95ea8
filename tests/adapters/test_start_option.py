"""Option `start` of every adapter with core's pool: what it may be, and that it makes another run, which says so."""

from __future__ import annotations

import pytest

from builders.specs import toy_spec
from tuneoff.adapter import Adapter
from tuneoff.base.targets import load_target

ADAPTERS = {
    "serial": "tuneoff_adapters.serial:SerialAdapter",
    "optuna": "tuneoff_adapters.optuna.adapter:OptunaAdapter",
    "nevergrad": "tuneoff_adapters.nevergrad:NevergradAdapter",
    "rustuna": "tuneoff_adapters.rustuna:RustunaAdapter",
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_workers_are_fresh_interpreters_unless_a_run_says_otherwise(name: str) -> None:
    adapter: type[Adapter] = load_target(ADAPTERS[name])
    fresh, forked = toy_spec(name), toy_spec(name, options={"start": "forkserver"})
    assert adapter.refuse(fresh) is None
    assert adapter.refuse(forked) is None
    assert fresh.run_id != forked.run_id
    assert set(adapter.changed_defaults(forked)) > set(adapter.changed_defaults(fresh))
    assert any("forked" in text for text in adapter.changed_defaults(forked))
    refusal = adapter.refuse(toy_spec(name, options={"start": "fork"}))
    assert refusal is not None
    assert "`start` must be forkserver" in refusal
    assert "'fork'" in refusal
