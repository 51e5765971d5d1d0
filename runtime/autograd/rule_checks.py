"""Whether the derivatives of a function are right, whatever rules it has: `check_rules`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, GradientError
from ...tracer.spec import CONTINUOUS
from ..dispatch.compiled import compile as compiled
from ..dispatch.compiled import function_name
from ..transforms.batching import vmap
from ..transforms.transforms import grad, jvp, vjp
from ..values.flatten import flatten, unflatten
from ..values.tensor import Tensor

Function = Callable[..., Any]
STEP = 1e-5
"""The half width of central differences, near the third root of the rounding error."""


def check_rules(
    function: Function,
    args: Any,
    *,
    order: int = 2,
    batching: bool = True,
    compile: bool = True,
    atol: float = 1e-6,
    rtol: float = 1e-5,
    seed: int = 0,
) -> None:
    """Prove the derivatives of a function at one point, for instance those by `custom_vjp` or `primitive`.

    The value with and without derivatives, cotangents and tangents against central differences along random
    directions (in float64), also of the gradient, cotangents linear in those of the result, arguments left
    unwritten, a batch against its rows, compiled against eager. Of complex numbers directions and cotangents
    are complex, and gradients are PyTorch's.

    Args:
        function: of arrays, numbers, or nested containers of them.
        args: the point, or its one array; all that is floating must be float64 or complex128, and is
            differentiated.
        order: 1 for first derivatives only.
        batching: whether `vmap` is compared with a loop.
        compile: whether the compiled function is compared with the eager one.
        atol, rtol: how far numbers may differ, relative to the largest that are compared.

    Raises:
        GradientError: what is wrong, with both numbers.
        ArgumentError: nothing among the arguments is floating, or something is, and neither float64 nor
            complex128.

    Example:
        >>> check_rules(lambda x: np.sin(x) * x, (np.array([0.5, 2.0]),))
    """
    point = tuple(args) if isinstance(args, tuple | list) else (args,)
    _Checked(function, point, seed, atol, rtol).all(order, batching, compile)


class _Checked:
    """A function of its floating leaves, as vectors of numbers."""

    def __init__(
        self, function: Function, args: tuple[Any, ...], seed: int, atol: float, rtol: float
    ) -> None:
        self.name = function_name(function)
        self.random = np.random.default_rng(seed)
        self.atol, self.rtol = atol, rtol
        self._function = function
        self._leaves, self._structure = flatten(args)
        self._places = [place for place, leaf in enumerate(self._leaves) if is_floating(leaf)]
        if not self._places:
            raise ArgumentError(
                f"check_rules: no argument of {self.name} is floating; there is nothing to check."
            )
        for place in self._places:
            if np.asarray(numbers(self._leaves[place])).dtype not in (np.float64, np.complex128):
                raise ArgumentError(
                    f"check_rules: an argument of {self.name} is not float64 or complex128, whose digits "
                    "differences need."
                )
        self.point = [_copied(self._leaves[place]) for place in self._places]
        self.before = [np.array(numbers(one)) for one in self.point]

    def __call__(self, *point: Any) -> list[Any]:
        """The floating leaves of the result."""
        leaves = list(self._leaves)
        for place, value in zip(self._places, point):
            leaves[place] = value
        result = flatten(self._function(*unflatten(self._structure, leaves)))[0]
        return [leaf for leaf in result if is_floating(leaf)]

    def all(self, order: int, batching: bool, compile: bool) -> None:
        value = self(*self.point)
        self.unwritten("the function")
        cotangents, others = self.like(value), self.like(value)
        directions = self.like(self.point)
        again, pull = vjp(self, *self.point)
        self.unwritten("the function, where it is differentiated,")
        self.same("the value inside of vjp", again, "the value", value)
        pulled = pull(cotangents)
        self.unwritten("the rule")
        for one, argument in zip(pulled, self.point):
            if np.shape(numbers(one)) != np.shape(numbers(argument)):
                self.fail(
                    f"a cotangent has shape {np.shape(numbers(one))}, its argument {np.shape(argument)}"
                )
        self.same(
            "the cotangents times a direction",
            [_product(pulled, directions)],
            "the slope of differences",
            [_product(self.slope(self, directions), cotangents)],
        )
        self.same(
            "the cotangents of a sum",
            pull([a + 2.0 * b for a, b in zip(cotangents, others)]),
            "the sum of cotangents",
            [a + 2.0 * numbers(b) for a, b in zip(map(numbers, pulled), pull(others))],
        )
        _, pushed = jvp(self, tuple(self.point), tuple(directions))
        self.same("the tangents", pushed, "differences", self.slope(self, directions))
        if order > 1:
            self.second_order(cotangents, directions)
        if batching:
            self.batch(cotangents)
        if compile:
            self.same("the compiled value", compiled(self.__call__)(*self.point), "the value", value)
            self.same(
                "the compiled gradient",
                compiled(self.gradient(cotangents))(*self.point),
                "the gradient",
                self.gradient(cotangents)(*self.point),
            )

    def unwritten(self, who: str) -> None:
        for now, before in zip(map(numbers, self.point), self.before):
            if not np.array_equal(now, before, equal_nan=True):
                self.fail(f"{who} writes into an argument: {before!r} has become {now!r}")

    def gradient(self, cotangents: Sequence[Any]) -> Function:
        def contracted(*point: Any) -> Any:
            return sum((one * np.conj(weight)).real.sum() for one, weight in zip(self(*point), cotangents))

        return grad(contracted, tuple(range(len(self.point))))

    def second_order(self, cotangents: Sequence[Any], directions: Sequence[Any]) -> None:
        slopes = self.gradient(cotangents)
        _, pull = vjp(lambda *point: list(slopes(*point)), *self.point)
        self.same(
            "the gradient's cotangents times a direction",
            [_product(pull(self.like(self.point, 1)), directions)],
            "the slope of differences of the gradient",
            [_product(self.slope(lambda *p: list(slopes(*p)), directions), self.like(self.point, 1))],
        )

    def batch(self, cotangents: Sequence[Any]) -> None:
        points = [[one + 0.01 * number for one in map(numbers, self.point)] for number in range(3)]
        stacked = [np.stack(column) for column in zip(*points)]
        slopes = self.gradient(cotangents)
        rows = [[*self(*point), *slopes(*point)] for point in points]
        mapped = vmap(lambda *point: [*self(*point), *slopes(*point)])
        takes_batches = getattr(self._function, "vectorized", False)  # in compiled code
        batched = (compiled(mapped) if takes_batches else mapped)(*stacked)
        expected = [np.stack([numbers(one) for one in column]) for column in zip(*rows)]
        self.same("values and gradients of a batch", batched, "those of its rows", expected)

    def slope(self, function: Function, directions: Sequence[Any]) -> list[Any]:
        """Central differences along directions."""
        ends = [
            function(*[_moved(one, sign * STEP * along) for one, along in zip(self.point, directions)])
            for sign in (1.0, -1.0)
        ]
        return [(numbers(a) - numbers(b)) / (2 * STEP) for a, b in zip(*ends)]

    def like(self, values: Sequence[Any], seed: int | None = None) -> list[np.ndarray]:
        random = self.random if seed is None else np.random.default_rng(seed)
        return [_random_like(numbers(one), random) for one in values]

    def same(self, what: str, found: Sequence[Any], other: str, expected: Sequence[Any]) -> None:
        if len(found) != len(expected):
            self.fail(f"{what}: {len(found)} values, and {len(expected)} in {other}")
        for one, two in zip(map(numbers, found), map(numbers, expected)):
            bound = self.atol + self.rtol * float(np.max(np.abs(two), initial=0.0))
            if np.shape(one) != np.shape(two) or not np.allclose(
                one, two, rtol=0.0, atol=bound, equal_nan=True
            ):
                self.fail(f"{what}: {one!r}, and {other}: {two!r}")

    def fail(self, text: str) -> None:
        raise GradientError(f"check_rules: {self.name}: {text}.")


def is_floating(leaf: Any) -> bool:
    dtype = getattr(leaf.payload if isinstance(leaf, Tensor) else leaf, "dtype", None)
    kind = "" if dtype is None else dtype.kind
    return kind in CONTINUOUS if kind else isinstance(leaf, float | complex)


def _random_like(numbers: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Numbers of the same shape and sort."""
    shape = np.shape(numbers)
    real = random.standard_normal(shape)
    return real + 1j * random.standard_normal(shape) if np.iscomplexobj(numbers) else real


def numbers(value: Any) -> Any:
    return value.detach().numpy() if type(value).__name__ == "TorchTensor" else np.asarray(value)


def _copied(value: Any) -> Any:
    return (
        value.copy()
        if isinstance(value, np.ndarray)
        else value.clone()
        if isinstance(value, Tensor)
        else value
    )


def _moved(value: Any, by: Any) -> Any:
    return value + by if np.shape(numbers(value)) else type(value)(numbers(value) + by)


def _product(one: Sequence[Any], other: Sequence[Any]) -> np.ndarray:
    """That of all parts."""
    return np.asarray(sum(float(np.vdot(numbers(a), b).real) for a, b in zip(one, other)))
