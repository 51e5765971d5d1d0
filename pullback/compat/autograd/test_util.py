"""`check_grads`: derivatives against finite differences, along random directions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from pullback.errors import ArgumentError

from .conventions import put_together, taken_apart, unary_to_nary
from .core import make_jvp, make_vjp
from .tracer import getval
from .vspaces import vspace
from .wrap_util import get_name

Function = Callable[..., Any]
TOL = 1e-6
RTOL = 1e-6
EPS = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers differ by less than 1e-6, or 1e-6 of their sum."""
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def check_equivalent(x: Any, y: Any) -> None:
    """Raise AssertionError unless x and y have the same structure, shapes and dtypes, and are close."""
    space, other = vspace(x), vspace(y)
    assert space == other, f"VSpace mismatch:\nx: {space}\ny: {other}"
    v = space.randn()
    products = space.inner_prod(x, v), space.inner_prod(y, v)
    assert scalar_close(*map(getval, products)), f"Value mismatch:\nx: {x}\ny: {y}"


def check_vjp(f: Function, x: Any) -> None:
    """Raise AssertionError unless the cotangent of x fits finite differences along a random direction."""
    pull, y = make_vjp(f, x)
    of_x, of_y = vspace(x), vspace(y)
    along_x, along_y = of_x.randn(), of_y.randn()
    pulled = of_x.covector(pull(of_y.covector(along_y)))
    exact = getval(of_x.inner_prod(along_x, pulled))
    numeric = getval(of_y.inner_prod(along_y, _difference(f, x, along_x)))
    assert scalar_close(numeric, exact), (
        f"Derivative (VJP) check of {get_name(f)} failed with arg {x}:\nanalytic: {exact}\n"
        f"numeric:  {numeric}"
    )


def check_jvp(f: Function, x: Any) -> None:
    """Raise AssertionError unless the tangent of the value fits finite differences."""
    v = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(v)[1], _difference(f, x, v))


@unary_to_nary
def check_grads(f: Function, x: Any, modes: Sequence[str] | None = None, order: int = 2) -> None:
    """Raise AssertionError unless derivatives fit finite differences: `check_grads(f, argnum)(*args)`.

    Args:
        modes: "fwd", tangents, and "rev", cotangents; both unless given.
        order: up to which derivative.

    Raises:
        ArgumentError: another mode.
    """
    asked = ["fwd", "rev"] if modes is None else list(modes)
    if not {"fwd", "rev"}.issuperset(asked):
        raise ArgumentError(f"check_grads: modes are 'fwd' and 'rev', found {modes!r}.")
    if "fwd" in asked:
        check_jvp(f, x)
        if order > 1:
            pushed = _named(f"jvp_{get_name(f)}", lambda x, v: make_jvp(f, x)(v)[1])
            check_grads(pushed, (0, 1), asked, order=order - 1)(x, vspace(x).randn())
    if "rev" in asked:
        check_vjp(f, x)
        if order > 1:
            pulled = _named(f"vjp_{get_name(f)}", lambda x, v: make_vjp(f, x)[0](v))
            check_grads(pulled, (0, 1), asked, order=order - 1)(x, vspace(f(x)).randn())


def combo_check(fun: Function, *args: Any, **kwargs: Any) -> Function:
    """`check_grads` of all combinations of arguments and options that the result is given lists of."""

    def of_combinations(*choices: Any, **options: Any) -> None:
        named = [[(name, value) for value in values] for name, values in options.items()]
        for chosen, given in itertools.product(itertools.product(*choices), itertools.product(*named)):
            check_grads(lambda *a, _given=dict(given): fun(*a, **_given), *args, **kwargs)(*chosen)

    return of_combinations


def _named(name: str, function: Function) -> Function:
    function.__name__ = name
    return function


def _difference(f: Function, x: Any, v: Any) -> Any:
    """The derivative of f at x along v, from values at both sides."""
    (xs, structure), vs = taken_apart(x), taken_apart(v)[0]
    sides = [
        f(put_together(structure, [a + sign * EPS / 2 * b for a, b in zip(xs, vs)])) for sign in (1.0, -1.0)
    ]
    leaves, of_value = taken_apart(sides[0])
    return put_together(of_value, [(a - b) / EPS for a, b in zip(leaves, taken_apart(sides[1])[0])])
