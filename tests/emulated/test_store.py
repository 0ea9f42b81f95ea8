"""The store: what the API server keeps to itself, and deletion by finalizers, owners, namespaces."""

from __future__ import annotations

import pytest

from emulated.served import Object, trial
from katib_emulation.objects import EVENTS, EXPERIMENTS, JOBS, NAMESPACES, PODS, TRIALS, Kind, StatusError, Store, owned_by


def test_an_update_keeps_the_identity_and_is_stored_where_something_changed(store: Store) -> None:
    given = trial()
    first = store.create(TRIALS, given, "ns")
    given["spec"]["n"] = store.get(TRIALS, "t1", "ns")["spec"]["n"] = 7  # copies
    changes = store.subscribe(TRIALS)
    assert store.update(TRIALS, "t1", "ns", lambda obj: None) == first
    assert changes.next(0) is None

    def fail(obj: Object) -> None:
        obj["spec"]["n"] = 7
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.update(TRIALS, "t1", "ns", fail)
    assert store.update(TRIALS, "t1", "ns", lambda obj: obj["metadata"].update(uid="x", deletionTimestamp="now")) == first
    after = store.update(TRIALS, "t1", "ns", lambda obj: obj.update(status={"a": 1})) or {}
    assert after["metadata"]["resourceVersion"] > first["metadata"]["resourceVersion"]


def family(store: Store, experiment_finalizers: tuple[str, ...] = (), trial_finalizers: tuple[str, ...] = ()) -> None:
    """Create an experiment with a trial with a job with a pod."""
    container = {"name": "c", "image": "i"}
    owner = store.create(EXPERIMENTS, {"metadata": {"name": "e1", "finalizers": list(experiment_finalizers)}, "spec": {}}, "ns")
    owner = store.create(TRIALS, trial(ownerReferences=owned_by(owner), finalizers=list(trial_finalizers)), "ns")
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    for kind, name, spec in ((JOBS, "j1", {"template": template}), (PODS, "p1", {"containers": [container]})):
        owner = store.create(kind, {"metadata": {"name": name, "ownerReferences": owned_by(owner)}, "spec": spec}, "ns")


def left(store: Store) -> list[str]:
    """Return what is left of the family; what is being deleted has a mark."""
    found = [obj["metadata"] for kind in (EXPERIMENTS, TRIALS, JOBS, PODS) for obj in store.list(kind)]
    return [f"{metadata['name']}{'-' if 'deletionTimestamp' in metadata else ''}" for metadata in found]


def release(store: Store, kind: Kind, name: str) -> None:
    store.update(kind, name, "ns", lambda obj: obj["metadata"]["finalizers"].remove("hold"))


@pytest.mark.parametrize(
    ("held", "propagation", "waiting"),
    [
        ("", "Background", []),
        ("experiment", "Background", ["e1-", "t1", "j1", "p1"]),
        ("trial", "Background", ["t1-", "j1", "p1"]),
        ("experiment", "Foreground", ["e1-"]),
        ("trial", "Foreground", ["e1-", "t1-"]),
    ],
)
def test_deleting_an_owner_deletes_what_it_owns_once_nobody_holds_it(
    store: Store, held: str, propagation: str, waiting: list[str]
) -> None:
    family(store, ("hold",) if held == "experiment" else (), ("hold",) if held == "trial" else ())
    store.delete(EXPERIMENTS, "e1", "ns", propagation)  # type: ignore[arg-type]
    assert left(store) == waiting
    if held:
        release(store, *((EXPERIMENTS, "e1") if held == "experiment" else (TRIALS, "t1")))
    assert left(store) == []


def test_what_is_created_for_an_owner_that_is_gone_does_not_stay(store: Store) -> None:
    owner = store.create(EXPERIMENTS, {"metadata": {"name": "e1"}, "spec": {}}, "ns")
    store.delete(EXPERIMENTS, "e1", "ns")
    store.create(TRIALS, trial(ownerReferences=owned_by(owner)), "ns")
    assert left(store) == []


def test_a_namespace_waits_for_held_content_and_goes_with_all_of_it(store: Store) -> None:
    family(store, experiment_finalizers=("hold",))
    assert store.delete(NAMESPACES, "ns")["status"]["phase"] == "Terminating"
    with pytest.raises(StatusError, match="namespace ns because it is being terminated") as caught:
        store.create(TRIALS, trial("t2"), "ns")
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    made = store.get(EXPERIMENTS, "e1", "ns")
    release(store, EXPERIMENTS, "e1")
    assert [obj["metadata"]["name"] for obj in store.list(NAMESPACES)] == ["default", "kubeflow"]
    store.record_event(made, "Normal", "X", "y")  # is lost without an error
    assert (left(store), store.list(EVENTS)) == ([], [])
