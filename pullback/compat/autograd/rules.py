"""Functions with rules of their own: pullback's `primitive`, with HIPS autograd's conventions.

Of complex numbers a rule gets and gives the conjugates of pullback's cotangents, and one rule may serve all
arguments.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from types import FunctionType
from typing import Any, ClassVar

import numpy as np

import pullback
from pullback.errors import ArgumentError
from pullback.runtime.autograd.custom_rules import defjvp as _defjvp
from pullback.runtime.numpy_api.protocols import FUNCTIONS
from pullback.runtime.tracing.stand_ins import Called

from .conventions import Function, conjugated, subvals
from .vspaces import vspace


class primitive(pullback.primitive):
    """Decorate a function that is differentiated by rules for its arguments, given by `defvjp` or `defjvp`.

    It is called with plain values, arrays for arrays, so it may be foreign code.

    Raises:
        GradientError: an argument without a rule is differentiated.

    Example:
        >>> from pullback.compat.autograd.extend import defvjp
        >>> @primitive
        ... def softplus(x):
        ...     return np.logaddexp(x, 0.0)
        >>> defvjp(softplus, lambda ans, x: lambda g: g * np.exp(x - ans))
        >>> grad(softplus)(0.0)
        np.float64(0.5)
    """

    parts: ClassVar[tuple[str, ...]] = (*pullback.primitive.parts, "_vjp_of_several", "_jvp_of_several")

    def __init__(self, f_raw: Function) -> None:
        super().__init__(f_raw)
        self.fun = f_raw
        self._vjp_of_several: Function | None = None
        self._jvp_of_several: Function | None = None

    def defvjp(self, vjpmaker: Function, argnum: int = 0) -> None:  # type: ignore[override]
        """Give one argument a rule `vjpmaker(g, ans, vs, gvs, *args)`; deprecated, as in HIPS autograd."""

        def staged(ans: Any, *args: Any, **kwargs: Any) -> Function:
            return lambda g: vjpmaker(g, ans, vspace(args[argnum]), vspace(g), *args, **kwargs)

        self._deprecated("defvjp", staged, [argnum])

    def defvjp_is_zero(self, argnums: Sequence[int] = (0,)) -> None:
        """Say that arguments have the gradient zero; deprecated, as in HIPS autograd."""
        self._deprecated("defvjp_is_zero", None, argnums)

    def defgrad(self, gradfun: Function, argnum: int = 0) -> None:
        """Give one argument a rule `gradfun(ans, *args)(g)`; deprecated, as in HIPS autograd."""
        self._deprecated("defgrad", gradfun, [argnum])

    def _deprecated(self, name: str, vjpmaker: Function | None, argnums: Sequence[int]) -> None:
        warnings.warn(f"{name} is deprecated: write autograd.extend.defvjp(f, ...).", stacklevel=3)
        super().defvjp(*[vjpmaker] * len(argnums), argnums=argnums)

    def _has_pull(self) -> bool:
        return self._vjp_of_several is not None or bool(self._vjps)

    def _has_rule(self, position: int) -> bool:
        of_several = self._vjp_of_several or (None if self._vjps else self._jvp_of_several)
        return of_several is not None or position in (self._vjps or self._jvps)

    def _cotangents(
        self,
        positions: Sequence[int],
        result: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        cotangent: Any,
    ) -> Sequence[Any]:
        given = conjugated(cotangent)
        if self._vjp_of_several is None:
            found = super()._cotangents(positions, result, args, kwargs, given)
        else:
            found = list(self._vjp_of_several(tuple(positions), result, args, kwargs)(given))
        return [None if one is None else conjugated(one) for one in found]

    def _pushed(
        self, result: Any, args: tuple[Any, ...], tangents: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        if self._jvp_of_several is None:
            return super()._pushed(result, args, tangents, kwargs)
        known = [place for place, one in enumerate(tangents) if one is not None]
        along = [tangents[place] for place in known]
        return result, self._jvp_of_several(tuple(known), along, result, args, kwargs)


def defvjp(fun: Any, *vjpmakers: Function | None, argnums: Sequence[int] | None = None) -> None:
    """Give a primitive the rules that pull cotangents back: `maker(ans, *args, **kwargs)(g)`.

    A function of NumPy's or SciPy's that has a derivative here keeps it, with a warning. So does a plain
    function, which is differentiated as what it computes.

    Args:
        vjpmakers: one for each argument; None stands for zero.
        argnums: the positions that they are for; the first ones unless given.

    Raises:
        ArgumentError: `fun` is no function that can be a primitive.

    Example:
        >>> from pullback.compat.autograd import grad, primitive
        >>> half = primitive(lambda x: x / 2.0)
        >>> defvjp(half, lambda ans, x: lambda g: g / 2.0)
        >>> grad(half)(3.0)
        np.float64(0.5)
    """
    if not _ignores_rules(fun):
        pullback.primitive.defvjp(_own(fun, "defvjp"), *vjpmakers, argnums=argnums)


def defvjp_argnum(fun: Any, vjpmaker: Function) -> None:
    """Give a primitive one rule for all arguments: `vjpmaker(argnum, ans, args, kwargs)(g)`.

    Example:
        >>> from pullback.compat.autograd import grad, primitive
        >>> product = primitive(lambda a, b: a * b)
        >>> defvjp_argnum(product, lambda argnum, ans, args, kwargs: lambda g: g * args[1 - argnum])
        >>> grad(product, 1)(3.0, 2.0)
        np.float64(3.0)
    """

    def of_several(argnums: Sequence[int], *given: Any) -> Function:
        pulls = [vjpmaker(argnum, *given) for argnum in argnums]
        return lambda g: [pull(g) for pull in pulls]

    defvjp_argnums(fun, of_several)


def defvjp_argnums(fun: Any, vjpmaker: Function) -> None:
    """Give a primitive one rule for several arguments at once: `vjpmaker(argnums, ans, args, kwargs)(g)`.

    Example:
        >>> from pullback.compat.autograd import grad, primitive
        >>> product = primitive(lambda a, b: a * b)
        >>> defvjp_argnums(product, lambda nums, ans, args, kwargs: lambda g: [g * args[1 - i] for i in nums])
        >>> grad(product, 1)(3.0, 2.0)
        np.float64(3.0)
    """
    if not _ignores_rules(fun):
        _own(fun, "defvjp_argnums")._vjp_of_several = vjpmaker


def defjvp(fun: Any, *jvpfuns: Function | str | None, argnums: Sequence[int] | None = None) -> None:
    """Give a primitive the rules that push tangents forward: `rule(g, ans, *args, **kwargs)`.

    A function of NumPy's or SciPy's has a derivative here, from which both directions come, and keeps it,
    with a warning.

    Args:
        jvpfuns: one for each argument; "same" is the function itself, None stands for zero.
        argnums: the positions that they are for; the first ones unless given.

    Example:
        >>> from pullback.compat.autograd import make_jvp, primitive
        >>> half = primitive(lambda x: x / 2.0)
        >>> defjvp(half, lambda g, ans, x: g / 2.0)
        >>> make_jvp(half)(3.0)(1.0)[1]
        0.5
    """
    if not _ignores_rules(fun):
        _defjvp(_own(fun, "defjvp"), *jvpfuns, argnums=argnums)


def defjvp_argnum(fun: Any, jvpmaker: Function) -> None:
    """Give a primitive one rule for all arguments: `jvpmaker(argnum, g, ans, args, kwargs)`.

    Example:
        >>> from pullback.compat.autograd import make_jvp, primitive
        >>> product = primitive(lambda a, b: a * b)
        >>> defjvp_argnum(product, lambda argnum, g, ans, args, kwargs: g * args[1 - argnum])
        >>> make_jvp(product)(3.0, 2.0)(1.0)[1]
        2.0
    """

    def of_several(argnums: Sequence[int], gs: Sequence[Any], *given: Any) -> Any:
        first, *others = [jvpmaker(argnum, g, *given) for argnum, g in zip(argnums, gs)]
        return sum(others, first)

    defjvp_argnums(fun, of_several)


def defjvp_argnums(fun: Any, jvpmaker: Function) -> None:
    """Give a primitive one rule for several arguments: `jvpmaker(argnums, gs, ans, args, kwargs)`.

    Example:
        >>> from pullback.compat.autograd import make_jvp, primitive
        >>> total = primitive(lambda a, b: a + b)
        >>> defjvp_argnums(total, lambda argnums, gs, ans, args, kwargs: sum(gs))
        >>> make_jvp(total)(3.0, 2.0)(1.0)[1]
        1.0
    """
    if not _ignores_rules(fun):
        _own(fun, "defjvp_argnums")._jvp_of_several = jvpmaker


def def_linear(fun: Any) -> None:
    """Say that a primitive is linear in each of its arguments.

    Example:
        >>> from pullback.compat.autograd import grad, primitive
        >>> half = primitive(lambda x: x / 2.0)
        >>> def_linear(half)
        >>> grad(half)(3.0)
        np.float64(0.5)
    """
    linear = _own(fun, "def_linear").function
    defjvp_argnum(fun, lambda argnum, g, ans, args, kwargs: linear(*subvals(args, [(argnum, g)]), **kwargs))


def _has_derivative(fun: Any) -> bool:
    if isinstance(fun, np.ufunc | Called) or (callable(fun) and fun in FUNCTIONS):
        return True
    return hasattr(fun, "__wrapped__") and _has_derivative(fun.__wrapped__)


def _ignores_rules(fun: Any) -> bool:
    """Whether rules are not for a function, as no call of it would ask for them; if so with a warning."""
    if _has_derivative(fun):
        said = (
            f"{fun.__name__} has a derivative of pullback's, and keeps it. For another one decorate a "
            "function that calls it with autograd.extend.primitive, and give that one rules."
        )
    elif isinstance(fun, FunctionType):
        said = (
            f"{fun.__name__} is not decorated with autograd.extend.primitive, so its rules have no effect: "
            "what it computes is differentiated."
        )
    else:
        return False
    warnings.warn(said, stacklevel=3)
    return True


def _own(fun: Any, name: str) -> primitive:
    if isinstance(fun, primitive):
        return fun
    raise ArgumentError(
        f"{name}: expected a function decorated with autograd.extend.primitive, found "
        f"{type(fun).__name__} {fun!r}."
    )
