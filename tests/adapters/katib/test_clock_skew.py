"""When a trial was submitted: by the first sight of it, by its start on another host, and by the server's whole seconds."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from tuneoff.base import clock
from tuneoff.record.events.reader import read_header
from tuneoff.record.events.writer import EventWriter
from tuneoff_adapters.kubernetes.clock_skew import Creations, PodClock
from tuneoff_adapters.kubernetes.resources import Object

S = clock.NANOSECONDS


class World:
    """Times in seconds since the run's start, which is a whole second of the wall clock."""

    def __init__(self, folder: Path) -> None:
        writer = EventWriter(folder, "e", "coordinator")
        writer.close()
        assert writer.path is not None
        with writer.path.open("rb") as file:
            header = read_header(file.readline(), "test")
        self.clock = PodClock(writer.path)
        self._second = header.anchor_wall_ns // S + 1
        self.zero = self.clock.at_wall(self._second * S)
        self.creations = Creations(self.clock, self.zero)

    def made(self, second: float, skew: float = 0) -> Object:
        moment = datetime.datetime.fromtimestamp(self._second + int(second + skew // 1), datetime.UTC)
        return {"metadata": {"creationTimestamp": moment.isoformat().replace("+00:00", "Z")}}

    def note(self, made: float, seen: float, skew: float = 0) -> None:
        self.creations.note(self.made(made, skew), self.zero + int(seen * S))

    def submitted(self, made: float, seen: float, started: float | None = None, skew: float = 0) -> float:
        start_ns = None if started is None else self.zero + int(started * S)
        found = self.creations.submitted(self.made(made, skew), self.zero + int(seen * S), start_ns)
        return (found - self.zero) / S


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_trial_that_is_seen_in_time_was_submitted_then(world: World) -> None:
    world.note(0, 0.1)
    assert world.submitted(3, 3.5, 5.0) == 3.5


def test_a_start_before_the_sight_goes_before_it(world: World) -> None:
    world.note(0, 0.1)
    assert world.submitted(3, 3.5, 3.25) == 3.25


@pytest.mark.parametrize("skew", [0, 3600, -3600])
def test_a_trial_that_is_seen_late_was_submitted_when_it_was_made_whatever_the_server_s_clock(world: World, skew: float) -> None:
    world.note(0, 0.25, skew)
    assert world.submitted(3, 21.0, 20.0, skew) == 4.25


def test_a_node_whose_clock_is_wrong_moves_no_submission_before_the_trial_s_making(world: World) -> None:
    world.note(0, 0.25)
    assert world.submitted(3, 3.5, -500.0) == 2.0


def test_a_server_that_is_always_slow_makes_no_start_precede_its_submission(world: World) -> None:
    world.note(5, 15.0)  # the experiment
    world.note(6, 20.0)
    assert world.submitted(6, 20.0, 7.0) == 7.0


def test_without_a_date_the_sight_and_the_start_count(world: World) -> None:
    assert world.creations.submitted({}, 7, 5) == 5
    assert world.creations.submitted({"metadata": {"creationTimestamp": None}}, 7) == 7


@pytest.mark.parametrize(("seen", "late"), [(3.4, False), (3.95, False), (4.2, True), (9.0, True)])
def test_news_is_late_that_the_whole_second_of_its_date_does_not_explain(world: World, seen: float, late: bool) -> None:
    assert world.clock.is_late(world.made(3)["metadata"]["creationTimestamp"], world.zero + int(seen * S)) is late


def test_news_without_a_date_is_not_called_late(world: World) -> None:
    assert world.clock.is_late("", world.zero + 9 * S) is False
