"""`grad`, `jacobian` and their kin with HIPS autograd's conventions.

They are pullback's transforms. What differs: arguments are `argnum`, gradients of complex arguments are the
conjugates, arrays of integers are taken as floats, and under `install(compiled=True)` the function is
compiled.
"""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from typing import Any

import numpy as np

import pullback
from pullback.runtime.tracing.numpy_programs import running_programs
from pullback.runtime.transforms.transforms import grad_of_sum

from .conventions import (
    Argnum,
    Function,
    called,
    compiled,
    conjugated,
    exchanged,
    holds_complex,
    is_real,
    named,
    require_argnum,
    selected,
    unary_to_nary,
)  # fmt: skip
from .core import make_jvp as _make_jvp
from .core import make_vjp as _make_vjp
from .insides import missing_of

__all__ = [
    "checkpoint", "deriv", "elementwise_grad", "grad", "grad_and_aux", "grad_named", "hessian",
    "hessian_tensor_product", "hessian_vector_product", "holomorphic_grad", "jacobian", "make_ggnvp",
    "make_hvp", "make_jvp", "make_jvp_reversemode", "make_vjp", "multigrad_dict", "tensor_jacobian_product",
    "value_and_grad", "vector_jacobian_product",
]  # fmt: skip


def _by(transform: Function, operator: Function, fun: Function, argnum: Argnum, **options: Any) -> Function:
    """What a transform of pullback's makes of `fun`, of arguments as HIPS autograd takes them."""
    require_argnum(argnum)
    argnums = argnum if isinstance(argnum, int) else tuple(argnum)
    derive = transform(compiled(fun), argnums, **options)
    position = argnum if type(argnum) is int and argnum >= 0 else None

    @running_programs
    def derived(*args: Any, **kwargs: Any) -> Any:
        if position is not None and position < len(args) and is_real(args[position]):
            return derive(*args, **kwargs)
        x = selected(args, argnum)
        found = derive(*exchanged(args, argnum, x), **kwargs)
        return conjugated(found) if holds_complex(x) else found

    return named(operator, fun, argnum, derived)


def grad(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that computes the gradient of a scalar function.

    Args:
        argnum: the position of the argument to differentiate, or several, of which it gives a tuple.

    Of a complex argument x + i y the gradient is df/dx - i df/dy, the conjugate of `pullback.grad`'s.

    Raises:
        OutputError: a TypeError; the result has several elements, or is complex.

    Example:
        >>> grad(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    return _by(pullback.grad, grad, fun, argnum)


def value_and_grad(fun: Function, argnum: Argnum = 0) -> Function:
    """As `grad`, but the function returns (value, gradient).

    Example:
        >>> value_and_grad(lambda x: x * x)(3.0)
        (9.0, np.float64(6.0))
    """
    return _by(pullback.value_and_grad, value_and_grad, fun, argnum)


def jacobian(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that computes all derivatives of all elements of a result: result's shape + argument's.

    Example:
        >>> jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    return _by(pullback.jacobian, jacobian, fun, argnum)


def hessian(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that computes all second derivatives: the Jacobian of the Jacobian.

    Example:
        >>> hessian(lambda x: (x ** 3).sum())(np.array([1.0, 2.0]))
        array([[ 6.,  0.],
               [ 0., 12.]])
    """
    return named(hessian, fun, argnum, jacobian(jacobian(fun, argnum), argnum))


def grad_and_aux(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that gives (the gradient of the first result, the second) of one of two results.

    Example:
        >>> grad_and_aux(lambda x: (x * x, "more"))(3.0)
        (np.float64(6.0), 'more')
    """

    @functools.wraps(fun)
    @running_programs
    def pair(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, aux = called(fun, args, kwargs)
        return value, aux

    derive = pullback.grad(compiled(pair), argnum, has_aux=True)

    def derived(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        x = selected(args, argnum)
        gradient, aux = derive(*exchanged(args, argnum, x), **kwargs)
        return conjugated(gradient) if holds_complex(x) else gradient, aux

    return named(grad_and_aux, fun, argnum, derived)


def elementwise_grad(fun: Function, argnum: Argnum = 0) -> Function:
    """The gradient of the sum of a result: of a function of each element, all its derivatives.

    Raises:
        OutputError: a TypeError; the result is complex.

    Example:
        >>> elementwise_grad(lambda x: x ** 2)(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    return _by(grad_of_sum, elementwise_grad, fun, argnum)


def holomorphic_grad(fun: Function, argnum: Argnum = 0) -> Function:
    """The complex derivative of a holomorphic function of complex numbers.

    Example:
        >>> holomorphic_grad(lambda z: z ** 2)(1 + 2j)
        np.complex128(2+4j)
    """

    @functools.wraps(fun)
    @running_programs
    def real_part(*args: Any, **kwargs: Any) -> Any:
        return np.real(called(fun, args, kwargs))

    return named(holomorphic_grad, fun, argnum, grad(real_part, argnum))


def grad_named(fun: Function, argname: str) -> Function:
    """`grad` with respect to the parameter of a name.

    Raises:
        ValueError: there is none of this name.

    Example:
        >>> grad_named(lambda x, rate: x * rate, "rate")(2.0, 3.0)
        np.float64(2.0)
    """
    return grad(fun, list(inspect.signature(fun).parameters).index(argname))


def multigrad_dict(fun: Function) -> Function:
    """The function that gives the gradients of all arguments by name, of `*args` a tuple of them.

    Example:
        >>> dict(multigrad_dict(lambda x, y: x * y)(2.0, 3.0))
        {'x': np.float64(3.0), 'y': np.float64(2.0)}
    """
    signature = inspect.signature(fun)

    def gradients(*args: Any, **kwargs: Any) -> OrderedDict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        @functools.wraps(fun, assigned=())
        def of_arguments(arguments: dict[str, Any]) -> Any:
            again = inspect.BoundArguments(signature, OrderedDict(arguments))
            return fun(*again.args, **again.kwargs)

        found = grad(of_arguments)(dict(bound.arguments))
        return OrderedDict((name, found[name]) for name in bound.arguments)

    return gradients


def checkpoint(fun: Function) -> Function:
    """The function, of which the backward pass keeps the arguments only, and runs it again for all else.

    Example:
        >>> grad(checkpoint(lambda x: np.exp(2.0 * x)))(0.0)
        np.float64(2.0)
    """
    return pullback.checkpoint(fun)


# --- products with derivatives ----------------------------------------------------------------------------


@unary_to_nary
def make_vjp(fun: Function, x: Any) -> tuple[Function, Any]:
    """The function of `fun`'s arguments that gives (pull, value); `pull(g)` is the cotangent of one of them.

    Of complex numbers it is HIPS autograd's: the cotangent times the complex derivative.

    Raises:
        DTypeError: the argument holds a Python integer.

    Example:
        >>> pull, value = make_vjp(np.sin)(0.0)
        >>> pull(2.0), value
        (np.float64(2.0), np.float64(0.0))
    """
    return _make_vjp(fun, x)


@unary_to_nary
def make_jvp(fun: Function, x: Any) -> Function:
    """The function of `fun`'s arguments that gives `push`; `push(v)` is (value, tangent of the value).

    Example:
        >>> make_jvp(np.sin)(0.0)(2.0)
        (np.float64(0.0), np.float64(2.0))
    """
    return _make_jvp(fun, x)


@unary_to_nary
def deriv(fun: Function, x: Any) -> Any:
    """The derivative along ones: of a function of a number, its derivative.

    Example:
        >>> deriv(lambda x: x**3)(2.0)
        12.0
    """
    return _make_jvp(fun, x)(np.ones_like(x))[1]


@unary_to_nary
def make_jvp_reversemode(fun: Function, x: Any) -> Function:
    """The function of `fun`'s arguments that gives `push`; `push(v)` is the tangent of the value alone.

    Example:
        >>> make_jvp_reversemode(np.sin)(0.0)(2.0)
        np.float64(2.0)
    """
    push = _make_jvp(fun, x)
    return lambda v: push(v)[1]


def make_hvp(fun: Function, argnum: Argnum = 0) -> Function:
    """The function of `fun`'s arguments that gives (product, gradient); `product(v)` is the Hessian times v.

    Example:
        >>> product, gradient = make_hvp(lambda x: (x**3).sum())(np.array([1.0, 2.0]))
        >>> product(np.array([1.0, 0.0])), gradient
        (array([6., 0.]), array([ 3., 12.]))
    """
    return named(make_hvp, fun, argnum, make_vjp(grad(fun, argnum), argnum))


def hessian_tensor_product(fun: Function, argnum: int = 0) -> Function:
    """The function of `(*args, tensor)` that gives the product of the Hessian with the tensor.

    Example:
        >>> hessian_tensor_product(lambda x: (x**3).sum())(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
        array([6., 0.])
    """
    slopes = grad(fun, argnum)

    @functools.wraps(fun, assigned=())
    @running_programs
    def along(*args: Any, **kwargs: Any) -> Any:
        *given, tensor = args
        slope, count = slopes(*given, **kwargs), np.ndim(tensor)
        if count > 1:
            return np.tensordot(slope, tensor, count)
        return np.dot(slope, tensor) if count else slope * tensor

    return named(hessian_tensor_product, fun, argnum, grad(along, argnum))


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Function, argnum: int = 0) -> Function:
    """The function of `(*args, tensor)` that gives the product of the tensor with the Jacobian.

    Example:
        >>> tensor_jacobian_product(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 10.0]))
        array([ 2., 40.])
    """

    @functools.wraps(fun, assigned=())
    @running_programs
    def along(*args: Any, **kwargs: Any) -> Any:
        *given, tensor = args
        value, count = called(fun, given, kwargs), np.ndim(tensor)
        if count > 1 or np.ndim(value) > 2:
            return np.tensordot(tensor, value, axes=count)
        return np.dot(tensor, value) if count else tensor * value

    return named(tensor_jacobian_product, fun, argnum, jacobian(along, argnum))


vector_jacobian_product = tensor_jacobian_product


def _half_of_squares(x: Any) -> Any:
    return 0.5 * np.sum(x**2, axis=-1)


def make_ggnvp(f: Function, g: Function = _half_of_squares, f_argnum: int = 0) -> Function:
    """The function of the arguments of f that makes products with the generalised Gauss-Newton matrix.

    Args:
        f: from parameters to outputs.
        g: a convex loss of the outputs.

    Returns:
        A function of f's arguments; what it gives is a function of a tangent of the parameters.

    Example:
        >>> make_ggnvp(lambda x: x**2)(np.array([1.0, 2.0]))(np.array([1.0, 1.0]))
        array([ 4., 16.])
    """

    slopes = grad(g)

    @unary_to_nary
    def product(inner: Function, x: Any) -> Function:
        pull, outputs = _make_vjp(inner, x)
        push = _make_jvp(inner, x)
        curvature, _ = _make_vjp(slopes, outputs)
        return lambda v: pull(curvature(push(v)[1]))

    return product(f, f_argnum)


__getattr__ = missing_of(__name__)
