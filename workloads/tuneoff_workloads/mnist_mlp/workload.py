"""The workload as core sees it; what needs torch is imported when a trial loads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from tuneoff.base.space import SearchSpace
from tuneoff.workload import Configuration, DataDescription, Mode, Scores, StateTensor, TrialSeeds, Workload
from tuneoff_workloads.mnist_mlp import specification
from tuneoff_workloads.mnist_mlp.prepare import prepare
from tuneoff_workloads.mnist_mlp.specification import DEFAULTS

if TYPE_CHECKING:
    from tuneoff_workloads.mnist_mlp.training import MlpTraining


class MnistMlp(Workload):
    """An MLP classifier on digits, MNIST or Fashion-MNIST.

    Options: `dataset` (digits, mnist, fashion_mnist), `device` (cpu, cuda, auto), and in images `validation_size` (else the data
    set's own) and `train_limit` (else all). It counts the images that it trains on; `phases: true` also times its phases.
    """

    name: ClassVar[str] = "mnist_mlp"
    version: ClassVar[str] = "1"
    preload: ClassVar[tuple[str, ...]] = ("torch", "numpy", "tuneoff_workloads.mnist_mlp.training")
    requirements: ClassVar[tuple[str, ...]] = ("tuneoff[mnist]",)
    metrics: ClassVar[Mapping[str, Mode]] = {
        "validation_loss": "min",
        "validation_accuracy": "max",
        "validation_macro_f1": "max",
    }
    default_metric: ClassVar[str] = "validation_accuracy"
    default_epochs: ClassVar[int] = 8
    training_algorithm: ClassVar[str] = "minibatch Adam or SGD on cross-entropy"
    restores_training: ClassVar[bool] = True
    default_options: ClassVar[Mapping[str, Any] | None] = DEFAULTS
    foreign_options: ClassVar[frozenset[str]] = frozenset(DEFAULTS)

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._options = specification.parse_options(options)
        self._training: MlpTraining  # once loaded

    @classmethod
    def default_space(cls) -> SearchSpace:
        return specification.default_space()

    def check_space(self, space: SearchSpace) -> None:
        specification.check_space(space)

    def prepare(self) -> DataDescription:
        dataset = self._options.dataset
        folder = prepare(dataset)
        if self._options.device == "cuda":
            from tuneoff_workloads.mnist_mlp.training import choose_device

            choose_device("cuda")
        return DataDescription(
            name=dataset.name,
            version=dataset.version,
            sha256={file.name: file.sha256 for file in dataset.files.values()},
            size_bytes=sum(file.size_bytes for file in dataset.files.values()),
            paths={file.name: str(folder / file.name) for file in dataset.files.values()},
        )

    def limit_threads(self, threads: int) -> None:
        import torch

        import tuneoff_workloads.mnist_mlp.training  # noqa: F401 (before the load time of a trial is taken)

        torch.set_num_threads(threads)

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        hyperparameters = specification.parse_configuration(configuration)
        from tuneoff_workloads.mnist_mlp.training import MlpTraining

        self._training = MlpTraining(self._options, hyperparameters, seeds)

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        return self._training.train_epoch()

    def validate(self) -> Mapping[str, float]:
        return self._training.validate()

    def test(self) -> Scores:
        return self._training.test()

    def cases(self) -> Mapping[str, list[str]]:
        return self._training.cases()

    def state_dict(self) -> tuple[Mapping[str, StateTensor], Mapping[str, str]]:
        return self._training.state_dict()

    def load_state_dict(self, tensors: Mapping[str, StateTensor], texts: Mapping[str, str]) -> None:
        self._training.load_state_dict(tensors, texts)

    def cost(self, configuration: Configuration, epochs: int) -> float:
        return epochs * specification.epoch_seconds(self._options, specification.parse_configuration(configuration))

    def quality_margin(self) -> float | None:
        return self._options.dataset.quality_margin

    def device(self) -> str:
        if self._options.device == "cpu":
            return "cpu"
        import torch

        from tuneoff_workloads.mnist_mlp.training import choose_device

        chosen = choose_device(self._options.device)
        return f"cuda:{torch.cuda.get_device_name(chosen)}" if chosen.type == "cuda" else "cpu"
