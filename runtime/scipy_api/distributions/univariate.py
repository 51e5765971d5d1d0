"""The methods of SciPy's univariate distributions on Tensors: `scipy.stats.norm.logpdf(x, loc, scale)`.

They have gradients by values, loc, scale and parameters of shape. Outside of the support, for parameters that
there are not, and for nan they are SciPy's.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError
from ....tracer.trace import innermost, is_tracing
from ...autograd.foreign_calls import call_python
from ...functions import PUBLIC
from ...functions.common import fail
from ...functions.stopping import stop_gradient
from ...functions.structures import spec_of_tensor
from ...numpy_api.values import floats, of_arrays
from ...tape.apply import of_kind, standing_for
from ...tensors.conversion import tensor_of
from ...values.differentiated import are_any_differentiated
from ...values.tensor import Tensor, make
from ...values.value_kinds import Auxiliary, PythonNumber
from ..refusing import any_tensor, for_tensors
from . import declaration
from .continuous import CONTINUOUS
from .declaration import Bound, Declaration, Function
from .discrete import DISCRETE
from .elements import exp, floor, is_everywhere, isfinite, log, sqrt, where
from .extremes import EXTREMES
from .less_common import LESS_COMMON
from .sampled import Distributed

FLOAT64 = np.dtype(np.float64)
DECLARATIONS: dict[str, Declaration] = (
    CONTINUOUS | {"reciprocal": CONTINUOUS["loguniform"]} | EXTREMES | LESS_COMMON | DISCRETE
)


def _chosen(condition: Any, value: Any, other: Any) -> Any:
    """`where`; outside of a trace it is the value itself, if the condition holds everywhere."""
    if is_everywhere(condition) and isinstance(value, Tensor):
        return value if condition._value.shape == value._value.shape else where(condition, value, other)
    return where(condition, value, other)


def arithmetic(number: Tensor) -> Tensor:
    """A number of Python's as one that may be divided by zero, as SciPy makes an array of it."""
    return of_kind(number, Auxiliary) if type(number) is PythonNumber else number


def _in_double(*values: Any) -> list[Any]:
    """The values in double precision, as what may be divided by zero."""
    if innermost() is None:
        tensors = [tensor_of(one) for one in values]
        if all(one._value.dtype == FLOAT64 for one in tensors):
            return list(map(arithmetic, tensors))
    return [arithmetic(one) for one in floats(*values, np.float64(0.0))[:-1]]


def _is_number(value: Any, number: float) -> bool:
    """Whether a parameter is given as this number of Python's, or left out."""
    return type(value) in (float, int) and value == number


def _is_infinite(bound: Any) -> bool:
    """Whatever the parameters of shape are."""
    return not callable(bound) and not isinstance(bound, Tensor) and math.isinf(bound)


def _plain_where_infinite(end: Any, infinity: float) -> Any:
    """An end of the support, a number of Python's where it is infinite: it is asked for."""
    return end if not isinstance(end, Tensor) or bool(isfinite(end)) else infinity


class Distribution(Distributed):
    """One of SciPy's univariate distributions, for Tensors as well; called, it is frozen."""

    def __init__(self, name: str, real: Any) -> None:
        self._name, self._real, self._declared = f"scipy.stats.{name}", real, DECLARATIONS[name]
        shapes = [one.strip() for one in (real.shapes or "").split(",") if one.strip()]
        self._shapes = shapes
        self._parameters = [*shapes, "loc"] if self._declared.of_integers else [*shapes, "loc", "scale"]

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self._bind("__call__", arguments, options)
        return Frozen(self, arguments, options)

    def freeze(self, *arguments: Any, **options: Any) -> Any:
        return self(*arguments, **options)

    # --- methods ----------------------------------------------------------------------------------------

    @for_tensors
    def logpdf(self, x: Any, *arguments: Any, **options: Any) -> Any:
        """The logarithm of the density."""
        return self._log_density("logpdf", x, arguments, options)

    @for_tensors
    def pdf(self, x: Any, *arguments: Any, **options: Any) -> Any:
        """The density."""
        return exp(self._log_density("pdf", x, arguments, options))

    @for_tensors
    def logpmf(self, k: Any, *arguments: Any, **options: Any) -> Any:
        """The logarithm of the probability."""
        return self._log_density("logpmf", k, arguments, options)

    @for_tensors
    def pmf(self, k: Any, *arguments: Any, **options: Any) -> Any:
        """The probability."""
        return exp(self._log_density("pmf", k, arguments, options))

    @for_tensors
    def cdf(self, x: Any, *arguments: Any, **options: Any) -> Any:
        """The probability of values up to x."""
        return self._up_to("cdf", declaration.cumulative, 0.0, 1.0, x, arguments, options)

    @for_tensors
    def logcdf(self, x: Any, *arguments: Any, **options: Any) -> Any:
        """The logarithm of the probability of values up to x."""
        return self._up_to("logcdf", declaration.log_cumulative, -math.inf, 0.0, x, arguments, options)

    @for_tensors
    def sf(self, x: Any, *arguments: Any, **options: Any) -> Any:
        """The probability of values above x."""
        return self._up_to("sf", declaration.survival, 1.0, 0.0, x, arguments, options)

    @for_tensors
    def logsf(self, x: Any, *arguments: Any, **options: Any) -> Any:
        """The logarithm of the probability of values above x."""
        return self._up_to("logsf", declaration.log_survival, 0.0, -math.inf, x, arguments, options)

    @for_tensors
    def ppf(self, q: Any, *arguments: Any, **options: Any) -> Any:
        """The value up to which the probability is q."""
        return self._quantile("ppf", declaration.quantile, (0, 1), q, arguments, options)

    @for_tensors
    def isf(self, q: Any, *arguments: Any, **options: Any) -> Any:
        """The value above which the probability is q."""
        return self._quantile("isf", declaration.upper_quantile, (1, 0), q, arguments, options)

    @for_tensors
    def median(self, *arguments: Any, **options: Any) -> Any:
        """The value up to which the probability is a half."""
        return self._quantile("median", declaration.quantile, (0, 1), 0.5, arguments, options)

    @for_tensors
    def interval(self, confidence: Any, *arguments: Any, **options: Any) -> Any:
        """The ends between which so much lies, and as much below as above."""
        rest = 0.5 * (1.0 - tensor_of(confidence))
        return self.ppf(rest, *arguments, **options), self.ppf(1.0 - rest, *arguments, **options)

    def expect(
        self, func: Function | None = None, args: tuple[Any, ...] = (), loc: Any = 0, scale: Any = 1,
        lb: Any = None, ub: Any = None, conditional: bool = False, **options: Any,
    ) -> Any:  # fmt: skip
        """The mean of func(x) over the values between lb and ub, by an integral."""
        if not (is_tracing() or are_any_differentiated() or any_tensor((args, loc, scale, lb, ub), options)):
            scales = {} if self._declared.of_integers else {"scale": scale}
            given = {"loc": loc, "lb": lb, "ub": ub, "conditional": conditional, **scales, **options}
            return self._real.expect(func, args=args, **given)
        if options or conditional or self._declared.of_integers:
            unknown = [*options, *(["conditional"] if conditional else [])]
            self._refuse(f"expect with {', '.join(unknown)}" if unknown else "expect")
        _, loc, scale, *shapes = self._promoted(
            0.0, self._bind("expect", tuple(args), {"loc": loc, "scale": scale})
        )
        ends = [None if one is None else (one - loc) / scale for one in (lb, ub)]
        value = func or (lambda x: x)
        return of_arrays(self._integral(lambda z: value(z * scale + loc), shapes, ends))

    @for_tensors
    def moment(self, order: Any, *arguments: Any, **options: Any) -> Any:
        """The mean of x**order, from the third on by an integral."""
        mean = self.mean(*arguments, **options)
        if order in (1, 2):
            return mean if order == 1 else mean * mean + self.var(*arguments, **options)
        if self._declared.of_integers:
            self._refuse(f"moment of order {order}")
        _, loc, scale, *shapes = self._promoted(0.0, self._bind("moment", arguments, options))
        return self._integral(lambda z: (z * scale + loc) ** order, shapes)

    def _integral(self, function: Function, shapes: list[Any], ends: Sequence[Any] = (None, None)) -> Any:
        """The mean of a function of standardised values, from 0 where there are no ends, or a turn."""
        from ...solvers.quadrature import quad  # which needs this module

        if any(one.ndim for one in shapes):
            self._refuse("an integral over the density with arrays of parameters")
        turn = self._declared.turn
        low, high = (known if end is None else end for known, end in zip(turn or self._support(shapes), ends))
        low, high = _plain_where_infinite(low, -math.inf), _plain_where_infinite(high, math.inf)
        is_split = (_is_infinite(low) and _is_infinite(high)) or (low, high) == turn
        borders = [low, 0.0, high] if is_split else [low, high]
        density = self._declared.log_density
        return sum(
            tensor_of(quad(lambda z: function(z) * exp(density(tensor_of(z), *shapes)), *pair)[0])
            for pair in pairwise(borders)
        )

    @for_tensors
    def mean(self, *arguments: Any, **options: Any) -> Any:
        """The mean."""
        loc, scale, found = self._property("mean", self._declared.mean, arguments, options)
        return found * scale + loc

    @for_tensors
    def var(self, *arguments: Any, **options: Any) -> Any:
        """The variance."""
        _, scale, found = self._property("var", self._declared.variance, arguments, options)
        return found * scale * scale

    @for_tensors
    def std(self, *arguments: Any, **options: Any) -> Any:
        """The standard deviation."""
        _, scale, found = self._property("std", self._declared.variance, arguments, options)
        return sqrt(found) * scale

    @for_tensors
    def entropy(self, *arguments: Any, **options: Any) -> Any:
        """The differential entropy; of integers, that of their probabilities."""
        _, scale, found = self._property("entropy", self._declared.entropy, arguments, options)
        return found if self._declared.of_integers else found + log(scale)

    # --- how ----------------------------------------------------------------------------------------------

    def _log_density(self, method: str, x: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        declared = self._declared
        if declared.of_integers != method.endswith("pmf"):
            self._refuse(method)
        z, scale, shapes = self._standardised(method, x, arguments, options)
        if (shape := self._shape_inside(z, scale, shapes)) is not None:
            found = declared.log_density(z, *shapes)
            found = found if _is_number(scale, 1.0) else found - log(scale)
            if found._value.shape == shape:
                return found
        scale = tensor_of(scale)
        valid = self._valid(shapes, scale) & (z == z)
        holds, outside = self._in_support(z, shapes)
        if method == "pdf":
            is_low, is_high = self._overflows(z, shapes)
            holds = holds if is_low is None else holds & ~is_low
            holds = holds if is_high is None else holds & ~is_high
        found = declared.log_density(_chosen(holds, z, self._bound(declared.inside, shapes)), *shapes)
        found = found if declared.of_integers else found - log(scale)
        return _chosen(valid, _chosen(holds, found, outside), math.nan)

    def _up_to(
        self,
        method: str,
        function: Function,
        before: float,
        behind: float,
        x: Any,
        arguments: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        """A function of the probability up to x, which is `before` below the support and `behind` above."""
        declared = self._declared
        if not declared.has_cumulative:
            self._refuse(method)
        z, scale, shapes = self._standardised(method, x, arguments, options)
        if (shape := self._shape_inside(z, scale, shapes)) is not None:
            found = function(declared, z, *shapes)
            if found._value.shape == shape:
                return found
        valid = self._valid(shapes, tensor_of(scale)) & (z == z)
        low, high = self._support(shapes)
        z = floor(z) if declared.of_integers else z
        below, above = (z < low, z >= high) if declared.of_integers else (z <= low, z >= high)
        is_low, is_high = self._overflows(z, shapes)
        if method != "logcdf" and is_low is not None:
            below = below | is_low
        if method != "logsf" and is_high is not None:
            above = above | is_high
        safe = where(below | above, self._bound(declared.inside, shapes), z)
        found = where(below, before, where(above, behind, function(declared, safe, *shapes)))
        return _chosen(valid, found, math.nan)

    def _quantile(
        self,
        method: str,
        function: Function,
        ends: tuple[int, int],
        q: Any,
        arguments: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        """Of a probability; at 0 and 1 it is an end of the support, or what is declared for it."""
        declared = self._declared
        if not declared.has_cumulative:
            self._refuse(method)
        q, loc, scale, *shapes = self._promoted(q, self._bind(method, arguments, options))
        low, high = (self._bound(end, shapes) for end in declared.ends or declared.support)
        outermost = low - declared.of_integers, high  # below the least integer there is nothing
        at_zero, at_one = (outermost[one] for one in ends)
        is_inside = (q > 0.0) & (q < 1.0)
        safe = where(is_inside, q, 0.5)
        if declared.quantile is None:
            found = self._searched("isf" if ends[0] else "ppf", safe, shapes)
        else:
            found = function(declared, safe, *shapes)
        found = where(q == 0.0, at_zero, where(q == 1.0, at_one, found))
        valid = self._valid(shapes, scale) & (q >= 0.0) & (q <= 1.0)
        return where(valid, found * scale + loc, math.nan)

    def _searched(self, method: str, q: Any, shapes: list[Any]) -> Any:
        """A quantile that SciPy searches for, by Python's call in code as well."""
        operands = [standing_for(stop_gradient(one)) for one in PUBLIC["broadcast_tensors"](q, *shapes)]
        spec = spec_of_tensor(operands[0])

        def run(*arrays: np.ndarray) -> list[np.ndarray]:
            return [np.asarray(getattr(self._real, method)(*arrays), spec.dtype)]

        if is_tracing():
            (found,) = call_python(self, method, f"{self._name}.{method}", run, operands, [spec])
        else:
            found = make(run(*(one.payload for one in operands))[0], Auxiliary)
        if self._declared.of_integers:
            return found
        return declaration.with_derivatives(self._declared, found, q, method == "isf", *shapes)

    def _property(
        self, method: str, value: Bound | None, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[Any, Any, Any]:
        """Loc, scale, and a property of the standard form; nan for parameters that there are not."""
        if value is None and (self._declared.of_integers or method == "entropy"):
            return self._refuse(method)
        _, loc, scale, *shapes = self._promoted(0.0, self._bind(method, arguments, options))
        known = self._integrated(method, shapes) if value is None else self._bound(value, shapes)
        found, _ = floats(known, scale)
        return loc, scale, where(self._valid(shapes, scale), found, math.nan)

    def _integrated(self, method: str, shapes: list[Any]) -> Any:
        """The mean, or the variance, that has no formula."""
        mean = self._declared.mean
        middle = self._integral(lambda z: z, shapes) if mean is None else self._bound(mean, shapes)
        return middle if method == "mean" else self._integral(lambda z: (z - middle) ** 2, shapes)

    def _standardised(
        self, method: str, x: Any, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[Any, Any, list[Any]]:
        """The standardised values, the scale, which may be a number, and the parameters of shape."""
        given = self._bind(method, arguments, options)
        if not (_is_number(given.get("loc", 0.0), 0.0) and _is_number(given.get("scale", 1.0), 1.0)):
            x, loc, scale, *shapes = self._promoted(x, given)
            return self._apart(x, loc, scale), scale, shapes
        x, *shapes = _in_double(x, *(given[one] for one in self._shapes))
        return x, 1.0, shapes

    def _shape_inside(self, z: Any, scale: Any, shapes: list[Any]) -> tuple[int, ...] | None:
        """The results' shape, where all values are known to lie where formulas hold: nothing is chosen then.

        None in a trace, and of a distribution of integers.
        """
        declared = self._declared
        if innermost() is not None or declared.of_integers:
            return None
        values, *plain_shapes = (one.payload for one in (z, *shapes))
        holds = self._valid(plain_shapes, scale.payload if isinstance(scale, Tensor) else scale)
        low, high = self._support(plain_shapes)
        holds = holds & (values > low) & (values < high)
        for bound, is_beyond in ((declared.least, operator.gt), (declared.largest, operator.lt)):
            if not _is_infinite(bound):
                holds = holds & is_beyond(values, self._bound(bound, plain_shapes))
        return np.shape(holds) if np.all(holds) else None

    def _apart(self, x: Any, loc: Any, scale: Any) -> Any:
        """(x - loc) / scale; what is infinite stays so, whatever the scale is."""
        is_finite = isfinite(x)
        if is_everywhere(is_finite):
            return (x - loc) / scale
        return where(is_finite, (where(is_finite, x, 0.0) - loc) / scale, x)

    def _promoted(self, x: Any, given: dict[str, Any]) -> list[Any]:
        """Values, loc, scale and parameters of shape, in double precision, as SciPy computes."""
        shapes = [given[one] for one in self._shapes]
        return _in_double(x, given.get("loc", 0.0), given.get("scale", 1.0), *shapes)

    def _bind(self, method: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
        """The parameters by name; ArgumentError where one is missing, unknown or given twice."""
        names = self._parameters
        given = dict(zip(names, arguments))
        unknown = options.keys() - {*names}
        missing = [one for one in self._shapes if one not in given and one not in options]
        if len(arguments) > len(names) or unknown or given.keys() & options.keys() or missing:
            found = [*given, *options, *("?" for _ in arguments[len(names) :])]
            fail(
                ArgumentError,
                f"{self._name}.{method} takes the parameters {', '.join(names)}, of which "
                f"{', '.join(self._shapes) or 'none'} must be given; found {', '.join(found) or 'none'}.",
            )
        return given | options

    def _support(self, shapes: list[Any]) -> tuple[Any, Any]:
        low, high = self._declared.support
        return self._bound(low, shapes), self._bound(high, shapes)

    def _in_support(self, z: Any, shapes: list[Any]) -> tuple[Any, Any]:
        """Where there is a density by its formula, and its logarithm elsewhere: nothing but at an end."""
        declared, (low, high) = self._declared, self._support(shapes)
        found, outside = (z > low) & (z < high), -math.inf
        if not is_everywhere(found):
            for end, bound, power in zip((low, high), declared.support, declared.powers):
                if _is_infinite(bound):
                    continue
                is_end = z == end
                if power is None:
                    found = found | is_end
                elif power != math.inf:
                    order: Any = tensor_of(self._bound(power, shapes))
                    found = found | (is_end & (order == 0.0))
                    outside = where(is_end & (order < 0.0), math.inf, outside)
            if any(map(callable, declared.support)):  # which may be infinite
                found = found & isfinite(z)
        return found & (floor(z) == z) if declared.of_integers else found, outside

    def _overflows(self, z: Any, shapes: list[Any]) -> tuple[Any, Any]:
        """Whether z lies below, or above, where formulas do not overflow; None where they never do."""
        low, high = self._declared.least, self._declared.largest
        return (
            None if low == -math.inf else z < self._bound(low, shapes),
            None if high == math.inf else z > self._bound(high, shapes),
        )

    def _bound(self, bound: Bound, shapes: list[Any]) -> Any:
        return bound(*shapes) if callable(bound) else bound

    def _valid(self, shapes: list[Any], scale: Any) -> Any:
        return functools.reduce(lambda a, b: a & b, self._declared.valid(*shapes), scale > 0.0)


class Frozen(Distributed):
    """A distribution with its parameters: `scipy.stats.norm(loc, scale)`."""

    def __init__(
        self, distribution: Any, arguments: tuple[Any, ...], options: dict[str, Any], plain: Any = None
    ) -> None:
        self._distribution, self._name, self._plain = distribution, distribution._name, plain
        self.args, self.kwds = arguments, options

    def __getattr__(self, name: str) -> Any:
        if name[0] != "_" and hasattr(type(self._distribution), name):
            method = getattr(self._distribution, name)
            return lambda *given: method(*given, *self.args, **self.kwds)
        if any_tensor(self.args, self.kwds):
            self._refuse(name)
        return super().__getattr__(name)

    def expect(self, func: Function | None = None, lb: Any = None, ub: Any = None, **options: Any) -> Any:
        """The mean of func(x) over the values between lb and ub: see `Distribution.expect`."""
        distribution = self._distribution
        if not isinstance(distribution, Distribution):
            self._refuse("expect")
        given = distribution._bind("expect", self.args, self.kwds)
        shapes = tuple(given.pop(one) for one in distribution._shapes)
        return distribution.expect(func, shapes, lb=lb, ub=ub, **given, **options)

    def rvs(self, *arguments: Any, random_state: Any = None, **options: Any) -> Any:
        """Random numbers; the first argument is their number."""
        if self._plain is not None:
            return super().rvs(*arguments, random_state=random_state, **options)
        options |= {"size": arguments[0]} if arguments else {}
        return self._distribution.rvs(*self.args, random_state=random_state, **self.kwds, **options)

    @property
    def _real(self) -> Any:
        return self._distribution._real(*self.args, **self.kwds) if self._plain is None else self._plain
