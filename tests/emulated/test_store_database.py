"""The folder's database: what was answered survives, damage and a full disk are refused."""

from __future__ import annotations

import resource
from contextlib import closing
from pathlib import Path

import pytest

from emulated.served import trial
from katib_emulation.errors import StatusError, StorageError
from katib_emulation.objects import CONFIG_MAPS, TRIALS
from katib_emulation.store import DATABASE, Store


def filled(folder: Path) -> Store:
    store = Store(folder)
    store.create(TRIALS, trial("t2"), "default")
    store.create(TRIALS, trial("t1"), "default")
    store.update(TRIALS, "t2", "default", lambda obj: obj.update(status={"a": "é\n"}))
    return store


def names(store: Store) -> list[str]:
    return [obj["metadata"]["name"] for obj in store.list(TRIALS)]


def test_objects_survive_in_their_order_and_versions_rise(tmp_path: Path) -> None:
    store = filled(tmp_path)
    store.create(TRIALS, trial("t3"), "default")
    store.delete(TRIALS, "t3", "default")
    before, version = store.oldest_first(TRIALS), store.view(TRIALS)[0]
    store.close()
    with closing(Store(tmp_path)) as again:
        assert again.oldest_first(TRIALS) == before
        assert int(again.create(TRIALS, trial("t4"), "default")["metadata"]["resourceVersion"]) > version
        assert names(again) == ["t1", "t2", "t4"]


def test_owners_are_known_after_a_restart(tmp_path: Path) -> None:
    with closing(Store(tmp_path)) as store:
        owner = store.create(TRIALS, trial("t1"), "default")["metadata"]
        store.create(TRIALS, trial("t2", ownerReferences=[{"uid": owner["uid"], "name": "t1"}]), "default")
    with closing(Store(tmp_path)) as again:
        again.delete(TRIALS, "t1", "default")
        assert names(again) == []


def test_a_watch_from_before_the_restart_is_told_to_list_again(tmp_path: Path) -> None:
    with closing(filled(tmp_path)) as store:
        version = store.view(TRIALS)[0]
    with closing(Store(tmp_path)) as again:
        with pytest.raises(StatusError, match="too old resource version"):
            again.subscribe(TRIALS, since=version)
        again.subscribe(TRIALS, since=again.view(TRIALS)[0]).close()


@pytest.mark.parametrize("damage", [b"no database at all, but long enough to be looked at" * 100, None])
def test_damage_is_told_in_one_line(tmp_path: Path, damage: bytes | None) -> None:
    with closing(filled(tmp_path)) as store:
        if damage is None:
            store.database.execute("UPDATE objects SET object = '{}' WHERE name = 't1'")
    if damage is not None:
        (tmp_path / DATABASE).write_bytes(damage)
    with pytest.raises(StorageError, match=r"cannot write|is damaged") as caught:
        Store(tmp_path)
    assert "\n" not in str(caught.value)


def test_two_servers_cannot_share_a_folder(tmp_path: Path) -> None:
    with closing(Store(tmp_path)), pytest.raises(StorageError, match="another server uses the folder"):
        Store(tmp_path)
    Store(tmp_path).close()


def test_a_full_disk_is_told_and_changes_nothing(tmp_path: Path) -> None:
    told: list[StorageError] = []
    with closing(Store(tmp_path, told.append)) as store:
        store.create(TRIALS, trial("t1"), "default")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / f"{DATABASE}-wal").stat().st_size + 100, hard))
        try:
            with pytest.raises(StatusError, match="cannot write") as caught:
                store.create(CONFIG_MAPS, {"metadata": {"name": "big"}, "data": {"a": "x" * 5000}}, "default")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert caught.value.code == 500
        assert len(told) == 1
        assert store.list(CONFIG_MAPS) == []
    with closing(Store(tmp_path)) as again:
        assert names(again) == ["t1"]
        assert again.list(CONFIG_MAPS) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        Store(tmp_path / "file" / "store")
