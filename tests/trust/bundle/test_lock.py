"""The lock of a bundle: the versions that its runs recorded."""

from __future__ import annotations

from dataclasses import replace

from builders.results_folders import Results, execution
from builders.stored import write_run
from tuneoff.measure.stored import read_run, read_runs
from tuneoff.trust.bundle.pack import lock_of, lock_text


def test_the_lock_has_all_recorded_packages_and_pins_those_of_one_version(results: Results) -> None:
    recorded = {"serial": {"tuneoff": "0.1.0", "torch": "2.15.0", "filelock": "3.1"}, "optuna": {"torch": "2.14.0"}}
    for adapter, distributions in recorded.items():
        folder = execution(results.path, adapter)
        record = read_run(folder)
        environment = {**record.environment, "python": "3.11.1", "distributions": distributions, "versions": {"x": "0"}}
        write_run(folder, replace(record, environment=environment))
    lock = lock_of(list(read_runs(results.path)))
    expected = {"filelock": ["3.1"], "torch": ["2.14.0", "2.15.0"], "tuneoff": ["0.1.0"]}
    assert lock == {"python": ["3.11.1"], "recorded": expected}
    assert lock_text(lock).splitlines()[1:] == [
        "# as the runs recorded it:",
        "filelock==3.1",
        "# torch: the runs had different versions: 2.14.0, 2.15.0",
        "# tuneoff==0.1.0 (from its repository)",
    ]
