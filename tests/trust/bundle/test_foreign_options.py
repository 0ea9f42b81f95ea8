"""Of a bundle's options those are obeyed that the installed adapter and workload allow, as numbers and words; all are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from builders.bundles import spec_of
from tuneoff.errors import ExperimentError
from tuneoff.experiment.spec import RunSpec, WorkloadSpec
from tuneoff.trust.bundle.foreign import _odd
from tuneoff.trust.bundle.opened import served_here
from tuneoff_faults.faulty import ALL_KINDS, Faulty

GENTLE = {"kinds": ["raise", "nan"], "rate": 0.5}
HARMFUL: list[dict[str, Any]] = [
    {},  # all kinds of faults
    {**GENTLE, "mark": "/tmp/a-file-of-mine"},
    {**GENTLE, "mark": "relative"},
    {**GENTLE, "fill_folder": "/tmp"},
    *({"kinds": [kind]} for kind in ("hang", "sigkill", "out_of_memory", "disk_full", "outside")),
    {"kinds": ["raise", "out_of_memory"], "allocate_mb": 1e9},
]
NO_WORDS = [
    "/etc/passwd",
    "~/x",
    "..",
    "x.py",
    "a\\b",
    "https://a.example/x",
    "host:1",
    "evil:X",
    "os.system",
    "$HOME",
    "{{x}}",
    "a b",
    "-x",
    "a\n",
    "",
    "x" * 101,
    ["x", {"k": "/y"}],
    {"/k": 1},
    [[[[[[[[[[1]]]]]]]]]],
]
WORDS: list[Any] = [
    "plain",
    "Nelder-Mead",
    "fashion_mnist",
    "é",
    3,
    -1.5,
    True,
    None,
    [64, 32],
    {"kind": ["redis"], "managed": True},
]


def foreign(options: Mapping[str, Any]) -> RunSpec:
    return spec_of(workload=WorkloadSpec(name="faulty", target="os:system", options=options))


def test_only_numbers_and_words_are_obeyed() -> None:
    assert [value for value in WORDS if list(_odd(value))] == []
    assert [value for value in NO_WORDS if not list(_odd(value))] == []


@pytest.mark.parametrize("options", HARMFUL, ids=str)
def test_options_that_make_files_take_memory_or_end_processes_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError, match=r"'faulty' does not obey these options of a bundle: option .*; unpack the bundle"):
        served_here(foreign(options))


def test_options_that_only_change_a_trial_s_result_are_obeyed() -> None:
    assert served_here(foreign(GENTLE)).experiment.workload.options == GENTLE
    obeyed = [kind for kind in ALL_KINDS if Faulty.refuse_foreign({"kinds": [kind]}) is None]
    assert set(ALL_KINDS) - set(obeyed) == {"hang", "sigkill", "out_of_memory", "disk_full", "outside"}


@pytest.mark.parametrize(
    ("adapter", "platform", "options"),
    [
        ("ray-tune", "cluster", {"hosts": ["a"], "host_command": "touch /tmp/{host}"}),
        ("optuna", "slurm", {"setup": ["touch x"]}),
        ("optuna", "kubernetes", {"image": "x", "storage": "postgresql+psycopg://u:$HOME@a.example/x"}),
        ("katib", "kubernetes", {"image": "x", "kubeconfig": "kc"}),
        ("serial", "/tmp/x", {}),
    ],
)
def test_no_run_of_a_bundle_is_put_elsewhere(adapter: str, platform: str, options: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError, match=r"a bundle's run is run on this machine alone \(platform 'local'.*; unpack"):
        served_here(replace(foreign(GENTLE), adapter=adapter, platform=platform, options=options))
