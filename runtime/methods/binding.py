"""The methods of Tensor: functions bound to the class, and the operators of Python's syntax.

Importing this module completes the class.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.dims import python_type
from ...tracer.errors import ArgumentError, DTypeError, GradientError, ShapeError, UnsupportedError
from ...tracer.operator import Operator
from ...tracer.ops.elementwise import add, convert, divide, identity, multiply, stop_gradient, subtract
from ...tracer.spec import CONTINUOUS
from ..autograd import autograd
from ..functions import METHODS, PUBLIC
from ..functions.common import array_dtype, is_operand
from ..functions.conventions import OFFERED
from ..functions.elements import arithmetic, complex_numbers
from ..functions.matrices import contraction
from ..functions.methods import BINARY
from ..functions.selections import assignment
from ..functions.shapes import movement
from ..numpy_api import (  # noqa: F401
    applying,
    choosing,
    differences,
    factorisations,
    fft,
    indices,
    linear_algebra,
    order_statistics,
    pad_modes,
    polynomials,
    reductions,
    sets,
    ufuncs,
    written_arrays,
)
from ..numpy_api.array_methods import (
    NUMPY_METHODS,
    UFUNCS,
    in_place_operator,
    numpy_operators,
    of_numpy,
    of_torch,
)
from ..tape import inplace, loops
from ..tape.apply import apply, copied_in_order, link_view
from ..tape.direct import EXACT, direct
from ..tensors import creation, sampling
from ..values import dtypes
from ..values.modes import no_grad
from ..values.nodes import scalar_type
from ..values.tensor import Device, Tensor, make
from ..values.value_kinds import NumpyScalar, NumpyTensor
from . import copies, memory_methods, python_numbers, random_fills
from .ndarray_methods import NDARRAY_METHODS
from .public import of_own_kind

_IN_PLACE = """
    addbmm addcdiv addcmul addmm addmv addr baddbmm celu clamp_max clamp_min conj_physical copysign
    deg2rad elu float_power fmod frac hardtanh heaviside index_add index_copy index_fill index_put
    index_reduce ldexp leaky_relu lerp logit masked_fill masked_scatter mvlgamma nan_to_num put rad2deg
    renorm scatter scatter_add scatter_reduce selu sgn sinc threshold tril triu true_divide xlogy
"""
IN_PLACE = frozenset(_IN_PLACE.split()) | {name for name, one in OFFERED.items() if one.in_place}
"""Functions with an in-place form: a method, and a function, named with `_` behind."""
_IN_PLACE_VIEWS: dict[str, Callable[..., Tensor]] = {
    "squeeze": movement.squeeze, "swapaxes": movement.swapaxes, "swapdims": movement.swapdims,
    "t": movement.t, "transpose": movement.transpose, "unsqueeze": movement.unsqueeze,
}  # fmt: skip
_NO_IN_PLACE_METHODS = frozenset(["celu", "elu", "hardtanh", "leaky_relu", "selu", "threshold"])
IN_PLACE_FUNCTIONS: dict[str, Callable[..., Tensor]] = {}
"""The functions `exp_`, `clamp_`, ... of the namespace."""


# --- copies and conversions -------------------------------------------------------------------------------


def detach(self: Tensor) -> Tensor:
    """The same values, in the same memory, with no gradient through them.

    Example:
        >>> x = ones(2, requires_grad=True)
        >>> (x * 2).detach().requires_grad
        False
    """
    self.refresh()
    if type(self._value) is not np.ndarray:
        shown = apply(stop_gradient, self)
        with no_grad():
            link_view(shown, stop_gradient, self, {})
        return shown
    shown = make(self._value)
    shown._cell = self._cell
    return shown


def detach_(self: Tensor) -> Tensor:
    """Forget in place how the tensor was computed: it becomes a leaf that requires no grad."""
    if self._view is not None:
        raise GradientError("Can't detach views in-place. Use detach() instead.")
    self._grad_fn, self._output_nr, self._requires_grad = None, 0, False
    return self


def _data(self: Tensor) -> Tensor:
    """The same values, in the same memory, apart from the tape: writes through it are not noticed."""
    shown = detach(self)
    if type(shown._value) is np.ndarray:
        shown._cell = [0, None]
    return shown


def _set_data(self: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise ArgumentError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if self._requires_grad and array_dtype(value).kind not in CONTINUOUS:
        raise DTypeError(
            "data set to a tensor that requires gradients must be floating point or complex dtype; found "
            f"{value.dtype}. Convert it, e.g. with .float()."
        )
    value.refresh()
    if type(self._value) is not np.ndarray:
        inplace.set_data_in_trace(self, value)
    else:
        self._value = value._value


def clone(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy in memory of its own, which gradients flow through."""
    return apply(identity, self)


def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself, or a copy if its elements do not lie in order."""
    return self if self.is_contiguous() else copied_in_order(self)


def to(self: Tensor, *targets: Any, **options: Any) -> Tensor:
    """The tensor in another dtype, or that of another tensor; itself if it has it already.

    `x.to(dtype)`, `x.to(other)`, `x.to("cpu")`, with `copy=True` always a new one.

    Example:
        >>> ones(2).to(int64)
        tensor([1, 1])
    """
    copy = bool(options.pop("copy", False))
    for without_meaning in ("non_blocking", "memory_format"):
        options.pop(without_meaning, None)
    dtype = self._value.dtype
    for target in (*targets, *options.values()):
        if isinstance(target, Tensor):
            dtype = target._value.dtype
        elif isinstance(target, Device | str) and str(target).split(":")[0] in ("cpu", "cuda", "mps", "meta"):
            Device(target)
        elif target is not None and not isinstance(target, bool):
            dtype = dtypes.as_numpy_dtype(target, "to")
    if dtype != self._value.dtype:
        return apply(convert, self, dtype=dtype, grad_name="ToCopyBackward0")
    return apply(identity, self) if copy else self


def cpu(self: Tensor) -> Tensor:
    """The tensor itself: all tensors live in the memory of this computer."""
    return self


def type_(self: Tensor, dtype: Any = None) -> Any:
    """The name of the tensor's type, as `torch.FloatTensor`; with a dtype, the tensor in it."""
    if dtype is None:
        return f"torch.{scalar_type(self._value.dtype)}Tensor"
    return to(self, getattr(dtype, "dtype", dtype))


def _converter(dtype: dtypes.DType) -> Callable[..., Tensor]:
    def method(self: Tensor, memory_format: Any = None) -> Tensor:
        return to(self, dtype)

    method.__doc__ = f"The tensor in dtype {dtype.name}; itself if it has it already."
    return method


def _without_dtype(name: str, instead: str) -> Callable[..., Tensor]:
    def method(self: Tensor, memory_format: Any = None) -> Tensor:
        raise DTypeError(f"{name}(): there are no such numbers here, as NumPy has none. Use {instead}().")

    method.__doc__ = f"DTypeError: NumPy has no such numbers; `{instead}` has a dtype near to it."
    return method


def _not_here(name: str, reason: str) -> Callable[..., Tensor]:
    def method(self: Tensor, *arguments: Any, **options: Any) -> Tensor:
        raise UnsupportedError(f"{name}(): {reason}")

    method.__doc__ = f"UnsupportedError: {reason}"
    return method


ONLY_CPU = "tensors live in the memory of this computer, and are computed with on its CPU. Leave it out."
ONLY_DENSE = "tensors are dense. For sparse systems of equations there are spsolve and splu."
ELSEWHERE = {
    "cuda": ONLY_CPU, "xpu": ONLY_CPU, "to_mkldnn": ONLY_CPU, "to_sparse": ONLY_DENSE,
    "to_sparse_coo": ONLY_DENSE, "to_sparse_csr": ONLY_DENSE, "to_sparse_csc": ONLY_DENSE,
    "to_sparse_bsr": ONLY_DENSE, "to_sparse_bsc": ONLY_DENSE,
}  # fmt: skip
"""PyTorch's methods of other devices and layouts, and why they are not here."""


# --- new tensors of the same dtype ------------------------------------------------------------------------


def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of `data`, in this tensor's dtype unless another is given."""
    return creation.tensor(data, dtype=self.dtype if dtype is None else dtype, requires_grad=requires_grad)


def _new(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def method(self: Tensor, *size: Any, dtype: Any = None, **options: Any) -> Tensor:
        return function(*size, dtype=self.dtype if dtype is None else dtype, **options)

    method.__doc__ = f"`{function.__name__}` in this tensor's dtype unless another is given."
    return method


def fill_diagonal_(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write one value on the main diagonal; with `wrap`, of tall matrices, again after each square."""
    rows, columns = self.shape[0], self.shape[-1]
    if self.ndim < 2 or (self.ndim > 2 and len(set(self.shape)) > 1):
        raise ShapeError(
            f"fill_diagonal_: a matrix, or dimensions of equal length, expected; found {tuple(self.shape)}."
        )
    if self.ndim == 2 and wrap and rows > columns:
        for start in range(0, rows, columns + 1):
            fill_diagonal_(self[start : start + columns], fill_value)
        return self
    places = np.arange(min(self.shape))
    assignment.set_item(self, (places,) * self.ndim, fill_value)
    return self


# --- binding --------------------------------------------------------------------------------------------

CONVERTERS = {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "long": dtypes.int64,
    "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8,
    "bool": dtypes.bool, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
}  # fmt: skip


def _bind(name: str, method: Any, kind: type[Tensor] = Tensor) -> None:
    setattr(kind, name, method)


def _in_place_operator(name: str, function: Callable[..., Tensor]) -> Callable[..., Any]:
    """`x += y` and its kin: NotImplemented for what is no operand, so that Python asks the other side."""
    write = inplace.in_place(function, name)

    def method(self: Tensor, other: Any) -> Any:
        return write(self, other) if is_operand(other) else NotImplemented

    return method


def _weak(other: Any, dtype: np.dtype) -> float | None:
    """The Python number as a float, if it takes the dtype of a floating tensor beside it as it is."""
    kind = type(other)
    if kind is not float and kind is not int:
        kind = python_type(other)
    if dtype.kind == "f" and (kind is float or (kind is int and -EXACT < other < EXACT)):
        return other if type(other) is not int else float(other)
    return None


def _arithmetic(operator: Operator, name: str, general: Callable[..., Any]) -> Callable[..., Any]:
    """A dunder method that computes at once with floating operands of one shape, and with numbers."""

    def method(self: Tensor, other: Any) -> Any:
        mine = self._value
        is_traced = type(mine) is not np.ndarray
        dtype = mine.spec.dtype if is_traced else mine.dtype
        if isinstance(other, Tensor):
            value = other._value
            if is_traced and type(value) is type(mine) and mine.spec is value.spec and dtype.kind == "f":
                return apply(operator, self, other, grad_name=name)
            if dtype == value.dtype and dtype.kind == "f" and mine.shape == value.shape:
                return apply(operator, self, other, grad_name=name)
        else:
            number = _weak(other, dtype)
            if number is not None:
                return apply(operator, self, number, grad_name=name)
        return general(self, other)

    method.__doc__ = general.__doc__
    return method


def _reflected(operator: Operator, name: str, general: Callable[..., Any]) -> Callable[..., Any]:
    """The same for `number + tensor`."""

    def method(self: Tensor, other: Any) -> Any:
        mine = self._value
        number = _weak(other, mine.dtype if type(mine) is np.ndarray else mine.spec.dtype)
        if number is None:
            return general(self, other)
        return apply(operator, number, self, grad_name=name)

    method.__doc__ = general.__doc__
    return method


def _bind_arithmetic(general: dict[str, Callable[..., Any]], kind: type[Tensor]) -> None:
    for method, operator, title in (("add", add, "Add"), ("sub", subtract, "Sub"), ("mul", multiply, "Mul")):
        name = f"{title}Backward0"
        computed = _arithmetic(operator, name, general[f"__{method}__"])
        computed.__name__ = f"__{method}__"  # as messages call it
        _bind(f"__{method}__", direct(operator, computed, name), kind)
        if method != "sub":
            reflected = _reflected(operator, name, general[f"__r{method}__"])
            reflected.__name__ = f"__r{method}__"
            _bind(f"__r{method}__", direct(operator, reflected, name, reflected=True), kind)
    name = "DivBackward0"
    computed = _arithmetic(divide, name, general["__truediv__"])
    computed.__name__ = "__truediv__"
    _bind("__truediv__", direct(divide, computed, name), kind)
    for method, operator, name in (("rsub", subtract, "RsubBackward1"), ("rtruediv", divide, "MulBackward0")):
        _bind(f"__{method}__", direct(operator, general[f"__{method}__"], name, reflected=True), kind)
    _bind("__pow__", _first(arithmetic.pow_directly, general["__pow__"]), kind)
    _bind("__matmul__", contraction.product_operator(general["__matmul__"]), kind)


def _first(short: Callable[..., Any], general: Callable[..., Any]) -> Callable[..., Any]:
    """The short way of an operator, and where there is none the general one."""

    @functools.wraps(general)
    def method(self: Tensor, other: Any) -> Any:
        result = short(self, other)
        return general(self, other) if result is NotImplemented else result

    return method


def _bind_in_place() -> None:
    for name in sorted(IN_PLACE):
        method = inplace.in_place(PUBLIC[name], f"{name}_")
        IN_PLACE_FUNCTIONS[f"{name}_"] = method
        if name not in _NO_IN_PLACE_METHODS:
            _bind(f"{name}_", method)
    _bind("polygamma_", inplace.in_place(METHODS["polygamma"], "polygamma_"))
    for name, function in _IN_PLACE_VIEWS.items():
        _bind(f"{name}_", inplace.in_place_view(function, f"{name}_"))
    for name, function in BINARY.items():
        _bind(f"__i{name}__", _in_place_operator(f"__i{name}__", function))
    written: tuple[Any, ...] = (assignment.copy_, assignment.fill_, assignment.zero_, detach_, fill_diagonal_)
    for method in written:
        _bind(method.__name__, method)
    for name, fill in random_fills.FILLS.items():
        _bind(name, fill)
    _bind("bernoulli", sampling.bernoulli)
    _bind("multinomial", sampling.multinomial)
    IN_PLACE_FUNCTIONS.update(fill_=assignment.fill_, zero_=assignment.zero_, detach_=detach_)
    _bind("__setitem__", assignment.set_item)
    _bind("_refresh_from", inplace.refresh_view)


def _made(cls: type[Tensor], *arguments: Any, **options: Any) -> Tensor:
    """What calling the class makes."""
    return creation.legacy_tensor(*arguments, **options)


def _bind_the_rest() -> None:
    for function in (detach, clone, contiguous, to, cpu, new_tensor):
        _bind(function.__name__, function)
    _bind("_detached", detach)  # what pullback itself calls, on tensors of every kind
    _bind("__new__", staticmethod(_made))
    _bind("apply", classmethod(loops.apply_operator))
    _bind("__copy__", copies.copied)
    _bind("__deepcopy__", copies.deeply_copied)
    _bind("__reduce__", copies.pickled)
    _bind("type", type_)
    _bind("data", property(_data, _set_data, doc=_data.__doc__))
    _bind("backward", autograd.tensor_backward)
    _bind("register_hook", autograd.register_hook)
    _bind("register_post_accumulate_grad_hook", autograd.register_post_accumulate_grad_hook)
    _bind("retain_grad", autograd.retain_grad)
    for name, dtype in CONVERTERS.items():
        _bind(name, _converter(dtype))
    for name, instead in (("bfloat16", "float"), ("chalf", "cfloat")):
        _bind(name, _without_dtype(name, instead))
    for name, reason in ELSEWHERE.items():
        _bind(name, _not_here(name, reason))
    for name in ("zeros", "ones", "empty", "full", "empty_strided"):
        _bind(f"new_{name}", _new(getattr(creation, name)))
    _bind("T", property(_transposed, doc="The dimensions in reverse order."))
    _bind(
        "mT",
        property(lambda self: movement.transpose(self, -2, -1), doc="The last two dimensions exchanged."),
    )
    _bind("H", property(complex_numbers.adjoint, doc="The transpose of a matrix, conjugated."))


def _transposed(self: Tensor) -> Tensor:
    result = movement.permuted_directly(self)
    return movement.permute(self, *reversed(range(self.ndim))) if result is NotImplemented else result


class _TensorsAlone:
    """An attribute with which a value leaves for NumPy.

    An array has none in the plain call, and code that asks, `hasattr(x, "numpy")`, would lose a gradient.
    `x.detach()` says so itself, and is there.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        raise AttributeError(
            f"an array has no attribute {self._name!r}. It is a Tensor's; for the value without gradient "
            "write pullback.stop_gradient(x), for a Tensor pullback.as_tensor(x)."
        )


def _set_number(self: Tensor, index: Any, value: Any) -> None:
    raise TypeError(f"{self.__class__} object does not support item assignment")


_OF_TENSORS_ALONE = ("cpu", "data", "numpy")


def _bind_numpy() -> None:
    """The methods and operators of NumPy's kinds, and NumPy's options of PyTorch's methods."""
    for name, method in NUMPY_METHODS.items():
        torch = getattr(Tensor, name, None)
        _bind(name, of_numpy(torch, method), NumpyTensor)
        _bind(name, of_torch(name, torch, method))
    _bind("size", property(Tensor.numel), NumpyTensor)
    operators = numpy_operators(METHODS)
    for name, method in operators.items():
        _bind(name, method, NumpyTensor)
    for name, ufunc in UFUNCS.items():
        if name != "divmod":
            _bind(f"__i{name}__", in_place_operator(name, ufunc), NumpyTensor)
    _bind("__pos__", lambda self: apply(identity, self), NumpyTensor)
    _bind("__setitem__", _set_number, NumpyScalar)
    for name in _OF_TENSORS_ALONE:
        missing = _TensorsAlone()
        missing.__set_name__(NumpyTensor, name)
        _bind(name, missing, NumpyTensor)
    for name in ("__divmod__", "__rdivmod__"):
        _bind(name, operators[name])
    _bind_arithmetic(operators, NumpyTensor)


for _name, _method in METHODS.items():
    _computes_alone = _name in OFFERED or _name.startswith("__")  # one operator: the kind follows
    _bind(_name, _method if _computes_alone else of_own_kind(_method))
for _name, _method in (NDARRAY_METHODS | memory_methods.METHODS).items():
    _bind(_name, _method)
_bind_arithmetic(METHODS, Tensor)
_bind_in_place()
_bind_the_rest()
_bind_numpy()
python_numbers.bind()
