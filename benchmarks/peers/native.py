"""C written by hand: value and gradient of some workloads, compiled by gcc for this machine."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..workload import NotOffered, Workload
from .library import Argnums, Call, Function, Library, as_asked, positions

FOLDER = Path(__file__).parent.parent / "native"
SOURCES = {
    "black-scholes-": "black_scholes.c",
    "chain-": "chain.c",
    "heat-": "heat.c",
    "k-means-": "k_means.c",
    "logistic-regression-": "logistic_regression.c",
    "logsumexp-rows-": "logsumexp_rows.c",
    "n-body-": "n_body.c",
    "rosenbrock-": "rosenbrock.c",
    "softmax-cross-entropy-": "softmax_cross_entropy.c",
}
"""By the beginning of a workload's name: its file, whose first lines say what it computes."""

FLAGS = ("-O3", "-march=native", "-ffast-math", "-fopenmp", "-std=c11", "-shared", "-fPIC")
LIBRARIES = ("-lmvec", "-lm")


class _Array(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("shape", ctypes.c_int64 * 4))


class Native(Library):
    """Outputs are allocated once: in C that is how it would be written."""

    package = "gcc"
    counts = False
    xp = np

    @classmethod
    def installed(cls) -> bool:
        return sys.platform == "linux" and shutil.which("gcc") is not None

    def configure(self, workload: Workload, inputs: Sequence[np.ndarray]) -> None:
        sources = [file for prefix, file in SOURCES.items() if workload.name.startswith(prefix)]
        if not sources:
            raise NotOffered(f"Nobody has written {workload.name} in C.")
        self.dtype = workload.dtype(inputs)
        self.run = compiled(FOLDER / sources[0], "float" if self.dtype == "float32" else "double")

    def prepare(self, workload: Workload, arguments: Sequence[Any]) -> Call:
        if workload.program is not None:
            return super().prepare(workload, arguments)
        bound = _Bound(self.run, arguments, workload.argnums, self.dtype)
        return bound.call

    def value_and_grad(self, function: Function, argnums: Argnums = 0) -> Function:
        """The C of the workload, whatever `function` is; all calls have arguments of the same shapes."""
        run = self._for_new_arrays(positions(argnums))

        def value_and_gradient(*arguments: Any) -> Any:
            value, *gradients = run(*arguments)
            return value[()], as_asked([one.copy() for one in gradients], argnums)

        return value_and_gradient

    def value_grad_and_hvp(self, function: Function, argnum: int = 0) -> Function:
        return self._for_new_arrays((argnum, argnum))

    def _for_new_arrays(self, like: Sequence[int]) -> Function:
        bound: _Bound | None = None

        def run(*arguments: Any) -> Any:
            nonlocal bound
            if bound is None:
                bound = _Bound(self.run, arguments, like, self.dtype)
            else:
                bound.point_to(arguments)
            return bound.call()

        return run


class _Bound:
    """Inputs and outputs as `run` takes them. The outputs are the value, then arrays like some inputs."""

    def __init__(self, run: Any, inputs: Sequence[np.ndarray], like: Sequence[int], dtype: str) -> None:
        self.run = run
        self.outputs = [np.zeros((), dtype), *(np.zeros_like(inputs[position]) for position in like)]
        self.given, self.filled = described(inputs), described(self.outputs)
        self.inputs = inputs  # they must live as long as their addresses are here

    def point_to(self, inputs: Sequence[np.ndarray]) -> None:
        """Other inputs of the same shapes."""
        for one, array in zip(self.given, inputs):
            one.data = array.ctypes.data
        self.inputs = inputs

    def call(self) -> list[np.ndarray]:
        self.run(self.given, self.filled)
        return self.outputs


def described(arrays: Sequence[np.ndarray]) -> ctypes.Array:
    """As `array` in native/arrays.h."""
    found = (_Array * len(arrays))()
    for one, array in zip(found, arrays):
        if not array.flags.c_contiguous:
            raise ValueError("C is given C-contiguous arrays only.")
        one.data = array.ctypes.data
        one.shape[: array.ndim] = array.shape
    return found


def compiled(source: Path, real: str) -> Any:
    """The function `run` of a file."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        target = Path(folder) / f"{source.stem}.so"
        subprocess.run(
            ["gcc", *FLAGS, f"-DREAL={real}", str(source), *LIBRARIES, "-o", str(target)], check=True
        )
        run = ctypes.CDLL(str(target)).run
    run.restype = None
    run.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    return run
