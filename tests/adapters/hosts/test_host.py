"""The agent of a host behind a command: checks, clocks, kills, and that it cleans when it hears nothing more. One machine."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from builders.specs import make_context, toy_spec
from tuneoff.base import clock
from tuneoff.base.layout import CLOCKS
from tuneoff.base.packages import installed_version, module_versions
from tuneoff.base.processes import MARK, is_alive, process_started_ns, stat_fields, with_mark
from tuneoff.errors import InfrastructureError, StepError
from tuneoff.run.trial.faults import ask_kill, has_more_memory_there, note_kill
from tuneoff_platforms.remote.agent import Agent
from tuneoff_platforms.remote.contact import Contact
from tuneoff_platforms.remote.host import Host, Timed, answers
from waiting import until

pytestmark = pytest.mark.slow  # each waits for an agent's start


@pytest.fixture
def contact(tmp_path: Path) -> Iterator[Contact]:
    """Contact with one host, `there`, reached by `sh -c`; its folder is of this test."""
    made = Contact(make_context(toy_spec("ray-tune"), tmp_path), str(tmp_path / "temporary"), 60.0)
    host = Host("there", "sh -c", sys.executable, tmp_path / "log")
    try:
        assert made.add([host]) == []
        yield made
    finally:
        made.end()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Contact]:
    """Contact with no host yet, which makes no folder on those that a test adds."""
    made = Contact(make_context(toy_spec("ray-tune"), tmp_path), None, 60.0)
    yield made
    made.end(0.0)


def started(contact: Contact) -> list[int]:
    """Let the agent start a daemon, and return its pid."""
    command = ["sh", "-c", "sleep 600 >/dev/null 2>&1 &"]
    asked = {"there": contact.nodes[0].send("run", command=command, environment={}, seconds=10)}
    assert answers(asked, 20)["there"] == {"code": 0, "output": ""}
    return with_mark(MARK, contact.context.execution_id)


def test_a_greeting_of_the_hosts_shell_hides_no_answer(alone: Contact, tmp_path: Path) -> None:
    host = Host("there", """sh -c 'printf "Welcome\\r\\000 to {"; exec sh -c "$0"'""", sys.executable, tmp_path / "log")
    assert alone.add([host], 30.0) == []


def test_the_same_installation_and_a_shared_folder_pass(contact: Contact) -> None:
    contact.check("ray")
    assert list(contact.context.work_dir.iterdir()) == []


class Node:
    """An agent that answers at once with what it was given, else as the real one on this host does; counts its beats."""

    def __init__(self, **told: object) -> None:
        self.name, self.beats, self._told = "there", list[int](), {"probe": Agent().probe("ray", ()), "begin": None, **told}

    def send(self, do: str, **arguments: object) -> Future[Timed]:
        future: Future[Timed] = Future()
        if do == "beat":
            self.beats.append(clock.monotonic_ns())
        if do in self._told:
            told = self._told[do]
            future.set_result(Timed(told() if callable(told) else told, clock.monotonic_ns()))
        return future

    def close(self, at_once: bool = False) -> None:
        pass


SHARED = {"content": "there", "is_locked": True}


@pytest.mark.parametrize(
    ("share", "changed", "words"),
    [
        ({"problem": "No such file or directory: /x"}, {}, "No such file or directory: /x; use a shared file system"),
        ({"content": "other", "is_locked": True}, {}, "it sees other content"),
        ({"content": "there", "is_locked": False}, {}, "a lock (flock) that is held here does not hold there"),
        (SHARED, {}, "what is renamed there keeps its name here"),
        (SHARED, {"place": [clock.boot_id(), "pid:[1]"]}, "host there is another container on this kernel"),
        (SHARED, {"place": ["another-boot", "pid:[1]"]}, "what is renamed there keeps its name here"),  # it goes on
        (SHARED, {"the workload's packages": ["torch 1.0"]}, "packages must be the same on all hosts, but host there has"),
    ],
)
def test_a_host_whose_folder_pids_or_packages_are_others_is_refused(
    alone: Contact, share: dict[str, object], changed: dict[str, object], words: str
) -> None:
    alone.add([Node(probe=Agent().probe("ray", ()) | changed, share=share)])
    with pytest.raises(StepError) as refused:
        alone.check("ray")
    assert words in str(refused.value)


def test_versions_are_those_of_the_distributions_of_the_modules() -> None:
    (one,) = module_versions(("numpy.linalg", "tuneoff.errors", "no_such_module"))
    assert one == f"numpy {installed_version('numpy')}"


def ahead(boot_id: str) -> dict[str, object]:
    """A beat of a host whose wall clock is 3 s ahead."""
    return {"boot_id": boot_id, "monotonic_ns": clock.monotonic_ns(), "wall_ns": time.time_ns() + 3 * clock.NANOSECONDS}


def test_a_silent_host_keeps_no_signs_of_life_from_the_others(alone: Contact) -> None:
    silent, other = Node(), Node(beat=lambda: ahead(clock.boot_id()))
    assert alone.add([silent, other]) == []
    until(lambda: other.beats)  # nobody asked for it
    assert other.beats[0] - silent.beats[0] < clock.NANOSECONDS
    with pytest.raises(InfrastructureError, match="host there must answer within 2 s, but did not"):
        alone.keep()


def test_the_clock_of_a_late_host_is_stated_with_what_its_own_wall_clock_is_off(alone: Contact) -> None:
    early, late = (Node(beat=functools.partial(ahead, name), note_clock=None) for name in ("early", "late"))
    alone.add([early])
    alone.keep()
    alone.add([late], are_late=True)
    until((alone.context.run_dir / CLOCKS / "late").exists)
    widths = [int((alone.context.run_dir / CLOCKS / name).read_text().split()[1]) for name in ("early", "late")]
    assert widths[0] < clock.NANOSECONDS
    assert 5.9e9 < widths[1] < 6.9e9


def test_another_installation_is_refused(contact: Contact, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneoff_platforms.remote.agent.code_digest", lambda: "0" * 64)  # here, and not there
    with pytest.raises(
        StepError, match=r"tuneoff's code must be the same on all hosts, but host there has \w{12}, and this one 0{12};"
    ):
        contact.check("ray")


def test_the_end_of_a_contact_leaves_nothing_on_the_host(contact: Contact) -> None:
    pids = started(contact)
    assert len(pids) == 1
    assert Path(contact.folder or "").is_dir()
    assert contact.end() == []
    assert not any(map(is_alive, pids))
    assert not Path(contact.folder or "").exists()


def test_a_lost_connection_leaves_nothing_on_the_host(contact: Contact) -> None:
    pids = started(contact)
    contact.nodes[0].close()
    until(lambda: not any(map(is_alive, pids)) and not Path(contact.folder or "").exists())


def test_a_host_that_hears_nothing_for_long_ends_what_runs_there(tmp_path: Path) -> None:
    contact = Contact(make_context(toy_spec("ray-tune"), tmp_path), str(tmp_path / "temporary"), 1.0)
    contact.add([Host("there", "sh -c", sys.executable, tmp_path / "log")])
    contact._stop.set()  # no signs of life
    pids = started(contact)
    until(lambda: not any(map(is_alive, pids)))  # the connection is still there
    with pytest.raises(InfrastructureError, match="host there cannot be reached"):
        answers({"there": contact.nodes[0].send("beat")}, 10)
    contact.end()


def test_a_command_that_reaches_no_host_gives_its_last_words(alone: Contact, tmp_path: Path) -> None:
    host = Host("h9", "sh -c 'echo connect to {host}: timed out >&2; exit 255'", sys.executable, tmp_path / "log")
    assert alone.add([host]) == ["host h9 cannot be reached: connect to h9: timed out"]
    silent = Host("h8", "sh -c 'exec sleep 600'", sys.executable, tmp_path / "log")
    assert alone.add([silent], 0.2) == ["host h8 must answer within 0.2 s, but did not"]
    assert alone.nodes == []


def test_a_command_that_cannot_be_run_is_said_in_one_line(alone: Contact, tmp_path: Path) -> None:
    (problem,) = alone.add([Host("h9", "no-such-program {host}", sys.executable, tmp_path / "log")])
    assert re.fullmatch(r"host h9 cannot be reached: .*no-such-program: not found", problem)
    with pytest.raises(InfrastructureError, match=r"host h9 cannot be reached: .*No such file"):
        Host("h9", "true {host}", sys.executable, tmp_path / "no folder/log")


def at_a_trial(folder: Path, trial: str) -> subprocess.Popen[bytes]:
    """Start a process whose events say that it ended t0, where it is not that, and began a trial."""
    code = """
import sys, time
from tuneoff.record.events.writer import EventWriter
events = EventWriter(sys.argv[1], "e", "worker")
start = {"slot": 0, "configuration": {}, "digest": "d", "seed": 0, "threads": 1}
events.write("trial_started", trial="t0", **start)
if sys.argv[2] != "t0":
    events.write("trial_ended", trial="t0", state="completed", epochs=1)
    events.write("trial_started", trial=sys.argv[2], **start)
print(flush=True)
time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(folder), trial], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_process_is_killed_where_the_supervisor_asked(contact: Contact) -> None:
    folder, here = contact.context.run_dir, clock.boot_id()
    sleeps = [at_a_trial(folder, "t0") for _ in range(2)] + [at_a_trial(folder, "t1")]
    wanted, later, other = sleeps

    def ask(process: subprocess.Popen[bytes], boot_id: str = here, started_ns: int | None = None) -> None:
        ask_kill(folder, boot_id, process.pid, started_ns or process_started_ns(process.pid), ("t0", 1))

    try:
        note_kill(folder, "t0", 1, "timed out")
        ask(other, "another-boot")
        ask(other, started_ns=1)  # its pid was used again
        ask(other)  # it is at the next trial meanwhile
        ask(wanted)
        assert wanted.wait(10) == -9
        ask(later)
        assert later.wait(10) == -9
        assert other.poll() is None  # the look before that one was at all of the first four
        until(lambda: (stat_fields(other.pid) or "T")[0] != "T")
    finally:
        for one in sleeps:
            one.kill()
            one.wait()


def test_it_is_told_which_watched_processes_have_too_much_memory(contact: Contact) -> None:
    folder, boot = contact.context.run_dir, clock.boot_id()
    sleep = subprocess.Popen(["sleep", "600"])

    def has_more(limit_bytes: int, started_ns: int, boot_id: str = boot) -> bool:
        return has_more_memory_there(folder, boot_id, sleep.pid, started_ns, limit_bytes, ("t0", 1))

    try:
        started = process_started_ns(sleep.pid)
        assert not has_more(1, started)  # nobody has looked yet
        until(lambda: has_more(1, started))
        assert not has_more(1, 1)  # its pid was used again
        assert not has_more(1, started, "another-boot")
        until(lambda: not has_more(10**12, started))
        assert not has_more_memory_there(folder, boot, sleep.pid, started, 10**12, ("t1", 1))
    finally:
        sleep.kill()
        sleep.wait()


def test_a_run_folder_that_stalls_keeps_no_host_from_its_end(tmp_path: Path) -> None:
    python = tmp_path / "python"
    stalls = "a.asked_kills = lambda *_: time.sleep(600)"
    code = f"import time; from tuneoff_platforms.remote import agent as a; {stalls}; a.serve(a.Agent(), a.Streams())"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{code}'\n")
    python.chmod(0o755)
    contact = Contact(make_context(toy_spec("ray-tune"), tmp_path), str(tmp_path / "temporary"), 60.0)
    assert contact.add([Host("there", "sh -c", str(python), tmp_path / "log")]) == []
    contact.keep()
    pids = started(contact)
    contact.nodes[0].close()
    until(lambda: not any(map(is_alive, pids)))
    contact.end(0.0)


def test_a_silent_host_is_flagged_once_and_then_left_alone(tmp_path: Path) -> None:
    contact = Contact(make_context(toy_spec("ray-tune"), tmp_path), None, 1.0)
    contact.add([Host("there", "sh -c", sys.executable, tmp_path / "log")])
    contact.nodes[0].close()
    until(lambda: "host_lost" in next(tmp_path.rglob("coordinator-*.jsonl")).read_text())
    contact.end()
    (text,) = [line for line in next(tmp_path.rglob("coordinator-*.jsonl")).read_text().splitlines() if "host_lost" in line]
    assert "host there has not answered for" in text


def test_this_host_s_own_clock_needs_no_alignment(contact: Contact) -> None:
    contact.keep()
    assert not (contact.context.run_dir / CLOCKS).exists()
