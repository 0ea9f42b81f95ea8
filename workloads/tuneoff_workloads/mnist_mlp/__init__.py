"""The workload `mnist_mlp`: a multi-layer perceptron on digits, MNIST or Fashion-MNIST. Importing it imports no torch."""

from tuneoff_workloads.mnist_mlp.workload import MnistMlp

__all__ = ["MnistMlp"]
