import json

import pytest

from contract.few_runs import FRAMEWORK, Framework
from tuneoff.base.findings import chosen
from tuneoff.record.events.schema import WorkerDied
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.checks.failures import trials_by_act
from tuneoff.trust.check.evidence import AdapterCheck, AdapterEvidence
from tuneoff.trust.check.probe_workload import EXIT_CODE

pytestmark = [pytest.mark.slow(first=True), pytest.mark.timeout(900)]
OF_FAULTY = pytest.mark.parametrize("check", chosen(CHECKS, ["failures.recorded"]), ids=["faulty"])  # so that its run is made


class Test(Framework):
    adapter = "ray-tune"
    # its default is `random`; one direction shows its stopper; carelessness: tests/e2e/test_training_abilities.py
    runs = FRAMEWORK - {"default-sampler", "goal", "careless"}

    @OF_FAULTY
    def test_deaths_are_noted_with_what_is_known(self, check: AdapterCheck, evidence: AdapterEvidence) -> None:
        made = evidence.runs["faulty"]
        deaths = {event.trial: event.exit_code for event in made.of(WorkerDied)}
        trials = trials_by_act(made)
        (exited,), (killed,) = trials["exit"], trials["kill"]
        assert (deaths[exited.trial], deaths[killed.trial]) == (None, None)  # Ray tells none
        assert f"exit code {EXIT_CODE}" in (exited.cause or "")  # the trial's process noted it
        assert not deaths.keys() & {trial.trial for act in ("sound", "raise", "nan") for trial in trials[act]}

    @OF_FAULTY
    def test_the_record_says_what_was_set_but_not_the_token(self, check: AdapterCheck, evidence: AdapterEvidence) -> None:
        text = (evidence.runs["faulty"].folder / "framework" / "ray.json").read_text()
        record = json.loads(text)
        assert record["environment"]["set"]["RAY_AUTH_MODE"] == "token"
        assert record["init"]["num_cpus"] == 2
        assert "RAY_AUTH_TOKEN" not in text
