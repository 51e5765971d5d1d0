"""Small helpers, under the names of HIPS autograd's `util`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from .conventions import Function, subvals
from .insides import missing_of

__all__ = ["func", "quick_grad_check", "subval", "subvals"]


def subval(x: Any, i: int, v: Any) -> tuple[Any, ...]:
    """The elements of x, one exchanged."""
    return subvals(x, [(i, v)])


def func(f: Function) -> Function:
    """The function itself."""
    return f


def quick_grad_check(
    fun: Function, arg0: Any, extra_args: Sequence[Any] = (), kwargs: Any = None, **options: Any
) -> None:
    """Raise AssertionError unless the gradient of the first argument fits; deprecated, as autograd's."""
    from .test_util import check_grads  # which imports this module's names

    warnings.warn("quick_grad_check is deprecated: write autograd.test_util.check_grads.", stacklevel=2)
    check_grads(lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)


__getattr__ = missing_of(__name__)
