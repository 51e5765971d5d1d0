"""Gradients against finite differences entry by entry, and which rule is to blame where they differ."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, GradientError
from ...tracer.records import record
from ...tracer.tracebacks import hide_own_frames
from ..autograd.rule_checks import is_floating, numbers
from ..dispatch.compiled import function_name
from ..transforms.transforms import vjp
from ..values.flatten import flatten, leaf_paths, path_text, unflatten
from ..values.tensor import Tensor, make
from .blame import blamed

Function = Callable[..., Any]
STEP = 1e-5
"""The half width of central differences relative to the number, near the third root of rounding errors."""
MOST_ALONE = 256
"""Entries that have a difference each; of more, so many groups have one along a random direction."""
MOST_RESULTS = 64
"""Results among which the one that is wrong is looked for."""
MOST_SHOWN = 5
SAME = 1e-12
"""Relative to the largest result: what two equal calls may differ by, as sums in another order do."""


def check_gradients(
    function: Function, /, *args: Any, order: int = 2, atol: float = 1e-6, rtol: float = 1e-5, seed: int = 0
) -> None:
    """Each entry of the derivatives of a function, as far as `order`, is that of central differences.

    Several results are contracted with random numbers. Of more than 256 entries, groups are looked at along
    random directions, and the entries of a group one by one where it differs. Complex numbers are pairs of
    real ones. `check_rules` proves more of a rule of one's own: batches, tangents, compiled code.

    Args:
        function: of arrays, numbers, Tensors, or nested containers of them.
        args: the point; all that is floating must be float64 or complex128, and is differentiated.
        order: 1 for first derivatives only, 2 for those of the gradient as well.
        atol, rtol: how far an entry may differ, besides what two widths of the differences differ by.
        seed: of random numbers.

    Raises:
        GradientError: entries that differ, with both values, and the rule to blame, with its line: the one
            that differs from the differences of its own function. Or the function gives another value when
            it is called again.
        ArgumentError: `order` is neither 1 nor 2, nothing among the arguments or results is floating, or
            something is, and neither float64 nor complex128.

    Example:
        >>> check_gradients(lambda x: (np.sin(x) * x).sum(), np.array([0.5, 2.0]))
    """
    __tracebackhide__ = True
    if order not in (1, 2):
        raise ArgumentError(f"check_gradients: order may be 1 or 2, found {order!r}.")
    if not callable(function):
        raise ArgumentError(
            f"check_gradients: expected a function and then its arguments, found {type(function).__name__}."
        )
    checked, given = _of_leaves(function, args)
    point = Leaves(given.leaves, given.labels)
    value = _Floating(_called(function, given.with_leaves(point.copies())), "value")
    if not value.leaves:
        raise ArgumentError(
            f"check_gradients: nothing that {function_name(function)} returns is floating, so there is "
            "nothing to check."
        )
    results = Leaves(value.leaves, value.labels)
    _require_same_again(function, results, _called(checked, point.copies()))
    random = np.random.default_rng(seed)
    first = _Derivative(checked, point, results, _weights(results, random), (atol, rtol), random)
    for derivative in [first] if order == 1 else [first, first.of_gradient()]:
        with np.errstate(all="ignore"):  # beside the point, where the user does not ask for values
            message = derivative.disagreement()
        if message:
            raise GradientError(f"gradcheck of {function_name(function)}: {message}")


def _called(function: Function, args: Sequence[Any]) -> Any:
    """What the user's function returns; an error of its own shows none of pullback's frames."""
    try:
        return function(*args)
    except Exception as error:
        hide_own_frames(error)
        raise


def _require_same_again(function: Function, results: Leaves, again: Sequence[Any]) -> None:
    """Raise GradientError where random numbers or state change a function between two calls."""
    first, second = results.vector(results.examples), results.vector(again)
    if first.shape == second.shape:
        bound = SAME * np.abs(first[np.isfinite(first)]).max(initial=1.0)
        differs = ~np.isclose(first, second, rtol=0.0, atol=bound, equal_nan=True)
        if not differs.any():
            return
        which = int(np.argmax(differs))
        how = f"{results.label(which)} is {first[which]:.9g} and then {second[which]:.9g}"
    else:
        how = f"it returns {first.size} numbers and then {second.size}"
    raise GradientError(
        f"gradcheck of {function_name(function)}: called again with the same arguments it returns something "
        f"else ({how}), so differences say nothing. Pass what it draws or keeps as an argument."
    )


# --- vectors of numbers -------------------------------------------------------------------------------------


class Leaves:
    """Floating leaves as one vector of real numbers, each of which has a name.

    Args:
        leaves: numbers, arrays and Tensors in double precision.
        labels: the name of each.
    """

    def __init__(self, leaves: Sequence[Any], labels: Sequence[str]) -> None:
        self.examples, self.labels = list(leaves), list(labels)
        self.arrays = [np.asarray(numbers(leaf)) for leaf in leaves]
        for array, label in zip(self.arrays, labels):
            if array.dtype not in (np.float64, np.complex128):
                raise ArgumentError(
                    f"check_gradients: {label} is {array.dtype}, and not float64 or complex128, whose digits "
                    "differences need."
                )
        sizes = [array.size * array.itemsize // 8 for array in self.arrays]
        self.ends = np.cumsum(sizes, dtype=int)
        self.size = sum(sizes)

    def copies(self) -> list[Any]:
        """The leaves, in memory of their own."""
        return self.leaves(self.vector(self.examples))

    @staticmethod
    def vector(leaves: Sequence[Any]) -> np.ndarray:
        """The numbers of such leaves."""
        parts = [np.ascontiguousarray(numbers(one)).reshape(-1).view(np.float64) for one in leaves]
        return np.concatenate(parts) if parts else np.zeros(0)

    def leaves(self, vector: np.ndarray) -> list[Any]:
        """Such leaves, with these numbers."""
        parts = np.split(np.array(vector), self.ends[:-1])
        return [
            _like(example, part.view(array.dtype).reshape(array.shape))
            for example, part, array in zip(self.examples, parts, self.arrays)
        ]

    def label(self, index: int) -> str:
        """`w[2, 1]`, of a complex number `w[2, 1].imag`."""
        which = int(np.searchsorted(self.ends, index, side="right"))
        array = self.arrays[which]
        inside = index - (int(self.ends[which - 1]) if which else 0)
        part = ""
        if array.dtype.kind == "c":
            inside, imaginary = divmod(inside, 2)
            part = ".imag" if imaginary else ".real"
        entry = ", ".join(map(str, np.unravel_index(inside, array.shape)))
        return f"{self.labels[which]}{f'[{entry}]' if entry else ''}{part}"


def _like(example: Any, array: np.ndarray) -> Any:
    if isinstance(example, Tensor):
        return make(array)
    if isinstance(example, np.ndarray):
        return array
    return array[()] if isinstance(example, np.generic) else array.item()


class _Floating:
    """The floating leaves of a nested value, each under the name by which the user would reach it."""

    def __init__(self, value: Any, *names: str) -> None:
        """`names` are that of the value, or those of the parts of a tuple."""
        self.all, self.structure = flatten(value)
        paths = leaf_paths(self.structure)
        if len(names) == 1:
            texts = [f"{names[0]}{path_text(path)}" for path in paths]
        else:
            texts = [f"{names[path[0]]}{path_text(path[1:])}" for path in paths]
        self.places = [place for place, leaf in enumerate(self.all) if is_floating(leaf)]
        self.leaves = [self.all[place] for place in self.places]
        self.labels = [texts[place] for place in self.places]

    def with_leaves(self, leaves: Sequence[Any]) -> Any:
        """The value with others in their places."""
        found = list(self.all)
        for place, leaf in zip(self.places, leaves):
            found[place] = leaf
        return unflatten(self.structure, found)


def _of_leaves(function: Function, args: tuple[Any, ...]) -> tuple[Function, _Floating]:
    """A function of the floating leaves of its arguments, which gives those of its result; and the point."""
    point = _Floating(args, *_names(function, len(args)), "")
    if not point.leaves:
        raise ArgumentError(
            f"check_gradients: no argument of {function_name(function)} is floating, so there is "
            "nothing to check."
        )

    def of_leaves(*leaves: Any) -> list[Any]:
        return _Floating(_called(function, point.with_leaves(leaves)), "value").leaves

    of_leaves.__name__ = function_name(function)  # as errors call it
    return of_leaves, point


def _names(function: Function, count: int) -> list[str]:
    """What the function calls its positional arguments."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        parameters = []
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    rest = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), "argument")
    return [*names, *(f"{rest}[{place}]" for place in range(max(0, count - len(names))))][:count]


# --- one order ----------------------------------------------------------------------------------------------


@record(frozen=True)
class _Entry:
    """An entry of a derivative that is not that of differences."""

    index: int
    ours: float
    differences: float


@record(frozen=True)
class _Derivative:
    """The derivative of a function of leaves, whose results are contracted with a cotangent."""

    function: Function
    point: Leaves
    results: Leaves
    cotangent: np.ndarray
    tolerances: tuple[float, float]
    random: np.random.Generator
    of: str = ""
    """What the function is the derivative of; empty for the user's function."""

    def of_gradient(self) -> _Derivative:
        """That of the gradient."""
        cotangents = self.results.leaves(self.cotangent)

        def gradient(*leaves: Any) -> list[Any]:
            return list(vjp(self.function, *leaves)[1](cotangents))

        weights = _weights(self.point, self.random)
        what = self._result(0) if self.results.size == 1 else "value"
        return _Derivative(gradient, self.point, self.point, weights, self.tolerances, self.random, what)

    def disagreement(self) -> str:
        """What is wrong, and with which rule; empty if nothing is."""
        gradient = self._pulled(self.cotangent)
        wrong = list(self._wrong_entries(gradient))
        if not wrong:
            return ""
        wrong.sort(key=lambda one: -abs(one.ours - one.differences))
        shown = [self._line(one) for one in wrong[:MOST_SHOWN]]
        more = len(wrong) - len(shown)
        lines = [
            f"{len(wrong)} of {self.point.size} entries differ from differences:",
            *shown,
            *([f"  and {more} more"] if more else []),
            blamed(self.function, self.point.copies()),
        ]
        return "\n".join(lines)

    @property
    def _start(self) -> np.ndarray:
        return self.point.vector(self.point.examples)

    def _pulled(self, cotangent: np.ndarray) -> np.ndarray:
        """The gradient of the results times a cotangent."""
        _, pull = vjp(self.function, *self.point.copies())
        return self.point.vector(pull(self.results.leaves(cotangent)))

    def _slopes(self, direction: np.ndarray, width: float = STEP) -> np.ndarray:
        """The slope of each result along a direction, by central differences."""
        ends = [
            self.results.vector(self.function(*self.point.leaves(self._start + sign * width * direction)))
            for sign in (1.0, -1.0)
        ]
        return (ends[0] - ends[1]) / (2.0 * width)

    def _wrong_entries(self, gradient: np.ndarray) -> Iterator[_Entry]:
        size = self.point.size
        groups = np.array_split(self.random.permutation(size), min(size, MOST_ALONE))
        for group in groups:
            if len(group) == 1 or not self._agrees(gradient, group, self.random.standard_normal(len(group))):
                yield from (one for one in map(partial(self._compared, gradient), group) if one is not None)

    def _compared(self, gradient: np.ndarray, index: int) -> _Entry | None:
        """The entry, if it is wrong."""
        if self._agrees(gradient, np.array([index]), np.ones(1)):
            return None
        slope, scale = self._along(np.array([index]), np.ones(1))
        return _Entry(int(index), float(gradient[index]), slope / scale)

    def _along(self, group: np.ndarray, weights: np.ndarray, width: float = STEP) -> tuple[float, float]:
        """The slope of the contracted results along some entries, and how long the direction is."""
        direction = np.zeros(self.point.size)
        direction[group] = weights
        scale = float(np.abs(self._start[group]).max(initial=1.0))
        return float(self._slopes(direction * scale, width) @ self.cotangent), scale

    def _agrees(self, gradient: np.ndarray, group: np.ndarray, weights: np.ndarray) -> bool:
        slope, scale = self._along(group, weights)
        ours = float(gradient[group] @ weights) * scale
        absolute, relative = self.tolerances
        bound = absolute * scale + relative * abs(slope)
        if abs(ours - slope) <= bound or (np.isnan(ours) and np.isnan(slope)):
            return True
        wider, _ = self._along(group, weights, 2.0 * STEP)  # what the differences are uncertain by
        return abs(ours - slope) <= bound + abs(wider - slope)

    # --- words ------------------------------------------------------------------------------------------

    def _line(self, entry: _Entry) -> str:
        """`  d value / d w[2, 1]: 3.0 by the rules, 1.0 by differences`, for the result that differs most."""
        variable = self.point.label(entry.index)
        what, ours, differences = self._contracted(), entry.ours, entry.differences
        if 1 < self.results.size <= MOST_RESULTS:
            direction = np.zeros(self.point.size)
            direction[entry.index] = 1.0
            slopes = self._slopes(direction)
            columns = np.eye(self.results.size)
            all_ours = np.array([self._pulled(column)[entry.index] for column in columns])
            which = int(np.argmax(np.abs(all_ours - slopes)))
            what, ours, differences = self._result(which), float(all_ours[which]), float(slopes[which])
        return f"  {_derivative(what, variable)}: {ours:.9g} by the rules, {differences:.9g} by differences"

    def _result(self, index: int) -> str:
        label = self.results.label(index)
        return _derivative(self.of, label) if self.of else label

    def _contracted(self) -> str:
        if self.results.size == 1:
            return self._result(0)
        return f"a random combination of {'the gradient' if self.of else 'the results'}"


def _weights(results: Leaves, random: np.random.Generator) -> np.ndarray:
    """What results are contracted with; a single one stays what it is."""
    return random.standard_normal(results.size) if results.size > 1 else np.ones(results.size)


def _derivative(what: str, variable: str) -> str:
    """`d value / d x[0]`; of that, `d² value / d x[0] d x[1]`."""
    if what.startswith("d "):
        return f"d²{what[1:]} d {variable}"
    return f"d {what} / d {variable}"
