"""Every error that pullback raises on purpose; each says what was found, what was expected, what to do.

All derive from `PullbackError` and from the built-in class that the same mistake raises in PyTorch or
NumPy, so `except RuntimeError` and `except ValueError` in existing programs keep working.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar

import numpy as np


class Refusals:
    """Errors that are made while a user's function runs on Tensors, and of which plain code knows nothing."""

    unsupported: Sequence[Exception] = ()
    of_plain_values: Sequence[PullbackError] = ()
    """Those where a number or an array is asked for, which code in C may hide."""


refusals: ContextVar[Refusals | None] = ContextVar("refusals", default=None)
"""Those of the function that runs."""


def note_refusal(error: Exception) -> None:
    """Note an error that plain code does not raise."""
    found = refusals.get()
    if found is not None:
        found.unsupported = (*found.unsupported, error)


locators: list[Callable[[PullbackError], None]] = []
"""What completes an error where it is made: `tracebacks.locate`, whose modules import this one."""


class PullbackError(Exception):
    """The base class of pullback's own errors.

    A note says the user's line, where the message does not, and of what is wrong with arguments the function,
    with the dtypes and shapes that it was given. Of a traceback pytest and IPython show the user's
    frames, but of errors that are a defect of pullback's.
    """

    is_defect = False
    tells_call = False
    """Whether it is about the arguments of a function, which a note says with their dtypes and shapes."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        if not self.is_defect:
            for locate in locators:
                locate(self)


class ShapeError(PullbackError, RuntimeError, ValueError):
    """Shapes that do not fit together, or do not fit the operator.

    The message has the shapes: reshape one, or give it a dimension of size 1 (`x[:, None]`) that broadcasts.
    """

    tells_call = True


class DTypeError(PullbackError, RuntimeError, TypeError):
    """A dtype that is not supported, or not by this operator.

    Convert before: `x.astype(float)` of an array, `x.float()` of a Tensor. Integers have no gradient.
    """

    tells_call = True


class DimensionError(PullbackError, IndexError, ValueError):
    """A dimension or an index out of range: they count from 0, or back from -1."""

    tells_call = True


class ArgumentError(PullbackError, TypeError, ValueError):
    """An argument of the wrong kind, an option that does not exist, or options that exclude each other."""

    tells_call = True


class GradientError(PullbackError, RuntimeError):
    """A gradient that does not exist, or whose ingredients are gone (overwritten, freed, detached).

    Where a number or an array is made of what is differentiated (`float(x)`, `x.item()`, `np.asarray(x)`, a
    library that computes in C), its gradient would be lost. Leave that out, write it with functions that have
    derivatives, give it a rule (`primitive`, `custom_vjp`), or say by `stop_gradient(x)` that it is meant.
    """


class AnomalyError(GradientError):
    """A nan or an inf that arises in anomaly mode, `pullback.autograd.detect_anomaly`.

    Of a compiled function it says where; of a plain one, on the tape, only the message does.

    Attributes:
        place: the user's line, `model.py:5`.
        line: the text of that line.
        operator: the operator whose value it is.
        rule: the operator whose gradient this is part of; empty in the forward pass.
        index: the position in the value.
        value: nan, inf or -inf.
        operands: what the operator was given there, by name: a number, or an array in words.
        run: where the line runs several times, which of them; the first is 0.
        steps: of the loops around it in the code, the outermost first, which step; what a Python loop does
            first may stand in front of its loop there.
    """

    place = line = operator = rule = ""
    index: tuple[int, ...] = ()
    value = float("nan")
    operands: Mapping[str, float | str] = {}
    run: int | None = None
    steps: tuple[int, ...] = ()


class MissingRuleError(GradientError, NotImplementedError):
    """A function with rules of its own for some arguments, differentiated by another one.

    Give it a rule for that, or `stop_gradient` of the argument.
    """


class TraceError(PullbackError, RuntimeError):
    """A Python function that cannot be traced: it needs a value that does not exist yet, or leaks one."""


class LeakedTraceError(TraceError):
    """A traced value used after its trace ended. Return it from the function instead of storing it."""


class MutationError(TraceError, TypeError):
    """A traced function that changes what outlives the call as later calls could not repeat.

    It stores what it computes of arrays in a list, a dict or an attribute, or reads what it has written
    there. Return it instead, or keep it in an array. Writing into arrays is no error.
    """


class OutputError(TraceError, TypeError):
    """A result that is not what is asked for.

    A compiled function returns tensors, arrays, numbers and containers of them. What `grad` is taken of is
    one number: reduce it, with `.sum()` or `.mean()`, or take `vjp` or `jacobian`.
    """


class UnsupportedError(PullbackError, NotImplementedError, TypeError):
    """A function or an option that pullback does not have."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        note_refusal(self)


class EagerOnlyError(TraceError, UnsupportedError):
    """What cannot be traced: it has no form in generated code, or its result's shape depends on values.

    A compiled function that meets it warns once, and runs uncompiled.
    """


class ComplexResultError(EagerOnlyError):
    """A traced function with complex results, which generated code gives as pairs of real ones."""


class CompilationError(PullbackError, RuntimeError):
    """Machine code could not be made of generated source; the message names the file."""

    is_defect = True


class RecompileError(PullbackError, RuntimeError):
    """A trace or a compilation inside of `fail_on_recompile`.

    The message says what is new. Call the function with such arguments before, or have it `warmup` for them.
    """


class SeparationError(PullbackError, ValueError):
    """A function that is to be a sum over rows of data, and is none."""


class CacheFileError(PullbackError, RuntimeError, ValueError):
    """Exported machine code that is damaged or of another machine; that, or a pickle, of another version."""


class LinearAlgebraError(PullbackError, RuntimeError, np.linalg.LinAlgError):
    """A matrix that has not what is asked for: singular, not positive definite, without convergence.

    `except np.linalg.LinAlgError` catches it, in compiled functions, too.
    """

    tells_call = True


class ConvergenceError(PullbackError, ArithmeticError):
    """A solver that has found no solution: within its steps, or at all.

    The message has the number of steps and what is left. Begin nearer to the solution, or allow more steps.
    """


class GraphError(PullbackError, AssertionError):
    """A graph that breaks its own rules: a defect of a pass, never of the user's program."""

    is_defect = True
