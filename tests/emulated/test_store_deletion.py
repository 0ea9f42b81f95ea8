"""Deletion: finalizers, owners, foreground and background, namespaces."""

from __future__ import annotations

import pytest

from emulated.served import Object, trial
from katib_emulation.objects import EXPERIMENTS, JOBS, NAMESPACES, PODS, TRIALS, Kind, StatusError, Store


def owned_by(owner: Object, blocks: bool = True) -> list[Object]:
    names = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    return [{**names, "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": blocks}]


def family(store: Store, experiment_finalizers: tuple[str, ...] = (), trial_finalizers: tuple[str, ...] = ()) -> None:
    """Create an experiment with a trial with a job with a pod."""
    container = {"name": "c", "image": "i"}
    metadata = {"name": "e1", "finalizers": list(experiment_finalizers)}
    experiment = store.create(EXPERIMENTS, {"metadata": metadata, "spec": {}}, "ns")
    made = store.create(TRIALS, trial(ownerReferences=owned_by(experiment), finalizers=list(trial_finalizers)), "ns")
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = store.create(
        JOBS, {"metadata": {"name": "t1", "ownerReferences": owned_by(made)}, "spec": {"template": template}}, "ns"
    )
    store.create(PODS, {"metadata": {"name": "p1", "ownerReferences": owned_by(job)}, "spec": {"containers": [container]}}, "ns")


def left(store: Store) -> list[str]:
    """Return what is left of the family."""
    kinds: tuple[Kind, ...] = (EXPERIMENTS, TRIALS, JOBS, PODS)
    return [obj["metadata"]["name"] for kind in kinds for obj in store.list(kind)]


def release(store: Store, kind: Kind, name: str, finalizer: str) -> None:
    def remove(obj: Object) -> None:
        obj["metadata"]["finalizers"].remove(finalizer)

    store.update(kind, name, "ns", remove)


def test_deleting_an_owner_deletes_what_it_owns(store: Store) -> None:
    family(store)
    last = store.delete(EXPERIMENTS, "e1", "ns")
    assert "deletionTimestamp" not in last["metadata"]
    assert left(store) == []


def test_a_missing_object_cannot_be_deleted(store: Store) -> None:
    with pytest.raises(StatusError, match=r'experiments.kubeflow.org "nope" not found'):
        store.delete(EXPERIMENTS, "nope", "ns")


def test_a_finalizer_keeps_the_object_and_all_it_owns(store: Store) -> None:
    family(store, experiment_finalizers=("hold",))
    last = store.delete(EXPERIMENTS, "e1", "ns")
    assert last["metadata"]["deletionTimestamp"]
    assert last["metadata"]["deletionGracePeriodSeconds"] == 0
    assert store.get(TRIALS, "t1", "ns")["metadata"].get("deletionTimestamp") is None
    assert store.delete(EXPERIMENTS, "e1", "ns") == last  # a second request changes nothing
    release(store, EXPERIMENTS, "e1", "hold")
    assert left(store) == []


def test_a_finalizer_of_a_trial_keeps_its_job_when_the_experiment_is_gone(store: Store) -> None:
    family(store, trial_finalizers=("clean",))
    store.delete(EXPERIMENTS, "e1", "ns")
    assert left(store) == ["t1", "t1", "p1"]
    assert store.get(TRIALS, "t1", "ns")["metadata"]["deletionTimestamp"]
    release(store, TRIALS, "t1", "clean")
    assert left(store) == []


def test_foreground_deletion_ends_the_children_of_a_held_owner(store: Store) -> None:
    family(store, experiment_finalizers=("hold",))
    last = store.delete(EXPERIMENTS, "e1", "ns", "Foreground")
    assert left(store) == ["e1"]
    assert last["metadata"]["finalizers"] == ["hold"]
    release(store, EXPERIMENTS, "e1", "hold")
    assert left(store) == []


def test_foreground_deletion_waits_for_a_held_child(store: Store) -> None:
    family(store, trial_finalizers=("clean",))
    last = store.delete(EXPERIMENTS, "e1", "ns", "Foreground")
    assert last["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert left(store) == ["e1", "t1"]  # the trial's job and pod are gone all the same
    release(store, TRIALS, "t1", "clean")
    assert left(store) == []


def test_foreground_deletion_does_not_wait_for_a_child_that_blocks_nothing(store: Store) -> None:
    experiment = store.create(EXPERIMENTS, {"metadata": {"name": "e1"}, "spec": {}}, "ns")
    store.create(TRIALS, trial(ownerReferences=owned_by(experiment, blocks=False), finalizers=["clean"]), "ns")
    store.delete(EXPERIMENTS, "e1", "ns", "Foreground")
    assert left(store) == ["t1"]


def test_foreground_deletion_can_follow_background_deletion(store: Store) -> None:
    family(store, experiment_finalizers=("hold",))
    store.delete(EXPERIMENTS, "e1", "ns")
    assert left(store) == ["e1", "t1", "t1", "p1"]
    store.delete(EXPERIMENTS, "e1", "ns", "Foreground")
    assert left(store) == ["e1"]


def test_an_object_of_two_owners_goes_with_the_last(store: Store) -> None:
    owners = [store.create(EXPERIMENTS, {"metadata": {"name": name}, "spec": {}}, "ns") for name in ("e1", "e2")]
    store.create(TRIALS, trial(ownerReferences=[*owned_by(owners[0]), *owned_by(owners[1])]), "ns")
    store.delete(EXPERIMENTS, "e1", "ns")
    assert left(store) == ["e2", "t1"]
    store.delete(EXPERIMENTS, "e2", "ns")
    assert left(store) == []


def test_what_is_created_for_an_owner_that_is_gone_does_not_stay(store: Store) -> None:
    owner = store.create(EXPERIMENTS, {"metadata": {"name": "e1"}, "spec": {}}, "ns")
    store.delete(EXPERIMENTS, "e1", "ns")
    store.create(TRIALS, trial(ownerReferences=owned_by(owner)), "ns")
    assert left(store) == []


def test_a_namespace_goes_with_all_its_content(store: Store) -> None:
    family(store)
    last = store.delete(NAMESPACES, "ns")
    assert last["status"]["phase"] == "Terminating"
    assert left(store) == []
    with pytest.raises(StatusError, match='namespaces "ns" not found'):
        store.get(NAMESPACES, "ns")


def test_a_namespace_waits_for_held_content_and_says_for_what(store: Store) -> None:
    family(store, experiment_finalizers=("hold",))
    store.delete(NAMESPACES, "ns")
    namespace = store.get(NAMESPACES, "ns")
    assert namespace["status"]["phase"] == "Terminating"
    messages = {condition["type"]: condition["message"] for condition in namespace["status"]["conditions"]}
    assert messages["NamespaceContentRemaining"].endswith("experiments.kubeflow.org has 1 resource instances")
    with pytest.raises(
        StatusError, match="unable to create new content in namespace ns because it is being terminated"
    ) as caught:
        store.create(TRIALS, trial("t2"), "ns")
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    release(store, EXPERIMENTS, "e1", "hold")
    assert [obj["metadata"]["name"] for obj in store.list(NAMESPACES)] == ["default", "kubeflow"]
