"""NumPy's front: what np.sin(x), np.add(a, x, out=...), a + x and np.sum(x) do where x is a Tensor.

NumPy hands such calls to `Tensor.__array_ufunc__` and `Tensor.__array_function__`, which are `array_ufunc`
and `array_function` here. Names, defaults and dtype promotion are NumPy's (integers divide to float64,
float32 beside int32 is float64); the computing is done by the same functions as for PyTorch's front, so it
is recorded on the tape, and traced, alike.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from typing import Any, NoReturn

import numpy as np

from ...tracer.dims import python_type
from ...tracer.errors import DTypeError, UnsupportedError
from ...tracer.operator import Operator, Value, operators
from ...tracer.ops.elementwise import logical_and, logical_or, logical_xor, power
from ...tracer.spec import CONTINUOUS, SUPPORTED, spec_of
from ...tracer.trace import current_trace, innermost
from ...tracer.users_frames import show_users_frames
from ..autograd.foreign_calls import call_python, outside_of_traces, sample_of
from ..bytecode.library_calls import inside_of_library, public_name
from ..functions import PUBLIC, offered
from ..functions.common import array_dtype, as_dtype, fail, is_traced, scalar_of
from ..functions.conventions import reduced_directly, running_directly
from ..functions.elements.arithmetic import clamped_directly, pow_directly
from ..functions.elements.comparison import where_directly
from ..functions.matrices.contraction import (
    dot_directly,
    matmul_directly,
    outer_directly,
    tensordot_directly,
    trace_directly,
)
from ..functions.matrices.einsum import einsum_directly
from ..functions.matrices.linalg import solved_directly
from ..functions.reductions.ordering import sorted_directly
from ..functions.reductions.reduction import differences_directly, mean_directly
from ..functions.reductions.statistics import norm_directly, std_directly, var_directly
from ..functions.shapes.joining import (
    appended_directly,
    cat_directly,
    columns_directly,
    rows_directly,
    stack_directly,
)
from ..functions.shapes.movement import (
    exchanged_directly,
    permuted_directly,
    raveled_directly,
    reshape_directly,
    squeezed_directly,
    tiled_directly,
    with_dim_directly,
)
from ..functions.shapes.parts import diag_directly, rolled_directly, tril_directly, triu_directly
from ..tape.apply import apart_from, apply, lay_in_order, of_kind, standing_for, wrap
from ..tape.composed import composed
from ..tape.direct import direct, unsupported
from ..tensors.conversion import tensor_of
from ..tensors.grown_arrays import GrownArray
from ..values.foreign import PandasObject
from ..values.late_rules import rules_for
from ..values.modes import is_recording
from ..values.tensor import Tensor, TorchTensor
from ..values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber, settled, tensors_among
from .plain_calls import Call, require_taken, written
from .values import calls_from_scipy, floats, require_castable, without_tensors

# --- ufuncs -------------------------------------------------------------------------------------------

_SAME_NAME = "deg2rad fmax fmin fmod logaddexp2 logit matmul positive rad2deg signbit xlogy"
_COMPOSED = {name: name for name in _SAME_NAME.split()} | {
    "conjugate": "conj_physical", "sign": "sgn", "degrees": "rad2deg", "radians": "deg2rad",
    "log_expit": "logsigmoid",
}  # fmt: skip


def _of_floats(operator: Operator) -> Callable[..., Tensor]:
    """The function of an operator that PyTorch does not have, of operands in their common dtype."""
    return lambda *operands: apply(operator, *floats(*operands))


UFUNCS = {
    name: offered(one) if one.torch else _of_floats(one)
    for one in operators()
    for name in (*one.numpy, *one.scipy)
    if one.torch or one.scipy
} | {name: PUBLIC[public] for name, public in _COMPOSED.items()}
"""By the names of NumPy's and SciPy's ufuncs the functions that do the same: of operators, which say so, and
some that are made of several operators."""


def _is_same_ufunc(real: Any, operator: Operator) -> bool:
    """Whether a function of NumPy's does what the operator does, in every dtype."""
    is_named_so = getattr(real, "__name__", "") == operator.name
    return isinstance(real, np.ufunc) and (real is operator.evaluate or is_named_so)


OF_ELEMENTS = ("elementwise", "eager")
"""Families of operators that compute element by element."""
DIRECT: dict[str, Callable[..., Any]] = {
    name: direct(one, of_numpy=True)
    for one in operators()
    if one.family in OF_ELEMENTS and one is not power
    for name in (*one.numpy, *one.scipy)
    if name in one.scipy or _is_same_ufunc(getattr(np, name), one)
} | {"power": pow_directly, "matmul": matmul_directly}
"""By the names of NumPy's and SciPy's ufuncs that are operators, what they do on floating arrays of one
dtype, where nothing is converted; those of bits on truth values."""
OF_TRUTH = {"and": logical_and, "or": logical_or, "xor": logical_xor}
DIRECT |= {f"bitwise_{name}": direct(one, of_numpy=True, kinds="b") for name, one in OF_TRUTH.items()}


class _DirectOf(dict[np.ufunc, Callable[..., Any] | None]):
    """By ufunc its short way: `DIRECT`, which goes by names that NumPy makes anew whenever it is asked, else
    that of what is composed."""

    def __missing__(self, ufunc: np.ufunc) -> Callable[..., Any] | None:
        short = DIRECT.get(ufunc.__name__)
        if short is None and ufunc.nout == 1:
            short = composed(functools.partial(_ufunc_in_the_ordinary_way, ufunc))
        self[ufunc] = short
        return short


def _ufunc_in_the_ordinary_way(ufunc: np.ufunc, *inputs: Any) -> Any:
    result = fresh(called(ufunc, inputs), inputs)
    return with_numbers_of_numpy(ufunc, settled(result, without_lists(inputs)))


_direct_of = _DirectOf()
DIRECT_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{
        getattr(np, name): reduced_directly(one)
        for one in operators("reduction")
        if one.arguments in ("accumulated", "extreme")
        for name in one.numpy
    },
    np.mean: mean_directly,
    np.dot: dot_directly,
    np.outer: outer_directly,
    np.stack: stack_directly,
    np.concatenate: cat_directly,
    np.diff: differences_directly,
    np.reshape: reshape_directly,
    np.transpose: permuted_directly,
    np.where: where_directly,
    np.roll: rolled_directly,
    np.clip: clamped_directly,
    np.sort: sorted_directly,
    np.ravel: raveled_directly,
    np.tile: tiled_directly,
    np.einsum: einsum_directly,
    **{
        getattr(np, name): running_directly(one, of_vector=0)
        for one in operators("scan")
        if one.arguments == "running"
        for name in one.numpy
    },
    np.linalg.solve: solved_directly,
    np.linalg.norm: norm_directly,
    np.var: var_directly,
    np.std: std_directly,
    np.tril: tril_directly,
    np.triu: triu_directly,
    np.trace: trace_directly,
    np.diag: diag_directly,
    np.tensordot: tensordot_directly,
    np.hstack: columns_directly,
    np.vstack: rows_directly,
    np.append: appended_directly,
    np.swapaxes: exchanged_directly,
    np.expand_dims: with_dim_directly,
    np.squeeze: squeezed_directly,
}
"""The same for functions of one or two arguments, or of an axis and `keepdims`."""


class _ShortOf(dict[Any, Callable[..., Any]]):
    """By function its short way: `DIRECT_FUNCTIONS`, else that of what is composed and has its own memory."""

    def __missing__(self, function: Any) -> Callable[..., Any]:
        short, way = DIRECT_FUNCTIONS.get(function), functools.partial(_in_the_ordinary_way, function)
        if not getattr(FUNCTIONS.get(function), "shares", True):
            short = composed(way, short)
        short = short or unsupported
        self[function] = short
        return short


_short_of = _ShortOf()
OF_THREE = frozenset((np.where, np.roll, np.clip, np.einsum, np.swapaxes, np.tensordot))
"""Those of up to three arguments."""
AXIS_OPTIONS = {"axis", "keepdims"}
NUMBERS = (bool, int, float, complex)
HARMLESS = 0.5
"""A number at which every function but arccosh has a derivative."""
VALUES = (Tensor, *NUMBERS)
WEAK = {"f": float, "i": int, "c": complex}
"""What a Python number promotes as, by the kind of its dtype; a bool has the dtype of NumPy's."""
FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""NumPy's function -> what it does on Tensors; see `functions`."""
OF_OTHERS: dict[str, Callable[..., Any]] = {}
"""Ufuncs that are made of other functions; see `ufuncs`, as for the next two."""
OF_COMPLEX: dict[str, Callable[..., Any]] = {}
"""Ufuncs that are made of other functions where an operand is complex; see `complex_order`."""
OPTIONS: dict[str, set[str]] = {}
"""The options of those that have any."""
METHODS: dict[str, Callable[..., Any]] = {}
"""`reduce`, `accumulate`, ...: called with the ufunc, its inputs and options."""
IN_DTYPE_OF_OUT = ("reduce", "accumulate", "reduceat")
"""Methods that compute in the dtype of `out`, if none is given."""
NO_OPTIONS: Mapping[str, Any] = {}
KINDS = frozenset((np.ndarray, TorchTensor, NumpyTensor, NumpyScalar, PythonNumber))
OPERANDS = (*VALUES, np.ndarray, list, tuple, np.generic, PandasObject)


def array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """`Tensor.__array_ufunc__`: a ufunc with a Tensor among its inputs or outputs.

    Raises:
        UnsupportedError: pullback does not have the ufunc, its method or an option.
        DTypeError: no loop of the ufunc fits the dtypes.

    Example:
        >>> np.add(np.ones(2), Tensor([1.0, 2.0]))
        tensor([2., 3.], dtype=torch.float64)
    """
    try:
        if method == "__call__" and not options:
            short = _direct_of[ufunc]
            if short is not None and (result := short(*inputs)) is not NotImplemented:
                return result
        operands = (inputs[0], *inputs[2:]) if method == "at" else inputs  # whose second is an index
        if not all(map(_is_operand, operands)):
            return NotImplemented
        out = options.pop("out", None)
        mask = options.pop("where", True) if method == "__call__" else True
        if mask is not True:
            if out is None:
                fail(
                    UnsupportedError,
                    f"{public_name(ufunc)}: where without out leaves elements that nobody has set. Use "
                    "numpy.where, or give out.",
                )
            require_taken(Call(ufunc, inputs, {**options, "where": mask}), out)
            result = _call_where(ufunc, inputs, options, mask, out[0])
        elif method == "__call__":
            result = fresh(called(ufunc, inputs, options), inputs)
        elif method in METHODS:
            result = METHODS[method](ufunc, *inputs, **options)
        else:
            unknown(f"{public_name(ufunc)}.{method}")
        if out is not None:
            call = Call(ufunc if method == "__call__" else getattr(ufunc, method), inputs, options)
            in_dtype = method in IN_DTYPE_OF_OUT and options.get("dtype") is None
            compute = functools.partial(METHODS[method], ufunc, *inputs, **options) if in_dtype else None
            return written(result, out, call, compute)
        return with_numbers_of_numpy(ufunc, settled(result, without_lists(inputs)))
    except BaseException as error:
        show_users_frames(error)
        raise


def fresh(result: Any, given: Iterable[Any], in_order: bool | str = False, call: Call | None = None) -> Any:
    """What a function of NumPy's gives, as a copy where it shows the memory of what it was given.

    Of arrays in C's order it lies in this order (`in_order`), however it was made: so NumPy shows it in
    another shape, where others are copied. `call` is given where NumPy is asked how it lies.
    """
    kind = type(result)
    if issubclass(kind, (list, tuple)):
        calls = [None if call is None else call.part(place) for place in range(len(result))]
        own = [fresh(one, given, in_order, part) for one, part in zip(result, calls)]
        return result if all(map(is_, own, result)) else kind(own)
    if not issubclass(kind, Tensor) or issubclass(kind, NumpyScalar):
        return result
    tensors = list(tensors_among(given))
    for one in tensors:
        result = apart_from(one, result)
    if in_order and len(result._value.shape) > 1:
        lay_in_order(result, [one._value for one in tensors], call or in_order == "K")
    return result


def takes_options(short: Callable[..., Any]) -> bool:
    """Whether a short way takes other options than those of axes, by their names."""
    return getattr(short, "takes_options", False)


def takes_any(short: Callable[..., Any]) -> bool:
    """Whether it takes any number of arguments, and options of any name."""
    return getattr(short, "takes_any", False)


def without_lists(operands: Iterable[Any]) -> list[Any]:
    """The operands of a ufunc that decide the kind of its result: of a list NumPy makes an array first."""
    return [one for one in operands if not issubclass(type(one), (list, tuple))]


def is_operand(value: Any) -> bool:
    """Whether a value is computed with, and not one that has operators of its own."""
    return isinstance(value, OPERANDS) and not issubclass(type(value), GrownArray)


def _is_operand(value: Any) -> bool:
    if isinstance(value, OPERANDS):
        return is_operand(value)
    return getattr(type(value), "__array_ufunc__", None) is None and hasattr(value, "__array__")


def unknown(name: str) -> NoReturn:
    fail(
        UnsupportedError,
        f"{name}{inside_of_library()} is not supported on a Tensor. Write it with supported functions, or, "
        "where no gradient is needed, call it on numpy.asarray(pullback.stop_gradient(x)).",
    )


def without_rule(ufunc: np.ufunc, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """What a ufunc gives of which no derivative is known: code calls it as it is.

    Raises:
        UnsupportedError: a derivative is asked for, or it gives what is no number.
    """
    are_arrays = [isinstance(one, Tensor | np.ndarray) for one in inputs]
    tensors = [standing_for(one) for one, is_array in zip(inputs, are_arrays) if is_array]
    in_trace = any(map(is_traced, tensors))
    in_body = in_trace and bool(current_trace().bodies)  # where all may have a gradient
    if is_recording() and any(one.requires_grad for one in tensors) and not in_body:
        unknown(public_name(ufunc))

    def run(*values: Any) -> tuple[Any, ...]:
        waiting = (one.payload if isinstance(one, Tensor) else one for one in values)
        given = [next(waiting) if is_array else one for one, is_array in zip(inputs, are_arrays)]
        found = ufunc(*given, **options)
        return found if isinstance(found, tuple) else (found,)

    sample = outside_of_traces(run, *map(sample_of, tensors))
    if any(np.asarray(one).dtype not in SUPPORTED for one in sample):
        unknown(public_name(ufunc))
    if not in_trace:
        results = list(map(wrap, sample))
    else:
        fixed = [repr(one) for one, is_array in zip(inputs, are_arrays) if not is_array]
        key = ufunc, tuple(fixed), tuple(map(type, inputs)), repr(sorted(options.items()))
        specs = [spec_of(np.asarray(one)) for one in sample]
        results = call_python(without_rule, key, ufunc.__name__, run, tensors, specs)
    return results[0] if len(results) == 1 else tuple(results)


def called(ufunc: np.ufunc, inputs: Sequence[Any], options: Mapping[str, Any] = NO_OPTIONS) -> Any:
    """What the ufunc gives for Tensors, numbers and whatever becomes an array."""
    name = ufunc.__name__
    if name not in UFUNCS and name not in OF_OTHERS:
        rules_for("scipy")  # which adds to them
    given = dict(options)
    casting = given.pop("casting", "same_kind")
    dtype = None if name in OF_OTHERS else given.pop("dtype", None)
    unsupported = set(given) - OPTIONS.get(name, set())
    if unsupported:
        fail(
            UnsupportedError, f"{public_name(ufunc)}: {', '.join(unsupported)} is not supported on a Tensor."
        )
    if name in OF_OTHERS:
        return OF_OTHERS[name](*_floats_of_loop(ufunc, inputs, casting), **given)
    function = UFUNCS.get(name)
    if function is None and dtype is None:
        return without_rule(ufunc, inputs, options)
    if function is None:
        unknown(f"{public_name(ufunc)} with dtype")
    operands, result_dtype = converted(ufunc, inputs, dtype, casting)
    if name in OF_COMPLEX and any(map(np.iscomplexobj, operands)):
        function = OF_COMPLEX[name]
    return as_dtype(function(*operands), result_dtype)


def _call_where(
    ufunc: np.ufunc, inputs: Sequence[Any], options: dict[str, Any], mask: Any, out: Any
) -> Tensor:
    """The ufunc where the mask holds, and what `out` is elsewhere.

    There the ufunc gets numbers that are in its domain, so that nothing undefined reaches a gradient.
    """
    chosen, harmless = tensor_of(mask), 1.5 if ufunc is np.arccosh else HARMLESS
    safe = []
    for one in inputs:
        x = tensor_of(one)
        number = scalar_of(harmless if array_dtype(x).kind in CONTINUOUS else True, array_dtype(x))
        is_number = isinstance(one, NUMBERS) and not isinstance(one, Tensor)
        safe.append(one if is_number else PUBLIC["where"](chosen, x, number))
    former = tensor_of(out)
    result = as_dtype(called(ufunc, safe, options), array_dtype(former))
    return PUBLIC["where"](chosen, result, former)


def _weak(value: Any) -> Any:
    """What NumPy's promotion takes for an input: a dtype, or the type of a Python number.

    NumPy knows Python's own numbers alone as weak, no subclass as `enum.IntEnum`.
    """
    if isinstance(value, Tensor):
        dtype = array_dtype(value)
        return WEAK.get(dtype.kind, dtype) if type(value) is PythonNumber else dtype
    kind = python_type(value)
    return kind if kind in (int, float, complex) else np.asarray(value).dtype


def converted(
    ufunc: np.ufunc, inputs: Sequence[Any], dtype: Any = None, casting: str = "same_kind"
) -> tuple[list[Any], np.dtype]:
    """The inputs in the dtypes that NumPy's own loop would have, and the dtype of its result."""
    values = [one if isinstance(one, VALUES) else tensor_of(one) for one in inputs]
    asked = None if dtype is None else np.dtype(getattr(dtype, "numpy", dtype))
    loop = _loop(ufunc, tuple(map(_weak, values)), asked, casting)
    if loop[-1].kind == "b" and loop[0].kind in "iu" and len(values) == 2:
        values, loop = _comparable(values, loop)
    if loop[-1].kind == "b":  # a bit needs no half precision, which compiled code does not have
        loop = tuple(np.dtype("float32") if one == np.float16 else one for one in loop)
    operands = [
        _as_operand(one, kind) if isinstance(one, Tensor) else scalar_of(one, kind)
        for one, kind in zip(values, loop)
    ]
    if not any(isinstance(one, Tensor) for one in operands):
        operands = [wrap(np.asarray(one, kind)) for one, kind in zip(values, loop)]  # numbers alone
    return operands, loop[-1]


def _floats_of_loop(ufunc: np.ufunc, inputs: Sequence[Any], casting: str) -> list[Any]:
    """The inputs, floats among them with the precision of the ufunc's own loop, which may be higher."""
    loop = _loop(ufunc, tuple(map(_weak, inputs)), None, casting)
    return [
        as_dtype(one, kind) if isinstance(one, Tensor) and array_dtype(one).kind == kind.kind == "f" else one
        for one, kind in zip(inputs, loop)
    ]


def _comparable(values: list[Any], loop: tuple[np.dtype, ...]) -> tuple[list[Any], tuple[np.dtype, ...]]:
    """Two integers, one of Python's that the dtype cannot hold as infinite: it compares so with all."""
    limits = np.iinfo(loop[0])
    beyond = [python_type(one) is int and not limits.min <= one <= limits.max for one in values]
    if not any(beyond):
        return values, loop
    infinite = [math.copysign(math.inf, one) if is_so else one for one, is_so in zip(values, beyond)]
    return infinite, (np.dtype("float64"), np.dtype("float64"), loop[-1])


def _as_operand(x: Tensor, dtype: np.dtype) -> Tensor:
    """x in a dtype; whether a Python integer fits a small one, its value must tell."""
    if type(x) is PythonNumber and dtype.kind in "iu" and dtype != array_dtype(x):
        trace = innermost()
        if trace is not None and is_traced(x):
            trace.require_no_numbers(x._value)
    return as_dtype(x, dtype)


@functools.lru_cache(maxsize=4096)
def _loop(
    ufunc: np.ufunc, kinds: tuple[Any, ...], dtype: np.dtype | None, casting: Any = "same_kind"
) -> tuple[np.dtype, ...]:
    """The dtypes of operands and results that NumPy computes in."""
    if set(kinds) == {int}:
        kinds = (np.dtype("int64"),) * len(kinds)  # NumPy compares Python's integers as objects
    fixed: dict[str, Any] = {} if dtype is None else {"signature": (*(None,) * len(kinds), dtype)}
    try:
        rule: Any = "unsafe" if casting == "unsafe" else "same_kind"  # with others it may end the process
        loop = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout), casting=rule, **fixed)
    except TypeError as error:
        found = ", ".join(map(str, kinds))
        fail(DTypeError, f"{public_name(ufunc)}: no loop for dtypes {found}: {error}")
    if casting != "same_kind":
        for kind, computed in zip(kinds, loop):
            given = kind if isinstance(kind, np.dtype) else computed
            require_castable(given, computed, casting, public_name(ufunc))
    if any(one not in SUPPORTED for one in loop):
        fail(
            DTypeError,
            f"{public_name(ufunc)}: dtypes {', '.join(map(str, loop))} are not supported on a Tensor.",
        )
    return loop


# --- functions ----------------------------------------------------------------------------------------


def array_function(
    self: Tensor, function: Any, types: Any, arguments: Sequence[Any], keywords: dict[str, Any]
) -> Any:
    """`Tensor.__array_function__`: a NumPy function with a Tensor among its arguments.

    Raises:
        UnsupportedError: pullback does not have the function, or not the option.

    Example:
        >>> np.sum(Tensor([[1.0, 2.0]]), axis=1, keepdims=True)
        tensor([[3.]])
    """
    try:
        if not KINDS.issuperset(types) and not all(issubclass(one, (Value, np.ndarray)) for one in types):
            return NotImplemented
        if calls_from_scipy(sys._getframe(1)) and (plain := without_tensors([*arguments], keywords)):
            return function(*plain[0], **plain[1])
        short = _short_of[function]
        is_short = len(arguments) <= 2 or function in OF_THREE
        if (is_short and (keywords.keys() <= AXIS_OPTIONS or takes_options(short))) or takes_any(short):
            result = short(*arguments, **keywords)
            if result is not NotImplemented:
                return result if type(result) is NumpyTensor else with_numbers_of_numpy(function, result)
        out = keywords.get("out")
        if out is None:
            return _in_the_ordinary_way(function, *arguments, **keywords)
        others = {name: one for name, one in keywords.items() if name != "out"}
        return put_into(out, function, arguments, others)
    except BaseException as error:
        show_users_frames(error)
        raise


def put_into(out: Any, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """What a function of NumPy's gives, in `out`."""
    compute = functools.partial(_implementation_of(function), *arguments, **keywords)
    in_dtype = "dtype" in inspect.signature(compute.func).parameters and keywords.get("dtype") is None
    return written(compute(), out, Call(function, arguments, keywords), compute if in_dtype else None)


def _in_the_ordinary_way(function: Any, *arguments: Any, **keywords: Any) -> Any:
    result = _implementation_of(function)(*arguments, **keywords)
    return with_numbers_of_numpy(function, settled(result, (*arguments, *keywords.values())))


def _implementation_of(function: Any) -> Callable[..., Any]:
    return FUNCTIONS.get(function) or unknown(public_name(function))


def with_numbers_of_numpy(function: Any, result: Any) -> Any:
    """What a function of NumPy's gives, which is no number of Python's but where it asks for an attribute."""
    if type(result) is PythonNumber:
        return result if function in (np.real, np.imag) else of_kind(result, NumpyScalar)
    if type(result) in (list, tuple):
        return type(result)(with_numbers_of_numpy(function, one) for one in result)
    return result


Tensor.__array_ufunc__ = array_ufunc  # type: ignore[attr-defined]
Tensor.__array_function__ = array_function  # type: ignore[attr-defined]
