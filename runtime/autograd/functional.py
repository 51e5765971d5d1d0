"""`pullback.autograd.functional`: Jacobians, Hessians and their products with vectors, of functions.

All are made of repeated vector-Jacobian products; a product with the Jacobian is the derivative of a
vector-Jacobian product with respect to its vector (the double-backward trick).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, GradientError
from ..functions import PUBLIC
from ..tensors.creation import ones_like, zeros_like
from ..values.modes import enable_grad
from ..values.tensor import Tensor, make
from .autograd import grad

TensorFunction = Callable[..., Any]


def _tuple(values: Any) -> tuple[Tensor, ...]:
    return (values,) if isinstance(values, Tensor) else tuple(values)


def _like(values: tuple[Any, ...], pattern: Any) -> Any:
    """A single value where the pattern is a single tensor."""
    return values[0] if isinstance(pattern, Tensor) else values


def _variables(inputs: Any, create_graph: bool) -> tuple[Tensor, ...]:
    """The inputs as tensors to differentiate by."""
    if create_graph:
        return tuple(one.view_as(one) if one.requires_grad else _leaf(one) for one in _tuple(inputs))
    return tuple(map(_leaf, _tuple(inputs)))


def _leaf(one: Tensor) -> Tensor:
    return one._detached().requires_grad_()


def _finished(value: Any, create_graph: bool) -> Any:
    if isinstance(value, tuple):
        return tuple(_finished(one, create_graph) for one in value)
    return value if create_graph else value._detached()


def _slopes(
    outputs: tuple[Tensor, ...],
    variables: tuple[Tensor, ...],
    cotangents: Any,
    create_graph: bool,
    strict: bool,
) -> tuple[Tensor, ...]:
    """grad with zeros for what does not depend, and for outputs without a graph."""
    linked = [position for position, one in enumerate(outputs) if one.requires_grad]
    if not linked:
        if strict:
            raise GradientError("The outputs of the user-provided function do not depend on its inputs.")
        return tuple(map(zeros_like, variables))
    return grad(
        [outputs[position] for position in linked], variables, [cotangents[position] for position in linked],
        retain_graph=True, create_graph=create_graph, materialize_grads=not strict,
    )  # fmt: skip


def vjp(
    func: TensorFunction, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """(outputs, v^T J): the outputs of `func`, and the product of a cotangent with its Jacobian.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple.
        v: of the outputs' shapes; may be None for a single element.
        create_graph: let the product be differentiated.
        strict: raise GradientError where an output does not depend on the inputs.

    Example:
        >>> vjp(lambda x: x * x, Tensor([1.0, 2.0]), Tensor([1.0, 1.0]))[1]
        tensor([2., 4.])
    """
    with enable_grad():
        variables = _variables(inputs, create_graph)
        returned = func(*variables)
        outputs = _tuple(returned)
        if v is None and (len(outputs) > 1 or outputs[0].numel() != 1):
            raise ArgumentError(
                "The vector v can only be None if the user-provided function returns a single element."
            )
        cotangents = tuple(map(ones_like, outputs)) if v is None else _tuple(v)
        found = _slopes(outputs, variables, cotangents, create_graph, strict)
    return _finished(returned, create_graph), _finished(_like(found, inputs), create_graph)


def jvp(
    func: TensorFunction, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """(outputs, J v): the outputs of `func`, and the product of its Jacobian with a tangent.

    Example:
        >>> jvp(lambda x: x * x, Tensor([1.0, 2.0]), Tensor([1.0, 0.0]))[1]
        tensor([2., 0.])
    """
    with enable_grad():
        variables = _variables(inputs, create_graph)
        returned = func(*variables)
        outputs = _tuple(returned)
        tangents = tuple(map(ones_like, variables)) if v is None else _tuple(v)
        cotangents = tuple(zeros_like(one).requires_grad_() for one in outputs)
        slopes = _slopes(outputs, variables, cotangents, True, strict)
        found = _slopes(slopes, cotangents, tangents, create_graph, False)
    return _finished(returned, create_graph), _finished(_like(found, returned), create_graph)


def jacobian(
    func: TensorFunction,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian: for each output and input a tensor of shape `output.shape + input.shape`.

    Example:
        >>> jacobian(lambda x: x * x, Tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    stack = PUBLIC["stack"]
    with enable_grad():
        variables = _variables(inputs, create_graph)
        returned = func(*variables)
        rows = []
        for output in _tuple(returned):
            slopes = [
                _slopes((output,), variables, (_unit(output, place),), create_graph, strict)
                for place in range(output.numel())
            ]
            rows.append(tuple(
                stack([slope[position] for slope in slopes]).reshape((*output.shape, *variable.shape))
                if slopes else zeros_like(variable).expand((*output.shape, *variable.shape))
                for position, variable in enumerate(variables)
            ))  # fmt: skip
    found = tuple(_finished(_like(row, inputs), create_graph) for row in rows)
    return _like(found, returned)


def _unit(output: Tensor, place: int) -> Tensor:
    """1 at one place of the output, else 0."""
    unit = np.zeros(output.numel(), output.dtype.numpy)
    unit[place] = 1
    return make(unit.reshape(tuple(output.shape)))


def hessian(
    func: TensorFunction,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The matrix of second derivatives of a function with one element: for each pair of inputs a tensor.

    Example:
        >>> hessian(lambda x: (x ** 3).sum(), Tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """

    def slope(*variables: Tensor) -> Any:
        return _like(_gradient(func, variables, strict), inputs)

    return jacobian(slope, inputs, create_graph, strict)


def _gradient(
    func: TensorFunction, variables: tuple[Tensor, ...], strict: bool = False
) -> tuple[Tensor, ...]:
    output = func(*variables)
    if not isinstance(output, Tensor) or output.numel() != 1:
        raise ArgumentError(
            "The Tensor returned by the user-provided function should contain a single element."
        )
    return _slopes((output,), variables, (ones_like(output),), True, strict)


def hvp(
    func: TensorFunction, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """(output, H v): the value of a function with one element, and its Hessian times a vector.

    Example:
        >>> hvp(lambda x: (x ** 3).sum(), Tensor([1.0, 2.0]), Tensor([1.0, 1.0]))[1]
        tensor([ 6., 12.])
    """
    with enable_grad():
        variables = _variables(inputs, create_graph)
        slopes = _gradient(func, variables, strict)
        vectors = tuple(map(ones_like, variables)) if v is None else _tuple(v)
        found = _slopes(slopes, variables, vectors, create_graph, strict)
        output = func(*variables)
    return _finished(output, create_graph), _finished(_like(found, inputs), create_graph)


vhp = hvp  # the Hessian is symmetric
