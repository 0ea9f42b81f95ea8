"""The journal: what was answered survives, a torn line is dropped, damage and a full disk are refused."""

from __future__ import annotations

import resource
from contextlib import closing
from pathlib import Path

import pytest

from emulated.served import trial
from katib_emulation.kinds import CONFIG_MAPS, TRIALS
from katib_emulation.statuses import ApiError
from katib_emulation.storage import table
from katib_emulation.storage.journal import JournalError
from katib_emulation.storage.store import Store


def filled(folder: Path) -> Store:
    store = Store(folder)
    store.create(TRIALS, trial("t1"), "default")
    store.create(TRIALS, trial("t2"), "default")
    store.update(TRIALS, "t1", "default", lambda obj: obj.update(status={"a": "é\n"}))
    return store


def names(store: Store) -> list[str]:
    return [obj["metadata"]["name"] for obj in store.list(TRIALS)]


def test_objects_and_versions_survive(tmp_path: Path) -> None:
    store = filled(tmp_path)
    store.delete(TRIALS, "t2", "default")
    before, version = store.list(TRIALS), store.view(TRIALS)[0]
    store.close()
    for _ in range(2):  # what was compacted at the second start is read at the third
        with closing(Store(tmp_path)) as again:
            assert (again.list(TRIALS), again.view(TRIALS)[0]) == (before, version)
    with closing(Store(tmp_path)) as last:
        assert int(last.create(TRIALS, trial("t3"), "default")["metadata"]["resourceVersion"]) == version + 1


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
        with pytest.raises(ApiError, match="too old resource version"):
            again.subscribe(TRIALS, since=version - 1)
        again.subscribe(TRIALS, since=version).close()


def test_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    with closing(filled(tmp_path)) as store:
        store.create(TRIALS, trial("t3"), "default")
    journal = tmp_path / "journal"
    journal.write_bytes(journal.read_bytes()[:-20])
    with closing(Store(tmp_path)) as again:
        assert names(again) == ["t1", "t2"]
        again.create(TRIALS, trial("t4"), "default")
    with closing(Store(tmp_path)) as third:
        assert names(third) == ["t1", "t2", "t4"]


def test_a_changed_byte_is_damage(tmp_path: Path) -> None:
    filled(tmp_path).close()
    journal = tmp_path / "journal"
    journal.write_bytes(journal.read_bytes().replace(b'"t1"', b'"tX"', 1))
    with pytest.raises(JournalError, match=r"is damaged in line \d+;") as caught:
        Store(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_missing_line_is_damage_where_it_is_missed(tmp_path: Path) -> None:
    with closing(filled(tmp_path)) as store:
        store.delete(TRIALS, "t2", "default")
    journal = tmp_path / "journal"
    lines = [
        line for line in journal.read_bytes().splitlines(keepends=True) if b'"put":"trials' not in line or b'"t2"' not in line
    ]
    journal.write_bytes(b"".join(lines))
    with pytest.raises(JournalError, match="does not fit together at version"):
        Store(tmp_path)


def test_two_servers_cannot_share_a_folder(tmp_path: Path) -> None:
    with closing(Store(tmp_path)), pytest.raises(JournalError, match="another server uses the folder"):
        Store(tmp_path)
    Store(tmp_path).close()


def test_the_journal_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "COMPACTION_BYTES", 20_000)
    with closing(filled(tmp_path)) as store:
        for number in range(300):
            store.update(TRIALS, "t1", "default", lambda obj, n=number: obj.update(status={"number": n}))  # type: ignore[misc]
        assert (tmp_path / "journal").stat().st_size < 40_000
        version = store.view(TRIALS)[0]
    with closing(Store(tmp_path)) as again:
        assert again.get(TRIALS, "t1", "default")["status"] == {"number": 299}
        assert again.view(TRIALS)[0] == version


def test_a_full_disk_is_told_and_changes_nothing(tmp_path: Path) -> None:
    told: list[JournalError] = []
    with closing(Store(tmp_path, told.append)) as store:
        store.create(TRIALS, trial("t1"), "default")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "journal").stat().st_size + 100, hard))
        try:
            with pytest.raises(ApiError, match="cannot write") as caught:
                store.create(CONFIG_MAPS, {"metadata": {"name": "big"}, "data": {"a": "x" * 5000}}, "default")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert caught.value.code == 500
        assert len(told) == 1
        with pytest.raises(ApiError, match="an earlier write failed"):  # nothing may follow a torn line
            store.create(TRIALS, trial("t2"), "default")
        assert names(store) == ["t1"]
    with closing(Store(tmp_path)) as again:
        assert names(again) == ["t1"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="cannot write"):
        Store(tmp_path / "file" / "store")
