"""Transforms of functions of one argument as those of any, under the names of HIPS autograd's `wrap_util`."""

from __future__ import annotations

import contextlib
from typing import Any

from .conventions import Function, unary_to_nary
from .insides import missing_of

__all__ = ["get_doc", "get_name", "unary_to_nary", "wraps"]


def get_name(f: Any) -> str:
    """The name of a function."""
    return getattr(f, "__name__", "[unknown name]")


def get_doc(f: Any) -> str:
    """The documentation of a function."""
    return getattr(f, "__doc__", "")


def wraps(fun: Any, namestr: str = "{fun}", docstr: str = "{doc}", **kwargs: Any) -> Function:
    """Decorate a function with the name and the documentation of another."""

    def decorate(f: Function) -> Function:
        with contextlib.suppress(AttributeError, KeyError, ValueError):
            f.__name__ = namestr.format(fun=get_name(fun), **kwargs)
            f.__doc__ = docstr.format(fun=get_name(fun), doc=get_doc(fun), **kwargs)
        return f

    return decorate


__getattr__ = missing_of(__name__)
