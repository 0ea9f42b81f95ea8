"""Each defect of earlier benchmarks' MNIST workload: the test that would catch it and, where it helps, the defect planted."""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tuneoff.errors import DataError, ExperimentError
from tuneoff.experiment.space import Categorical, Constant, Float, SearchSpace
from tuneoff.workload import TrialSeeds
from tuneoff_workloads.mnist_mlp import MnistMlp, specification
from tuneoff_workloads.mnist_mlp.activations import FUNCTIONS, ActivationFunction
from tuneoff_workloads.mnist_mlp.data import loaded
from tuneoff_workloads.mnist_mlp.data.cache import map_file
from tuneoff_workloads.mnist_mlp.data.catalog import DataFile
from tuneoff_workloads.mnist_mlp.layers import Layout
from tuneoff_workloads.mnist_mlp.model import Mlp

Load = Callable[..., MnistMlp]
CPU = torch.device("cpu")
SEEDS = TrialSeeds(split=11, trial=22)


def parts(workload: MnistMlp) -> Any:
    """The torch part of a loaded workload, whose private members these tests look into."""
    return workload._training


def network(activation: Any = "relu", dropout: float = 0.0) -> Mlp:
    return Mlp((64, 16, 16, 10), activation, dropout, seed=3, device=CPU)


def is_affine(model: Mlp) -> bool:
    first, second = torch.randn(2, 5, 64, generator=torch.Generator().manual_seed(1)).unbind()
    zero = torch.zeros(5, 64)
    return torch.allclose(
        model.logits(first + second) + model.logits(zero), model.logits(first) + model.logits(second), atol=1e-4
    )


# 1. No non-linearity: the activation was built and never called.


@pytest.mark.parametrize("activation", specification.ACTIVATIONS)
def test_every_activation_makes_the_model_non_linear(activation: specification.Activation) -> None:
    assert not is_affine(network(activation))


def test_control_a_model_without_activation_is_found_affine(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = ActivationFunction(is_in_place=True, forward=lambda z, _h: z, backward=lambda gradient, _z, _h: gradient)
    monkeypatch.setitem(FUNCTIONS, "relu", identity)
    assert is_affine(network("relu"))


# 2. The prediction truncated the probabilities to integers, so that nearly every image became class 0.


def predictions_by_hand(workload: MnistMlp, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (predicted classes, probabilities) computed by numpy from the checkpoint's parameters."""
    tensors, _ = workload.state_dict()
    flat = torch.frombuffer(bytearray(tensors["parameters"].data), dtype=torch.float32)
    data = parts(workload)._data
    hidden = (images.astype(np.float64) - data.mean) / data.deviation
    *layers, (last, bias) = Layout.of((64, 128, 128, 10)).views(flat)
    for weight, hidden_bias in layers:
        hidden = np.maximum(hidden @ weight.numpy() + hidden_bias.numpy(), 0)
    logits = hidden @ last.numpy().T + bias.numpy()
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return logits.argmax(axis=1), exponentials / exponentials.sum(axis=1, keepdims=True)


def test_accuracy_and_loss_are_those_of_the_most_probable_class(load: Load) -> None:
    workload = load(learning_rate=3e-3)
    for epoch in (1, 2, 3):
        workload.train_epoch(epoch)
    metrics = workload.validate()
    validation = parts(workload)._data.validation
    truth = validation.labels.numpy()
    predicted, probabilities = predictions_by_hand(workload, validation.images.numpy())
    assert metrics["validation_accuracy"] == pytest.approx((predicted == truth).mean())
    assert metrics["validation_loss"] == pytest.approx(-np.log(probabilities[range(len(truth)), truth]).mean(), rel=1e-4)
    assert len(set(predicted)) == 10
    # The planted defect: truncated probabilities give another accuracy, so the check above would see it.
    truncated = probabilities.astype(np.int16).argmax(axis=1)
    assert abs((truncated == truth).mean() - metrics["validation_accuracy"]) > 0.1


# 3. Gradients were never zeroed, so that they accumulated.


def gradient_of(model: Mlp, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    batch = len(labels)
    targets = labels * batch + torch.arange(batch)
    model.train_on(images, targets, torch.empty(10, batch), torch.Generator())
    return model.gradients.clone()


def test_a_batch_s_gradient_does_not_depend_on_earlier_batches() -> None:
    generator = torch.Generator().manual_seed(5)
    images, labels = torch.randn(2, 8, 64, generator=generator), torch.randint(10, (2, 8), generator=generator)
    used, fresh = network(), network()
    first = gradient_of(used, images[0], labels[0])
    second = gradient_of(used, images[1], labels[1])
    expected = gradient_of(fresh, images[1], labels[1])
    assert torch.equal(second, expected)
    assert not torch.allclose(first + second, expected)  # the planted defect would be seen


# 4. Normalisation was bypassed: raw bytes went into the model.


def test_the_model_trains_on_normalised_images(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Tensor] = []
    original = Mlp.train_on

    def spy(self: Mlp, images: torch.Tensor, *rest: Any) -> None:
        seen.append(images.clone())
        original(self, images, *rest)

    monkeypatch.setattr(Mlp, "train_on", spy)
    workload = load()
    workload.train_epoch(1)
    images = torch.cat(seen)
    assert len(images) == 1200
    assert float(images.mean()) == pytest.approx(0, abs=1e-5)
    assert float(images.std(correction=0)) == pytest.approx(1, abs=1e-5)
    raw = parts(workload)._data.pool.images.float()
    assert abs(float(raw.mean())) > 1  # the planted defect would be seen


def test_normalisation_is_fitted_on_the_images_trained_on_alone(load: Load) -> None:
    data = parts(load())._data
    trained_on = data.pool.images.numpy()[data.train_indices.numpy()]
    assert data.mean == pytest.approx(trained_on.mean(), rel=1e-12)
    assert data.deviation == pytest.approx(trained_on.std(), rel=1e-12)
    assert data.mean != pytest.approx(data.pool.images.numpy().mean(), rel=1e-9)  # not those of training + validation


# 5. The test images were the training images.


def figures(workload: MnistMlp) -> list[Any]:
    return [figure for epoch in (1, 2) for figure in (dict(workload.train_epoch(epoch)), dict(workload.validate()))]


def test_spoiled_test_files_change_nothing_before_the_test(own_digits: Path, load: Load) -> None:
    before = figures(load())
    for name in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        path = own_digits / name
        content = bytearray(path.read_bytes())
        content[16:] = bytes(255 - byte for byte in content[16:])
        path.write_bytes(content)
    loaded._kept.clear()
    workload = load()
    assert figures(workload) == before
    with pytest.raises(DataError, match="were changed"):
        workload.test()


def test_control_spoiled_training_images_do_change_the_figures(own_digits: Path, load: Load) -> None:
    before = figures(load())
    path = own_digits / "train-images-idx3-ubyte"
    content = bytearray(path.read_bytes())
    content[16:] = bytes(16 - byte for byte in content[16:])
    path.write_bytes(content)
    loaded._kept.clear()
    assert figures(load()) != before


def test_no_test_file_is_opened_before_the_test(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def spy(folder: Path, file: DataFile) -> mmap.mmap:
        opened.append(file.name)
        return map_file(folder, file)

    monkeypatch.setattr(loaded, "map_file", spy)
    loaded._kept.clear()
    workload = load()
    figures(workload)
    assert opened == ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"]
    workload.test()
    assert opened[2:] == ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]


# 6. The best model was never tested: another one was trained anew.


def test_the_checkpoint_itself_is_tested_without_any_training(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = load(learning_rate=3e-3)
    trained.train_epoch(1)
    best = trained.state_dict()
    best_scores = trained.test()
    for epoch in (2, 3, 4):
        trained.train_epoch(epoch)
    last_scores = trained.test()

    monkeypatch.setattr(Mlp, "train_on", lambda *_: pytest.fail("the test must not train"))
    fresh = load(learning_rate=3e-3)
    fresh.load_state_dict(*best)
    scores = fresh.test()
    assert scores == best_scores
    assert scores != last_scores  # testing the last model instead of the best would be seen
    test = loaded.load_test_data(parts(fresh)._dataset, CPU)
    predicted, _ = predictions_by_hand(fresh, test.images.numpy())
    assert scores.values["test_accuracy"] == pytest.approx((predicted == test.labels.numpy()).mean())


# 7. The test's scores were thrown away.


def test_the_test_returns_its_scores_with_report_and_confusion_matrix(load: Load) -> None:
    scores = load().test()
    assert set(scores.values) == {"test_loss", "test_accuracy", "test_macro_f1"}
    confusion = np.array(scores.details["confusion_matrix"])
    assert confusion.sum() == 300
    assert scores.values["test_accuracy"] == np.trace(confusion) / 300
    report = scores.details["per_class"]
    assert list(report) == [str(digit) for digit in range(10)]
    assert all(row["support"] == 30 for row in report.values())
    assert scores.values["test_macro_f1"] == pytest.approx(np.mean([row["f1"] for row in report.values()]))


# 8. Validation built a graph, shuffled, and left the model in evaluation mode.


def test_validation_changes_nothing_and_repeats_exactly(load: Load) -> None:
    with_validation, without = load(dropout=0.5), load(dropout=0.5)
    for epoch in (1, 2):
        with_validation.train_epoch(epoch)
        without.train_epoch(epoch)
        assert with_validation.validate() == with_validation.validate()
    assert with_validation.state_dict() == without.state_dict()


def test_dropout_works_after_a_validation_and_not_in_it(load: Load) -> None:
    dropping, plain = load(dropout=0.5), load(dropout=0.0)
    assert dropping.validate() == plain.validate()  # equal initial parameters, and no dropout in validation
    assert dropping.train_epoch(1) != plain.train_epoch(1)


def test_no_tensor_of_the_model_keeps_a_graph(load: Load) -> None:
    workload = load()
    workload.train_epoch(1)
    workload.validate()
    model = parts(workload)._model
    assert not model.parameters.requires_grad
    assert model.parameters.grad_fn is None


# 9. The device was never set, so trials ran on the CPU.


def test_a_missing_cuda_device_is_refused_and_never_replaced_silently(load: Load) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(ExperimentError, match="needs a CUDA device"):
        load(options={"device": "cuda"})
    assert load(options={"device": "auto"}).device() == "cpu"


def test_training_on_cuda_stays_on_cuda(load: Load) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    workload = load(options={"device": "cuda"}, dropout=0.1)
    workload.train_epoch(1)
    assert parts(workload)._model.parameters.is_cuda
    assert parts(workload)._data.pool.images.is_cuda
    assert workload.device().startswith("cuda:")
    assert workload.validate()["validation_accuracy"] > 0.3


# 10. The searched hyperparameters were parsed and constants trained; another score was optimized than reported.


@pytest.mark.parametrize(
    "changed",
    [
        {"learning_rate": 1e-2},
        {"weight_decay": 0.1},
        {"batch_size": 32},
        {"hidden_layers": 1},
        {"hidden_width": 64},
        {"hidden_widths": [128, 64]},
        {"activation": "tanh"},
        {"dropout": 0.3},
        {"optimizer": "sgd"},
        {"optimizer": "sgd", "momentum": 0.5},
    ],
    ids=str,
)
def test_each_hyperparameter_has_an_effect(load: Load, changed: dict[str, Any]) -> None:
    before = load(optimizer="sgd") if "momentum" in changed else load()
    assert load(**changed).train_epoch(1) != before.train_epoch(1)


def test_control_momentum_has_no_effect_on_adam_and_such_a_search_is_refused(load: Load) -> None:
    assert load(momentum=0.5).train_epoch(1) == load().train_epoch(1)
    with pytest.raises(ExperimentError, match="momentum"):
        specification.check_space(SearchSpace({"momentum": Float(low=0.0, high=0.9)}))
    specification.check_space(
        SearchSpace({"momentum": Float(low=0.0, high=0.9), "optimizer": Categorical(choices=("adam", "sgd"))})
    )


# 11. The sampler's distribution was not the space's. The adapters' tests hold that; here: kinds that do not fit are refused.


def test_a_float_dimension_for_a_whole_number_is_refused() -> None:
    for dimension in (Float(low=16.0, high=256.0), Float(low=16, high=256)):
        with pytest.raises(ExperimentError, match="batch_size"):
            specification.check_space(SearchSpace({"batch_size": dimension}))


# 12. Pruning was a no-op: a trial reported once, at its end.


def test_every_epoch_has_its_own_validation_figures(load: Load) -> None:
    workload = load()
    losses = []
    for epoch in (1, 2, 3):
        workload.train_epoch(epoch)
        losses.append(workload.validate()["validation_loss"])
    assert losses == sorted(losses, reverse=True)
    assert len(set(losses)) == 3


# 13. Hidden layers were never searched: the key had a typing error.


def test_a_misspelt_hyperparameter_is_refused(load: Load) -> None:
    with pytest.raises(ExperimentError, match="hidden_lyer_config"):
        specification.check_space(SearchSpace({"hidden_lyer_config": Constant(value=[15])}))
    with pytest.raises(ExperimentError, match="hidden_lyer_config"):
        load(hidden_lyer_config=[15])


def test_hidden_layers_and_widths_shape_the_model(load: Load) -> None:
    shapes = [{"hidden_layers": layers, "hidden_width": 32} for layers in (1, 2, 3)] + [{"hidden_widths": [32, 64, 32]}]
    sizes = [parts(load(**shape))._model.parameters.numel() for shape in shapes]
    assert len(set(sizes)) == 4


# And from the sections on other suites: the score depended on the batch size, and small remainders were dropped.


@pytest.mark.parametrize("batch_size", [7, 64, 5000])
def test_every_image_is_trained_on_once_and_validated_on_whatever_the_batch_size(
    load: Load, batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    original = Mlp.train_on

    def spy(self: Mlp, images: torch.Tensor, *rest: Any) -> None:
        counts.append(len(images))
        original(self, images, *rest)

    monkeypatch.setattr(Mlp, "train_on", spy)
    workload = load(batch_size=batch_size)
    assert math.isfinite(workload.train_epoch(1)["train_loss"])
    assert sum(counts) == 1200
    validation = parts(workload)._data.validation
    assert sum(map(sum, parts(workload)._evaluate(validation).confusion)) == 297
