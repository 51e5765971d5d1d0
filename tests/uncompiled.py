"""Programs without machine code: run by the interpreter of the loop IR, with which Python's must agree.

The interpreter of the loop IR finds accesses that go wrong: its scratch begins as nan, each access is
compared with extents, and what threads would share runs in random order.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

import pullback as pb
from pullback.codegen import ir
from pullback.codegen.ir.interpret import TooLong
from pullback.codegen.program import Program, run_by
from pullback.tracer.trace import is_tracing

MOST_ELEMENTS = 5000
"""Of a program's values: the interpreter of the loop IR takes some 10 microseconds for each."""
MOST_STATEMENTS = 20_000
"""Of a program whose loops end where data says so: what follows is as what came before."""
BY_PYTHON = 4
"""Of the programs one in so many has its text written and run by Python as well."""
TOLERANCE = 1e6
"""In units of the last place, of what gradients magnify."""


def run_uncompiled(program: Program, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """What a call computes; of a small program, with all that only one side of a choice writes as nan."""
    from extent import is_drawn  # which imports this

    if sum(node.spec.size for node in program.graph.nodes if not node.is_input) > MOST_ELEMENTS:
        return program.run_uncompiled(arrays)
    operators = " ".join(node.operator.name for node in program.graph.nodes)
    given = [np.array(array) for array in arrays]
    found = program.run_uncompiled(arrays) if is_drawn(operators, BY_PYTHON) else None
    try:
        checked = program.run_interpreted(given, most=MOST_STATEMENTS)
    except TooLong:
        return program.run_uncompiled(arrays) if found is None else found
    if found is None:
        return checked
    statements = [one for kernel in program.lowered.kernels for one in kernel.function.statements]
    floats = {one.dtype for one in ir.expressions(statements) if one.dtype.kind == "f"}
    precision = max((float(np.finfo(dtype).eps) for dtype in floats), default=0.0)
    for node, one, other in zip(program.graph.outputs, found, checked, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        if node not in program.residuals:  # of which some may be left out
            _agree(one, other, precision)
    return checked


def _agree(one: np.ndarray, other: np.ndarray, precision: float) -> None:
    """`precision` is that of the least precise floats; of what is made of floats the last bit may decide."""
    if one.dtype.kind != "f":
        if not precision:
            np.testing.assert_array_equal(one, other)
        return
    tolerance = TOLERANCE * precision
    scale = np.abs(one[np.isfinite(one)]).max(initial=1.0)
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


def uncompiled() -> AbstractContextManager[None]:
    """Programs are not compiled, which takes less time."""
    return run_by(run_uncompiled)


def counts(x: Any) -> Any:
    """How many elements are 0, 1 and 2, by a function that is not compiled."""
    if is_tracing():
        raise pb.errors.EagerOnlyError("counts() has no form in code")
    return pb.histogram(1.0 * x.reshape(-1), 3, range=(-0.5, 2.5))[0]


def normals(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) / max(shape, default=1) ** 0.5 for shape in shapes]


def gradient_source(function: Callable[..., Any], *shapes: tuple[int, ...]) -> str:
    """The source of value and gradient, once its results have been compared with eager ones."""
    arrays = normals(*shapes)
    positions = tuple(range(len(arrays)))
    both = pb.value_and_grad(pb.compile(function), argnums=positions)
    program = both.programs(*arrays)[0]
    value, gradients = pb.value_and_grad(function, argnums=positions)(*arrays)
    for found, wanted in zip(run_uncompiled(program, arrays), (value, *gradients), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    return program.source


def value_source(function: Callable[..., Any], *shapes: tuple[int, ...]) -> str:
    """The source of the value alone, once compared."""
    arrays = normals(*shapes)
    program = pb.compile(function).programs(*arrays)[0]
    (found,) = run_uncompiled(program, arrays)
    np.testing.assert_allclose(found, function(*arrays), rtol=1e-10, atol=1e-12)
    return program.source
