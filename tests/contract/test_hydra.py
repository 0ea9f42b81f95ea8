import pytest

from contract.few_runs import FRAMEWORK, FewRuns

pytest.importorskip(
    "hydra", reason="Hydra's sweeper allows no Optuna from 3 on, so it has an environment of its own: hydra==1.3.8"
)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Test(FewRuns):
    adapter = "hydra"
    runs = FRAMEWORK - {"faulty"}  # joblib ends the sweep when a process dies: docs/conformance.md
