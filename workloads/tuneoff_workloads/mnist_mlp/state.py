"""Tensors to and from the bytes of a checkpoint."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from tuneoff.errors import CheckpointError
from tuneoff.workload import StateTensor

_DTYPES = {torch.float32: "F32", torch.uint8: "U8"}


def to_state(tensor: Tensor) -> StateTensor:
    """Return a copy of the tensor's values as bytes (little-endian, as every machine that torch supports here)."""
    values = tensor.detach().cpu().contiguous()
    data = ctypes.string_at(values.data_ptr(), values.numel() * values.element_size())
    return StateTensor(dtype=_DTYPES[values.dtype], shape=tuple(values.shape), data=data)


def restore(name: str, state: StateTensor | None, target: Tensor) -> None:
    """Write saved values into `target`.

    Raises:
        CheckpointError: there are none, or they have another type or shape.
    """
    if state is None:
        raise CheckpointError(f"the checkpoint has no tensor {name!r}; it was written by another workload or version")
    if state.dtype != _DTYPES[target.dtype] or tuple(state.shape) != tuple(target.shape):
        raise CheckpointError(
            f"tensor {name!r} of the checkpoint must be {_DTYPES[target.dtype]} {tuple(target.shape)}, "
            f"but is {state.dtype} {tuple(state.shape)}; it belongs to another configuration"
        )
    target.copy_(torch.frombuffer(bytearray(state.data), dtype=target.dtype).view(target.shape))
