"""Transformations under the conventions of torch.func, where they differ from `transforms`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .transforms import Argnums, jacobian, jvp, value_and_grad

Function = Callable[..., Any]


def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """As `value_and_grad`, the gradient first: (gradient, value), with `has_aux` (gradient, (value, aux)).

    Example:
        >>> grad_and_value(lambda x: (x * x).sum())(tensor([1.0, 2.0]))
        (tensor([2., 4.]), tensor(5.))
    """
    both = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient_and_value(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return gradient_and_value


def jacrev(
    func: Function, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:  # fmt: skip
    """`jacobian`; `chunk_size` is accepted.

    Example:
        >>> jacrev(lambda x: x * x)(tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    return jacobian(func, argnums, has_aux)


def jacfwd(
    func: Function, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Function:
    """`jacobian`: here it is made of pull-backs, too.

    Example:
        >>> jacfwd(lambda x: x * x)(tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    return jacobian(func, argnums, has_aux)


def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """All second derivatives of all results, in nested structures of these: `jacfwd` of `jacrev`.

    Example:
        >>> hessian(lambda x: x ** 3)(tensor([1.0, 2.0]))[1]
        tensor([[ 0.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The value of a function, and the function that takes tangents to its derivative along them.

    Example:
        >>> value, push = linearize(lambda x: x * x, tensor([3.0]))
        >>> push(tensor([1.0]))
        tensor([6.])
    """
    value = func(*primals)

    def push(*tangents: Any) -> Any:
        return jvp(func, primals, tangents)[1]

    return value, push
