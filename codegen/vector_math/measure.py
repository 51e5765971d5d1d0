"""Each function in a loop over arrays: its greatest error, its time, and the documentation's table of all."""

from __future__ import annotations

import functools
import inspect
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from ...tracer.records import record
from ..machine import store
from ..machine.compile import compile_function
from ..machine.kernel_types import ArrayType
from . import samples
from .accuracy import CASES, FORMATS, Case, errors, errors_of_float32
from .complex_numbers import PARTS
from .primitives import FUNCTIONS

EVERYWHERE, EACH_RANGE = 100_000, 20_000  # numbers of the whole domain, and of each range
EVERY = 64  # of the float32, every which
_SIZE = 20_000  # numbers to take the time of; operands and results stay in the second-level cache
_MARKS = "<!-- table -->", "<!-- end of table -->"


@functools.cache
def compiled(name: str, dtype: str) -> Callable[..., None]:
    """The function compiled in a loop over arrays: operands, then results."""
    operands = [f"x{index}" for index in range(len(inspect.signature(FUNCTIONS[name]).parameters))]
    source = (
        f"from pullback.codegen.vector_math import {name}\n\n\n"
        f"def apply({', '.join(operands)}, out):\n"
        f"    for i in range(out.shape[0]):\n"
        f"        out[i] = {name}({', '.join(f'{operand}[i]' for operand in operands)})\n"
    )
    module = store.load_module(store.write_module(source, f"vector_math_{name}"))
    return compile_function(module, "apply", (ArrayType(np.dtype(dtype), 1, "C"),) * (len(operands) + 1))


def results(name: str, operands: Sequence[np.ndarray]) -> np.ndarray:
    """What the compiled function makes of arrays of one dtype."""
    out = np.empty_like(operands[0])
    compiled(name, str(out.dtype))(*operands, out)
    return out


# --- Errors -----------------------------------------------------------------------------------------------


@record
class Measurement:
    """The greatest error, in ulp, of all points, and where it is."""

    points: int = 0
    error: float = -1.0
    arguments: tuple[float, ...] = ()

    def add(self, operands: list[np.ndarray], found: np.ndarray) -> None:
        self.points += found.size
        worst = int(found.argmax())
        if found[worst] > self.error:
            self.error = float(found[worst])
            self.arguments = tuple(float(operand[worst]) for operand in operands)


def measure(name: str, dtype: str, everywhere: int = EVERYWHERE, each_range: int = EACH_RANGE) -> Measurement:
    """Errors against mpmath at random points and hard places; it takes long for complex numbers."""
    case, number_format = CASES[name], FORMATS[dtype]
    operands = samples.operands(case, number_format, everywhere, each_range)
    measurement = Measurement()
    measurement.add(operands, errors(case, operands, results(name, operands), number_format))
    return measurement


def measure_float32(name: str, every: int = EVERY) -> Measurement:
    """Errors of float32 against our float64: of every `every`-th float or of many pairs, and hard places."""
    measurement = Measurement()
    for operands in _float32_operands(CASES[name], every):
        double = [operand.astype(np.float64) for operand in operands]
        exact, size = results(name, double), _size(name, double)
        measurement.add(operands, errors_of_float32(results(name, operands), exact, size))
    return measurement


def _size(name: str, operands: Sequence[np.ndarray]) -> np.ndarray | None:
    """Of a part of a complex number that number's size."""
    whole = CASES[name].whole
    if not whole:
        return None
    return np.hypot(*(results(f"{whole}_{part}", operands) for part in PARTS))


def _float32_operands(case: Case, every: int) -> Iterator[list[np.ndarray]]:
    number_format = FORMATS["float32"]
    yield samples.operands(case, number_format, EVERYWHERE, EACH_RANGE)
    if case.operands == 1:
        yield from ([x] for x in samples.every(every, case.domain, number_format))
    else:
        yield samples.operands(case, number_format, 2**32 // every // 16, 2**32 // every // 16)


# --- Time -------------------------------------------------------------------------------------------------

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
    "igamma": special.gammainc,
    "igammac": special.gammaincc,
    "zeta": special.zeta,
}


def nanoseconds(name: str, dtype: str) -> tuple[float, float]:
    """The time per number, ours and that of NumPy or SciPy."""
    low, high = (1.0, 3.0) if CASES[name].domain[0] == 1.0 else (0.1, 0.9)
    random = np.random.default_rng(0)
    operands = [random.uniform(low, high, _SIZE).astype(dtype) for _ in range(CASES[name].operands)]
    other = _OTHERS.get(name) or getattr(np, _NUMPY_NAMES.get(name, name))
    out = np.empty_like(operands[0])
    return _shortest(compiled(name, dtype), *operands, out), _shortest(other, *operands)


def _shortest(function: Callable[..., Any], *arguments: np.ndarray) -> float:
    """Of some times, per number."""
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        function(*arguments)
        best = min(best, time.perf_counter() - start)
    return best / arguments[0].size * 1e9


# --- Table ------------------------------------------------------------------------------------------------


def row(name: str, dtype: str, measurement: Measurement) -> str:
    """A line of the table in the documentation."""
    case = CASES[name]
    low, high = case.domain
    domain = "all" if (low, high) == (-np.inf, np.inf) else f"{low:g} to {high:g}"
    arguments = ", ".join(str(np.dtype(dtype).type(argument)) for argument in measurement.arguments)
    return (
        f"| {name} | {dtype} | {domain} | {measurement.points:,} | {case.bound:g} | {measurement.error:.2f} "
        f"| {arguments} |"
    )


def write_table(rows: list[str], path: Path) -> None:
    """Put the table between its marks in a file."""
    columns = ("function", "dtype", "domain", "points", "bound", "greatest error", "at")
    header = f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|"
    begin, end = _MARKS
    table = "\n".join((begin, "", header, *rows, "", end))
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(f"{begin}.*{end}", lambda _: table, text, flags=re.DOTALL), encoding="utf-8")
