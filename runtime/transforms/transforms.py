"""Functions from functions: `grad`, `value_and_grad`, `vjp`, `jvp`, `jacobian`, `hessian`.

All run the function on the tape. Of a plain function that happens in each call; of a compiled one when it is
traced, so that value and gradient become one graph and one generated function. There they leave the
derivative to the graph (`codegen/derivatives/taken.py`), where that shows all that the tape does.

In the places of differentiated arguments the function gets aliases of them (`inputs.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError, OutputError, ShapeError
from ...tracer.ops.elementwise import convert
from ...tracer.ops.movement import reshape
from ...tracer.spec import CONTINUOUS, SUPPORTED
from ...tracer.users_frames import show_users_frames, showing_users_frames
from ..dispatch.compiled import function_name
from ..tape.apply import apply, standing_for
from ..tracing.explored_programs import Memory
from ..tracing.numpy_programs import running_programs
from ..values.flatten import is_container, unflatten
from ..values.foreign import how_to_return
from ..values.modes import enable_grad
from ..values.plain_arrays import require_plain_array
from ..values.saved import saved_values
from ..values.tensor import Tensor, make
from ..values.value_kinds import NumpyTensor
from .derived import derived
from .inputs import Argnums, Function, Inputs, filled_like, flat, has_history

FLOATING = (float, complex, np.ndarray, np.generic)
PLAIN = frozenset((float, np.float64, np.ndarray))
"""The commonest classes of cotangents."""

# --- the public functions -------------------------------------------------------------------------------


def grad(
    function: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """The function that computes the gradient of a scalar function.

    Args:
        function: returns a floating tensor or array of one element; with `has_aux` a pair of that and
            anything.
        argnums: which arguments to differentiate: a position or name, or several. Each may be nested in
            lists, tuples, dicts, namedtuples and dataclasses.
        has_aux: return (gradient, aux).
        holomorphic: the function takes complex numbers to a complex one and has a complex derivative: that.

    Of complex arguments the gradient of a real result is PyTorch's: df/dx + i df/dy of an argument x + i y,
    so that a step against it descends. JAX's and HIPS autograd's are its conjugates.

    Returns:
        A function of the same arguments. The gradient has the structure of the argument, a tuple for several
        `argnums`; zeros where the value does not depend on it. Arrays in give arrays out, Tensors Tensors. If
        `function` is compiled, so is the result, as one fused function. Nothing is added to `.grad`.

    Raises:
        DTypeError: a differentiated argument is no float, or with `holomorphic` not complex.
        ArgumentError: there is no such argument.
        OutputError: the result has several elements, or none, or is complex without `holomorphic`.
        GradientError: a value that depends on the argument becomes a plain number or array, as by `float()`;
            `stop_gradient` says that this is meant.

    Example:
        >>> grad(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
        array([2., 4.])
    """

    again = functools.partial(grad, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic)
    return derived(function, lambda inner: _gradient(inner, argnums, has_aux, holomorphic, False), again)


def value_and_grad(
    function: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """As `grad`, but the function returns (value, gradient); with `has_aux` ((value, aux), gradient).

    Example:
        >>> value_and_grad(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
        (np.float64(5.0), array([2., 4.]))
    """
    again = functools.partial(value_and_grad, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic)
    return derived(function, lambda inner: _gradient(inner, argnums, has_aux, holomorphic, True), again)


def grad_of_sum(function: Function, argnums: Argnums = 0) -> Function:
    """The gradient of the sum of a result's elements: of a function of each element, all its derivatives.

    Raises:
        OutputError: the result is complex.

    Example:
        >>> grad_of_sum(lambda x: x ** 2)(np.array([1.0, 2.0]))
        array([2., 4.])
    """

    def make_gradient(inner: Function) -> Function:
        name, memory = function_name(inner), Memory()

        @running_programs
        def gradient(*args: Any, **kwargs: Any) -> Any:
            try:
                inputs = Inputs(name, inner, args, kwargs, argnums)
                outputs = [_floating_output(name, leaf) for leaf in flat(inputs.evaluate(inner, memory))[0]]
                inputs.require_complex(outputs, False, of_gradient=True)
                keep = inputs.reach_outside(outputs)
                ones = [filled_like(output, 1) for output in outputs]
                found = inputs.results(inputs.pulled(outputs, ones, keep, at_once=True), keep)
                return tuple(found) if inputs.several else found[0]
            except BaseException as error:
                show_users_frames(error)
                raise

        return gradient

    return derived(function, make_gradient, functools.partial(grad_of_sum, argnums=argnums))


@showing_users_frames
def vjp(function: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function, and the function that pulls a cotangent back to its arguments.

    Args:
        primals: the arguments; all are differentiated.
        has_aux: `function` returns (value, aux), and the result has aux as a third part.

    Returns:
        (value, pull): `pull(cotangent)`, of the structure and shapes of the value, gives a tuple with a
        gradient for each of `primals`. It may be called repeatedly. Of complex numbers it is PyTorch's, the
        adjoint of the derivative: the cotangent times the conjugate of a complex derivative.

    Raises:
        DTypeError: a primal is no float. ShapeError: a cotangent does not fit the value.

    Example:
        >>> value, pull = vjp(lambda x: x * x, np.array([1.0, 2.0]))
        >>> pull(np.array([1.0, 10.0]))
        (array([ 2., 40.]),)
    """
    name = function_name(function)
    inputs = Inputs(name, function, primals, {}, 0 if len(primals) == 1 else tuple(range(len(primals))))
    value, aux = inputs.evaluate(function), None
    if has_aux:
        value, aux = _split(name, value)
    leaves, structure = flat(value)
    outputs = [_floating_output(name, leaf) for leaf in leaves]

    reaches_outside = inputs.reach_outside(outputs)

    def pull(cotangents: Any) -> tuple[Any, ...]:
        try:
            given, found = ([cotangents], None) if type(cotangents) in PLAIN else flat(cotangents)
            if structure != found:
                raise ArgumentError(
                    f"the pull-back of {name}: cotangents with the structure of the value expected "
                    f"({structure or 'one array'}), found {found or 'one array'}."
                )
            fitted = [_fitted_cotangent(name, one, output) for one, output in zip(given, outputs)]
            keep = reaches_outside or has_history(fitted)
            return tuple(inputs.results(inputs.pulled(outputs, fitted, keep), keep))
        except BaseException as error:
            show_users_frames(error)
            raise

    shown = inputs.shown(value, reaches_outside)
    return (shown, pull, inputs.shown(aux, False)) if has_aux else (shown, pull)


@showing_users_frames
def jvp(
    function: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of a function, and its derivative along tangents; that of integers, as positions, is 0.

    Example:
        >>> jvp(lambda x: x * x, (np.array([1.0, 2.0]),), (np.array([1.0, 10.0]),))
        (array([1., 4.]), array([ 2., 40.]))
    """
    name = function_name(function)
    for one, what in ((primals, "primals"), (tangents, "tangents")):
        if not isinstance(one, tuple | list):
            raise ArgumentError(
                f"jvp of {name}: {what} must be a tuple with one for each argument, found "
                f"{one.__class__.__name__}. Give (x,) for a single x."
            )
    if len(primals) != len(tangents):
        raise ArgumentError(
            f"jvp of {name}: a tangent for each primal expected, found {len(tangents)} for {len(primals)}."
        )
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    inputs = Inputs(name, function, tuple(primals), {}, argnums)
    value, aux = inputs.evaluate(function), None
    if has_aux:
        value, aux = _split(name, value)
    leaves, structure = flat(value)
    outputs = [_tensor_output(name, leaf) for leaf in leaves]
    floating = list(filter(_is_floating, outputs))
    if len(tangents) == 1 and type(tangents[0]) in PLAIN:
        flat_tangents = tangents
    else:
        flat_tangents = [leaf for tangent in tangents for leaf in flat(tangent)[0]]
    if len(flat_tangents) != len(inputs.leaves):
        raise ArgumentError(f"jvp of {name}: tangents with the structure of the primals expected.")
    along = [_fitted_cotangent(name, one, leaf) for one, leaf in zip(flat_tangents, inputs.leaves)]
    keep = inputs.reach_outside(floating, along)
    pushed = inputs.pushed(floating, along, keep)
    if len(floating) < len(outputs):
        known = iter(pushed)
        pushed = [next(known) if _is_floating(output) else None for output in outputs]
    found = list(map(inputs.shown_of_kind, pushed, outputs, repeat(keep)))
    shown = (inputs.shown(value, keep), found[0] if structure is None else unflatten(structure, found))
    return (*shown, inputs.shown(aux, False)) if has_aux else shown


def jacobian(
    function: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """The function that computes all derivatives of all elements of a result.

    Args:
        function, argnums, has_aux: as in `grad`; the function may return any number of elements.
        holomorphic: complex results have complex derivatives by complex arguments: those. Without it complex
            arguments need real results, whose gradients are as in `grad`.

    Returns:
        A function of the same arguments. For a result of shape `s` and an argument of shape `a` it gives an
        array of shape `s + a`, nested as the result, then as the argument. Compiled, or of a compiled
        function, it is a loop over the elements of the result or of the argument, whichever are fewer;
        else one backward pass for all elements of the result at once.

    Raises:
        DTypeError: a differentiated argument or a result is no float, or both are complex without
            `holomorphic`.

    Example:
        >>> jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    again = functools.partial(jacobian, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic)
    return derived(function, lambda inner: _jacobian(inner, argnums, has_aux, holomorphic), again)


jacrev = jacobian


def hessian(function: Function, argnums: Argnums = 0, *, holomorphic: bool = False) -> Function:
    """The function that computes all second derivatives of a scalar function: the jacobian of its gradient.

    Args:
        function, argnums: as in `grad`.
        holomorphic: the function takes complex numbers to a complex one: its second complex derivatives.

    Returns:
        A function of the same arguments. For an argument of shape `a` it gives an array of shape `a + a`,
        and for several, or nested ones, one for each pair, nested twice.

    Raises:
        DTypeError, ArgumentError, OutputError, GradientError: as `grad` does.

    Example:
        >>> hessian(lambda x: (x ** 3).sum())(np.array([1.0, 2.0]))
        array([[ 6.,  0.],
               [ 0., 12.]])
    """
    slopes = grad(function, argnums, holomorphic=holomorphic)
    return jacobian(slopes, argnums, holomorphic=holomorphic)


# --- from a function to its gradient ----------------------------------------------------------------------


def _jacobian(function: Function, argnums: Argnums, has_aux: bool, holomorphic: bool) -> Function:
    name, memory = function_name(function), Memory()

    @running_programs
    def all_derivatives(*args: Any, **kwargs: Any) -> Any:
        try:
            inputs = Inputs(name, function, args, kwargs, argnums)
            value, aux = inputs.evaluate(function, memory), None
            if has_aux:
                value, aux = _split(name, value)
            leaves, structure = flat(value)
            outputs = [_floating_output(name, leaf) for leaf in leaves]
            inputs.require_complex(outputs, holomorphic)
            keep = inputs.reach_outside(outputs)
            rows = [inputs.results(row, keep) for row in inputs.derivatives(outputs, keep)]
            found = [row if inputs.several else row[0] for row in rows]
            result = found[0] if structure is None else unflatten(structure, found)
            return (result, inputs.shown(aux, False)) if has_aux else result
        except BaseException as error:
            show_users_frames(error)
            raise

    return all_derivatives


def _gradient(
    function: Function, argnums: Argnums, has_aux: bool, holomorphic: bool, with_value: bool
) -> Function:
    """The function of the gradient, or of (value, gradient)."""
    name, memory = function_name(function), Memory()

    @running_programs
    def gradient(*args: Any, **kwargs: Any) -> Any:
        try:
            inputs = Inputs(name, function, args, kwargs, argnums)
            value, aux = inputs.evaluate(function, memory), None
            if has_aux:
                value, aux = _split(name, value)
            output = _single_output(name, value)
            if holomorphic or output._value.dtype.kind != "f":
                inputs.require_complex([output], holomorphic, of_gradient=True)
            scalar = _as_scalar(output) if output._value.shape else output
            keep = inputs.reach_outside([scalar])
            (slopes,) = inputs.derivatives([scalar], keep)
            found = inputs.results(slopes, keep)
            slope = tuple(found) if inputs.several else found[0]
            if not with_value:
                return (slope, inputs.shown(aux, keep)) if has_aux else slope
            shown = inputs.shown(output, keep)
            return ((shown, inputs.shown(aux, keep)), slope) if has_aux else (shown, slope)
        except BaseException as error:
            show_users_frames(error)
            raise

    return gradient


# --- results and cotangents ------------------------------------------------------------------------------


def _split(name: str, result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise OutputError(
            f"{name}: has_aux=True expects a result (value, aux), found {result.__class__.__name__}. "
            f"Return a pair, or leave has_aux out."
        )
    return result


def _is_floating(output: Tensor) -> bool:
    return output._value.dtype.kind in CONTINUOUS


def _floating_output(name: str, leaf: Any) -> Tensor:
    output = _tensor_output(name, leaf)
    if not _is_floating(output):
        raise DTypeError(
            f"{name}: a derivative is taken of a result of dtype {output._value.dtype}, which has none. "
            "Return a floating result, and others through has_aux=True."
        )
    return output


def _tensor_output(name: str, leaf: Any) -> Tensor:
    if not isinstance(leaf, Tensor) and isinstance(leaf, FLOATING):
        leaf = standing_for(leaf)
    if leaf is None:
        raise OutputError(
            f"{name}: a derivative is taken of a result that is None. Return the value: a return is missing, "
            "or one way through the function has none. Other results go through has_aux=True."
        )
    if not isinstance(leaf, Tensor):
        raise OutputError(
            f"{name}: a derivative is taken of a result that is {leaf!r}, of type {type(leaf).__name__}. "
            f"Return floating tensors or arrays, and other results through has_aux=True.{how_to_return(leaf)}"
        )
    return leaf


def _single_output(name: str, value: Any) -> Tensor:
    """The result of which a gradient is taken, as `backward()` takes it: of one element, in any shape."""
    is_tensor = issubclass(type(value), Tensor)
    if is_tensor and not value._value.shape and value._value.dtype.kind == "f":
        return value
    if not is_tensor and is_container(value):
        raise OutputError(
            f"{name}: a gradient is taken of a result of type {type(value).__name__}; expected one scalar. "
            f"Return (value, aux) with has_aux=True, or use vjp."
        )
    output = _floating_output(name, value)
    if math.prod(output._value.shape) != 1:
        raise OutputError(
            f"{name}: a gradient is taken of a result of shape {tuple(output._value.shape)}; expected a "
            "scalar, or one element. Reduce it, e.g. with .sum() or .mean(), or use vjp or jacobian."
        )
    return output


def _as_scalar(output: Tensor) -> Tensor:
    with enable_grad():
        return apply(reshape, output, shape=())


def _fitted_cotangent(name: str, given: Any, output: Tensor) -> Tensor:
    """A cotangent or tangent as a Tensor of the dtype of what it belongs to.

    Raises:
        ShapeError: it has another shape.
    """
    dtype = output._value.dtype
    if type(given) in PLAIN and saved_values() is None:
        value = np.asarray(given)
        if value.dtype == dtype and value.shape == output._value.shape:
            return make(value, NumpyTensor)
    if isinstance(given, Tensor):
        cotangent = given
    else:
        require_plain_array(given, f"{name}: a cotangent or tangent")
        cotangent = standing_for(np.asarray(given))
        if cotangent._value.dtype not in SUPPORTED:
            raise DTypeError(
                f"{name}: a cotangent or tangent of dtype {dtype} expected, found {cotangent._value.dtype}."
            )
    if cotangent._value.dtype != dtype:
        if cotangent.is_complex() and dtype.kind != "c":
            raise DTypeError(
                f"{name}: a cotangent or tangent of dtype {dtype} expected, found {cotangent._value.dtype}. "
                "Of a real value it must be real: take its .real."
            )
        cotangent = apply(convert, cotangent, dtype=dtype)
    if cotangent._value.shape != output._value.shape:
        raise ShapeError(
            f"{name}: a cotangent or tangent of shape {tuple(output._value.shape)} expected, found "
            f"{tuple(cotangent._value.shape)}. It must have the shape of the value that it belongs to."
        )
    return cotangent
