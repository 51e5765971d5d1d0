"""`python -m pullback.codegen.vector_math` prints each function's greatest error and its time per number."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from .. import store
from ..compile import ArrayType, compile_function
from .accuracy import CASES, FORMATS, errors, points

_SIZE = 20_000  # numbers; operands and results stay in the second-level cache
_NUMPY_NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh",
}  # fmt: skip
_OTHERS: dict[str, Callable[..., Any]] = {
    "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": special.erf,
    "erfc": special.erfc,
    "lgamma": special.gammaln,
    "digamma": special.digamma,
    "trigamma": lambda x: special.polygamma(1, x),
}


def loop(name: str, dtype: str) -> Callable[..., None]:
    """The function compiled in a loop over arrays: operands, then results."""
    operands = [f"x{index}" for index in range(CASES[name].operands)]
    source = (
        f"from pullback.codegen.vector_math import {name}\n\n\n"
        f"def apply({', '.join(operands)}, out):\n"
        f"    for i in range(out.shape[0]):\n"
        f"        out[i] = {name}({', '.join(f'{operand}[i]' for operand in operands)})\n"
    )
    module = store.load_module(store.write_module(source, f"vector_math_{name}"))
    return compile_function(module, "apply", (ArrayType(np.dtype(dtype), 1, "C"),) * (len(operands) + 1))


def nanoseconds(function: Callable[..., Any], *arguments: np.ndarray) -> float:
    """The shortest of some times, per number."""
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        function(*arguments)
        best = min(best, time.perf_counter() - start)
    return best / arguments[0].size * 1e9


def main() -> None:
    print(f"{'function':10} {'dtype':8} {'ulp':>6} {'ns':>7} {'ns NumPy/SciPy':>15}")
    for name, case in CASES.items():
        for dtype, number_format in FORMATS.items():
            function = loop(name, dtype)
            operands = points(case, number_format)
            results = np.empty_like(operands[0])
            function(*operands, results)
            greatest = errors(case, operands, results, number_format).max()
            low, high = (1.0, 3.0) if name == "acosh" else (0.1, 0.9)
            random = np.random.default_rng(0)
            timed = [random.uniform(low, high, _SIZE).astype(dtype) for _ in operands]
            other = _OTHERS.get(name) or getattr(np, _NUMPY_NAMES.get(name, name))
            own, others = nanoseconds(function, *timed, np.empty_like(timed[0])), nanoseconds(other, *timed)
            print(f"{name:10} {dtype:8} {greatest:6.2f} {own:7.2f} {others:15.2f}", flush=True)


if __name__ == "__main__":
    main()
