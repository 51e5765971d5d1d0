"""One layer of convolution, in one and in two dimensions: the mean square of its output after a bias.

As PyTorch defines it (`conv1d`, `conv2d`): no flip of the kernel; padding keeps the length. NumPy has no
convolution of batches and channels, so the common text adds a product for each place in the kernel; the
libraries that have an operator for it use that.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ..workload import Inputs, Workload


def layer_1d(xp, x, kernel, bias):
    """x: batch x channels x length; kernel: outputs x channels x an odd size."""
    size, length = kernel.shape[2], x.shape[2]
    framed = xp.pad(x, ((0, 0), (0, 0), (size // 2, size // 2)), "constant")
    convolved = sum(
        xp.einsum("oc,ncl->nol", kernel[:, :, i], framed[:, :, i : i + length]) for i in range(size)
    )
    return xp.mean((convolved + bias[:, None]) ** 2)


def layer_2d(xp, x, kernel, bias):
    """x: batch x channels x height x width; kernel: outputs x channels x an odd size x the same."""
    size, (height, width) = kernel.shape[2], x.shape[2:]
    frame = (size // 2, size // 2)
    framed = xp.pad(x, ((0, 0), (0, 0), frame, frame), "constant")
    convolved = sum(
        xp.einsum("oc,nchw->nohw", kernel[:, :, i, j], framed[:, :, i : i + height, j : j + width])
        for i in range(size)
        for j in range(size)
    )
    return xp.mean((convolved + bias[:, None, None]) ** 2)


def layer_of_torch(xp, x, kernel, bias):
    from torch.nn import functional

    convolve = functional.conv1d if x.ndim == 3 else functional.conv2d
    return xp.mean(convolve(x, kernel, bias, padding=kernel.shape[2] // 2) ** 2)


def layer_of_jax(xp, x, kernel, bias):
    from jax import lax

    ones = (1,) * (x.ndim - 2)
    convolved = lax.conv_general_dilated(x, kernel, ones, "SAME")
    return xp.mean((convolved + xp.reshape(bias, (-1, *ones))) ** 2)


VARIANTS = {
    "jax": layer_of_jax,
    **dict.fromkeys(("torch", "torch-compile", "torch-compile-func"), layer_of_torch),
}


def convolution_workload(loss, batch: int, channels: int, outputs: int, extent: tuple[int, ...], size: int):
    def make(rng: np.random.Generator, batch: int = batch, extent: tuple[int, ...] = extent) -> Inputs:
        x = rng.standard_normal((batch, channels, *extent))
        kernel = rng.standard_normal((outputs, channels, *(size,) * len(extent))) / math.sqrt(channels * size)
        bias = rng.standard_normal(outputs)
        return x.astype("float32"), kernel.astype("float32"), bias.astype("float32")

    # Forward, and the gradients of kernel and input.
    places = size ** len(extent)
    flops = 6.0 * batch * channels * outputs * math.prod(extent) * places
    return Workload(
        f"convolution-{len(extent)}d",
        make,
        loss,
        (0, 1, 2),
        variants=VARIANTS,
        flops=flops,
        make_small=partial(make, batch=2, extent=(8,) * len(extent)),
    )


WORKLOADS = (
    convolution_workload(layer_1d, 16, 8, 16, (1_024,), 9),
    convolution_workload(layer_2d, 8, 3, 16, (32, 32), 3),
)
