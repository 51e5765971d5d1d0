"""Complex numbers: their parts, and what is made of these."""

from __future__ import annotations

import math

from ....tracer.errors import DTypeError, ShapeError
from ....tracer.ops import elementwise as e
from ....tracer.ops import movement as m
from ...tape.apply import apply
from ...values.tensor import Tensor, TorchTensor
from ..common import array_dtype, as_dtype, conjugate, fail, floating, tensor
from ..declared import isnan
from ..shapes.movement import adjoint as transposed_conjugates

__all__ = [
    "adjoint", "angle", "complex", "conj", "conj_physical", "imag", "polar", "real", "resolve_conj",
    "resolve_neg", "view_as_complex", "view_as_real",
]  # fmt: skip


def real(input: Tensor) -> Tensor:
    """The real part: of complex numbers a view, of others the tensor itself.

    Example:
        >>> real(tensor([1 + 2j]))
        tensor([1.])
    """
    x = tensor(input, "real")
    return apply(e.real, x) if array_dtype(x).kind == "c" else x


def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view.

    Raises:
        DTypeError: the tensor is real.

    Example:
        >>> imag(tensor([1 + 2j]))
        tensor([2.])
    """
    x = tensor(input, "imag")
    if array_dtype(x).kind != "c":
        fail(DTypeError, f"imag is not implemented for tensors with non-complex dtypes: found {x.dtype}.")
    return apply(e.imag, x)


CONJUGATES = (
    "PyTorch's conj(), adjoint(), H and mH show the memory of a complex tensor; here they are copies that "
    "are not to be written to; write into conj_physical(), a clone(), or the tensor itself"
)


def conj(input: Tensor) -> Tensor:
    """The conjugates of complex numbers, not to be written to; a real tensor itself.

    Example:
        >>> conj(tensor([1 + 2j]))
        tensor([1.-2.j])
    """
    x = tensor(input, "conj")
    return _not_written(x, conjugate(x))


def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, a view; of complex numbers conjugated, and not to be written to.

    Example:
        >>> adjoint(tensor([[1, 2], [3, 4]])), adjoint(tensor([[1j]]))
        (tensor([[1, 3],
                [2, 4]]), tensor([[0.-1.j]]))
    """
    x = tensor(input, "adjoint")
    if not x.ndim:
        return conj(x)
    return _not_written(x, transposed_conjugates(x))


def _not_written(x: Tensor, conjugates: Tensor) -> Tensor:
    if x.is_complex() and type(conjugates) is TorchTensor:
        conjugates._frozen = CONJUGATES
    return conjugates


def conj_physical(input: Tensor) -> Tensor:
    """The conjugates of complex numbers, in memory of their own; a real tensor itself.

    Example:
        >>> conj_physical(tensor([1 + 2j]))
        tensor([1.-2.j])
    """
    return conjugate(tensor(input, "conj_physical"))


def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself, as conjugates are computed where they are asked for; of `conj` one to be written to.

    Example:
        >>> resolve_conj(tensor([1.0]))
        tensor([1.])
    """
    x = tensor(input, "resolve_conj")
    return apply(e.identity, x) if x._frozen == CONJUGATES else x


resolve_neg = resolve_conj


def complex(real: Tensor, imag: Tensor) -> Tensor:
    """The complex numbers with these parts, of one floating dtype.

    Raises:
        DTypeError: the parts are not floating, or of two dtypes.

    Example:
        >>> complex(tensor([1.0]), tensor([2.0]))
        tensor([1.+2.j])
    """
    return apply(e.complex_of, *_parts("complex", real, imag, ("real", "imag")), grad_name="ComplexBackward0")


def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """The complex numbers with these sizes and angles, of one floating dtype.

    Example:
        >>> polar(tensor([2.0]), tensor([0.0]))
        tensor([2.+0.j])
    """
    size, turn = _parts("polar", abs, angle, ("abs", "angle"))
    across, along = (apply(e.multiply, size, apply(one, turn)) for one in (e.sin, e.cos))
    return apply(e.complex_of, along, across, grad_name="PolarBackward0")


def _parts(function: str, one: Tensor, other: Tensor, names: tuple[str, str]) -> list[Tensor]:
    parts = [tensor(value, function, name) for value, name in zip((one, other), names)]
    found = [array_dtype(part) for part in parts]
    if found[0] != found[1] or found[0].kind != "f":
        fail(
            DTypeError,
            f"{function}(): Expected both inputs to be floating tensors of one dtype but got {names[0]} of "
            f"{found[0]} and {names[1]} of {found[1]}. Convert them, e.g. with .double().",
        )
    return parts


def view_as_real(input: Tensor) -> Tensor:
    """Complex numbers as real ones with a last dimension of 2, a view.

    Raises:
        DTypeError: the tensor is real.

    Example:
        >>> view_as_real(tensor([1 + 2j]))
        tensor([[1., 2.]])
    """
    x = tensor(input, "view_as_real")
    if array_dtype(x).kind != "c":
        fail(DTypeError, f"view_as_real is only supported for complex tensors; found {x.dtype}.")
    return apply(m.pairs_of, x)


def view_as_complex(input: Tensor) -> Tensor:
    """Real numbers with a last dimension of 2 as complex ones, a view.

    Raises:
        DTypeError: no complex numbers have such parts. ShapeError: the last dimension has another size.

    Example:
        >>> view_as_complex(tensor([[1.0, 2.0]]))
        tensor([1.+2.j])
    """
    x = tensor(input, "view_as_complex")
    if array_dtype(x).name not in ("float32", "float64"):
        fail(DTypeError, f"view_as_complex is only supported for float32 and float64; found {x.dtype}.")
    if not x.ndim or x.shape[-1] != 2:
        found = tuple(x.shape)
        fail(ShapeError, f"view_as_complex: Tensor must have a last dimension of size 2; found {found}.")
    return apply(m.of_pairs, x)


def angle(input: Tensor) -> Tensor:
    """The angle of numbers in the complex plane; of real ones pi below zero, 0 otherwise, and no gradient.

    Example:
        >>> angle(tensor([-1.0, 1.0])), angle(tensor([1j]))
        (tensor([3.1416, 0.0000]), tensor([1.5708]))
    """
    x = floating(input, "angle")
    if array_dtype(x).kind == "c":
        return apply(e.angle, x)
    turned = apply(e.where, apply(e.less, x, 0.0), apply(e.add, apply(e.zeros_like, x), math.pi), 0.0)
    return apply(e.where, isnan(x), x, as_dtype(turned, array_dtype(x)), grad_name="AngleBackward0")
