"""SciPy's special functions on Tensors and in compiled code: values, and derivatives against differences."""

import warnings
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special
from extent import machine_code
from scipy_programs import drawn
from scipy_rows import POLYNOMIALS, SPECIAL

import pullback as pb

pytestmark = pytest.mark.part(8)

rows = pytest.mark.parametrize("name", SPECIAL)


def named(name: str) -> Callable[..., Any]:
    """The function that a row is about."""
    name, _, place = name.rstrip("]").partition("[")
    function = getattr(scipy.special, name)
    if place:
        return lambda *x: function(*x)[int(place)]
    return (lambda *x: function(*x).real) if name in COMPLEX else function


COMPLEX = {"lambertw", "hankel1"}


def arguments(name: str, size: int = 5) -> list[np.ndarray]:
    rng, row = drawn(name), SPECIAL[name]
    return [
        rng.integers(low, high, size) if kind == "o" and len(row.kinds) > 1 else rng.uniform(low, high, size)
        for (low, high), kind in zip(row.ranges, row.kinds)
    ]


def differentiated(name: str) -> list[int]:
    return [place for place, kind in enumerate(SPECIAL[name].kinds) if kind == "d"]


def difference(function: Callable[..., Any], given: list[np.ndarray], place: int, step: float) -> np.ndarray:
    """By a formula of fourth order (Abramowitz and Stegun 25.3.6), with shorter steps near 0.

    Many functions have a singularity there, and the formula's error grows with the fifth power of how near.
    """
    steps = step * np.clip(np.abs(given[place]), 0.1, 1.0)

    def at(count: int) -> Any:
        moved = [one + count * steps if position == place else one for position, one in enumerate(given)]
        return np.asarray(function(*moved))

    return (at(-2) - 8.0 * at(-1) + 8.0 * at(1) - at(2)) / (12.0 * steps)


@rows
def test_the_value_is_scipys(name: str) -> None:
    given, function = arguments(name), named(name)
    tensors = [pb.tensor(one) for one in given]
    wanted = function(*given)
    with machine_code(name):
        compiled = pb.compile(lambda *x: function(*x))(*given)
    for found in (function(*tensors), compiled):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-13)


@rows
def test_first_derivatives(name: str) -> None:
    given, function = arguments(name), named(name)
    for place in differentiated(name):
        wanted = difference(function, given, place, 1e-3)
        plain = pb.grad(lambda *x: function(*x).sum(), argnums=place)
        with machine_code((name, place)):
            compiled = pb.grad(pb.compile(lambda *x: function(*x).sum()), argnums=place)(*given)
        for found in (plain(*given), compiled):
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", [name for name, row in SPECIAL.items() if row.exact is not None])
def test_values_and_slopes_are_those_of_mpmath(name: str) -> None:
    """In the tails and near the ends as well, relative to what they are there."""
    function, row = named(name), SPECIAL[name]
    exact, wholes = row.exact, [kind == "o" for kind in row.kinds]
    assert exact is not None
    with mpmath.workdps(40):
        for place in (*row.tails, *zip(*arguments(name, 2))):
            given = [mpmath.mpf(float(one)) for one in place]
            arrays = [int(one) if is_whole else np.float64(one) for one, is_whole in zip(place, wholes)]
            np.testing.assert_allclose(float(function(*arrays)), float(exact(*given)), rtol=row.tolerance)
            for which in differentiated(name):
                along = lambda x, which=which, given=given: exact(*given[:which], x, *given[which + 1 :])  # noqa: E731
                found = pb.grad(lambda *x: function(*x), argnums=which)(*arrays)
                wanted = float(mpmath.diff(along, given[which]))
                np.testing.assert_allclose(found, wanted, rtol=row.tolerance, err_msg=f"{place} by {which}")


@rows
def test_second_derivatives(name: str) -> None:
    given, function = arguments(name), named(name)
    places = differentiated(name)
    for place in places:
        first = pb.grad(lambda *x: function(*x).sum(), argnums=place)
        for other in places:
            wanted = difference(first, given, other, 1e-3)
            second = pb.grad(lambda *x, first=first: first(*x).sum(), argnums=other)
            np.testing.assert_allclose(second(*given), wanted, rtol=1e-7, atol=1e-8)


OF_ANOTHER = {"hankel1": "yv", "chndtr": "ncx2_cdf", "ncfdtr": "ncf_cdf", "nctdtr": "nct_cdf"}
"""What a function is made of that refuses first."""


@rows
def test_what_has_no_derivative_says_so(name: str) -> None:
    given, function = arguments(name), named(name)
    for place, kind in enumerate(SPECIAL[name].kinds):
        if kind == "r":
            of = OF_ANOTHER.get(name, name)
            with pytest.raises(pb.errors.GradientError, match=f"derivative of {of} with respect to its"):
                pb.grad(lambda *x: function(*x).sum(), argnums=place)(*given)


@rows
def test_broadcast_empty_and_single(name: str) -> None:
    given, function = arguments(name, 1), named(name)
    if len(given) > 1:
        given[0] = np.broadcast_to(given[0], (2, 1))
    compiled = pb.compile(lambda *x: function(*x))
    for some in (given, [one[..., :0] for one in given], [one.reshape(-1)[0] for one in given]):
        with machine_code(name, one_in=8):
            found = compiled(*some)
        wanted = function(*some)
        assert found.shape == np.shape(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_single_precision_stays() -> None:
    x = np.array([0.5, 1.5], np.float32)
    assert pb.compile(lambda x: scipy.special.jv(1, x))(x).dtype == scipy.special.jv(1, x).dtype
    assert pb.grad(lambda x: scipy.special.k0(x).sum())(x).dtype == np.float32


def test_derivatives_at_the_ends() -> None:
    """Where a formula divides by zero, the derivative is its limit."""
    for name, at, wanted in (
        ("ellipk", 0.0, np.pi / 8),
        ("ellipe", 0.0, -np.pi / 8),
        ("j1", 0.0, 0.5),
        ("spence", 1.0, -1.0),
        ("exprel", 0.0, 0.5),
    ):
        function = getattr(scipy.special, name)
        first = pb.grad(lambda x, function=function: function(x))
        np.testing.assert_allclose(first(np.float64(at)), wanted, rtol=1e-14)
        step = 1e-4
        second = (first(np.float64(at + step)) - first(np.float64(at - step))) / (2 * step)
        np.testing.assert_allclose(pb.grad(first)(np.float64(at)), second, rtol=1e-6, atol=1e-7)


def test_exponential_shapes() -> None:
    """Of shape 1 the density at 0 is 1."""
    assert pb.grad(lambda x: scipy.special.gammainc(1.0, x))(np.float64(0.0)) == 1.0
    assert pb.grad(lambda x: scipy.special.betainc(1.0, 1.0, x))(np.float64(1.0)) == 1.0
    for function, shapes, wanted in (
        (scipy.special.gammainc, (1.0,), np.exp(-0.3) * (np.log(0.3) + np.euler_gamma)),
        (scipy.special.betainc, (1.0, 1.0), 1.0 + np.log(0.3)),
    ):
        slope = pb.grad(lambda x, *shapes, function=function: function(*shapes, x))
        found = pb.grad(lambda a, slope=slope, shapes=shapes: slope(0.3, a, *shapes[1:]))(1.0)
        np.testing.assert_allclose(found, wanted)


@pytest.mark.drawn(4)
def test_integrals_over_many_magnitudes_are_the_functions_themselves() -> None:
    """Of order 0 a derivative is the incomplete function, which SciPy computes by other means."""
    from pullback.tracer.score_moments import beta_slope, gamma_slope

    rng = drawn("moments")
    a, b = 10 ** rng.uniform(-3, 3, (2, 300))
    x, share = a * 10 ** rng.uniform(-1, 1, 300), rng.uniform(0, 1, 300)
    for found, wanted in (
        (gamma_slope(a, x, 0, False), scipy.special.gammainc(a, x)),
        (gamma_slope(a, x, 0, True), scipy.special.gammaincc(a, x)),
        (beta_slope(a, b, share, 0, 0), scipy.special.betainc(a, b, share)),
    ):  # a density of shape 1000 is rounded a thousand times as much
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-250)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_orthogonal_polynomials(name: str) -> None:
    function, parameters = getattr(scipy.special, name), POLYNOMIALS[name]
    x = drawn(name).uniform(-0.9, 0.9, 4)
    for degree in (0, 1, 2, 5):
        compiled = pb.compile(lambda x, degree=degree: function(degree, *parameters, x))
        with machine_code((name, degree)):
            np.testing.assert_allclose(compiled(x), function(degree, *parameters, x), rtol=1e-12, atol=1e-12)
        given = [*map(np.float64, parameters), x]

        def total(*given: Any, degree: int = degree) -> Any:
            return function(degree, *given).sum()

        for place in range(len(given)):
            found = pb.grad(total, argnums=place)(*given)
            wanted = difference(lambda *given, degree=degree: function(degree, *given), given, place, 1e-3)
            wanted = wanted.sum() if place < len(parameters) else wanted
            np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-8)


OTHERS = [
    name for name in scipy.special.__all__
    if isinstance(getattr(scipy.special, name), np.ufunc) and name not in SPECIAL
]  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_any_other_ufunc_has_a_derivative_or_refuses(name: str) -> None:
    """By each of its arguments, also where it gives several arrays."""
    function, rng = getattr(scipy.special, name), drawn(name)
    given = [rng.uniform(0.6, 0.9, 3) for _ in range(function.nin)]

    def total(*given: Any) -> Any:
        found = function(*given)
        return sum(one.real for one in found) if isinstance(found, tuple) else found.real

    for place in range(function.nin):
        try:
            found = pb.grad(lambda *x: total(*x).sum(), argnums=place)(*given)
        except pb.errors.PullbackError:
            continue
        wanted = difference(total, given, place, 1e-3)
        if np.isfinite(wanted).all():
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)


X = np.array([0.4, 1.3, -0.7])
COMPOSED: dict[str, Callable[[Any], Any]] = {
    "comb": lambda x: scipy.special.comb(4.5 + x, x) + scipy.special.comb(x + 5, 2, repetition=True),
    "comb of nothing": lambda x: scipy.special.comb(2, x + 3),
    "perm": lambda x: scipy.special.perm(x + 5, 2),
    "factorial": lambda x: scipy.special.factorial(x),
    **{
        f"{name} of order {n}": lambda x, name=name, n=n: getattr(scipy.special, name)(n, 3.0 * x)
        for name in ("spherical_jn", "spherical_yn", "spherical_in")
        for n in (0, 1, 4)
    },
    "jn": lambda x: scipy.special.jn(2, x + 2.0),
    "slopes of Bessel functions": lambda x: (
        scipy.special.jvp(1, x) + scipy.special.ivp(1, x) + scipy.special.kvp(1, x + 2.0, 2)
        + scipy.special.yvp(0, x + 2.0)
    ),
    "multigammaln": lambda x: scipy.special.multigammaln(x + 3.0, 2),
    "softplus": lambda x: scipy.special.softplus(x),
    "assoc_laguerre": lambda x: scipy.special.assoc_laguerre(x, 3, 1.5),
    "polynomial": lambda x: scipy.special.legendre(3)(x) + scipy.special.sinc(x + 2.0),
    "slope of spherical_jn": lambda x: scipy.special.spherical_jn(2, x, derivative=True),
    "slope of spherical_in": lambda x: scipy.special.spherical_in(1, 2.0 * x, True),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_functions_that_are_made_of_others(name: str) -> None:
    function = COMPOSED[name]
    with machine_code(name):
        np.testing.assert_allclose(pb.compile(function)(X), function(X), rtol=1e-12)
    first = pb.grad(lambda x: function(x).sum())
    np.testing.assert_allclose(first(X), difference(function, [X], 0, 1e-3), rtol=1e-7, atol=1e-9)
    second = pb.grad(lambda x: first(x).sum())
    np.testing.assert_allclose(second(X), difference(first, [X], 0, 1e-3), rtol=1e-7, atol=1e-8)


def test_slopes_of_many_are_those_of_each() -> None:
    """One whose range has no end, beside those whose range ends where the density is not negligible."""
    from pullback.tracer.score_moments import beta_slope, gamma_slope

    a, b, share = np.full(6, 2.75), np.full(6, 0.5), np.array([1.0, 0.98, 0.94, 0.5, 0.1, 0.0])
    each = [beta_slope(a[:1], b[:1], one, 1, 0)[0] for one in share.reshape(-1, 1)]
    np.testing.assert_allclose(beta_slope(a, b, share, 1, 0), each, rtol=1e-13, atol=1e-15)
    limits = np.array([np.inf, 3.0, 1e-3, 0.0])
    each = [gamma_slope(a[:1], one, 1, False)[0] for one in limits.reshape(-1, 1)]
    np.testing.assert_allclose(gamma_slope(a[:4], limits, 1, False), each, rtol=1e-13, atol=1e-15)


def test_slopes_of_large_shapes_take_few_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding in the density, which is larger there, is no reason for shorter intervals."""
    from pullback.tracer import score_moments

    adaptive, asked = score_moments._adaptive, []

    def counted(log_density: Any, *others: Any) -> np.ndarray:
        return adaptive(lambda u, *given: asked.append(u.size) or log_density(u, *given), *others)

    monkeypatch.setattr(score_moments, "_adaptive", counted)
    a, x = np.array([1e6, 1e10]), np.array([1e6 + 1e3, 1e10])
    below, above = (score_moments.gamma_slope(a, x, 1, upper) for upper in (False, True))
    np.testing.assert_allclose(below, [-0.0002419304095241, -3.9894228e-6], rtol=5e-6)  # rounded density
    np.testing.assert_allclose(above, -below, rtol=5e-6)
    assert sum(asked) < 100_000


FAR: dict[str, tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]] = {
    "gammainc": (((2.5, 40.0), (-7.197186330457073e-15,)), ((60.0, 4.0), (2.3069478859800865e-47,))),
    "gammaincc": (((60.0, 4.0), (-2.3069478859800865e-47,)), ((2.5, 300.0), (4.9648960227526776e-126,))),
    "betainc": (
        ((2.0, 3.0, 0.9999), (-2.9991250499997313e-12, 3.793736816235086e-11, -3.208771912837111e-10)),
        ((30.0, 2.0, 1e-4), (2.611068133012108e-117, -8.60218650654848e-118, 2.6503789059288813e-118)),
    ),
    "betaincc": (
        ((20.0, 0.5, 0.01), (-2.700423307270658e-40, 2.8805688427820086e-40, -2.471000926143923e-40)),
        ((3.0, 40.0, 0.9), (4.942981186570932e-37, -4.289988696001196e-37, 3.563283693948693e-37)),
    ),
}
"""Places, and mpmath's second derivatives by the shapes, with 150 digits."""


@pytest.mark.parametrize("name", FAR)
def test_second_derivatives_by_shapes_far_out(name: str) -> None:
    """Relative to what they are, also on the side where next to all of the distribution lies."""
    function = getattr(scipy.special, name)
    for place, wanted in FAR[name]:
        pairs = [(0, 0), (0, 1), (1, 1)] if len(wanted) == 3 else [(0, 0)]
        for (one, other), second in zip(pairs, wanted):
            slope = pb.grad(lambda *x, one=one: pb.grad(function, one)(*x), other)
            np.testing.assert_allclose(slope(*map(np.float64, place)), second, rtol=1e-9)


def test_inverses_where_no_density_is_left() -> None:
    """At the ends nothing changes with the shapes; what is rounded to the least numbers has slopes too."""
    for function, given, wanted in (
        (scipy.special.betaincinv, (3.0, 2.0, 1.0), 0.0), (scipy.special.betaincinv, (3.0, 2.0, 0.0), 0.0),
        (scipy.special.gammaincinv, (3.0, 0.0), 0.0), (scipy.special.gammainc, (3.0, np.inf), 0.0),
    ):  # fmt: skip
        assert pb.grad(function)(*map(np.float64, given)) == wanted
    given = np.float64(0.0005), np.float64(0.8)  # (p gamma(a + 1))**(1 / a), by mpmath
    seconds = 6.742326754407341e-183, 1.8926986844663727e-185, 5.310479962619697e-188
    for one, other, wanted in zip((0, 0, 1), (0, 1, 1), seconds):
        slope = pb.grad(lambda *x, one=one: pb.grad(scipy.special.gammaincinv, one)(*x), other)
        np.testing.assert_allclose(slope(*given), wanted, rtol=1e-8)


@pytest.mark.drawn(6)
def test_students_distribution_at_its_middle() -> None:
    """There the derivatives of all orders are the limits of those beside it."""

    def second(point: np.ndarray) -> np.ndarray:
        return pb.hessian(lambda p: scipy.special.stdtr(p[0], p[1]))(point)

    beside = (second(np.array([3.0, 1e-5])) + second(np.array([3.0, -1e-5]))) / 2
    for function in (second, pb.compile(second)):
        np.testing.assert_allclose(function(np.array([3.0, 0.0])), beside, rtol=1e-9, atol=1e-12)


def test_spherical_functions_at_zero() -> None:
    zero = np.float64(0.0)
    for n, value, slope in ((0, 1.0, 0.0), (1, 0.0, 1 / 3), (2, 0.0, 0.0)):
        found = pb.value_and_grad(lambda x, n=n: scipy.special.spherical_jn(n, x))(zero)
        np.testing.assert_allclose(found, (value, slope), atol=1e-15)


@pytest.mark.drawn(4)
def test_orders_that_are_cut_off() -> None:
    """Of functions of whole orders SciPy takes what is in front of the point."""
    x = np.array([0.6, 1.4])
    for name, order in (("yn", 1.7), ("kn", 1.7), ("expn", 2.6)):
        function = getattr(scipy.special, name)
        with pytest.warns(RuntimeWarning, match="truncated"):
            wanted = function(order, x)
        slope = pb.grad(lambda x, function=function, order=order: function(np.floor(order), x).sum())(x)
        for one in (lambda one: one, pb.compile):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                loss = one(lambda x, function=function, order=order: function(order, x).sum())
                value, found = pb.value_and_grad(loss)(x)
            np.testing.assert_allclose(value, wanted.sum(), rtol=1e-13)
            np.testing.assert_allclose(found, slope, rtol=1e-13)


def test_degrees_are_exact_at_right_angles() -> None:
    x = np.arange(-720.0, 721.0, 45.0)
    for name in ("sindg", "cosdg", "tandg", "cotdg"):
        function = getattr(scipy.special, name)
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(pb.vjp(function, x)[0], function(x), rtol=1e-14)


EXTREMES = np.array([0.0, 1e-300, 1e-8, 0.5, 1.0, 3.0, 171.5, 1e5, np.inf, -np.inf, np.nan, -0.5, -1.0, -1e5])
FEW = np.array([0.0, 1e-3, 0.5, 2.5, 1e5, np.inf, np.nan, -0.5])
PAIRS = [np.repeat(FEW, len(FEW)), np.tile(FEW, len(FEW))]


@pytest.mark.parametrize(
    ("name", "given"),
    [(name, [EXTREMES]) for name in (
        "entr", "gamma", "loggamma", "exp10", "cosm1", "ndtr", "erfcx", "dawsn", "expi",
    )]
    + [(name, PAIRS) for name in ("boxcox", "boxcox1p", "huber", "pseudo_huber", "xlog1py", "xlogy")],
)  # fmt: skip
def test_values_at_the_ends_of_the_domain_and_outside(name: str, given: list[np.ndarray]) -> None:
    function = getattr(scipy.special, name)
    with np.errstate(all="ignore"):
        found = pb.compile(lambda *x: function(*x))(*given)
        np.testing.assert_allclose(found, function(*given), rtol=1e-11, atol=1e-300)


SMALL = np.array([-1.7, -0.001, 0.0, 0.3, 2.0, 5.0])


COUNTED = ("bdtr", "bdtrc", "nbdtr", "nbdtrc", "pdtr", "pdtrc", "fdtr", "fdtrc", "poch")


@pytest.mark.parametrize("name", COUNTED)
def test_values_of_counts_and_parameters_that_there_are_not(name: str) -> None:
    function, rng = getattr(scipy.special, name), drawn(name)
    given = [rng.choice(SMALL, 60) for _ in range(function.nin)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted, found = function(*given), function(*map(pb.tensor, given))
    if name == "poch":
        wanted = np.where((given[0] == 0) & (given[1] == 0), found, wanted)  # a quotient of two poles
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-11)


def test_slopes_where_factors_are_zero_or_infinite() -> None:
    """At poles of the gamma function its reciprocal is smooth; a hypergeometric series of a = 0 is 1."""
    x = np.array([0.0, -1.0, -3.0, -2.5, 0.2])
    first = pb.grad(lambda x: scipy.special.rgamma(x).sum())
    second = pb.grad(lambda x: first(x).sum())
    for found, order in ((first(x), 1), (second(x), 2)):
        np.testing.assert_allclose(found, [float(mpmath.diff(mpmath.rgamma, at, order)) for at in x])
    for m in (0.9, 3.0):
        slope = pb.grad(scipy.special.poch)(np.float64(0.0), np.float64(m))
        np.testing.assert_allclose(slope, scipy.special.gamma(m))
    for function in (scipy.special.hyp1f1, scipy.special.hyperu):
        assert pb.grad(function, 2)(*map(np.float64, (0.0, 0.9, 1e5))) == 0.0
    p, q = np.float64(1.7), np.float64(1.7) * (1 + 1e-9)
    np.testing.assert_allclose(pb.vjp(scipy.special.rel_entr, p, q)[0], -1.7e-9, rtol=1e-6)


@pytest.mark.parametrize("name", ["airye", "elliprf", "kolmogorov", "mathieu_a", "sph_harm_y"])
def test_functions_without_rules_refuse_by_name(name: str) -> None:
    function = getattr(scipy.special, name)
    first: dict[str, tuple[float, ...]] = {
        "airye": (), "kolmogorov": (), "elliprf": (1.0, 2.0), "mathieu_a": (1,), "sph_harm_y": (1, 1, 0.3),
    }  # fmt: skip

    def loss(x: Any) -> Any:
        found = function(*first[name], x)
        return (found[0] if isinstance(found, tuple) else found).real.sum()

    for one in (loss, pb.compile(loss)):
        with pytest.raises(pb.errors.PullbackError, match=rf"scipy\.special\.{name}"):
            pb.grad(one)(np.array([0.3, 0.6]))


def test_wrong_uses() -> None:
    x = np.array([0.3, 0.6])
    with pytest.raises(pb.errors.UnsupportedError, match="eval_legendre: the degree must be one integer"):
        pb.grad(lambda x: scipy.special.eval_legendre(1.5, x).sum())(x)
    with pytest.raises(pb.errors.UnsupportedError, match="fresnel of complex numbers is not supported"):
        pb.grad(lambda x: scipy.special.fresnel(x * 1j)[0].real.sum())(x)
    with pytest.raises(pb.errors.UnsupportedError, match="lambertw: k must be one integer"):
        pb.grad(lambda x: scipy.special.lambertw(x, [0, 1]).real.sum())(x)
    with pytest.raises(pb.errors.UnsupportedError, match="airy of complex numbers is not supported"):
        pb.grad(lambda x: scipy.special.airy(x * 1j)[0].real.sum())(x)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("branch", [-1, 0, 2])
def test_branches_of_lamberts_function(branch: int) -> None:
    """Of complex numbers, and of real ones where a branch is not real."""

    def parts(re: Any, im: Any) -> Any:
        found = scipy.special.lambertw(re + 1j * im, branch) + scipy.special.lambertw(re, k=branch)
        return found.real + found.imag**2

    given = [np.array([-2.3, 0.6, 1.7]), np.array([0.4, -1.2, 3.0])]
    for function in (parts, pb.compile(parts)):
        np.testing.assert_allclose(pb.vjp(function, *given)[0], parts(*given), rtol=1e-13)
        for place in (0, 1):
            found = pb.grad(lambda *x, function=function: function(*x).sum(), argnums=place)(*given)
            np.testing.assert_allclose(found, difference(parts, given, place, 1e-3), rtol=1e-8)
    assert pb.vjp(scipy.special.lambertw, np.ones(2, np.float32))[0].dtype == np.complex128


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", ["wofz", "erfcx", "dawsn", "erf", "erfc", "erfi"])
def test_error_functions_of_complex_numbers(name: str) -> None:
    """In all quadrants, near and far, where derivatives are relative to what they are."""
    function = getattr(scipy.special, name)
    places = np.array([0.3 + 0.4j, -2.1 + 0.2j, 1.7 - 1.1j, -0.4 - 2.0j, 3.0 + 0.0j])
    far = [30.0 + 2.0j, -2.0 + 25.0j, 9.0 - 3.0j] if name in ("wofz", "dawsn", "erfcx") else []
    given = np.append(places, [one for one in far if abs(function(one)) < 1e3])

    def loss(re: Any, im: Any) -> Any:
        found = function(re + 1j * im)
        return (found.real - 0.7 * found.imag).sum()

    with mpmath.workdps(60):
        exact = [complex(mpmath.diff(EXACT[name], complex(one))) for one in given]
    for one in (loss, pb.compile(loss)):
        value = pb.vjp(one, given.real, given.imag)[0]
        np.testing.assert_allclose(value, loss(given.real, given.imag), rtol=1e-12)
        slopes = pb.grad(one, (0, 1))(given.real, given.imag)
        for slope, factor in zip(slopes, (1.0, 1j)):
            wanted = [(number * factor).real - 0.7 * (number * factor).imag for number in exact]
            assert (np.abs(slope - wanted) <= 1e-11 * np.abs(exact)).all()
    first = pb.grad(lambda re: loss(re, places.imag))
    found = pb.grad(lambda re: first(re).sum())(places.real)
    np.testing.assert_allclose(found, difference(first, [places.real], 0, 1e-3), rtol=1e-8, atol=1e-8)


EXACT: dict[str, Callable[..., Any]] = {
    "wofz": lambda z: mpmath.exp(-z * z) * mpmath.erfc(-1j * z),
    "erfcx": lambda z: mpmath.exp(z * z) * mpmath.erfc(z),
    "dawsn": lambda z: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-z * z) * mpmath.erfi(z),
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "erfi": mpmath.erfi,
}


@pytest.mark.drawn(6)
def test_riemanns_zeta_function() -> None:
    """On both sides of 0, where it is its reflection; at even negative integers it is 0."""
    x = np.array([4.2, 1.3, 0.4, -0.7, -3.6, -7.1])
    for one in (scipy.special.zeta, pb.compile(scipy.special.zeta)):
        np.testing.assert_allclose(pb.vjp(one, x)[0], [float(mpmath.zeta(at)) for at in x], rtol=1e-13)
        slope = pb.grad(lambda x, one=one: one(x).sum())(x)
        np.testing.assert_allclose(slope, [float(mpmath.diff(mpmath.zeta, at)) for at in x], rtol=1e-11)
    assert pb.vjp(scipy.special.zeta, np.array([-2.0, -4.0]))[0].tolist() == [0.0, 0.0]


@pytest.mark.drawn(4)
def test_kelvin_gives_complex_numbers() -> None:
    x = np.array([0.4, 2.3])
    for place in range(4):
        function = pb.compile(lambda x, place=place: scipy.special.kelvin(x)[place])
        np.testing.assert_allclose(function(x), scipy.special.kelvin(x)[place], rtol=1e-13)
    slope = pb.grad(lambda x: scipy.special.kelvin(x)[0].imag.sum())(x)
    np.testing.assert_allclose(slope, scipy.special.beip(x))
    assert pb.grad(lambda x: scipy.special.ber(x) + pb.grad(scipy.special.bei)(x))(np.float64(0.0)) == 0.5


@pytest.mark.drawn(6)
def test_hankel_functions_of_both_kinds_and_scaled() -> None:
    x = np.array([0.4, 2.3, 30.0])
    for name in ("hankel1", "hankel1e", "hankel2", "hankel2e"):
        function = getattr(scipy.special, name)
        found = pb.compile(lambda x, function=function: function(0.7, x))
        np.testing.assert_allclose(found(x), function(0.7, x), rtol=1e-13)
        slope = pb.grad(lambda x, found=found: found(x).imag.sum())(x)
        wanted = difference(lambda x, function=function: function(0.7, x).imag, [x], 0, 1e-3)
        np.testing.assert_allclose(slope, wanted, rtol=1e-8, atol=1e-10)


def test_voigt_profiles_without_width() -> None:
    """Of no normal width it is a Lorentzian, and of no Lorentzian width normal."""
    x = np.array([-0.4, 1.3])
    for sigma, gamma in ((0.0, 0.7), (0.7, 0.0)):
        found = pb.compile(lambda x, s=sigma, g=gamma: scipy.special.voigt_profile(x, s, g))
        np.testing.assert_allclose(found(x), scipy.special.voigt_profile(x, sigma, gamma), rtol=1e-13)


def test_sums_of_exponentials_with_signs() -> None:
    x, b = np.array([0.3, 0.6, 1.2]), np.array([1.0, -2.0, 0.3])

    def function(x: Any, b: Any) -> Any:
        value, sign = scipy.special.logsumexp(x, b=b, return_sign=True)
        return value * sign

    for one in (function, pb.compile(function)):
        value, gradients = pb.value_and_grad(one, argnums=(0, 1))(x, b)
        np.testing.assert_allclose(value, function(x, b))
        for place in (0, 1):
            step = np.eye(3) * 1e-6
            ways = [(way * (1 - place), way * place) for way in step]
            moved = [(function(x + one, b + other), function(x - one, b - other)) for one, other in ways]
            wanted = [(high - low) / 2e-6 for high, low in moved]
            np.testing.assert_allclose(gradients[place], wanted, rtol=1e-7)
