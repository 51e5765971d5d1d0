"""What a call costs besides its machine code: `python -m benchmarks.overhead [--quick]` prints JSON.

Value and gradient of a function of three small arrays, in microseconds: the machine code alone, with its
outputs allocated beforehand; the program, which allocates them; the whole call on arrays; and the call on
Tensors with `.backward()`, which has two programs.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pullback as pb
from pullback.codegen import program as programs
from pullback.runtime.dispatch.compiled import CompiledFunction

from .worker import seconds_per_call
from .workloads.basic import chain_workload

SIZE = 8


def timed_calls() -> dict[str, Callable[[], Any]]:
    """Each call by its name, in order of what it includes."""
    workload = chain_workload(SIZE, "float64")
    arrays = list(workload.inputs())
    loss = pb.compile(partial(workload.loss, pb))
    value_and_grad = pb.value_and_grad(loss, argnums=workload.argnums)
    assert isinstance(value_and_grad, CompiledFunction)
    value_and_grad(*arrays)
    program = value_and_grad.programs(*arrays)[0]

    tensors = [pb.from_numpy(array).requires_grad_() for array in arrays]

    def backward() -> None:
        for tensor in tensors:
            tensor.grad = None
        loss(*tensors).backward()

    return {
        "machine code": partial(kernel_of(program), *kernel_arguments(program, arrays)),
        "program": partial(program, arrays),
        "call on arrays": partial(value_and_grad, *arrays),
        "call on Tensors, forward": partial(loss, *tensors),
        "call on Tensors with backward": backward,
    }


def kernel_of(program: programs.Program) -> Callable[..., Any]:
    """The machine code of a program that is one kernel."""
    (kernel,) = program._kernels
    return kernel


def kernel_arguments(program: programs.Program, arrays: list[np.ndarray]) -> list[Any]:
    """What `program` passes to it: inputs, arrays to fill, integers."""
    lowered = program.lowered
    filled = [np.empty(buffer.dims, buffer.dtype) for buffer in lowered.filled]
    return [*arrays, *filled, *lowered.kernels[0].numbers]


def main() -> None:
    rounds, count = (5, 2_000) if "--quick" in sys.argv else (15, 20_000)
    calls = timed_calls()
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(seconds_per_call(call, count, warm_up=count // 10) * 1e6)
    print(json.dumps({name: statistics.median(found) for name, found in samples.items()}))


if __name__ == "__main__":
    main()
