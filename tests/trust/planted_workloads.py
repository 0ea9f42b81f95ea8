"""A workload that conforms, and one per rule that it breaks."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from trial_runs import Curve
from tuneoff.trust.check.probe_workload import _change, _seen
from tuneoff.workload import Configuration, Scores, StateTensor, TrainingEnded, TrialSeeds


class Honest(Curve):
    """Trains for a while in one thread, goes on from its state, and tells its cases."""

    restores_training = True
    epoch_seconds: ClassVar[float] = 0.1  # so long that the processors in use can be told

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        self.random = random.Random(seeds.trial)

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        until = time.process_time() + self.epoch_seconds
        while time.process_time() < until:
            pass
        return {**super().train_epoch(epoch), "noise": self.random.random()}

    def state_dict(self) -> tuple[Mapping[str, StateTensor], Mapping[str, str]]:
        return super().state_dict()[0], {"random": json.dumps(self.random.getstate())}

    def load_state_dict(self, tensors: Mapping[str, StateTensor], texts: Mapping[str, str]) -> None:
        super().load_state_dict(tensors, texts)
        version, words, following = json.loads(texts["random"])
        self.random.setstate((version, tuple(words), following))

    def cases(self) -> Mapping[str, Any]:
        return {"train": range(4), "validation": range(4, 6), "test": range(6, 9)}


class Brief(Honest):
    epoch_seconds = 0.0


class Missing(Brief):
    def validate(self) -> Mapping[str, float]:
        return {name: float("nan") for name in super().validate()}


class Tiring(Brief):
    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if epoch > 3:
            raise RuntimeError("tired")
        return super().train_epoch(epoch)


class StopsAfterFour(Brief):
    last: ClassVar[int] = 4

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if epoch > self.last:
            raise TrainingEnded
        return super().train_epoch(epoch)


class StopsAfterTwo(StopsAfterFour):
    last = 2


class StopsAtOnce(StopsAfterFour):
    last = 0


class Unseeded(Brief):
    restores_training = False

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        self.random = random.Random()


class EndsElsewhere(Brief):
    """Ends by itself after other epochs in each process."""

    restores_training = False

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        before = Path(os.environ["ENDED"])  # of this test's trainings
        self.last = 2 if before.exists() else 1
        before.touch()

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if epoch > self.last:
            raise TrainingEnded
        return super().train_epoch(epoch)


class OnlyOnce(Brief):
    """Does what a process allows once."""

    has_begun: ClassVar[bool] = False

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        if OnlyOnce.has_begun:
            raise RuntimeError("the number of threads can be set only once")
        OnlyOnce.has_begun = True
        super().load(configuration, seeds)


class Careless(Honest):
    """Changes its process, configuration and options, starts a process, and prints lines like events: all of that it may."""

    restores_training = False

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        assert _seen(configuration)["child"] == ""
        _change(configuration)
        for own in (configuration, self.options):
            assert isinstance(own, dict)
            own.clear()


class Exiting(Brief):
    def validate(self) -> Mapping[str, float]:
        raise SystemExit(2)


class Deciding(Brief):
    """Gives a truth for a number."""

    def validate(self) -> Mapping[str, Any]:
        return dict.fromkeys(super().validate(), True)


class Remembering(Brief):
    restores_training = False
    trained: ClassVar[Any] = itertools.count()

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        return {**super().train_epoch(epoch), "count": next(self.trained)}


class Restarting(Brief):
    """Leaves its random generator as it is at the start: enough for the test, not for the epochs after."""

    def load_state_dict(self, tensors: Mapping[str, StateTensor], texts: Mapping[str, str]) -> None:
        Curve.load_state_dict(self, tensors, texts)


class Forgetting(Brief):
    restores_training = False

    def load_state_dict(self, tensors: Any, texts: Any) -> None:
        self.x = 0.0

    def test(self) -> Scores:
        return Scores(values={"test_loss": self.x + 1})


def _hash() -> None:
    data = bytes(1_000_000)
    while time.thread_time() < 0.1:  # of this thread, which is new
        hashlib.sha256(data)


class Threaded(Brief):
    """Hashes in threads, which needs no interpreter."""

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        threads = [threading.Thread(target=_hash) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return super().train_epoch(epoch)


class Leaving(Brief):
    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)


class Forgetful(Brief):
    """Leaves a file in the temporary folder, which a run removes."""

    restores_training = False

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        os.close(tempfile.mkstemp(prefix="litter-")[0])


class Overwriting(Brief):
    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        Path("own.yaml").touch()  # it was there before: as a checkpoint of an earlier trial is


class Costing(Honest):
    """Says of one configuration that it costs many times the other, which takes as long."""

    power: ClassVar[int] = 20

    def cost(self, configuration: Configuration, epochs: int) -> float:
        return float(epochs * configuration["x"] ** self.power)


class Frugal(Costing):
    power = 0


class Peeking(Brief):
    def cases(self) -> Mapping[str, Any]:
        return {"validation": range(4), "test": range(3, 9)}


class Failing(Brief):
    def validate(self) -> Mapping[str, float]:
        raise ValueError("no data")
