"""How the public functions that follow from an operator's declaration take arguments.

A convention makes the function of an operator: it decides what becomes of the operands' dtypes, what is
refused, and which options there are. `CONVENTIONS` has them by family and by what declarations call them.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ...tracer import ops  # noqa: F401  all declarations
from ...tracer.errors import ArgumentError, DTypeError, ShapeError
from ...tracer.operator import WRITTEN_OUT, Operator, operators
from ...tracer.spec import BOOL, CONTINUOUS, INT64
from ..tape.apply import apply
from ..tape.direct import direct
from ..values.tensor import Tensor
from ..values.value_kinds import Auxiliary, settled
from .common import (
    Dims,
    Operand,
    all_dims,
    array_dtype,
    as_dtype,
    fail,
    filled,
    floating,
    numpy_dtype,
    numpy_names,
    one_dim,
    operand,
    promoted,
    promoted_pair,
    require_broadcast,
    tensor,
    truth,
    with_short_way,
)  # fmt: skip
from .shapes.movement import reshape_to

F = TypeVar("F", bound=Callable[..., Any])
Function = Callable[..., Tensor]
Convention = Callable[[Operator], Function]

# --- of elements --------------------------------------------------------------------------------------


def _real(operator: Operator) -> Function:
    """Of real numbers: integers and bools become the default floating dtype."""
    name = operator.public_name
    # NumPy and SciPy, which alone evaluate it, take arrays
    operands = promoted_pair if operator.family == "eager" else promoted

    def of_one(input: Operand) -> Tensor:
        return apply(operator, floating(input, name))

    def of_two(input: Operand, other: Operand) -> Tensor:
        return apply(operator, *operands(name, input, other, as_float=True))

    return direct(operator, _named(of_one if len(operator.operands) == 1 else of_two, name))


def _number(operator: Operator) -> Function:
    """Of numbers of any dtype, two in their common one."""
    name = operator.public_name

    def of_one(input: Operand) -> Tensor:
        return apply(operator, tensor(input, name))

    def of_two(input: Operand, other: Operand) -> Tensor:
        return apply(operator, *promoted(name, input, other))

    return direct(operator, _named(of_one if len(operator.operands) == 1 else of_two, name))


def _named(function: Function, name: str) -> Function:
    """What Python calls it where arguments do not fit."""
    function.__name__ = function.__qualname__ = name
    return function


def _rounding(operator: Operator) -> Function:
    """Of floats; integers stay as they are, and bools raise DTypeError."""
    name = operator.public_name

    def function(input: Operand) -> Tensor:
        return rounded(operator, input, name)

    return function


def rounded(operator: Operator, input: Operand, name: str) -> Tensor:
    """A float by the operator; an integer as it is."""
    x = tensor(input, name)
    if array_dtype(x).kind == "b":
        fail(DTypeError, f"\"{name}\" not implemented for 'Bool': found a bool tensor; convert it first.")
    return apply(operator, x) if array_dtype(x).kind in CONTINUOUS else x


def _test(operator: Operator) -> Function:
    """A question about floats, to which all integers have the same answer."""
    name, of_integers = operator.public_name, bool(operator.evaluate(0.0))

    def function(input: Operand) -> Tensor:
        x = tensor(input, name)
        if array_dtype(x).kind in CONTINUOUS:
            return apply(operator, x)
        answer = filled(tuple(x.shape), of_integers, BOOL)
        return answer if type(x) is Auxiliary else settled(answer, (x,))

    return function


def _truth(operator: Operator) -> Function:
    """Of truth values: what is not zero is true."""
    name = operator.public_name

    def of_one(input: Operand) -> Tensor:
        return apply(operator, truth(tensor(input, name)))

    def of_two(input: Operand, other: Operand) -> Tensor:
        pair = [operand(input, name, "input"), operand(other, name)]
        if not any(isinstance(one, Tensor) for one in pair):
            fail(ArgumentError, f"{name}(): argument 'input' must be Tensor, not {type(input).__name__}")
        truths = [truth(one) if isinstance(one, Tensor) else bool(one) for one in pair]
        require_broadcast(name, [one for one in truths if isinstance(one, Tensor)])
        return apply(operator, *truths)

    return of_one if len(operator.operands) == 1 else of_two


# --- along dimensions ---------------------------------------------------------------------------------


def accumulated(x: Tensor, dtype: Any) -> Tensor:
    """x in the dtype that a sum of it has: int64 for integers and bools, unless `dtype` says otherwise."""
    if dtype is not None:
        return as_dtype(x, numpy_dtype(dtype))
    return x if array_dtype(x).kind in CONTINUOUS else as_dtype(x, INT64)


def grad_suffix(dim: Dims) -> str:
    """PyTorch has two functions: over all dimensions, and over some."""
    return "Backward0" if dim is None else "Backward1"


def require_elements(x: Tensor, dims: Sequence[int], function: str) -> None:
    for dim in dims:
        if not x._value.shape[dim]:
            fail(
                ShapeError,
                f"{function}(): Expected reduction dim {dim} to have non-zero size, found shape "
                f"{tuple(x.shape)}. Nothing has no {function}.",
            )


def reduced_directly(operator: Operator, grad_name: str | None = None, **attributes: Any) -> Function:
    """The short way of a reduction over all dimensions or one; what it is not for is NotImplemented.

    Args:
        grad_name: what the node is called whichever they are.
        attributes: further ones of the operator.
    """
    of_all = direct(operator, grad_name=grad_name or f"{operator.grad_fn}{grad_suffix(None)}")
    of_one = direct(operator, grad_name=grad_name or f"{operator.grad_fn}{grad_suffix(0)}")

    def function(x: Any = None, axis: Any = None, keepdims: bool = False, *more: Any) -> Any:
        if not isinstance(x, Tensor) or more:
            return NotImplemented
        rank = len(x._value.shape)
        if axis is None:
            return of_all(x, dims=tuple(range(rank)), keepdim=bool(keepdims), **attributes)
        if type(axis) is int and -rank <= axis < rank:
            return of_one(x, dims=(axis % rank,), keepdim=bool(keepdims), **attributes)
        return NotImplemented

    return function


def _accumulation(operator: Operator) -> Function:
    """Integers and bools are accumulated in int64, unless `dtype` says otherwise."""
    name, short = operator.public_name, reduced_directly(operator)

    def function(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
        if dtype is None and (result := short(input, dim, keepdim)) is not NotImplemented:
            return result
        x = accumulated(tensor(input, name), dtype)
        dims = all_dims(dim, x.ndim, name)
        grad_name = operator.grad_fn + grad_suffix(dim)
        return apply(operator, x, dims=dims, keepdim=bool(keepdim), grad_name=grad_name)

    return with_short_way(function, short)


def _extreme(operator: Operator) -> Function:
    """One of the elements: of nothing there is none, which raises ShapeError."""
    name = operator.public_name

    def function(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
        x = tensor(input, name)
        dims = all_dims(dim, x.ndim, name)
        require_elements(x, dims, name)
        return apply(operator, x, dims=dims, keepdim=bool(keepdim))

    return function


def _truth_of_all(operator: Operator) -> Function:
    """A bool, but of uint8 uint8."""
    name = operator.public_name

    def function(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
        x = tensor(input, name)
        result = apply(operator, truth(x), dims=all_dims(dim, x.ndim, name), keepdim=bool(keepdim))
        return as_dtype(result, np.dtype("uint8")) if array_dtype(x) == np.uint8 else result

    return function


def _position(operator: Operator) -> Function:
    """An index, int64: in the flattened tensor, or along a dimension."""
    name = operator.public_name

    def function(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        return position_of(operator, input, dim, keepdim, name)

    return function


def position_of(operator: Operator, input: Tensor, dim: int | None, keepdim: bool, name: str) -> Tensor:
    """The index that a search finds."""
    x = tensor(input, name)
    flat = dim is None or not x.ndim
    if flat:
        rank, x, dim = x.ndim, reshape_to(x, (x.numel(),)), 0
    dim = one_dim(dim or 0, x.ndim, name)
    require_elements(x, (dim,), name)
    found = apply(operator, x, dims=(dim,), keepdim=bool(keepdim) and not flat)
    return reshape_to(found, (1,) * rank) if flat and keepdim and rank else found


def running_directly(operator: Operator, of_vector: int | None = None) -> Function:
    """The short way of what runs along a dimension; `of_vector` is that of a vector where none is given."""
    short = direct(operator)

    def function(x: Any = None, axis: Any = None, *more: Any) -> Any:
        if not isinstance(x, Tensor) or more:
            return NotImplemented
        rank = len(x._value.shape)
        if axis is None and rank == 1:
            axis = of_vector
        return short(x, dim=axis % rank) if type(axis) is int and -rank <= axis < rank else NotImplemented

    return function


def _running(operator: Operator) -> Function:
    """Integers and bools are accumulated in int64, unless `dtype` says otherwise."""
    name = operator.public_name

    def function(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
        x = accumulated(tensor(input, name), dtype)
        dim = one_dim(dim, x.ndim, name)
        if x.ndim:
            return apply(operator, x, dim=dim)
        return reshape_to(apply(operator, reshape_to(x, (1,)), dim=0), ())

    return with_short_way(function, running_directly(operator))


# --- by name ----------------------------------------------------------------------------------------

_OF_ELEMENTS: dict[str, Convention] = {
    "real": _real, "number": _number, "rounding": _rounding, "test": _test, "truth": _truth,
}  # fmt: skip
CONVENTIONS: dict[str, dict[str, Convention]] = {
    "elementwise": _OF_ELEMENTS,
    "eager": _OF_ELEMENTS,
    "reduction": {
        "accumulated": _accumulation, "extreme": _extreme, "truth": _truth_of_all, "position": _position,
    },
    "scan": {"running": _running},
}  # fmt: skip
"""By family of operators the conventions, by the names that `Operator.arguments` has for them."""


def function_of(operator: Operator) -> Function:
    """The public function of an operator, with its name and its documentation."""
    convention = CONVENTIONS[operator.family][operator.arguments]
    function = convention(operator)
    _named(function, operator.public_name)
    function.__doc__ = _documentation(operator, convention)
    return function if operator.family in ("elementwise", "eager") else numpy_names(function)


def _documentation(operator: Operator, convention: Convention) -> str:
    where = ELEMENT_BY_ELEMENT if operator.family in ("elementwise", "eager") else ""
    note = "Code calls Python for it." if operator.family == "eager" else operator.note
    summary = f"{_capitalised(operator.doc)}{where}. {note}".rstrip()
    example = "Example:\n" + textwrap.indent(_example(operator), "    ")
    parts = [summary, str(convention.__doc__), _arguments(operator), example]
    return textwrap.indent("\n\n".join(parts), "    ").strip() + "\n"


def _capitalised(phrase: str) -> str:
    """A phrase as the beginning of a sentence; a formula stays."""
    return phrase[0].upper() + phrase[1:] if re.match(r"[a-z]{2,} ", phrase) else phrase


def _arguments(operator: Operator) -> str:
    if operator.family == "reduction":
        return OF_REDUCTIONS
    if operator.family == "scan":
        return OF_SCANS
    return OF_ONE if len(operator.operands) == 1 else OF_TWO.format(" and ".join(operator.operands))


def _example(operator: Operator) -> str:
    name, (arguments, result) = operator.public_name, operator.example
    if result:
        return f">>> {name}({arguments})\n{result}"
    numbers = [f"tensor([{max(operator.domain[0], 0.25)}])"] * len(operator.operands)
    return f">>> {name}({', '.join(numbers)})"


ELEMENT_BY_ELEMENT = ", element by element"
OF_ONE = """Args:
    input: a tensor of any shape.

Returns:
    A tensor of the same shape.

Raises:
    ArgumentError: `input` is no tensor."""
OF_TWO = """Args:
    input, other: {}; tensors whose shapes broadcast, or one of them a number.

Returns:
    A tensor of the common shape.

Raises:
    ShapeError: the shapes do not broadcast."""
OF_REDUCTIONS = """Args:
    input: a tensor.
    dim: the dimension or dimensions that are combined; by default all.
    keepdim: leave them with size 1.

Raises:
    DimensionError: there is no such dimension."""
OF_SCANS = """Args:
    input: a tensor.
    dim: the dimension.

Returns:
    A tensor of the same shape."""

# --- the functions ------------------------------------------------------------------------------------

MODULES = {"pullback": "declared", "special": "declared_special", "nn.functional": "declared_functional"}
"""By namespace the module that has the functions."""


def _functions() -> dict[str, dict[str, Function]]:
    found: dict[str, dict[str, Function]] = {namespace: {} for namespace in MODULES}
    for operator in operators():
        if operator.torch and operator.arguments != WRITTEN_OUT:
            names = [one.rpartition(".") for one in operator.torch]
            function = function_of(operator)
            function.__module__ = f"{__package__}.{MODULES[names[0][0] or 'pullback']}"
            for namespace, _, name in names:
                found[namespace or "pullback"][name] = function
    return found


FUNCTIONS = _functions()
"""By namespace and name the functions that follow from declarations alone."""
OFFERED = {name: operator for operator in operators() for name in operator.torch if "." not in name}
"""By name the operators that are methods as well, those whose functions are written out too."""
