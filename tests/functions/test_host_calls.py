"""What Python evaluates inside of compiled functions: what is around it is compiled."""

import ctypes
import ctypes.util
import pickle
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special
from extent import drawn
from scipy_rows import SHAPES, SPECIAL
from uncompiled import uncompiled

import pullback as pb
from pullback.tracer.operator import OPERATORS, operators
from pullback.tracer.ops import (
    elliptic,
    error_functions,
    matrix_roots,
    polynomials,
    schur_forms,
    special,
    transcendents,
)
from pullback.tracer.ops import matrix_equations as equations

pytestmark = pytest.mark.part(8)

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.8, 0.8, (4, 3))
POSITIVE = RNG.uniform(1.2, 3.0, (4, 3))
PROGRAMS: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "igamma": (lambda x: pb.igamma(pb.full_like(x, 1.5), x), POSITIVE),
    **{
        name: (lambda x, name=name: OPERATORS[name](x * 0.0 + 1.5, x), POSITIVE)
        for name in ("log_gammainc", "log_gammaincc")
    },
    **{
        name: (lambda x, name=name: OPERATORS[name](x * 0.0 + 1.5, x * 0.0 + 0.7, x / 4.0), POSITIVE)
        for name in ("log_betainc", "log_betaincc")
    },
    "igammac": (lambda x: pb.igammac(pb.full_like(x, 1.5), x), POSITIVE),
    "zeta": (lambda x: pb.special.zeta(pb.full_like(x, 2.5), x), POSITIVE),
    "gcd": (lambda x: x * pb.gcd((x * 40).int(), pb.tensor(12, dtype=pb.int32)), X),
    "lcm": (lambda x: x * pb.lcm((x * 40).long(), pb.arange(3)), X),
    "nextafter": (lambda x: pb.nextafter(x, pb.zeros_like(x)), X),
    "mantissa": (lambda x: pb.frexp(x)[0], POSITIVE),
    "exponent": (lambda x: x * pb.frexp(x)[1], POSITIVE),
    "bitwise_left_shift": (lambda x: x * ((x * 40).int() << 2), X),
    "bitwise_right_shift": (lambda x: x * ((x * 40).int() >> 1), X),
    "scatter_extreme": (
        lambda x: x.scatter_reduce(0, pb.tensor([[0, 1, 0], [1, 1, 0]]), x[2:], "amax"),
        X,
    ),
    "scatter_prod": (
        lambda x: x.scatter_reduce(0, pb.tensor([[0, 1, 0], [1, 1, 0]]), x[2:], "prod"),
        X,
    ),
    "airy_ai": (pb.special.airy_ai, X),
    **{
        name: (OPERATORS[name], X)
        for name in ("airy_ai_slope", "airy_bi", "airy_bi_slope", "sine_integral", "hyperbolic_sine_integral")
    },
    **{name: (OPERATORS[name], POSITIVE) for name in ("cosine_integral", "hyperbolic_cosine_integral")},
    "lambert_w_real": (lambda x: transcendents.lambert_w_real(x, 0.5 * x, branch=0), POSITIVE),
    "lambert_w_imag": (lambda x: transcendents.lambert_w_imag(x, 0.5 * x, branch=1), POSITIVE),
    **{name: (OPERATORS[name], X) for name in ("fresnel_sine", "fresnel_cosine")},
    "zeta_moment": (lambda x: special.zeta_moment(x + 2.0, x + 0.5, order=1), POSITIVE),
    "elliptic_moment": (lambda x: elliptic.elliptic_moment(x, 0.3 * x, sines=1, twice=3), POSITIVE),
    **{
        f"jacobi_{name}": (lambda x, name=name: OPERATORS[f"jacobi_{name}"](x, 0.3 * x), POSITIVE)
        for name in ("sn", "cn", "dn", "am")
    },
    **{
        one.name: (lambda x, one=one: one(x, 0.5 * x), POSITIVE)
        for parts in error_functions.COMPLEX.values()
        for one in parts
    },
    "gegenbauer": (lambda x: polynomials.gegenbauer(x, pb.full_like(x, 3.0), alpha=2.0), X),
    "laguerre": (lambda x: polynomials.laguerre(x, pb.full_like(x, 3.0), alpha=1.0), X),
    "chebyshev_polynomial_t": (lambda x: pb.special.chebyshev_polynomial_t(x, 4), X),
    "chebyshev_polynomial_u": (lambda x: pb.special.chebyshev_polynomial_u(x, 4), X),
    "hermite_polynomial_h": (lambda x: pb.special.hermite_polynomial_h(x, 4), X),
    "hermite_polynomial_he": (lambda x: pb.special.hermite_polynomial_he(x, 4), X),
    "laguerre_polynomial_l": (lambda x: pb.special.laguerre_polynomial_l(x, 4), X),
    "legendre_polynomial_p": (lambda x: pb.special.legendre_polynomial_p(x, 4), X),
    "fft": (lambda x: abs(pb.fft.fft(x * (1 + 1j), dim=0)), POSITIVE),
    "rfft": (lambda x: abs(pb.fft.rfft(x, n=4)), POSITIVE),
    "irfft": (lambda x: pb.fft.irfft(x * (1 - 1j), n=3), X),
    "sqrtm": (lambda x: x @ matrix_roots.square_root.whole(x.mT @ x), POSITIVE),
    "logm": (lambda x: x @ matrix_roots.logarithm.whole(x.mT @ x), POSITIVE),
    **{
        one.parts.name: (lambda x, one=one: x @ one.parts(x.mT @ x)[0], POSITIVE)
        for one in matrix_roots.FUNCTIONS
    },
    **{
        one.derivative.name: (
            lambda x, one=one: x @ one.derivative(x.mT @ x, x[:3], one.parts((x.mT @ x).detach())), POSITIVE
        )
        for one in matrix_roots.FUNCTIONS
    },
    "schur": (lambda x: x @ schur_forms.schur(x.mT @ x)[schur_forms.TRIANGLE], POSITIVE),
    "sylvester": (lambda x: equations.sylvester(x @ x.mT, x.mT @ x, x), POSITIVE),
    "banded_solution": (
        lambda x: equations.banded_solution(x.mT, x + 0.0, lower=2, upper=0),
        POSITIVE,
    ),
    "definite_banded_solution": (
        lambda x: equations.definite_banded_solution(pb.cat([x[:, :1] + 3.0, x[:, 1:]], 1).mT, x),
        POSITIVE,
    ),
}


def of_each(function: Callable[[float], float], x: Any) -> np.ndarray:
    """A function of single numbers, which no trace sees through."""
    return np.asarray(np.frompyfunc(function, 1, 1)(np.asarray(x)), np.float64)


@pb.primitive
def incomplete(x: Any) -> Any:
    return of_each(lambda one: scipy.special.gammainc(1.5, 0.5 + 0.5 * float(one)), x)


@pb.primitive
def zeta(x: Any) -> Any:
    return of_each(lambda one: scipy.special.zeta(2.5, float(one) + 2.0), x)


@pb.primitive
def refusing(x: Any) -> Any:
    if np.asarray(x).max() > 2.0:
        raise ValueError("it is above 2")
    return of_each(float, x)


incomplete.defvjp(lambda y, x: lambda g: g * np.sqrt((0.5 + 0.5 * x) / np.pi) * np.exp(-0.5 - 0.5 * x))
zeta.defvjp(
    lambda y, x: lambda g: -2.5 * g * of_each(lambda one: scipy.special.zeta(3.5, float(one) + 2.0), x)
)


programs = pytest.mark.parametrize("name", PROGRAMS)


@pytest.fixture(autouse=True)
def _nothing_runs_uncompiled() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*runs uncompiled")
        yield


def derivatives(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A value, its derivative, and the derivative of that."""

    def total(x: Any) -> Any:
        return (function(x * 1.01) * 1.5 + x).sum()

    def of_gradient(x: Any) -> Any:
        return (pb.grad(total)(x) ** 2).sum()

    return lambda x: (function(x * 1.01) * 1.5 + x, pb.grad(total)(x), pb.grad(of_gradient)(x))


OWN_TESTS = {
    "foreign", "draw",  # tests/gradients/test_foreign_rules.py, tests/functions/test_draws_in_code.py
    "on_pairs", "free_phase",  # tests/graphs/test_split_complex.py
    "triangle_eigenvectors", "free_turn",  # tests/functions/test_scipy_linalg.py
}
OF_COMPLEX = {"fft", "rfft", "irfft"}
"""What takes or gives complex numbers, whatever it is called with."""
WITHOUT_A_RULE = {
    "least_squares", "whole_basis", "definite_minors", "reflections", "symmetric_factors",
    "symmetric_solution", *(one.parts_of_blocks.name for one in matrix_roots.FUNCTIONS),
}  # fmt: skip
"""Their tests: test_scipy_linalg.py, test_numpy_front.py, test_linalg.py, test_decompositions.py."""
OF_RULES = {name for name in OPERATORS if "_moment" in name or "_slope" in name}
"""They are derivatives of functions of SciPy's."""


def called_from_code() -> list[Any]:
    return [one for one in operators("eager") if one.name not in OWN_TESTS]


def test_every_operator_without_a_form_is_here() -> None:
    others = {one.name for one in called_from_code()} - {*PROGRAMS} - OF_RULES - WITHOUT_A_RULE
    others -= {f"{name}_{one}" for name in SHAPES for one in ("cdf", "sf", "logpdf")}  # test_distributions.py
    assert all({*OPERATORS[name].scipy} & {*SPECIAL} for name in others)


def check_derivatives(name: str) -> None:
    function, x = PROGRAMS[name]
    wanted = derivatives(function)(pb.tensor(x))
    for way in (pb.compile(derivatives(function)), derivatives(pb.compile(function))):
        for one, other in zip(way(pb.tensor(x)), wanted):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", drawn(PROGRAMS, one_in=3))
def test_compiled_is_as_eager_to_second_order(name: str) -> None:
    check_derivatives(name)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", drawn(PROGRAMS, one_in=3))
@pytest.mark.usefixtures("uncompiled")
def test_it_is_interpreted_as_it_runs(name: str) -> None:
    check_derivatives(name)


@pytest.mark.drawn(2)
@programs
def test_for_each_part_of_a_batch(name: str) -> None:
    function, x = PROGRAMS[name]
    batch = pb.tensor(np.stack([x, 0.9 * x]))
    wanted = np.stack([function(one).numpy() for one in batch])
    np.testing.assert_allclose(pb.compile(pb.vmap(function))(batch).numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (1, 4), (2, 1, 3)])
def test_shapes(shape: tuple[int, ...]) -> None:
    x = np.full(shape, 0.3)

    def both(x: Any) -> Any:
        return incomplete(x) * 2.0, incomplete(x + 0.1), zeta(x[..., None])

    for one, other in zip(pb.compile(both)(x), both(x)):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other)


@pytest.mark.drawn(6)
def test_dtypes() -> None:
    for dtype in (np.float32, np.float64):
        x = np.abs(X).astype(dtype)
        found = pb.compile(lambda x: pb.igamma(x, 2.0 * x))(pb.tensor(x))
        assert found.numpy().dtype == dtype
        wanted = scipy.special.gammainc(x, 2 * x)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=100 * np.finfo(dtype).eps)


def relaxed(x: Any) -> Any:
    """Numbers and rows in a loop over steps."""

    def step(carry: Any, row: Any) -> Any:
        state, number = carry
        state = incomplete(0.5 * state + 0.1 * row)
        return (state, 0.5 * incomplete(number)), (state.sum(), zeta(number))

    (state, number), (sums, values) = pb.scan(step, (x[0], x[0, 0]), x)
    return state.sum() * number + (sums * values).sum()


def stepped(x: Any) -> Any:
    """A loop of Python's."""
    state = x[0]
    for row in range(1, len(x)):
        state = incomplete(0.5 * state + 0.1 * x[row])
    return state.sum()


def chosen(x: Any) -> Any:
    return pb.cond(x.sum() > 0, lambda y: incomplete(y).sum(), lambda y: zeta(y).sum(), x)


def while_small(x: Any) -> Any:
    return pb.while_loop(lambda y: y.sum() < 3, lambda y: y + incomplete(y), x[0])


@pytest.mark.drawn(4)
@pytest.mark.parametrize("function", [relaxed, stepped, chosen, lambda x: chosen(-x), while_small])
def test_in_loops_and_choices(function: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(pb.compile(function)(X), function(X), rtol=1e-12)
    if function is not while_small:
        wanted = pb.grad(function)(X)
        np.testing.assert_allclose(pb.grad(pb.compile(function))(X), wanted, rtol=1e-9)
        np.testing.assert_allclose(pb.compile(pb.grad(function))(X), wanted, rtol=1e-9)


def test_a_loop_is_rolled_around_it() -> None:
    def steps(x: Any) -> Any:
        state = x[0]
        for row in range(1, len(x)):
            state = scipy.special.jv(1.5, 1.5 + 0.5 * state + 0.1 * x[row])
        return state.sum()

    x = np.tile(X, (10, 1))
    compiled = pb.compile(steps)
    np.testing.assert_allclose(compiled(x), steps(x))
    (forward,) = compiled.explain(x, as_data=True).forward
    assert len(forward.host_calls) == 1


@pytest.mark.drawn(6)
def test_beside_loops_that_threads_share() -> None:
    x = np.random.default_rng(1).uniform(-0.8, 0.8, (400, 300))

    def function(x: Any) -> Any:
        return (pb.exp(incomplete(pb.sin(x)) * 0.5)).sum(1)

    compiled = pb.compile(function, parallel=True)
    np.testing.assert_allclose(compiled(x), function(x), rtol=1e-12)
    with uncompiled():
        np.testing.assert_allclose(pb.compile(function, parallel=True)(x[:20, :20]), function(x[:20, :20]))


@pytest.mark.drawn(4)
def test_from_several_threads() -> None:
    compiled = pb.compile(relaxed)
    inputs = [X * scale for scale in np.linspace(0.2, 1.0, 8)]
    wanted = [relaxed(one) for one in inputs]
    compiled(X)
    found: dict[int, Any] = {}

    def work(place: int) -> None:
        for _ in range(50):
            found[place] = compiled(inputs[place])

    threads = [threading.Thread(target=work, args=(place,)) for place in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    np.testing.assert_allclose([found[place] for place in range(8)], wanted)


SCRIPT = """
import pickle, sys, warnings
import numpy as np
import pullback as pb
from pullback.codegen.machine.compile import statistics
warnings.simplefilter("error")

@pb.compile
def function(x):
    return (pb.igamma(x, x + 1.0) * pb.gcd((x * 40).int(), pb.tensor(12))).sum()

print(repr(float(function(np.linspace(0.1, 0.9, 7)))), statistics.compilations)
"""


@pytest.mark.drawn(6)
def test_machine_code_of_another_process(tmp_path: Path) -> None:
    def run() -> tuple[str, str]:
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True,
            env={"PULLBACK_CACHE_DIR": str(tmp_path), "PATH": ""},
        )  # fmt: skip
        value, compilations = ran.stdout.split()
        return value, compilations

    first, second = run(), run()
    assert first[0] == second[0] and first[1] != "0" and second[1] == "0"


@pb.compile
def kept(x: Any) -> Any:
    return relaxed(x)


def test_a_compiled_function_is_pickled() -> None:
    kept(X)
    again = pickle.loads(pickle.dumps(kept))
    np.testing.assert_allclose(again(X), relaxed(X))


def test_what_it_raises_names_the_line() -> None:
    def outer(x: Any) -> Any:
        return refusing(x * 2.0)

    compiled = pb.compile(outer)
    compiled(np.ones(3))
    with pytest.raises(ValueError, match="it is above 2") as raised:
        compiled(np.array([0.5, 3.0, 0.0]))
    (note,) = raised.value.__notes__
    assert "outer: in a call of Python, at test_host_calls.py" in note and "refusing(x * 2.0)" in note
    np.testing.assert_array_equal(compiled(np.array([0.0, 0.5, 1.0])), [0, 1, 2])


def test_c_has_none_of_it() -> None:
    refused = pytest.raises(pb.errors.UnsupportedError, match=r"has no form in C: Python evaluates it")
    with refused as error:
        pb.compile(lambda x: incomplete(x)).c_source(X)
    assert "test_host_calls.py" in str(error.value)


def test_the_account_counts_the_calls() -> None:
    compiled = pb.compile(lambda x: (incomplete(x) * zeta(x)).sum())
    (forward,) = compiled.explain(X, as_data=True).forward
    assert {one.operator for one in forward.host_calls} == {"incomplete", "zeta"}
    assert all(one.place.startswith("test_host_calls.py") for one in forward.host_calls)
    assert "2 calls of Python: " in compiled.explain(X)


def test_a_name_of_the_users_is_kept_apart() -> None:
    outside = globals()["incomplete"]

    def function(incomplete: Any) -> Any:
        zeta = outside(incomplete) * 2.0
        return outside(zeta) + incomplete

    np.testing.assert_allclose(pb.compile(function)(X), function(X))
    assert "incomplete_1 = ForeignCall(" in pb.compile(function).source(X)


library = ctypes.CDLL(ctypes.util.find_library("m"))
library.cbrt.restype, library.cbrt.argtypes = ctypes.c_double, [ctypes.c_double]


@pb.primitive
def cube_root(x: Any) -> Any:
    return library.cbrt(x)


cube_root.defvjp(lambda y, x: lambda g: g / (3 * y**2))


def spectrum_of_noise(x: Any, rng: Any) -> Any:
    """Sorting, a transform, draws, a special function and C's library, beside a loop and in it."""
    values, counts = np.unique(np.round(x, 1), return_counts=True)
    state = x[:3]
    for row in range(1, 20):
        noise = rng.normal(0.1 * state, 0.01)
        state = scipy.special.erfinv(0.5 * np.tanh(state + noise)) * x[row]
    power = (np.abs(np.fft.rfft(x)) ** 2).sum()
    return state.sum() + (values * counts).sum() + cube_root(power)


@pytest.mark.drawn(3)
def test_several_in_one_function(golden: Callable[[str], None]) -> None:
    x = np.random.default_rng(3).uniform(-0.8, 0.8, 40)
    plain, rng = np.random.default_rng(0), np.random.default_rng(0)
    compiled = pb.compile(lambda x: spectrum_of_noise(x, rng))
    for _ in range(3):
        np.testing.assert_allclose(compiled(x), spectrum_of_noise(x, plain), rtol=1e-12)
    golden(compiled.source(x))
    other, z = np.random.default_rng(7), np.random.default_rng(7).standard_normal((19, 3))
    gradient = pb.compile(pb.grad(lambda x: spectrum_of_noise(x, other)))

    def drawn_before(x: Any) -> Any:
        rows = iter(z)

        class Stream:
            def normal(self, loc: Any, scale: float) -> Any:
                return loc + scale * next(rows)

        return spectrum_of_noise(x, Stream())

    np.testing.assert_allclose(gradient(x), pb.grad(drawn_before)(x), rtol=1e-9, atol=1e-14)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("function", [np.unique, lambda x: np.unique(x, equal_nan=False)])
@pytest.mark.parametrize(
    "x", [np.array([[2.0, 1, 2], [np.nan, 3, np.nan]]), np.zeros(0), np.array([True, False, True])]
)
def test_different_elements(function: Any, x: np.ndarray) -> None:
    def everything(x: Any) -> Any:
        return np.unique(x, return_index=True, return_inverse=True, return_counts=True)

    for one, other in zip(pb.compile(everything)(x), everything(x)):
        assert type(one) is type(other) and one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    for of_torch in (pb.unique, pb.unique_consecutive):
        options = {"return_inverse": True, "return_counts": True}
        found = pb.compile(of_torch)(pb.tensor(x), **options)
        for one, other in zip(found, of_torch(pb.tensor(x), **options)):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one.numpy(), other.numpy())
    np.testing.assert_array_equal(pb.compile(function)(x), function(x))


@pytest.mark.drawn(4)
def test_other_numbers_of_different_elements() -> None:
    compiled = pb.compile(lambda x: (np.unique(x) ** 2).sum())
    for x in (np.array([1.0, 2, 1]), np.array([3.0, 3, 3]), np.array([5.0, 4, 5]), np.array([1.0, 2, 3])):
        assert compiled(x) == (np.unique(x) ** 2).sum()


def test_the_documentation_lists_them() -> None:
    text = (Path(__file__).parents[2] / "docs" / "host_calls.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \| `([\w.()=\", ]+)` \|", text, re.MULTILINE)
    calls = {one.name: "ComplexCall" if one.name in OF_COMPLEX else "HostCall" for one in called_from_code()}
    wanted = [(one.name, one.fills or f'{calls[one.name]}("{one.name}")') for one in called_from_code()]
    assert listed == wanted


COUNTED: list[Callable[[Any], Any]] = [
    lambda x: pb.histc(x, 4, 0.0, 3.0),
    lambda x: pb.histc(x, 3),
    lambda x: pb.histogram(x, 4),
    lambda x: pb.histogram(x, 4, range=(0.0, 3.0), density=True),
    lambda x: pb.histogram(x, pb.tensor([0.0, 1.0, 3.0], dtype=x.dtype), weight=2 * x),
    lambda x: pb.unique(x.reshape(-1, 2), dim=0, return_inverse=True, return_counts=True),
    lambda x: pb.unique(x.reshape(2, -1), dim=1, return_inverse=True, return_counts=True),
    lambda x: pb.unique_consecutive(x.reshape(-1, 2), dim=0, return_inverse=True, return_counts=True),
    lambda x: np.unique(x.numpy().reshape(-1, 2), True, True, True, axis=0),
    lambda x: np.unique(x.numpy().reshape(3, 2, 2), axis=0),
    lambda x: pb.histogramdd(x.reshape(-1, 2), [2, 3], weight=x[:6], density=True)[0],
    lambda x: np.histogram(x.numpy(), "auto"),
    lambda x: np.histogramdd(x.numpy().reshape(-1, 2), [np.array([0.0, 1.0, 1.0, 3.0]), 2])[0],
    lambda x: np.histogram2d(x.numpy()[:6], x.numpy()[6:], 2, [None, (0, 2)], weights=x.numpy()[:6]),
    lambda x: np.intersect1d(x.numpy()[:6], x.numpy()[6:], return_indices=True),
    lambda x: np.setdiff1d(x.numpy()[:6], x.numpy()[6:]),
    lambda x: np.setxor1d(x.numpy()[:6], x.numpy()[6:]),
    lambda x: np.trim_zeros(x.numpy().reshape(3, 4) // 3),
    lambda x: np.trim_zeros(x.numpy().reshape(3, 4) // 3, "b", axis=1),
    lambda x: np.packbits(x.numpy() > 1, bitorder="little"),
    lambda x: np.bitwise_count(x.numpy().astype(int)),
    lambda x: np.repeat(x.numpy(), x.numpy().astype(int) % 2),
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("number", range(len(COUNTED)))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_counted(number: int, dtype: Any) -> None:
    function = COUNTED[number]
    compiled = pb.compile(function)
    rng = np.random.default_rng(number)
    for x in (*rng.integers(0, 4, (2, 12)).astype(dtype), np.full(12, 2, dtype)):
        found, expected = compiled(pb.tensor(x)), function(pb.tensor(x))
        for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, expected))):
            assert type(one) is type(other) and one.dtype == other.dtype
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6)


def test_bins_of_data_that_is_not_finite_are_refused() -> None:
    for function in (pb.histc, pb.compile(lambda x: pb.histc(x))):
        with pytest.raises(pb.errors.ArgumentError, match="not finite"):
            function(pb.tensor([1.0, np.nan]))


WITHOUT_RULES: list[Callable[[Any], Any]] = [
    lambda x: scipy.special.kolmogorov(x),
    lambda x: scipy.special.itj0y0(x),
    lambda x: scipy.special.pbdv(0.3, x),
    lambda x: scipy.special.modfresnelp(x),
    lambda x: np.spacing(x),
    lambda x: scipy.special.kolmogorov(x[0]),
    lambda x: pb.scan(lambda total, row: (total + scipy.special.kolmogorov(row), None), 0.0, x)[0],
]


@pytest.mark.parametrize("number", range(len(WITHOUT_RULES)))
def test_functions_of_elements_without_a_rule_are_called(number: int) -> None:
    function = WITHOUT_RULES[number]
    compiled = pb.compile(function)
    for x in (np.array([0.3, 1.2, 0.7]), np.array([0.5, 0.1, 2.0])):
        found, expected = compiled(x), function(x)
        for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, expected))):
            assert type(one) is type(other)
            np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize(
    "transform", [pb.grad, lambda f: pb.compile(pb.grad(f)), lambda f: pb.grad(pb.compile(f))]
)
def test_functions_without_a_rule_have_no_gradient(transform: Any) -> None:
    with pytest.raises(pb.errors.UnsupportedError, match="kolmogorov is not supported on a Tensor"):
        transform(lambda x: scipy.special.kolmogorov(x).sum())(np.ones(3))
    with pytest.raises((pb.errors.UnsupportedError, pb.errors.GradientError), match="kolmogorov"):
        transform(WITHOUT_RULES[-1])(np.ones(3))
