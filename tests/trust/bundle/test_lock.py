"""The lock of a bundle: the versions that its runs recorded, and those of all packages where they are still installed."""

from __future__ import annotations

from dataclasses import replace

from builders.results_folders import Results, execution
from builders.stored import write_run
from tuneoff.measure.stored import read_run, read_runs
from tuneoff.trust.bundle.pack import lock_of, lock_text


def versions(results: Results, **found: str) -> Results:
    for path in results.path.glob("runs/*/*/run.json"):
        record = read_run(path.parent)
        write_run(path.parent, replace(record, environment={**record.environment, "python": "3.11.1", "versions": found}))
    return results


def test_the_lock_has_all_packages_where_they_are_still_installed(results: Results) -> None:
    found = list(read_runs(versions(results, tuneoff="0.1.0", Torch="2.15.0").path))
    installed = {"tuneoff": "0.1.0", "torch": "2.15.0", "filelock": "3.1"}
    lock = lock_of(found, installed)
    assert (lock["recorded"], lock["installed"], lock["reason"]) == (
        {"Torch": ["2.15.0"], "tuneoff": ["0.1.0"]},
        dict(sorted(installed.items())),
        None,
    )
    lines = lock_text(lock).splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["Torch==2.15.0", "filelock==3.1"]
    assert "# tuneoff==0.1.0 (from its repository)" in lines


def test_the_lock_has_the_recorded_ones_alone_where_others_are_installed_now(results: Results) -> None:
    found = list(read_runs(versions(results, torch="2.15.0").path))
    lock = lock_of(found, {"torch": "2.16.0", "filelock": "3.1"})
    assert lock["installed"] is None
    assert lock["reason"] == "the runs had torch 2.15.0, but where the bundle was made 2.16.0 is installed"
    assert "filelock" not in lock_text(lock)


def test_a_package_of_which_runs_had_different_versions_is_not_pinned(results: Results) -> None:
    versions(results, torch="2.15.0")
    folder = execution(results.path, "optuna")
    record = read_run(folder)
    write_run(folder, replace(record, environment={**record.environment, "versions": {"torch": "2.14.0"}}))
    lock = lock_of(list(read_runs(results.path)), {"torch": "2.15.0"})
    assert lock["recorded"] == {"torch": ["2.14.0", "2.15.0"]}
    assert "# torch: the runs had different versions: 2.14.0, 2.15.0" in lock_text(lock)
