"""The same configuration and seeds give the same figures, bit for bit, on one thread."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tuneoff.workload import TrialSeeds
from tuneoff_workloads.mnist_mlp import MnistMlp

Load = Callable[..., MnistMlp]
CONFIGURATION = {"learning_rate": 2e-3, "dropout": 0.2, "hidden_widths": [48, 33], "activation": "gelu", "batch_size": 50}
SCRIPT = """
import json, sys
from tuneoff.workload import TrialSeeds
from tuneoff_workloads.mnist_mlp import MnistMlp
workload = MnistMlp({})
workload.limit_threads(1)
workload.load(json.loads(sys.argv[1]), TrialSeeds(split=11, trial=22))
print(json.dumps([[dict(workload.train_epoch(epoch)), dict(workload.validate())] for epoch in (1, 2, 3)]))
"""


def run(load: Load, **overrides: Any) -> list[Any]:
    workload = load(**{**CONFIGURATION, **overrides})
    return [[dict(workload.train_epoch(epoch)), dict(workload.validate())] for epoch in (1, 2, 3)]


@pytest.mark.slow
def test_a_fresh_process_gives_the_same_figures_as_one_that_trained_before(load: Load, digits: Path) -> None:
    run(load, learning_rate=0.3)
    here = run(load)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(CONFIGURATION)],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    assert json.loads(done.stdout) == here


def test_global_random_states_do_not_matter_and_are_left_alone(load: Load) -> None:
    before = run(load)
    torch.manual_seed(1)
    np.random.seed(2)
    random.seed(3)
    states = torch.get_rng_state(), np.random.get_state(legacy=True), random.getstate()
    assert run(load) == before
    assert torch.equal(torch.get_rng_state(), states[0])
    assert str(np.random.get_state(legacy=True)) == str(states[1])
    assert random.getstate() == states[2]


def test_trials_side_by_side_in_one_process_do_not_disturb_each_other(load: Load) -> None:
    alone = run(load)
    first, second = load(**CONFIGURATION), load(**{**CONFIGURATION, "activation": "tanh"})
    together = []
    for epoch in (1, 2, 3):
        together.append([dict(first.train_epoch(epoch)), dict(first.validate())])
        second.train_epoch(epoch)
        second.validate()
    assert together == alone


def test_trial_seed_and_split_seed_are_separate_axes(load: Load) -> None:
    figures = {
        (split, trial): json.dumps(run(load, seeds=TrialSeeds(split=split, trial=trial)))
        for split in (0, 2**31 - 1)
        for trial in (0, 2**31 - 1)
    }
    assert len(set(figures.values())) == 4


@pytest.mark.slow
def test_torch_optim_and_dynamo_are_never_loaded_by_a_trial(digits: Path) -> None:
    check = SCRIPT + "\nassert 'torch._dynamo' not in sys.modules and 'sklearn' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", check, "{}"], capture_output=True, check=True, env=dict(os.environ))


def test_the_processor_s_treatment_of_denormals_is_put_back(load: Load) -> None:
    smallest_normal, two = sys.float_info.min, 2.0
    workload = load()
    for flushing in (False, True):
        torch.set_flush_denormal(flushing)
        workload.train_epoch(1)
        workload.validate()
        workload.test()
        assert (smallest_normal / two == 0.0) is flushing
    torch.set_flush_denormal(False)
