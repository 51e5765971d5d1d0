"""`scipy.stats` on Tensors and in compiled code: values as SciPy's, derivatives against differences."""

import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats as stats
from extent import machine_code, some_of
from mpmath_distributions import METHODS as EXACT
from mpmath_distributions import declarations
from scipy_rows import EXTREME, FURTHER, INTEGER_SHAPES, OF_NO_DENSITY, PLACES, REFUSED, SCALED, SHAPES

import pullback as pb
from pullback.runtime.scipy_api.distributions import NAMES
from pullback.runtime.scipy_api.distributions.continuous import CONTINUOUS
from pullback.runtime.scipy_api.distributions.extremes import EXTREMES
from pullback.runtime.scipy_api.distributions.univariate import DECLARATIONS

pytestmark = pytest.mark.part(10)

RNG = np.random.default_rng(0)
OF_VALUES = ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf")
OF_INTEGERS = ("logpmf", "pmf", "cdf", "logcdf", "sf", "logsf")
names = pytest.mark.parametrize("name", DECLARATIONS)


def parameters(name: str) -> list[tuple[float, ...]]:
    """Of shape, with loc and scale."""
    loc = (2,) if DECLARATIONS[name].of_integers else SCALED
    return [(*one, *loc) for one in [SHAPES.get(name, ()), *FURTHER.get(name, [])]]


def methods(name: str) -> list[str]:
    declared = DECLARATIONS[name]
    found = OF_INTEGERS if declared.of_integers else OF_VALUES
    return list(found if declared.has_cumulative else found[:2])


def places(name: str, given: tuple[float, ...]) -> np.ndarray:
    """Of all of the support, its ends, and outside of it; nan."""
    real = getattr(stats, name)(*given)
    if DECLARATIONS[name].of_integers:
        return np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 4.5, 6.0, 9.0, 30.0, np.nan])
    low, high = real.support()
    inner = real.ppf([1e-3, 0.1, 0.35, 0.6, 0.9, 0.999]) if name not in SLOW else np.linspace(0.5, 2.0, 6)
    ends = [one for end in (low, high) if np.isfinite(end) for one in (end - 1.0, end, end + 1.0)]
    return np.array([*inner, *ends, np.inf, -np.inf, np.nan])


SLOW = {"vonmises", "rice"}
"""Whose quantiles SciPy searches for."""


@pytest.mark.drawn(4)
@names
def test_values_are_scipys(name: str) -> None:
    real = getattr(stats, name)
    for given in parameters(name):
        x = places(name, given)
        for method in methods(name):
            steps = DECLARATIONS[name].of_integers and method not in ("pmf", "logpmf")
            with np.errstate(all="ignore"):  # of some SciPy has other values between integers
                wanted = getattr(real, method)(np.floor(x) if steps else x, *given)
            with machine_code((name, method), one_in=8):
                found = pb.compile(lambda x, method=method, given=given: getattr(real, method)(x, *given))(x)
            if method in ("logpdf", "pdf"):  # 0 at infinity, where SciPy has nan of inf - inf
                wanted = np.where(np.isinf(x), -np.inf if method == "logpdf" else 0.0, wanted)
            np.testing.assert_allclose(
                found, wanted, rtol=1e-9, atol=1e-12, err_msg=f"{name}.{method}{given} at {x}"
            )


@pytest.mark.drawn(2)
@names
def test_quantiles(name: str) -> None:
    if not DECLARATIONS[name].has_cumulative:
        pytest.skip("it has none")
    real, q = getattr(stats, name), np.array([0.0, 1e-5, 0.2, 0.5, 0.9, 1.0, -0.1, 1.1, np.nan])
    for given in parameters(name):
        for method in ("ppf", "isf"):
            wanted = getattr(real, method)(q, *given)
            with machine_code((name, method)):
                found = pb.compile(lambda q, method=method, given=given: getattr(real, method)(q, *given))(q)
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9, err_msg=f"{method}{given}")


@cache
def exactly() -> dict[str, Any]:
    return declarations()


def far_out(name: str, shapes: tuple[float, ...]) -> list[float]:
    """In both tails, as far as SciPy finds quantiles, and at the places of the table."""
    real = getattr(stats, name)(*shapes)
    low, high = real.support()
    shares = [] if name in SLOW else [1e-30, 1e-9]
    found = [*real.ppf(shares), *real.isf(shares), *PLACES.get(name, ())]
    ends = [one for one in (low, high) if np.isfinite(one) and one]  # near these x itself is rounded
    near = [one for one in found if any(abs(one / end - 1.0) < 1e-5 for end in ends)]
    return [float(one) for one in found if low < one < high and 1e-150 < abs(one) < 1e150 and one not in near]


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", CONTINUOUS | EXTREMES)
def test_tails_are_those_of_mpmath(name: str) -> None:
    """Values, and derivatives of logarithms by all arguments, relative to what they are."""
    real = getattr(stats, name)
    with mpmath.workdps(150):
        for shapes in (SHAPES.get(name, ()), *FURTHER.get(name, []), *EXTREME.get(name, [])):
            x = np.array(far_out(name, shapes))
            given = [x, *(np.full_like(x, one) for one in shapes)]
            free = tuple(range(1 + len(shapes)))
            for method in methods(name)[: 2 if name in BY_INTEGRALS else None]:
                exact = partial(EXACT[method], exactly()[name])
                function = getattr(real, method)
                values, pull = pb.vjp(function, *given)
                is_log = method.startswith("log")
                refused = any(place in REFUSED.get(name, set()) for place in free) and "pdf" not in method
                slopes = pull(np.ones_like(x)) if is_log and not refused else ()
                for place, at in enumerate(zip(*given)):
                    numbers = [mpmath.mpf(one) for one in at]
                    told = f"{name}.{method}{at}"
                    wanted = float(exact(*numbers))
                    np.testing.assert_allclose(
                        values[place], wanted, rtol=1e-9, atol=1e-14 * is_log, err_msg=told
                    )
                    for which, slope in enumerate(slopes):
                        wanted = float(slope_of(exact, numbers, which))
                        least = 1e-15 if "pdf" in method else 1e-140  # beside 1, of mpmath's 150 digits
                        np.testing.assert_allclose(
                            slope[place], wanted, rtol=1e-6, atol=least, err_msg=f"{told} by {which}"
                        )


BY_INTEGRALS = {"skewnorm", "rice", "vonmises"}
"""Whose distribution functions are looked at elsewhere."""


def slope_of(exact: Any, numbers: list[Any], which: int) -> Any:
    step = (abs(numbers[which]) or 1) * mpmath.mpf(10) ** -20
    if mpmath.isinf(step):
        return 0
    around = [[*numbers[:which], numbers[which] + one, *numbers[which + 1 :]] for one in (step, -step)]
    return (exact(*around[0]) - exact(*around[1])) / (2 * step)


def difference(function: Any, given: list[Any], place: int, step: float) -> Any:
    """By a formula of fourth order (Abramowitz and Stegun 25.3.6)."""

    def at(count: int) -> Any:
        return function(*[one + count * step if index == place else one for index, one in enumerate(given)])

    return (at(-2) - 8.0 * at(-1) + 8.0 * at(1) - at(2)) / (12.0 * step)


@pytest.mark.drawn(4)
@names
def test_derivatives_by_all_parameters(name: str) -> None:
    real, declared = getattr(stats, name), DECLARATIONS[name]
    used = [*methods(name), *(["ppf", "isf"] if declared.has_cumulative else [])]
    for given in parameters(name):
        frozen = real(*given)
        if declared.of_integers:
            x = np.array([2.0]) if name == "bernoulli" else np.array([3.0, 4.0])
            fixed = {0, *range(1, 1 + INTEGER_SHAPES.get(name, 0)), len(given)}
        else:
            x = np.array([0.9, 1.4]) if name in SLOW else frozen.ppf([0.15, 0.33, 0.8])
            fixed = set()
        for method in some_of(used, name, count=3):
            is_density = method in OF_INTEGERS[:2] + OF_VALUES[:2]
            refused = (OF_NO_DENSITY if is_density else REFUSED).get(name, set())
            at = np.array([0.15, 0.33, 0.8]) if method in ("ppf", "isf") else x
            arguments = [at, *(np.float64(one) for one in given)]
            free = [place for place in range(len(arguments)) if place not in fixed | refused]

            def total(*arguments: Any, method: str = method) -> Any:
                return getattr(real, method)(*arguments).sum()

            with machine_code((name, method, "gradient"), one_in=8):
                found = pb.grad(pb.compile(total), argnums=tuple(free))(*arguments) if free else ()
            for place, one in zip(free, found):
                steps = declared.of_integers and method in ("ppf", "isf")
                wanted = 0.0 if steps else difference(total, arguments, place, 1e-4)
                np.testing.assert_allclose(
                    np.sum(one), wanted, rtol=2e-6, atol=1e-8, err_msg=f"{name}.{method}{given} by {place}"
                )


@names
def test_second_derivatives_of_the_density(name: str) -> None:
    """With respect to the parameters that are no integers, along one direction."""
    given = parameters(name)[0]
    real, declared = getattr(stats, name), DECLARATIONS[name]
    integers = INTEGER_SHAPES.get(name, 0)
    x = np.array([3.0, 4.0]) if declared.of_integers else np.array([0.9, 1.6])
    log_density = real.logpmf if declared.of_integers else real.logpdf
    integers = max(OF_NO_DENSITY.get(name, {integers}))  # from which place on parameters are free
    free = np.array(given[integers : -1 if declared.of_integers else None])
    rest = given[-1:] if declared.of_integers else ()
    if not free.size:
        pytest.skip("all parameters are integers")

    def total(free: Any) -> Any:
        return log_density(x, *given[:integers], *free, *rest).sum()

    gradient = pb.grad(total)
    direction = RNG.standard_normal(free.shape)
    wanted = (gradient(free + 1e-5 * direction) - gradient(free - 1e-5 * direction)) / 2e-5
    found = pb.grad(lambda free: (gradient(free) * direction).sum())(free)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.drawn(4)
@names
def test_parameters_that_there_are_not_give_nan(name: str) -> None:
    real, declared = getattr(stats, name), DECLARATIONS[name]
    good = parameters(name)[0]
    method = "logpmf" if declared.of_integers else "logpdf"
    for place in range(len(good)):
        bad = (*good[:place], -3.3, *good[place + 1 :])
        wanted = getattr(real, method)(np.array([1.0, 2.0]), *bad)
        with machine_code((name, place), one_in=16):
            found = pb.compile(lambda x, bad=bad: getattr(real, method)(x, *bad))(np.array([1.0, 2.0]))
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted), err_msg=str(bad))


@names
def test_means_variances_and_entropies(name: str) -> None:
    real, declared = getattr(stats, name), DECLARATIONS[name]
    shapes = np.array(SHAPES.get(name, ()), float)
    rest = (2.0,) if declared.of_integers else SCALED
    known = {"mean": declared.mean, "var": declared.variance, "entropy": declared.entropy}
    has_formula = [method for method, value in known.items() if value is not None]
    for method in {"mean", "var"} if name in INTEGRATED else has_formula:
        rough = 1e-12 if method in has_formula else 1e-7

        def function(shapes: Any, *rest: Any, method: str = method) -> Any:
            return getattr(real(*shapes, *rest), method)()

        with machine_code((name, method), one_in=16):
            compiled = pb.compile(function)(shapes, *rest)
        for found in (compiled, pb.vjp(function, shapes, *rest)[0]):
            np.testing.assert_allclose(found, function(shapes, *rest), rtol=rough)


INTEGRATED = {"gompertz", "truncnorm", "rice", "foldnorm", "johnsonsu", "vonmises"}
"""Without a formula, and with moments that are finite by far."""


@pytest.mark.drawn(6)
def test_means_of_functions() -> None:
    """Of all values, and of those between two."""

    def function(shape: Any, loc: Any, scale: Any, power: Any) -> Any:
        whole = stats.gamma(shape, loc, scale).expect(lambda x: x**power)
        part = stats.norm.expect(np.cos, loc=loc, scale=scale, lb=-0.3, ub=power)
        further = stats.weibull_min.moment(3, shape, loc, scale) + stats.beta.expect(args=(shape, 2.0))
        return whole + part + further

    given = [*map(np.float64, (1.7, 0.3, 1.4, 0.8))]
    for one in (function, pb.compile(function)):
        value, gradients = pb.value_and_grad(one, argnums=(0, 1, 2, 3))(*given)
        np.testing.assert_allclose(value, function(*given), rtol=1e-8)
        for place, found in enumerate(gradients):
            np.testing.assert_allclose(found, difference(function, given, place, 1e-3), rtol=1e-6)


DATA = np.random.default_rng(1).standard_normal((2, 9))
SEEN = stats.gaussian_kde(DATA, weights=np.linspace(1.0, 2.0, 9))
DENSITIES: dict[str, tuple[Any, Any]] = {
    "at points": (lambda x: stats.gaussian_kde(DATA[0])(x), np.array([0.1, 0.7, -2.0])),
    "of data": (lambda x: stats.gaussian_kde(x, "silverman").logpdf(np.array([0.1, 0.7])), DATA[0]),
    "of vectors with weights": (lambda x: stats.gaussian_kde(x, weights=DATA[0] ** 2).pdf(DATA[:, :3]), DATA),
    "made before": (SEEN, DATA[:, :4] + 0.1),
    "of a bandwidth": (lambda x: stats.gaussian_kde(DATA[0], x).evaluate(DATA[1]), np.float64(0.4)),
    "of weights": (lambda x: stats.gaussian_kde(DATA[0], weights=x).pdf(DATA[1]), np.linspace(1.0, 2.0, 9)),
    "between two numbers": (lambda x: stats.gaussian_kde(x).integrate_box_1d(-1.0, 0.5), DATA[0]),
}


@pytest.mark.drawn(6)
@pytest.mark.usefixtures("partly_compiled")
@pytest.mark.parametrize("name", DENSITIES)
def test_kernel_densities(name: str) -> None:
    density, x = DENSITIES[name]

    def loss(x: Any) -> Any:
        return (density(x) ** 2).sum()

    np.testing.assert_allclose(pb.compile(lambda x: density(x))(x), density(x), rtol=1e-11)
    direction = RNG.standard_normal(x.shape)
    slope, along = pb.grad(loss), lambda x: (pb.grad(loss)(x) * direction).sum()
    for one, found in ((loss, slope), (along, pb.grad(along))):
        wanted = (one(x + 1e-5 * direction) - one(x - 1e-5 * direction)) / 2e-5
        for way in (found, pb.compile(found)):
            np.testing.assert_allclose((way(x) * direction).sum(), wanted, rtol=1e-6)


def test_what_a_kernel_density_does_not_have_is_refused() -> None:
    with pytest.raises(pb.errors.UnsupportedError, match=r"scipy\.stats\.gaussian_kde\.resample is not"):
        pb.grad(lambda x: stats.gaussian_kde(x).resample(3).sum())(DATA[0])
    with pytest.raises(pb.errors.ShapeError, match="points of 2 dimensions are expected"):
        pb.grad(lambda x: stats.gaussian_kde(DATA)(x).sum())(DATA[0])


def test_second_derivatives_of_quantiles_that_are_searched_for() -> None:
    """Of what SciPy searches for, steps of Newton's have the derivatives."""
    for name in ("skewnorm", "invgauss", "gennorm"):
        real, given = getattr(stats, name), [np.float64(0.3), np.float64(SHAPES[name][0])]
        for place in (0, 1):
            first = pb.grad(lambda q, a, real=real: real.ppf(q, a), argnums=place)
            second = pb.grad(lambda q, a, first=first: first(q, a), argnums=place)
            np.testing.assert_allclose(second(*given), difference(first, given, place, 1e-3), rtol=1e-5)


def test_pearsons_distribution_without_skew_is_normal() -> None:
    """By the skew its slope is the first term of Edgeworth's series."""
    z = np.array([-1.3, 0.4, 2.2])
    hermite = z**3 - 3.0 * z
    for method, wanted in (("logpdf", hermite / 6), ("cdf", (1 - z * z) * stats.norm.pdf(z) / 6)):
        value, pull = pb.vjp(getattr(stats.pearson3, method), z, np.zeros(3))
        np.testing.assert_allclose(value, getattr(stats.norm, method)(z), rtol=1e-13)
        np.testing.assert_allclose(pull(np.ones(3))[1], wanted, rtol=1e-12)


def test_slopes_where_a_formula_has_a_factor_of_zero_or_a_bend() -> None:
    """By a shape of 1 the slope of (b - 1) log(1 - x), in the middle that of a density with a tip."""
    found = pb.grad(lambda b: stats.beta.logpdf(0.1, 2.0, b))(1.0)
    np.testing.assert_allclose(found, np.log(0.9) + 1.5)
    np.testing.assert_allclose(  # (x + sqrt(x**2 + 4))**2 / 4 by its quantile x of the normal distribution
        pb.grad(stats.fatiguelife.ppf)(0.5, 0.8), 0.8 * np.sqrt(2.0 * np.pi)
    )
    for distribution, shapes in ((stats.laplace, ()), (stats.gennorm, (1.5,))):
        np.testing.assert_allclose(pb.grad(distribution.cdf)(0.0, *shapes), distribution.pdf(0.0, *shapes))


@pytest.mark.parametrize("name", ["norm", "gamma", "beta", "genextreme", "t", "triang"])
def test_slopes_at_infinity_are_zero(name: str) -> None:
    """So intervals may be open: what lies beyond them does not change with any parameter."""
    given = [np.array([np.inf, -np.inf]), *(np.full(2, one) for one in parameters(name)[0])]
    for method in OF_VALUES[2:]:
        function = getattr(getattr(stats, name), method)
        values, pull = pb.vjp(lambda *rest, function=function: function(given[0], *rest), *given[1:])
        np.testing.assert_array_equal(values, function(*given))
        found = np.stack(pull(np.ones(2)))
        assert (found == 0.0)[:, np.isfinite(values)].all()


ENDS: dict[str, tuple[float, ...]] = {
    "gamma": (1.7,), "beta": (1.4, 2.3), "chi2": (3.0,), "f": (3.2, 5.1), "weibull_min": (1.6,),
    "genpareto": (-0.4,), "triang": (0.4,), "rayleigh": (), "exponweib": (1.0, 1.6), "trapezoid": (0.3, 0.7),
    "powerlaw": (0.4,), "arcsine": (), "betaprime": (1.0, 2.0), "semicircular": (), "mielke": (0.4, 2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_densities_at_the_ends_of_the_support(name: str) -> None:
    """Where a formula has no slopes they do not spoil those of other values, whatever is taken instead."""
    real, shapes = getattr(stats, name), ENDS[name]
    x = np.array([end for end in real.support(*shapes) if np.isfinite(end)])
    for method in ("pdf", "logpdf"):
        function = getattr(real, method)

        def total(*shapes: Any, function: Any = function) -> Any:
            return 0.0 * np.where(np.isfinite(x), 0.0, function(x, *shapes)).sum() + function(0.5, *shapes)

        np.testing.assert_allclose(pb.vjp(lambda x, f=function: f(x, *shapes), x)[0], function(x, *shapes))
        for place, found in enumerate(pb.grad(total, tuple(range(len(shapes))))(*shapes) if shapes else ()):
            wanted = difference(lambda *given, f=function: f(0.5, *given), [*shapes], place, 1e-4)
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)


def test_triangles_and_trapezoids_with_one_side() -> None:
    x, q = np.array([-0.1, 0.0, 0.3, 0.8, 1.0]), np.array([0.1, 0.5, 0.9])
    for real, shapes in (
        (stats.triang, (0.0,)), (stats.triang, (1.0,)),
        (stats.trapezoid, (0.0, 1.0)), (stats.trapezoid, (0.0, 0.4)),
    ):  # fmt: skip
        for method in (*OF_VALUES, "ppf", "isf"):
            at, function = q if method in ("ppf", "isf") else x, getattr(real, method)
            values, pull = pb.vjp(lambda x, f=function, shapes=shapes: f(x, *shapes), at)
            np.testing.assert_allclose(values, function(at, *shapes), rtol=1e-12, atol=1e-15)
            assert np.isfinite(pull(np.ones_like(at))[0]).all()


@pytest.mark.parametrize("name", [
    "cauchy", "exponweib", "f", "betaprime", "burr", "gengamma", "johnsonsu", "johnsonsb", "loglaplace",
    "levy", "truncnorm", "powerlaw", "triang", "genlogistic", "kappa3", "mielke",
])  # fmt: skip
def test_quantiles_keep_their_digits_above(name: str) -> None:
    """Of a small share above, which 1 - q has lost."""
    real, shapes = getattr(stats, name), SHAPES.get(name, ())
    q = np.array([1e-12, 1e-6])
    x = pb.vjp(lambda q: real.isf(q, *shapes), q)[0]
    share, pull = pb.vjp(lambda x: real.sf(x, *shapes), x)
    rounding = np.abs(pull(np.ones(2))[0] * x) * 1e-15
    assert (np.abs(share - q) <= 1e-11 * q + rounding).all()


def test_far_out_where_a_formula_overflows() -> None:
    """What is not a logarithm is 0 or 1, with slopes of 0."""
    for name, place in (
        ("gumbel_r", -1e5), ("gumbel_l", 1e5), ("genextreme", -1e5), ("loggamma", 1e5), ("moyal", -1e5),
        ("hypsecant", 1e5), ("exponpow", 1e5), ("invweibull", 1e-300),
    ):  # fmt: skip
        real, shapes = getattr(stats, name), (0.0,) if name == "genextreme" else SHAPES.get(name, ())
        for method in ("pdf", "cdf", "sf"):
            values, pull = pb.vjp(getattr(real, method), np.array([place]), *map(np.array, shapes))
            assert values == {"pdf": 0.0, "cdf": float(place > 1.0), "sf": float(place < 1.0)}[method]
            assert [np.sum(one) for one in pull(np.ones(1))] == [0.0] * (1 + len(shapes))


def test_numbers_that_there_are_not_give_nan_as_arrays_do() -> None:
    assert np.isnan(pb.grad(lambda x: stats.norm.logpdf(x, 0, 0))(1.0))
    assert np.isnan(pb.grad(lambda x: stats.weibull_min.ppf(x, 0))(0.3))


DISCRETE_TAILS: dict[str, tuple[float, Callable[..., Any], Callable[..., Any]]] = {
    "geom": (0.4, lambda p: 1e4 * mpmath.log(1 - p), lambda p: mpmath.log(1 - (1 - p) ** 4)),
    "planck": (0.7, lambda p: -p * 10001, lambda p: mpmath.log(1 - mpmath.exp(-p * 5))),
    "dlaplace": (
        0.3, lambda p: -mpmath.log(1 + mpmath.exp(p)) - p * 1e4,
        lambda p: mpmath.log(1 - mpmath.exp(-4 * p) / (1 + mpmath.exp(p))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DISCRETE_TAILS)
def test_logarithms_of_discrete_tails(name: str) -> None:
    """Far above, where no number is left of what they are logarithms of; up to 4."""
    at, above, below = DISCRETE_TAILS[name]
    for method, k, exact in (("logsf", 1e4, above), ("logcdf", 4.0, below)):
        function = getattr(getattr(stats, name), method)
        value, slope = pb.value_and_grad(lambda p, f=function, k=k: f(k, p))(at)
        np.testing.assert_allclose(value, float(exact(mpmath.mpf(at))), rtol=1e-12)
        np.testing.assert_allclose(slope, float(mpmath.diff(exact, mpmath.mpf(at))), rtol=1e-9)


def test_students_distribution_of_infinite_degrees_is_normal() -> None:
    x = np.array([-9.0, 0.3, 2.0])
    for method in OF_VALUES:
        found = pb.vjp(lambda x, method=method: getattr(stats.t, method)(x, np.inf), x)
        wanted = pb.vjp(getattr(stats.norm, method), x)
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-14)
        np.testing.assert_allclose(found[1](np.ones(3))[0], wanted[1](np.ones(3))[0], rtol=1e-14)


def test_fishers_density_of_large_degrees() -> None:
    """Is that of chi-square variables, over their number."""
    found = pb.value_and_grad(stats.f.logpdf)(0.3, 3.2, 1e12)
    wanted = pb.value_and_grad(lambda x: stats.chi2.logpdf(3.2 * x, 3.2) + np.log(3.2))(0.3)
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_normal_distributions_cut_beside_a_place() -> None:
    """What is between two places that are next to each other is the density times how far."""
    low = np.array([-1.2, 9.0, -30.0])
    x = low + np.array([1e-7, 1e-9, 1e-12])
    found, pull = pb.vjp(lambda x: stats.truncnorm.logcdf(x, low, 40.0), x)
    wanted = stats.norm.logpdf(0.5 * (x + low)) + np.log(x - low) - stats.norm.logsf(low)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_allclose(pull(np.ones(3))[0], 1.0 / (x - low), rtol=1e-6)


def test_slopes_at_the_least_concentration() -> None:
    """There the even function that densities are made of has a bend."""
    for density, wanted in (
        (lambda b: stats.rice.logpdf(1.3, b), (0.0, 0.5 * 1.3**2 - 1.0)),
        (lambda kappa: stats.vonmises.logpdf(1.3, kappa), (np.cos(1.3), -0.5)),
    ):
        first = pb.grad(density)
        np.testing.assert_allclose((first(0.0), pb.grad(first)(0.0)), wanted, rtol=1e-12, atol=1e-15)


def test_open_ends_of_a_truncated_normal_distribution_have_slopes_of_zero() -> None:
    def loss(low: Any, loc: Any) -> Any:
        return stats.truncnorm.logpdf(-1.0, (low - loc) / 2.0, (2.0 - loc) / 2.0, loc, 2.0)

    by_low, by_loc = pb.grad(loss, argnums=(0, 1))(-np.inf, 0.3)
    assert by_low == 0.0
    np.testing.assert_allclose(by_loc, difference(loss, [-np.inf, 0.3], 1, 1e-4), rtol=1e-8)


@pytest.mark.drawn(4)
def test_medians_and_intervals() -> None:
    def function(scale: Any, confidence: Any) -> Any:
        frozen = stats.gamma(1.7, scale=scale)
        low, high = frozen.interval(confidence)
        return frozen.median() + low + 2.0 * high + stats.norm.interval(confidence)[1]

    given = [np.float64(1.3), np.float64(0.8)]
    for one in (function, pb.compile(function)):
        value, gradients = pb.value_and_grad(one, argnums=(0, 1))(*given)
        np.testing.assert_allclose(value, function(*given), rtol=1e-12)
        for place, found in enumerate(gradients):
            np.testing.assert_allclose(found, difference(function, given, place, 1e-3), rtol=1e-8)


PRIOR = stats.norm(0.4, 1.3)
VECTORS = stats.multivariate_normal(np.array([0.1, 0.4]), np.array([[1.0, 0.2], [0.2, 0.7]]))


@pytest.mark.drawn(6)
def test_frozen_distributions() -> None:
    """Made inside, with Tensors among the parameters, and outside of the function."""

    def function(x: Any, scale: Any) -> Any:
        inner = stats.gamma(2.0, scale=scale)
        of_size = inner.logpdf(abs(x)) + inner.cdf(abs(x))
        return PRIOR.logpdf(x).sum() + of_size.sum() + VECTORS.logpdf(x)

    x, scale = np.array([0.3, 1.1]), np.float64(0.7)
    for one in (function, pb.compile(function)):
        value, gradients = pb.value_and_grad(one, argnums=(0, 1))(x, scale)
        np.testing.assert_allclose(value, function(x, scale), rtol=1e-12)
        np.testing.assert_allclose(gradients[1], difference(function, [x, scale], 1, 1e-4), rtol=1e-8)


def test_parameters_of_a_frozen_distribution_that_change_are_read_anew() -> None:
    place = np.array([0.3, 1.1])
    frozen = stats.norm(place, 1.2)
    function = pb.compile(lambda x: frozen.logpdf(x).sum())
    x = np.array([0.1, 0.4])
    for _ in range(2):
        np.testing.assert_allclose(function(x), stats.norm.logpdf(x, place, 1.2).sum(), rtol=1e-12)
        place += 1.0


@pytest.mark.drawn(6)
def test_distributions_of_vectors() -> None:
    x = RNG.standard_normal((4, 3))
    root = RNG.standard_normal((3, 3))
    shares = RNG.dirichlet(np.ones(3), 4).T
    counts = np.array([[2, 1, 1], [4, 0, 0], [1, 1, 1]])

    def function(mean: Any, root: Any, df: Any, alpha: Any) -> Any:
        cov = root @ root.T + np.eye(3)
        total = stats.multivariate_normal.logpdf(x, mean, cov).sum()
        total += stats.multivariate_t.logpdf(x, mean, cov, df).sum()
        total += stats.dirichlet.logpdf(shares, alpha).sum() + stats.dirichlet.pdf(shares[:2], alpha).sum()
        return total + stats.multinomial.pmf(counts, 4, alpha / alpha.sum()).sum()

    given = [RNG.standard_normal(3), root, np.float64(3.3), np.array([1.3, 0.8, 2.2])]
    gradients: Any = ()
    for one in (function, pb.compile(function)):
        value, gradients = pb.value_and_grad(one, argnums=(0, 1, 2, 3))(*given)
        total = stats.multivariate_normal.logpdf(x, given[0], root @ root.T + np.eye(3)).sum()
        total += stats.multivariate_t.logpdf(x, given[0], root @ root.T + np.eye(3), 3.3).sum()
        total += sum(stats.dirichlet.logpdf(one, given[3]) for one in shares.T)
        total += sum(stats.dirichlet.pdf(one[:2], given[3]) for one in shares.T)
        total += stats.multinomial.pmf(counts, 4, given[3] / given[3].sum()).sum()
        np.testing.assert_allclose(value, total, rtol=1e-11)
    direction = [RNG.standard_normal(np.shape(one)) for one in given]
    compiled = pb.compile(function)
    moved = [compiled(*(one + step * way for one, way in zip(given, direction))) for step in (1e-6, -1e-6)]
    slope = sum(np.sum(one * way) for one, way in zip(gradients, direction))
    np.testing.assert_allclose(float(moved[0] - moved[1]) / 2e-6, slope, rtol=1e-6)


def test_vectors_with_parameters_at_their_borders() -> None:
    """Infinite degrees of freedom, probabilities with a rest, no counts, SciPy's Covariance."""
    spread = stats.Covariance.from_diagonal([1.0, 2.0])
    counts = np.array([[1, 2, 3], [-1, 4, 3], [2, 2, 1]])
    for function, x in (
        (lambda x: stats.multivariate_t.logpdf(x, np.zeros(2), np.eye(2), np.inf), np.array([0.3, -1.0])),
        (lambda x: stats.multivariate_normal.logpdf(x, np.zeros(2), spread), np.array([0.3, -1.0])),
        (lambda x: stats.multinomial.logpmf(counts[0], 6, x), np.array([0.2, 0.3, 0.9])),
        (lambda x: stats.multinomial.pmf(counts, 6, x).sum(), np.array([0.2, 0.3, 0.9])),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of SciPy's, which is about to refuse such probabilities
            value, slope = pb.value_and_grad(function)(x)
            np.testing.assert_allclose(value, function(x), rtol=1e-12)
            for place, step in enumerate(np.eye(len(x)) * 1e-5):
                wanted = (function(x + step) - function(x - step)) / 2e-5
                np.testing.assert_allclose(slope[place], wanted, rtol=1e-6, atol=1e-8)


def test_shares_that_there_are_not_are_refused() -> None:
    for shares, alpha, said in (
        ([0.2, 0.3, 0.6], [1.0, 2.0, 3.0], "sum up to 1"),
        ([0.2, 0.3, 0.5], [1.0, 0.0, 3.0], "greater than 0"),
    ):  # fmt: skip
        given = np.array(shares), np.array(alpha)
        for one in (pb.grad, lambda f: pb.compile(pb.grad(f))):
            with pytest.raises(pb.errors.ArgumentError, match=said):
                one(lambda alpha, x=given[0]: stats.dirichlet.logpdf(x, alpha))(given[1])


def test_singular_normal_distributions_of_vectors() -> None:
    root = np.array([[1.0, 0.0], [0.5, 2.0], [1.5, 2.0]])
    cov, mean = root @ root.T, np.array([0.1, 0.2, 0.3])
    x = mean + np.array([[0.3, -0.4], [1.0, 2.0]]) @ root.T

    def logpdf(x: Any, mean: Any) -> Any:
        return stats.multivariate_normal.logpdf(x, mean, cov, allow_singular=True)

    values, pull = pb.vjp(logpdf, x, mean)
    np.testing.assert_allclose(values, logpdf(x, mean), rtol=1e-12)
    expected = (x - mean) @ np.linalg.pinv(cov)
    for found, one in zip(pull(np.ones(2)), (-expected, expected.sum(0))):
        np.testing.assert_allclose(found, one, rtol=1e-9, atol=1e-12)

    def of_a_copy(x: Any, mean: Any) -> Any:
        copied = np.zeros((3, 3))
        copied[:] = cov  # what a program that writes gets and makes are Tensors
        return stats.multivariate_normal.logpdf(x, mean, copied, allow_singular=True)

    np.testing.assert_allclose(pb.vjp(of_a_copy, x, mean)[1](np.ones(2))[1], expected.sum(0), rtol=1e-9)
    beside = x + np.array([0.0, 0.0, 0.1])
    density = lambda x: stats.multivariate_normal.pdf(x, mean, cov, allow_singular=True)  # noqa: E731
    assert not density(beside).any() and not pb.vjp(density, beside)[0].any()
    with pytest.raises(pb.errors.UnsupportedError, match="must be a plain array"):
        pb.grad(lambda c: stats.multivariate_normal.logpdf(x[0], mean, c, allow_singular=True))(cov)
    cov = -cov
    with pytest.raises(ValueError, match="positive semidefinite"):
        pb.vjp(logpdf, x, mean)


@pytest.mark.drawn(4)
def test_entropies_of_normal_distributions_of_vectors() -> None:
    cov = np.array([[2.0, 0.3], [0.3, 1.0]])

    def entropy(cov: Any) -> Any:
        return stats.multivariate_normal.entropy(np.zeros(2), cov)

    for one in (entropy, pb.compile(entropy)):
        value, slope = pb.value_and_grad(one)(cov)
        np.testing.assert_allclose(value, entropy(cov))
        np.testing.assert_allclose(slope, 0.5 * np.linalg.inv(cov))


def test_wrong_uses_say_what_is_expected() -> None:
    x = np.array([0.3, 1.2])
    with pytest.raises(pb.errors.ArgumentError, match="scipy.stats.gamma.logpdf takes the parameters a, loc"):
        pb.grad(lambda x: stats.gamma.logpdf(x).sum())(x)
    with pytest.raises(pb.errors.ArgumentError, match="found loc, scale, shape"):
        pb.grad(lambda x: stats.norm.logpdf(x, 0.0, 1.0, shape=2.0).sum())(x)
    for name, shapes, operand in (
        ("vonmises", (1.3,), "kappa"), ("betabinom", (6, 1.4, 2.2), "a"), ("hypergeom", (20, 7, 9), "total")
    ):  # fmt: skip
        place = 2 if name == "betabinom" else 1
        for method in ("cdf", "logcdf", "sf", "logsf"):
            with pytest.raises(
                pb.errors.GradientError, match=f"derivative of {name}_[cs]d?f with respect to its {operand} "
            ):
                pb.grad(getattr(getattr(stats, name), method), argnums=place)(3.0, *map(float, shapes))
    with pytest.raises(pb.errors.UnsupportedError, match=r"scipy\.stats\.poisson\.entropy is not supported"):
        pb.grad(stats.poisson.entropy)(1.3)
    with pytest.raises(pb.errors.UnsupportedError, match=r"with arrays of parameters is not supported"):
        pb.grad(lambda x: stats.burr.var(x, 2.0).sum())(x + 3.0)
    with pytest.raises(pb.errors.UnsupportedError, match=r"scipy\.stats\.norm\.fit is not supported"):
        pb.grad(lambda x: stats.norm.fit(x)[0])(x)
    with pytest.raises(pb.errors.UnsupportedError, match=r"scipy\.stats\.norm\.logpmf is not supported"):
        pb.grad(lambda x: stats.norm.logpmf(x).sum())(x)
    frozen = stats.tukeylambda(0.5)
    undeclared: dict[str, Callable[[Any], Any]] = {
        "tukeylambda.logpdf": lambda x: stats.tukeylambda.logpdf(x, 0.5).sum(),
        "tukeylambda.pdf": lambda x: frozen.pdf(x).sum(),
        "tukeylambda.freeze": lambda x: stats.tukeylambda(x[0]).pdf(0.3),
        "tukeylambda.rvs": lambda x: stats.tukeylambda.rvs(0.5, loc=x[0], random_state=1),
        "zipfian.logpmf": lambda x: stats.zipfian.logpmf([1, 2], x, 7).sum(),
        "normal_inverse_gamma.logpdf": lambda x: stats.normal_inverse_gamma.logpdf(x[0], 1.0, 0.0, 1.0, 2.0),
    }
    for name, function in undeclared.items():
        for transform in (pb.grad, lambda f: pb.grad(pb.compile(f))):
            with pytest.raises(pb.errors.UnsupportedError, match=rf"scipy\.stats\.{name} is not supported"):
                transform(function)(x + 1.0)
    with pytest.raises(pb.errors.ShapeError, match="vectors of 3 elements"):
        pb.grad(lambda x: stats.multivariate_normal.logpdf(x, np.zeros(2), np.eye(3)).sum())(x)


def test_the_documentation_lists_them() -> None:
    text = (Path(__file__).parents[2] / "docs" / "scipy.md").read_text()
    assert all(f"`{name}`" in text for name in NAMES)


@pytest.mark.parametrize("c", [-0.3, -1e-4, 0.0, 1e-4, 0.4, 4.87])
def test_moments_of_extreme_values(c: float) -> None:
    """By their Taylor series near 0, where the formula is 0 / 0."""
    import mpmath

    def mean(c: Any) -> Any:
        return (1 - mpmath.gamma(1 + c)) / c if c else mpmath.euler

    def variance(c: Any) -> Any:
        apart = mpmath.gamma(1 + 2 * c) - mpmath.gamma(1 + c) ** 2
        return apart / c**2 if c else mpmath.pi**2 / 6

    with mpmath.workdps(40):
        for name, of in (("mean", mean), ("var", variance)):
            slope = pb.value_and_grad(lambda c, name=name: getattr(stats.genextreme, name)(c))
            wanted = [float(of(mpmath.mpf(c))), float(mpmath.diff(of, mpmath.mpf(c) + 1e-15))]
            np.testing.assert_allclose(slope(c), wanted, rtol=1e-9)


@pytest.mark.drawn(4)
def test_slopes_behind_the_largest_number_are_those_of_nothing() -> None:
    """Where a hazard rate overflows, nothing is left of the density: its slope is 0, and not nan."""
    for x in (20.0, 705.0, 800.0, np.inf):
        for method, value in (("pdf", 0.0), ("cdf", 1.0), ("sf", 0.0), ("logcdf", 0.0)):
            function = getattr(stats.gompertz, method)
            for one in (function, pb.compile(lambda x, c, f=function: f(x, c))):
                found, slopes = pb.value_and_grad(one, (0, 1))(np.float64(x), np.float64(0.9))
                assert (float(found), *map(float, slopes)) == (value, 0.0, 0.0)
    _, slopes = pb.value_and_grad(stats.gompertz.logsf, (0, 1))(np.float64(800.0), np.float64(0.9))
    assert slopes == (-np.inf, -np.inf)
