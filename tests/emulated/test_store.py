"""The store: creating, reading, changing, and streams of changes."""

from __future__ import annotations

import threading

import pytest

from emulated.served import Object, trial
from katib_emulation.objects import EVENTS, NAMESPACES, TRIALS, StatusError, Store


def test_create_adds_what_the_api_server_adds(store: Store) -> None:
    made = store.create(TRIALS, trial(labels={"a": "b"}), "ns")
    metadata = made["metadata"]
    assert metadata["namespace"] == "ns"
    assert metadata["generation"] == 1
    assert metadata["creationTimestamp"].endswith("Z")
    assert "." not in metadata["creationTimestamp"]
    assert len(metadata["uid"]) == 36
    assert "status" not in made
    assert store.get(TRIALS, "t1", "ns") == made


def test_what_is_given_and_what_is_returned_are_copies(store: Store) -> None:
    given = trial()
    returned = store.create(TRIALS, given, "ns")
    given["spec"]["n"] = 2
    returned["spec"]["n"] = 3
    store.get(TRIALS, "t1", "ns")["spec"]["n"] = 4
    store.list(TRIALS)[0]["spec"]["n"] = 5
    assert store.get(TRIALS, "t1", "ns")["spec"]["n"] == 1


@pytest.mark.parametrize("name", ["E1", "e_1", "-e", "e.", "a" * 254, ""])
def test_names_that_are_no_subdomain_are_refused(store: Store, name: str) -> None:
    with pytest.raises(StatusError) as caught:
        store.create(TRIALS, trial(name), "ns")
    body = caught.value.body()
    assert (body["code"], body["reason"]) == (422, "Invalid")
    assert "metadata.name: Invalid value" in body["message"]


def test_update_raises_the_generation_only_with_the_spec(store: Store) -> None:
    first = store.create(TRIALS, trial(), "ns")["metadata"]
    with_status = store.update(TRIALS, "t1", "ns", lambda obj: obj.update(status={"a": 1}))
    assert with_status is not None
    assert with_status["metadata"]["generation"] == 1
    assert with_status["metadata"]["resourceVersion"] > first["resourceVersion"]
    with_spec = store.update(TRIALS, "t1", "ns", lambda obj: obj["spec"].update(n=2))
    assert with_spec is not None
    assert with_spec["metadata"]["generation"] == 2
    assert with_spec["status"] == {"a": 1}


def test_an_update_that_changes_nothing_is_no_change(store: Store) -> None:
    store.create(TRIALS, trial(), "ns")
    changes = store.subscribe(TRIALS)
    before = store.view(TRIALS)[0]
    assert store.update(TRIALS, "t1", "ns", lambda obj: None) == store.get(TRIALS, "t1", "ns")
    assert store.view(TRIALS)[0] == before
    assert changes.next(0) is None


def test_an_update_that_fails_leaves_the_object_as_it_was(store: Store) -> None:
    before = store.create(TRIALS, trial(), "ns")

    def fail(obj: Object) -> None:
        obj["spec"]["n"] = 7
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.update(TRIALS, "t1", "ns", fail)
    assert store.get(TRIALS, "t1", "ns") == before


def test_an_update_cannot_change_the_identity(store: Store) -> None:
    before = store.create(TRIALS, trial(), "ns")["metadata"]

    def forge(obj: Object) -> None:
        obj["metadata"].update(uid="x", name="y", creationTimestamp="z", deletionTimestamp="now")

    after = store.update(TRIALS, "t1", "ns", forge)
    assert after is not None
    assert after["metadata"] == before


def test_updates_from_many_threads_are_all_counted(store: Store) -> None:
    store.create(TRIALS, trial(), "ns")

    def count() -> None:
        for _ in range(50):
            store.update(TRIALS, "t1", "ns", lambda obj: obj["spec"].update(n=obj["spec"]["n"] + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get(TRIALS, "t1", "ns")["spec"]["n"] == 201


def test_closing_a_subscription_wakes_its_reader(store: Store) -> None:
    changes = store.subscribe(TRIALS)
    got: list[object] = []
    reader = threading.Thread(target=lambda: got.append(changes.next(30)))
    reader.start()
    changes.close()
    reader.join(5)
    assert got == [None]


def test_an_event_in_a_namespace_that_is_gone_is_lost_without_an_error(store: Store) -> None:
    made = store.create(TRIALS, trial(), "ns")
    store.delete(NAMESPACES, "ns")
    store.record_event(made, "Normal", "X", "y")
    assert store.list(EVENTS) == []
