"""What users change while an experiment runs under the emulated controllers."""

from __future__ import annotations

from emulated.katib_world import Object, World, experiment_named
from katib_emulation.objects import JOBS, TRIALS


def test_a_deleted_job_is_made_again(katib: World) -> None:
    katib.submit(experiment_named(parallelTrialCount=1))
    (name,) = katib.wait_jobs(1)
    before = katib.store.get(JOBS, name, "ns")["metadata"]["uid"]
    katib.store.delete(JOBS, name, "ns")
    after = katib.wait(lambda: katib.store.list(JOBS, "ns"))[0]["metadata"]
    assert (after["name"], after["uid"] != before) == (name, True)


def test_a_deleted_trial_is_made_again_from_its_suggestion(katib: World) -> None:
    katib.submit(experiment_named())
    name, _ = katib.wait_jobs(2)
    trial = katib.trial(name)
    katib.store.delete(TRIALS, name, "ns")

    def remade() -> Object | None:
        found = [t for t in katib.trials() if t["metadata"]["name"] == name and t["metadata"]["uid"] != trial["metadata"]["uid"]]
        return found[0] if found else None

    again = katib.wait(remade)
    assert again["spec"]["parameterAssignments"] == trial["spec"]["parameterAssignments"]
    katib.run_all(lambda i: ["0.5"])
    assert len(katib.trials()) == katib.suggestion()["status"]["suggestionCount"] == 4


def test_whoever_deletes_the_only_trial_gets_no_new_one_as_in_katib(katib: World) -> None:
    katib.submit(experiment_named(parallelTrialCount=1))
    (name,) = katib.wait_jobs(1)
    katib.wait(lambda: katib.experiment()["status"].get("trialsRunning") == 1)
    katib.store.delete(TRIALS, name, "ns")
    katib.wait(lambda: katib.trials() == [])
    katib.edit("e1", maxTrialCount=5)  # makes the controller look again
    assert katib.experiment()["status"]["trialsRunning"] == 1
    assert katib.trials() == []
