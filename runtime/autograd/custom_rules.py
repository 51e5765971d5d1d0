"""Functions with rules of their own for their derivatives, which `ruled_calls.py` calls.

`custom_vjp` and `custom_jvp` have JAX's forms, `primitive` with `defvjp` and `defjvp` those of HIPS autograd.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, ClassVar

import numpy as np

from ...tracer.errors import ArgumentError, GradientError
from ...tracer.graph import Node, constant
from ...tracer.spec import CONTINUOUS
from ...tracer.trace import innermost
from ..captures.objects import HasParts
from ..functions.structures import spec_of_tensor, structured
from ..values.flatten import flatten, is_container, unflatten
from ..values.modes import enable_grad, is_recording
from ..values.nodes import targets_behind
from ..values.tensor import Tensor, make
from .autograd import pull_back
from .direct_calls import recorded_directly
from .ruled_calls import call_ruled
from .rules import RuledCall, are_plain

Function = Callable[..., Any]


class _WithRule(HasParts):
    """A function that is called as it is, and differentiated by a rule."""

    parts: ClassVar[tuple[str, ...]] = ("function", "_rule")
    _rule: Any = None

    def __init__(
        self, function: Function, nondiff_argnums: int | Sequence[int] = (), vectorized: bool = False
    ) -> None:
        if not callable(function):
            raise ArgumentError(
                f"{type(self).__name__}: expected a function, found {type(function).__name__} {function!r}."
            )
        functools.update_wrapper(self, function)
        del self.__dict__["__wrapped__"]  # whoever finds it calls the function without its rule
        with contextlib.suppress(ValueError, TypeError):  # written in C
            self.__signature__ = inspect.signature(function)
        self.function = function
        self.original: Any = self
        """Itself, also of a copy that a trace makes of it."""
        self.vectorized = vectorized
        single = isinstance(nondiff_argnums, int)
        self.nondiff_argnums: tuple[int, ...] = (nondiff_argnums,) if single else tuple(nondiff_argnums)  # type: ignore
        self._name = getattr(function, "__name__", type(function).__name__)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._rule is not None and not (kwargs or self.nondiff_argnums) and are_plain(args):
            return self.function(*args)
        return call_ruled(self._call(self._positional(args, kwargs)))

    def _call(self, args: tuple[Any, ...]) -> RuledCall:
        raise NotImplementedError

    def _ruled(
        self,
        args: tuple[Any, ...],
        given: Sequence[Any],
        fixed: Sequence[Any],
        run: Function,
        forward: Function,
        pull: Function,
    ) -> RuledCall:
        def outside() -> RuledCall:
            found: RuledCall = self.original._call(args)
            return found

        return RuledCall(
            self.original,
            self._name,
            tuple(given),
            run,
            forward,
            pull,
            outside,
            tuple(fixed),
            vectorized=self.vectorized,
        )

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments in the order of the parameters, with defaults.

        Raises:
            ArgumentError: they do not fit the parameters, or some can be given by name only.
        """
        if not kwargs:
            return args
        try:
            bound = inspect.signature(self.function).bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{self._name}: {error}.") from None
        bound.apply_defaults()
        if bound.kwargs:
            raise ArgumentError(
                f"{self._name}: its rule takes arguments by position, and {', '.join(bound.kwargs)} can be "
                "given by name only. Make it a parameter with a place, or take it from outside."
            )
        return bound.args

    def _split(self, args: tuple[Any, ...]) -> tuple[list[Any], list[int]]:
        """The arguments that have no gradient, and the positions of the others."""
        fixed = {position % len(args) if args else position for position in self.nondiff_argnums}
        if any(position >= len(args) for position in fixed):
            raise ArgumentError(
                f"{self._name}: nondiff_argnums has {max(fixed)}, and the call has {len(args)} arguments."
            )
        return [args[position] for position in sorted(fixed)], [
            position for position in range(len(args)) if position not in fixed
        ]


def _filled(args: tuple[Any, ...], places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """The arguments, those at some places exchanged."""
    found = list(args)
    for place, value in zip(places, values):
        found[place] = value
    return found


class custom_vjp(_WithRule):
    """Decorate a function whose cotangents a rule of its own pulls back: JAX's `jax.custom_vjp`.

    The rule is given with `defvjp(forward, backward)`: `forward(*args)` returns the result and residuals, any
    nested values; `backward(residuals, cotangent)` a tuple with the cotangent of each argument, of its
    structure and shapes, or None for zero. The cotangent has the structure of the result, with zeros where
    nothing depends on it.

    Called without a gradient, the function runs as it is. Outside of traces all three get plain values
    (arrays for arrays), so they may call foreign code; `backward` gets Tensors where it is itself
    differentiated. In a compiled function they are traced, and the rule stands in the generated backward
    code, in loops and under `vmap` as well. A second derivative differentiates `backward` and, of residuals
    that are neither arguments nor results, `forward`. Of complex values cotangents are PyTorch's gradients:
    by the real part, plus 1j times that by the imaginary part.

    Args:
        function: takes arrays, Tensors, numbers, or nested containers of them, by position.
        nondiff_argnums: positions of arguments that have no gradient; `backward` gets them in front of the
            residuals.
        vectorized: whether the three functions take batches: given all arrays with one more dimension in
            front, they give that of all. Compiled code that calls them in Python then does so once for all
            steps of a loop in which no step depends on another, as under `vmap`.

    Raises:
        ArgumentError: it is called before it has a rule. GradientError: it uses, from outside of its
            arguments, what has a gradient; or the rule returns cotangents of other shapes.

    Example:
        >>> @custom_vjp
        ... def clipped(x):
        ...     return x
        >>> clipped.defvjp(lambda x: (x, None), lambda residuals, g: (np.clip(g, -1.0, 1.0),))
        >>> grad(lambda x: (clipped(x) * np.array([0.5, 7.0])).sum())(np.ones(2))
        array([0.5, 1. ])
    """

    def __init__(
        self, function: Function, nondiff_argnums: int | Sequence[int] = (), vectorized: bool = False
    ) -> None:
        super().__init__(function, nondiff_argnums, vectorized)

    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """Give the rule: see `custom_vjp`."""
        self._rule = (fwd, bwd)

    def _call(self, args: tuple[Any, ...]) -> RuledCall:
        if self._rule is None:
            raise ArgumentError(f"{self._name}: it has no rule; give it with defvjp(forward, backward).")
        forward, backward = self._rule
        fixed, places = self._split(args)

        def run(*values: Any) -> Any:
            return self.function(*_filled(args, places, values))

        def with_residuals(*values: Any) -> tuple[Any, Any]:
            returned = forward(*(_filled(args, places, values) if fixed else values))
            if type(returned) is tuple and len(returned) == 2:
                return returned
            if not isinstance(returned, tuple | list) or len(returned) != 2:
                raise ArgumentError(
                    f"{self._name}: forward must return a pair (result, residuals), found "
                    f"{type(returned).__name__}."
                )
            return returned[0], returned[1]

        def pull(residuals: Any, cotangent: Any) -> Sequence[Any]:
            return backward(*fixed, residuals, cotangent)

        return self._ruled(args, [args[place] for place in places], fixed, run, with_residuals, pull)


class custom_jvp(_WithRule):
    """Decorate a function whose tangents a rule of its own pushes forward: JAX's `jax.custom_jvp`.

    The rule is given with `defjvp(rule)`: `rule(primals, tangents)` returns the result and its tangent,
    linear in the tangents; or with `defjvps(*rules)`, one for each argument: `rule(tangent, result,
    *primals)` returns its part of the tangent, and None stands for zero. The reverse follows from it: the
    rule is differentiated with respect to the tangents, in which it must be linear, so it is made of
    functions that have derivatives.

    Args:
        function, nondiff_argnums, vectorized: as of `custom_vjp`; the rule gets the arguments without
            gradient in front.

    Raises:
        ArgumentError: it is called before it has a rule.
        GradientError: the tangent that the rule returns is not linear in the tangents.

    Example:
        >>> @custom_jvp
        ... def log1pexp(x):
        ...     return np.log1p(np.exp(x))
        >>> log1pexp.defjvps(lambda t, y, x: (1 - 1 / (1 + np.exp(x))) * t)
        >>> grad(log1pexp)(100.0)
        np.float64(1.0)
    """

    def __init__(self, function: Function, nondiff_argnums: int | Sequence[int] = ()) -> None:
        super().__init__(function, nondiff_argnums)

    def defjvp(self, jvp: Function) -> Function:
        """Give the rule: see `custom_jvp`. Also a decorator."""
        self._rule = jvp
        return jvp

    def defjvps(self, *jvps: Function | None) -> None:
        """Give a rule for each argument: see `custom_jvp`."""
        count = len(self.nondiff_argnums)

        def rule(*given: Any) -> tuple[Any, Any]:
            fixed, primals, tangents = given[:count], given[-2], given[-1]
            result = self(*_in_order(self.nondiff_argnums, fixed, primals))
            parts = [
                one(tangent, result, *primals) for one, tangent in zip(jvps, tangents) if one is not None
            ]
            return result, functools.reduce(lambda a, b: a + b, parts) if parts else np.zeros_like(result)

        self._rule = rule

    def _call(self, args: tuple[Any, ...]) -> RuledCall:
        if self._rule is None:
            raise ArgumentError(f"{self._name}: it has no rule; give it with defjvp(rule).")
        rule = self._rule
        fixed, places = self._split(args)

        def run(*values: Any) -> Any:
            return self.function(*_filled(args, places, values))

        def with_residuals(*values: Any) -> tuple[Any, Any]:
            return run(*values), values

        def pull(primals: Any, cotangent: Any) -> Sequence[Any]:
            return transposed(
                self._name, lambda *tangents: rule(*fixed, primals, tangents), primals, cotangent
            )

        return self._ruled(args, [args[place] for place in places], fixed, run, with_residuals, pull)


def _in_order(places: Sequence[int], fixed: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """All arguments, of those at `places` and the others."""
    waiting = iter(others)
    known = dict(zip(sorted(places), fixed))
    return [known[place] if place in known else next(waiting) for place in range(len(fixed) + len(others))]


def transposed(
    name: str, push: Callable[..., tuple[Any, Any]], primals: tuple[Any, ...], cotangent: Any
) -> tuple[Any, ...]:
    """What a linear function of tangents pulls back: its own cotangents, given that of its second result.

    Raises:
        GradientError: the function is not linear.
    """
    leaves, structure = flatten(primals)
    floating = [place for place, leaf in enumerate(leaves) if _has_tangent(leaf)]
    given = structured([leaves[place] for place in floating], name, "arguments")
    keep = is_recording()
    with enable_grad():
        variables = [_variable(one) for one in given.tensors]
        tangents = list(leaves)
        for place, one in zip(floating, variables):
            tangents[place] = one
        _, tangent = push(*unflatten(structure, tangents))
        outputs, cotangents = _matched(name, tangent, cotangent)
        pulled = pull_back(outputs, variables, cotangents, create_graph=True)
    own = set(map(id, variables))
    for gradient in pulled:
        if gradient is None or not gradient.requires_grad:
            continue
        if any(id(target) in own for target in targets_behind([gradient.grad_fn or gradient]).leaves):
            raise GradientError(
                f"The rule of {name} is not linear in the tangents, so it has no reverse. Return a tangent "
                "that is a sum of tangents, each multiplied by what does not depend on them."
            )
    found: list[Any] = [None] * len(leaves)
    for place, gradient in zip(floating, pulled):
        found[place] = gradient if gradient is None or keep else gradient.detach()
    return unflatten(structure, found)


def _variable(like: Tensor) -> Tensor:
    """Zeros that require grad: what is linear has the same derivative everywhere."""
    spec = spec_of_tensor(like)
    is_node = isinstance(like.payload, Node)
    made = make(constant(0, spec) if is_node else np.zeros(spec.shape, spec.dtype), type(like))
    made._requires_grad = True
    return made


def _has_tangent(leaf: Any) -> bool:
    if isinstance(leaf, Tensor):
        return leaf._value.dtype.kind in CONTINUOUS
    if isinstance(leaf, np.ndarray | np.generic):
        return leaf.dtype.kind in CONTINUOUS
    return isinstance(leaf, float | complex)


def _matched(name: str, tangent: Any, cotangent: Any) -> tuple[list[Tensor], list[Tensor]]:
    """The tangents of results, and their cotangents."""
    along = structured(tangent, name, "the tangent")
    given = structured(cotangent, name, "the cotangent")
    shapes = [[tuple(one._value.shape) for one in found.tensors] for found in (along, given)]
    if shapes[0] != shapes[1]:
        raise GradientError(
            f"The rule of {name} returned a tangent with leaves of shapes {shapes[0]}, and the result's have "
            f"shapes {shapes[1]}. A tangent has the structure and the shapes of its value."
        )
    return along.tensors, given.tensors


class primitive(_WithRule):
    """Decorate a function that is differentiated by rules for its arguments: HIPS autograd's `primitive`.

    Outside of traces it is called with plain values, arrays for arrays, so it may be foreign code: compiled
    by Numba, reached by ctypes, of SciPy. `defvjp` or `defjvp` give the rules. `vectorized` is as of
    `custom_vjp`.

    Raises:
        GradientError: an argument without a rule is differentiated.

    Example:
        >>> @primitive
        ... def softplus(x):
        ...     return np.logaddexp(x, 0.0)
        >>> defvjp(softplus, lambda y, x: lambda g: g * np.exp(x - y))
        >>> grad(softplus)(0.0)
        np.float64(0.5)
    """

    parts: ClassVar[tuple[str, ...]] = ("function", "_vjps", "_jvps")

    def __init__(self, function: Function, vectorized: bool = False) -> None:
        super().__init__(function, (), vectorized)
        self._vjps: dict[int, Function | None] = {}
        self._jvps: dict[int, Function | str | None] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if are_plain(args):
            return self.function(*args, **kwargs)
        is_recorded, result = recorded_directly(self, args, kwargs)
        if is_recorded:
            return result
        return call_ruled(self._with_keywords(args, kwargs, () if result is NotImplemented else (result,)))

    def _with_keywords(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], computed: Sequence[Any] = ()
    ) -> RuledCall:
        """A call; `computed` has the result for the first time that the function is run, if it is known."""
        waiting = list(computed)

        def run(*values: Any) -> Any:
            if waiting:
                return waiting.pop()
            is_again = innermost() is None and any(isinstance(x, Tensor) and x.requires_grad for x in values)
            return (self if is_again else self.function)(*values, **kwargs)  # plain values, or traced

        def with_residuals(*values: Any) -> tuple[Any, Any]:
            result = run(*values)
            return result, (result, *values)

        def pull(residuals: Any, cotangent: Any) -> Sequence[Any]:
            result, values = residuals[0], residuals[1:]
            return self._pulled(result, values, cotangent, kwargs, concerned)

        def outside() -> RuledCall:
            found: RuledCall = self.original._with_keywords(args, kwargs)
            return found

        concerned = [position for position, one in enumerate(args) if _holds_tensor(one)]
        missing = frozenset(position for position in range(len(args)) if not self._has_rule(position))
        options = tuple(one for pair in kwargs.items() for one in pair)
        return RuledCall(
            self.original,
            self._name,
            args,
            run,
            with_residuals,
            pull,
            outside,
            options,
            missing,
            self.vectorized,
        )

    def _has_rule(self, position: int) -> bool:
        return position in (self._vjps or self._jvps)

    def _has_pull(self) -> bool:
        return bool(self._vjps)

    def _pulled(
        self,
        result: Any,
        args: tuple[Any, ...],
        cotangent: Any,
        kwargs: dict[str, Any],
        concerned: Sequence[int],
    ) -> list[Any]:
        """The cotangents of all arguments; only rules of those that are `concerned` are asked."""
        if not self._has_pull():
            return list(
                transposed(
                    self._name,
                    lambda *tangents: self._pushed(result, args, tangents, kwargs),
                    args,
                    cotangent,
                )
            )
        found: list[Any] = [None] * len(args)
        for position, one in zip(concerned, self._cotangents(concerned, result, args, kwargs, cotangent)):
            found[position] = one
        return found

    def _cotangents(
        self,
        positions: Sequence[int],
        result: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        cotangent: Any,
    ) -> Sequence[Any]:
        """The cotangents of the arguments at these positions."""
        makers = [self._vjps.get(position) for position in positions]
        return [None if make is None else make(result, *args, **kwargs)(cotangent) for make in makers]

    def _pushed(
        self, result: Any, args: tuple[Any, ...], tangents: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        parts = []
        for position, tangent in enumerate(tangents):
            rule = self._jvps.get(position)
            if rule == "same":
                parts.append(self.function(*args[:position], tangent, *args[position + 1 :], **kwargs))
            elif callable(rule):
                parts.append(rule(tangent, result, *args, **kwargs))
        return result, functools.reduce(lambda a, b: a + b, parts) if parts else np.zeros_like(result)

    def defvjp(self, *vjps: Function | None, argnums: Sequence[int] | None = None) -> None:
        """`defvjp(self, ...)`."""
        self._vjps.update(zip(range(len(vjps)) if argnums is None else argnums, vjps, strict=False))

    def defjvp(self, *jvps: Function | str | None, argnums: Sequence[int] | None = None) -> None:
        """`defjvp(self, ...)`."""
        self._jvps.update(zip(range(len(jvps)) if argnums is None else argnums, jvps, strict=False))


def _holds_tensor(value: Any) -> bool:
    if not is_container(value):
        return isinstance(value, Tensor)
    return any(isinstance(leaf, Tensor) for leaf in flatten(value)[0])


def defvjp(fun: primitive, *vjpmakers: Function | None, argnums: Sequence[int] | None = None) -> None:
    """Give a primitive the rules that pull cotangents back, one for each argument: HIPS autograd's `defvjp`.

    Args:
        fun: a function decorated with `primitive`.
        vjpmakers: `maker(result, *args, **kwargs)` returns the function from the cotangent of the result to
            that of the argument; None stands for zero.
        argnums: the positions of the arguments that they are for; the first ones unless given.

    Raises:
        ArgumentError: `fun` is no primitive.

    Example:
        >>> @primitive
        ... def scaled(x, factor):
        ...     return x * factor
        >>> defvjp(scaled, lambda y, x, factor: lambda g: g * factor, None)
        >>> grad(scaled)(2.0, 5.0)
        np.float64(5.0)
    """
    _primitive(fun, "defvjp").defvjp(*vjpmakers, argnums=argnums)


def defjvp(fun: primitive, *jvps: Function | str | None, argnums: Sequence[int] | None = None) -> None:
    """Give a primitive the rules that push tangents forward, one for each argument: HIPS autograd's `defjvp`.

    Args:
        fun: a function decorated with `primitive`.
        jvps: `rule(tangent, result, *args, **kwargs)` returns its part of the tangent of the result, linear
            in the tangent; "same" is the function itself, linear in that argument; None stands for zero.
        argnums: as of `defvjp`. Where a primitive has rules of both kinds, those of `defvjp` are used.

    Raises:
        ArgumentError: `fun` is no primitive.

    Example:
        >>> @primitive
        ... def cube(x):
        ...     return x ** 3
        >>> defjvp(cube, lambda t, y, x: 3 * x ** 2 * t)
        >>> grad(cube)(2.0)
        np.float64(12.0)
    """
    _primitive(fun, "defjvp").defjvp(*jvps, argnums=argnums)


def _primitive(function: Any, name: str) -> primitive:
    if not isinstance(function, primitive):
        raise ArgumentError(
            f"{name}: expected a function decorated with primitive, found {type(function).__name__} "
            f"{function!r}."
        )
    return function
