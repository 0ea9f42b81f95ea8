"""A trial's pod without a cluster: its program as a process, with a config map and a metrics file in folders of the test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from builders.katib_specs import plan_of, spec_of
from tuneoff.base.code_digest import code_digest
from tuneoff.base.identity import configuration_digest
from tuneoff.base.space import Categorical, Float, SearchSpace
from tuneoff.experiment.spec import Objective, RunSpec, Strategy, WorkloadSpec
from tuneoff.record.events import schema
from tuneoff.record.events.reader import decode_lines, read_header
from tuneoff.record.events.stream import record_in
from tuneoff_adapters.katib.manifest import config_map_manifest
from tuneoff_adapters.katib.pod import create_mark
from tuneoff_adapters.kubernetes import layout
from tuneoff_adapters.kubernetes.checkpoint_lines import CheckpointLines

KATIB_TRIAL = "r0123456789abcdef-012345-x7k2m9qp"
LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) objective=(\S+)")
SURROGATE = WorkloadSpec(name="surrogate", target="tuneoff_workloads.surrogate:Surrogate")
RATE = SearchSpace({"learning_rate": Float(low=1e-4, high=1.0, log=True)})


@dataclass(frozen=True)
class Ended:
    """A pod's process after its end."""

    code: int
    lines: list[bytes]  # of standard output
    errors: str
    folder: Path

    @property
    def records(self) -> list[bytes]:
        execution = json.loads((self.folder / "config" / layout.CONTEXT_KEY).read_text())["execution_id"]
        found = [record_in(line, execution) for line in self.lines if line]
        assert all(text == b"" for text, _ in found)
        return [record for _, record in found if record is not None]

    @property
    def events(self) -> list[schema.Event]:
        texts = [line for line in self.records if line.startswith(b'{"type":')]
        read_header(texts[0], "log")
        return decode_lines(b"".join(text + b"\n" for text in texts), "log", 1)

    @property
    def reports(self) -> list[tuple[datetime, float]]:
        found = [LINE.fullmatch(line) for line in (self.folder / "log" / "metrics.log").read_text().splitlines()]
        assert None not in found
        return [(datetime.fromisoformat(match[1]), float(match[2])) for match in found if match is not None]

    def event(self, kind: type[Any]) -> Any:
        (found,) = [event for event in self.events if isinstance(event, kind)]
        return found

    def checkpoint(self) -> bytes:
        collector = CheckpointLines()
        for line in self.records:
            collector.add(line)
        return collector.content()


def environment_of(spec: RunSpec, folder: Path, **settings: Any) -> dict[str, str]:
    """Write the config map's files below `folder`; return the pod's environment with its paths there."""
    data = config_map_manifest(plan_of(spec, folder / "runs"))["data"]
    config = folder / "config"
    config.mkdir()
    for name, text in data.items():
        (config / name).write_text(text)
    if settings:
        path = config / layout.TRANSLATION_KEY
        path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    paths = {
        layout.CONFIG_DIR_VARIABLE: str(config),
        layout.RUN_DIR_VARIABLE: str(folder / "run"),
        layout.METRICS_FILE_VARIABLE: str(folder / "log" / "metrics.log"),
    }
    return {**os.environ, **paths, "PYTHONPATH": str(Path(__file__).parents[2])}


def run_pod(spec: RunSpec, folder: Path, values: Mapping[str, str], **settings: Any) -> Ended:
    words = [f"{name}={value}" for name, value in values.items()]
    done = subprocess.run(
        [sys.executable, "-m", layout.POD_MODULE, KATIB_TRIAL, *words],
        env=environment_of(spec, folder, **settings),
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Ended(done.returncode, done.stdout.splitlines(), done.stderr.decode(), folder)


def surrogate_spec(**changes: Any) -> RunSpec:
    return spec_of(**{"workload": SURROGATE, "search_space": RATE, **changes})


def toy_spec(fault: str, **changes: Any) -> RunSpec:
    space = SearchSpace({"x": Float(low=0.0, high=1.0), "fault": Categorical(choices=("none", fault))})
    workload = WorkloadSpec(name="toy", target="adapters.toy_workload:Toy", options=changes.pop("workload_options", {}))
    return spec_of(workload=workload, search_space=space, objective=Objective(metric="loss", mode="min"), **changes)


@pytest.mark.parametrize(("code", "flags"), [(code_digest(), []), ("0" * 64, ["other_code"])])
def test_a_tuneoff_that_is_not_the_run_s_is_flagged(tmp_path: Path, code: str, flags: list[str]) -> None:
    ended = run_pod(surrogate_spec(), tmp_path, {"learning_rate": "0.01"}, code=code)
    assert (ended.code, [event.name for event in ended.events if isinstance(event, schema.Flag)]) == (0, flags)


@pytest.mark.parametrize(
    ("fault", "words"),
    [("nan", "must be a finite number"), ("system_exit", "SystemExit: 9")],
)
def test_a_fault_of_the_workload_is_no_success_whatever_its_code(tmp_path: Path, fault: str, words: str) -> None:
    ended = run_pod(toy_spec(fault), tmp_path, {"x": "0.5", "fault": "1"})
    assert ended.code == 1
    end = ended.event(schema.TrialEnded)
    assert (end.state, end.charged) == ("failed", "workload")
    assert words in end.cause
    assert len(ended.reports) == 1  # the epoch before


def test_what_a_workload_prints_goes_to_standard_error(tmp_path: Path) -> None:
    spec = spec_of(workload=WorkloadSpec(name="chatty", target="adapters.katib.chatty_workload:Chatty"), search_space=RATE)
    ended = run_pod(spec, tmp_path, {"learning_rate": "0.01"})
    assert ended.code == 0, ended.errors
    assert [type(event).__name__ for event in ended.events][-1] == "TrialEnded"
    assert all(line.startswith(b'{"type":') for line in ended.records)
    for text in ("while it is imported", "half a line", "from a child"):
        assert text in ended.errors


def test_a_value_that_katib_did_not_fill_in_ends_with_one_line(tmp_path: Path) -> None:
    ended = run_pod(surrogate_spec(), tmp_path, {"learning_rate": "${x}"})
    assert ended.code == 1
    assert [json.loads(line)["type"] for line in ended.records] == ["process"]
    (line,) = ended.errors.splitlines()
    assert "must be a number" in line
    assert KATIB_TRIAL in line


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for two users")
@pytest.mark.parametrize("is_made_first", [True, False])
def test_a_shell_of_another_user_than_the_collector_s_can_overwrite_the_mark(tmp_path: Path, is_made_first: bool) -> None:
    tmp_path.chmod(0o777)
    mark = tmp_path / "7.pid"
    if is_made_first:
        create_mark(str(tmp_path / "metrics.log"), 7)
        inode = mark.stat().st_ino
    mark.write_text("early-stopped")  # as the collector does, which is root
    done = subprocess.run(["sh", "-c", "echo completed > 7.pid"], cwd=tmp_path, user=65532, capture_output=True, check=False)
    assert (done.returncode == 0, mark.read_text().strip() == "completed") == (is_made_first, is_made_first)
    assert not is_made_first or mark.stat().st_ino == inode


def test_a_scripted_stop_ends_with_5_so_that_katib_counts_it_as_failed(tmp_path: Path) -> None:
    spec = surrogate_spec(pruner=Strategy(name="scripted"))
    stops = {configuration_digest({"learning_rate": 0.01}): 2}
    spec = replace(spec, experiment=replace(spec.experiment, stops=stops))
    ended = run_pod(spec, tmp_path, {"learning_rate": "0.01"})
    assert ended.code == 5
    assert ended.event(schema.TrialEnded).state == "pruned"
    assert len(ended.reports) == 2
    assert not any(line.startswith(b'{"checkpoint"') for line in ended.records)


def test_a_trial_reports_each_epoch_once_and_passes_a_checkpoint_out_if_it_fits(tmp_path: Path) -> None:
    ended = run_pod(surrogate_spec(), tmp_path, {"learning_rate": "0.01"}, checkpoint_bytes=10)
    assert ended.code == 0
    assert ended.records[-1].startswith(b'{"checkpoint":{"bytes":')
    values = [event.metrics["validation_loss"] for event in ended.events if isinstance(event, schema.Epoch)]
    assert [value for _, value in ended.reports] == values  # bit for bit
    moments = [moment for moment, _ in ended.reports]
    assert moments == sorted(set(moments))
    started = ended.event(schema.TrialStarted)
    assert (started.trial, started.framework_id) == ("x7k2m9qp", KATIB_TRIAL)
    assert started.configuration == {"learning_rate": 0.01}
    assert started.imported_ns is not None
    mark = ended.folder / "log" / f"{os.getpid()}.pid"  # this process is the pod's parent
    assert mark.read_text() == "running\n"  # from the beginning, and reads as a failure
