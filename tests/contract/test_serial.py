import pytest

from contract.few_runs import Framework
from tuneoff.adapter import Capabilities
from tuneoff.trust.check.planned_runs import DRAWS, REFUSALS, planned_runs

pytestmark = [pytest.mark.slow(first=True), pytest.mark.timeout(900)]


class Test(Framework):
    adapter = "serial"
    runs = frozenset({*planned_runs(Capabilities(framework="none")), DRAWS, REFUSALS})  # all
