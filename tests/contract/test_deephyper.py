import pytest

from contract.few_runs import Framework

pytest.importorskip("deephyper", reason="DeepHyper is not in the development environment; run: pip install '.[deephyper]'")
pytestmark = [pytest.mark.slow(first=True), pytest.mark.timeout(900)]


class Test(Framework):
    adapter = "deephyper"
