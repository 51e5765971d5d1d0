"""What the functions share: reading arguments, dtype promotion, messages."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

import numpy as np

from ...tracer.dims import Dim, formula_of, with_formula
from ...tracer.errors import (
    ArgumentError,
    DimensionError,
    DTypeError,
    ShapeError,
    UnsupportedError,
)
from ...tracer.graph import Node
from ...tracer.operator import Operator
from ...tracer.ops import creation
from ...tracer.ops import elementwise as e
from ...tracer.origin import fail, placed
from ...tracer.spec import BOOL, CONTINUOUS, INT64, Spec, normalised_dim, normalised_dims, require_supported
from ..tape.apply import apply, refuse_complex, standing_for
from ..tensors.conversion import array_dtype, as_dtype
from ..tensors.grown_arrays import GrownArray
from ..values import dtypes
from ..values.foreign import how_to_pass
from ..values.tensor import Tensor, TorchTensor

Scalar: TypeAlias = bool | int | float | complex
Operand: TypeAlias = Tensor | np.ndarray | Scalar
Dims: TypeAlias = int | Sequence[int] | None
F = TypeVar("F", bound=Callable[..., Any])
NUMBERS = (bool, int, float, complex)
INTEGERS: tuple[type[int], Any] = (int, np.integer)
"""Types of what may be an axis, a size or a position."""
SCALARS = (*NUMBERS, np.generic)
OPERANDS = (Tensor, np.ndarray, *SCALARS)

FLOAT16, FLOAT32, FLOAT64 = (np.dtype(name) for name in ("float16", "float32", "float64"))
TORCH_NAMES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
    "float16": "Half", "float32": "Float", "float64": "Double",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip
"""How PyTorch's messages call dtypes."""

# --- arguments ----------------------------------------------------------------------------------------


def is_scalar(value: object) -> bool:
    return isinstance(value, SCALARS) and not isinstance(value, Tensor)


def is_operand(value: object) -> bool:
    return isinstance(value, OPERANDS) and not issubclass(type(value), GrownArray)  # which has its own


def operand(value: Any, function: str, argument: str = "other") -> Tensor | Scalar:
    """A tensor or a Python number; ArgumentError for anything else."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.generic):
        return cast(Scalar, value.item())
    if isinstance(value, NUMBERS):
        return value
    return tensor(value, function, argument)


def tensor(value: Any, function: str, argument: str = "input") -> Tensor:
    """A tensor; what stands for an ndarray or a number needs no gradient; ArgumentError for anything else."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray | np.generic | float | int | complex):
        found = standing_for(value)
        require_supported(array_dtype(found), function, argument)
        return found
    fail(
        ArgumentError,
        f"{function}(): argument '{argument}' must be Tensor, not {type(value).__name__}."
        + (how_to_pass(value) or " Make one with pullback.tensor(...)."),
    )


def tensors(values: Iterable[Any], function: str, argument: str = "tensors") -> list[Tensor]:
    """A non-empty list of tensors."""
    if isinstance(values, Tensor | str) or not isinstance(values, Iterable):
        kind = type(values).__name__
        fail(ArgumentError, f"{function}(): argument '{argument}' must be tuple of Tensors, not {kind}")
    found = [tensor(value, function, f"{argument}[{index}]") for index, value in enumerate(values)]
    if not found:
        fail(ArgumentError, f"{function}(): expected a non-empty list of Tensors")
    return found


ALIASES = {"axis": "dim", "keepdims": "keepdim"}


def numpy_names(function: F) -> F:
    """Let a function with `dim` and `keepdim` take NumPy's `axis` and `keepdims` as well."""

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        for alias, name in ALIASES.items() if keywords else ():
            if alias in keywords:
                if name in keywords:
                    fail(
                        ArgumentError,
                        f"{function.__name__}(): '{alias}' and '{name}' are the same; give one.",
                    )
                keywords[name] = keywords.pop(alias)
        return function(*arguments, **keywords)

    return cast(F, call)


def with_short_way(function: F, short: Callable[..., Any]) -> F:
    """The function, whose wrappers ask `short` first where no option is given.

    That takes any arguments, and says NotImplemented of what it is not for.
    """
    function.short = short  # type: ignore[attr-defined]
    return function


def matrix_named_either_way(function: F) -> F:
    """Let a function of a matrix take it as `A` and as `input`: torch.linalg calls it one or the other."""

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        named = [keywords.pop(name) for name in ("A", "input") if name in keywords]
        return function(*named, *arguments, **keywords)

    return cast(F, call)


def sizes(values: Sequence[Any]) -> tuple[int, ...]:
    """Integers given one by one or as one sequence: f(2, 3) and f((2, 3)); sizes of arrays stay such."""
    given: Any = values[0] if len(values) == 1 and isinstance(values[0], Sequence | np.ndarray) else values
    return tuple([one if type(one) is int or isinstance(one, Dim) else _size(one) for one in given])


def _size(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        fail(ArgumentError, f"sizes must be integers, found {value!r} of type {type(value).__name__}")


def one_dim(dim: int, ndim: int, function: str) -> int:
    """`dim` counted from the front."""
    if type(dim) is int and 0 <= dim < ndim:
        return dim
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer):
        fail(ArgumentError, f"{function}(): argument 'dim' must be int, not {type(dim).__name__}")
    return cast(int, placed(lambda: normalised_dim(int(dim), ndim, function)))


def own_dim(dim: int, x: Tensor, function: str) -> int:
    """`one_dim` of a tensor that must have dimensions: a number is refused."""
    if not x.ndim:
        fail(DimensionError, f"{function}(): Dimension specified as {dim} but tensor has no dimensions")
    return one_dim(dim, x.ndim, function)


def all_dims(dim: Dims, ndim: int, function: str) -> tuple[int, ...]:
    """The dims that a reduction combines: all for None and for an empty sequence."""
    if dim is None:
        return tuple(range(ndim))
    if not isinstance(dim, int | np.integer):
        listed = isinstance(dim, Sequence | np.ndarray) and not isinstance(dim, str)
        if not listed or not all(isinstance(one, int | np.integer) for one in dim):
            fail(
                ArgumentError,
                f"{function}(): argument 'dim' must be int or tuple of ints, not {dim!r} of type "
                f"{type(dim).__name__}",
            )
        if not len(dim):
            return tuple(range(ndim))
    return cast(tuple[int, ...], placed(lambda: normalised_dims(cast(Any, dim), ndim, function)))


# --- dtypes -------------------------------------------------------------------------------------------


def torch_name(x: Tensor) -> str:
    return TORCH_NAMES[array_dtype(x).name]


def require_fitting_dtype(x: Tensor, source: Tensor, function: str) -> None:
    """Refuse a tensor of which x would lose the imaginary part, the fraction, or all but the truth."""
    own, found = ("biufc".index(array_dtype(one).kind.replace("u", "i")) for one in (x, source))
    if found > own and isinstance(x, TorchTensor) and isinstance(source, TorchTensor):
        fail(
            DTypeError,
            f"{function} requires the source and destination dtypes match, got {torch_name(x)} for the "
            f"destination and {torch_name(source)} for the source. Convert the source first: "
            "source.to(input.dtype), or of complex numbers source.real.",
        )


def spec(x: Tensor) -> Spec:
    return Spec(tuple(x._value.shape), array_dtype(x))


def is_traced(x: Tensor) -> bool:
    """Whether the tensor's elements are not known yet."""
    return isinstance(x._value, Node)


def default_float() -> np.dtype:
    return dtypes.default_float()


def numpy_dtype(dtype: Any) -> np.dtype:
    """NumPy's dtype for whatever names one."""
    return dtypes.as_numpy_dtype(dtype)


def floating(value: Any, function: str, argument: str = "input") -> Tensor:
    """A tensor of floating or complex numbers: others become the default dtype, as in PyTorch's functions."""
    x = tensor(value, function, argument)
    return x if array_dtype(x).kind in CONTINUOUS else as_dtype(x, default_float())


def require_real(x: Tensor, function: str) -> Tensor:
    """The tensor; DTypeError where it is complex."""
    if array_dtype(x).kind == "c":
        refuse_complex(function)
    return x


def require_float(x: Tensor, function: str) -> None:
    if array_dtype(x).kind not in CONTINUOUS:
        fail(
            DTypeError,
            f"{function}(): expected a floating point or complex dtype, found {torch_name(x)} of shape "
            f"{tuple(x.shape)}. Convert it first, e.g. with .float().",
        )


def scalar_of(value: Scalar, dtype: np.dtype) -> Scalar:
    """The number in the kind of a dtype, so that NumPy and the graph take it as weak."""
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind == "c":
        return complex(value)
    if isinstance(value, complex):
        fail(DTypeError, f"a complex value cannot be put into a tensor of dtype {dtype}: found {value}.")
    number = float(value) if dtype.kind == "f" else int(value)
    return with_formula(number, formula_of(value)) if number == value else number


def promoted(function: str, *values: Any, as_float: bool = False, broadcast: bool = True) -> list[Any]:
    """The operands in their common dtype under PyTorch's rules, numbers left as numbers; shapes checked."""
    operands = [operand(value, function) for value in values]
    first = operands[0]
    if all(isinstance(one, Tensor) and one._value.dtype == first._value.dtype for one in operands):  # type: ignore[union-attr]
        dtype = array_dtype(cast(Tensor, first))
    else:
        if not any(isinstance(one, Tensor) for one in operands):
            operands[0] = standing_for(values[0])
        dtype = dtypes.common_dtype(*operands)
    if as_float and dtype.kind not in CONTINUOUS:
        dtype = default_float()
    if broadcast:
        require_broadcast(function, [one for one in operands if isinstance(one, Tensor)])
    return [as_dtype(one, dtype) if isinstance(one, Tensor) else scalar_of(one, dtype) for one in operands]


def promoted_pair(function: str, a: Operand, b: Operand, as_float: bool = False) -> tuple[Tensor, Tensor]:
    """Both as tensors of their common dtype, numbers as tensors without dimensions."""
    values = promoted(function, a, b, as_float=as_float)
    dtype = array_dtype(next(one for one in values if isinstance(one, Tensor)))
    first, second = (one if isinstance(one, Tensor) else filled((), one, dtype) for one in values)
    return first, second


def elementwise(
    operator: Operator, *values: Any, function: str, grad_name: str | None = None, as_float: bool = False
) -> Tensor:
    """Apply an elementwise operator after promotion."""
    return apply(operator, *promoted(function, *values, as_float=as_float), grad_name=grad_name)


def at_least_single(x: Tensor) -> Tensor:
    """Half precision as single, for sums of products: the square of 256 is beyond its largest number."""
    return as_dtype(x, FLOAT32) if array_dtype(x) == FLOAT16 else x


# --- complex numbers ----------------------------------------------------------------------------------


def conjugate(x: Tensor) -> Tensor:
    """The conjugates; a real tensor itself."""
    return apply(e.conjugate, x) if array_dtype(x).kind == "c" else x


# --- shapes -------------------------------------------------------------------------------------------


def require_broadcast(function: str, operands: Sequence[Tensor]) -> None:
    """ShapeError, in PyTorch's words, where shapes have no common one."""
    shape: tuple[int, ...] = tuple(operands[0]._value.shape)
    for other in operands[1:]:
        if other._value.shape != shape:
            shape = _common_shape(function, shape, tuple(other._value.shape))


def _common_shape(function: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(len(a), len(b))
    left, right = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    for dim in reversed(range(rank)):
        if left[dim] != right[dim] and 1 not in (left[dim], right[dim]):
            fail(
                ShapeError,
                f"{function}: The size of tensor a ({left[dim]}) must match the size of tensor b "
                f"({right[dim]}) at non-singleton dimension {dim}: shapes {a} and {b} do not broadcast. "
                "Sizes must be equal or 1; give one operand a dimension of size 1, as x[:, None], or "
                "reshape it.",
            )
    return tuple(y if x == 1 else x for x, y in zip(left, right))


def shape_list(*operands: Tensor) -> str:
    """The shapes of several tensors, for a message."""
    return " and ".join(str(tuple(one.shape)) for one in operands)


def require_rank(x: Tensor, ranks: Sequence[int], function: str, argument: str = "input") -> Tensor:
    """The tensor; ShapeError where it has another number of dimensions."""
    if x.ndim not in ranks:
        wanted = " or ".join(f"{rank}-D" for rank in ranks)
        fail(ShapeError, f"{function}(): '{argument}' must be {wanted}; found shape {tuple(x.shape)}.")
    return x


# --- arrays known from their attributes ----------------------------------------------------------------


def iota(size: int, dtype: np.dtype = INT64) -> Tensor:
    """0, 1, ... size - 1."""
    return apply(creation.iota, size=size, dtype=dtype)


def filled(shape: tuple[int, ...], value: Scalar, dtype: np.dtype) -> Tensor:
    number = scalar_of(value, dtype)
    limits = np.iinfo(dtype) if dtype.kind in "iu" else None
    if limits is not None and isinstance(number, int) and not limits.min <= number <= limits.max:
        fail(DTypeError, f"{number} is no {dtype}. Give a number of that dtype, or convert the tensor first")
    return apply(creation.full, shape=shape, value=number, dtype=dtype)


def unsupported(function: str, option: str, instead: str) -> NoReturn:
    fail(UnsupportedError, f"{function}(): {option} is not supported. {instead}")


def truth(x: Tensor) -> Tensor:
    """x as bools: what is not zero is true."""
    return x if array_dtype(x) == BOOL else apply(e.not_equal, x, 0)


def common_dtype(*operands: Any) -> np.dtype:
    """The dtype in which an operator on these tensors and numbers computes."""
    return dtypes.common_dtype(*operands)
