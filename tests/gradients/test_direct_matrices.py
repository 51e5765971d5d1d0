"""The short ways of recorded decompositions and equations, and the forms that rules take of arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.captures.contents import Content
from pullback.runtime.functions.matrices import decompositions, linalg
from pullback.tracer.array_rules import FORMS_OF_ARRAYS
from pullback.tracer.ops import contraction as c
from pullback.tracer.ops import decompositions as d
from pullback.tracer.ops import linalg as la

RNG = np.random.default_rng(5)
BETWEEN = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0], [4.0, 0.0, -1.0]])
ROW = np.array([[1.0, 2.0, 5.0]])
ARGUMENTS: dict[Any, list[tuple[Any, ...]]] = {
    d.plane_of: [(RNG.normal(size=(2, 3, 4, 4)), 1)],
    d.rows_of: [(BETWEEN, 1, 3)],
    d.columns_of: [(BETWEEN, 0, 2)],
    d.quotient: [(BETWEEN, BETWEEN.T), (BETWEEN + 0j, BETWEEN + 1j), (BETWEEN[None], BETWEEN.T[None])],
    d.with_diagonal: [(BETWEEN, 1.0), (BETWEEN, ROW), (np.stack([BETWEEN] * 2), np.stack([ROW, 2 * ROW]))],
    la.transposed: [(RNG.normal(size=(2, 3, 4)),)],
    la.adjoint: [(BETWEEN,), (BETWEEN * (1 + 2j),)],
    c._left_rule: [
        (BETWEEN, BETWEEN.T, "ab,bc->ac"), (ROW[0], ROW[0], "ab,a->b"),
        (BETWEEN[None], BETWEEN, "abc,cd->abd"), (BETWEEN[None], BETWEEN[None], "axy,ayz->axz"),
    ],
    c._right_rule: [
        (BETWEEN, BETWEEN, "ab,cb->ac"), (ROW[0], BETWEEN, "ab,b->a"),
        (BETWEEN[None], BETWEEN[None], "axy,azy->axz"),
    ],
    la.product: [(BETWEEN, BETWEEN), (RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 4, 5)))],
}


@pytest.mark.parametrize("function", FORMS_OF_ARRAYS, ids=lambda one: one.__name__)
def test_forms_of_arrays_are_those_of_operators(function: Any) -> None:
    for arguments in ARGUMENTS[function]:
        kept = [np.array(one) for one in arguments]
        with np.errstate(divide="ignore"):
            found, wanted = FORMS_OF_ARRAYS[function](*arguments), function(*arguments)
        np.testing.assert_allclose(found, wanted, rtol=1e-15)
        assert found.dtype == wanted.dtype
        for one, other in zip(arguments, kept):
            np.testing.assert_array_equal(one, other)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "eigh": (decompositions.eigh, (3, 3)),
    "eigh of batches": (decompositions.eigh, (2, 1, 3, 3)),
    "eigvalsh": (decompositions.eigvalsh, (3, 3)),
    "svd": (decompositions.linalg_svd, (4, 4)),
    "svdvals of a tall matrix": (decompositions.svdvals, (5, 3)),
    "qr": (decompositions.linalg_qr, (5, 3)),
    "inverse": (linalg.inverse, (2, 3, 3)),
    "slogdet": (linalg.slogdet, (3, 3)),
    "det": (linalg.det, (3, 3)),
    "solve": (lambda a: linalg.solve(a, a[:, 0]), (3, 3)),
}
SHORT = {**{name: function.short for name, (function, _) in FUNCTIONS.items() if name != "solve"}}
SHORT["solve"] = lambda a: linalg.solved_directly(a, a[:, 0])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_short_way_of_what_is_recorded_is_the_general_one(name: str, dtype: str) -> None:
    function, shape = FUNCTIONS[name]
    given = RNG.normal(size=shape).astype(dtype)
    if shape[-1] == shape[-2]:
        given = given @ given.swapaxes(-1, -2) + np.diag(np.arange(shape[-1], dtype=dtype))
    described = []
    for way in (SHORT[name], function):
        a = pb.tensor(given, requires_grad=True)
        found = way(a)
        assert found is not NotImplemented
        results = found if isinstance(found, tuple) else (found,)
        total = sum((abs(one) ** 3).sum() for one in results)
        (first,) = pb.autograd.grad(total, a, create_graph=True)
        (second,) = pb.autograd.grad((first**2).sum(), a)
        names = [None if one.grad_fn is None else one.grad_fn.name() for one in results]
        described.append((names, [one.detach().numpy() for one in (*results, first, second)]))
    (names, arrays), (others, wanted) = described
    assert names == others
    for one, other in zip(arrays, wanted):
        tolerance = 1e-9 if dtype == "float64" else 1e-2
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())


def test_what_a_short_way_does_not_know_the_general_one_explains() -> None:
    names = ("eigh", "eigvalsh", "eig", "eigvals", "inv", "det", "slogdet", "cholesky", "matrix_exp")
    for shape in ((2, 3), (3, 2), (2, 4, 3)):
        for requires_grad in (False, True):
            a = pb.tensor(np.ones(shape), requires_grad=requires_grad)
            for name in names:
                with pytest.raises(pb.errors.ShapeError, match="square"):
                    getattr(pb.linalg, name)(a)
        for function in (np.linalg.eigh, np.linalg.eigvalsh, np.linalg.eig, np.linalg.eigvals):
            with pytest.raises(pb.errors.ShapeError, match="square"):
                pb.grad(lambda a, function=function: abs(function(a)[0]).sum())(np.ones(shape))
    with pytest.raises(np.linalg.LinAlgError):
        pb.linalg.eigvalsh(pb.tensor(np.full((2, 2), np.nan), requires_grad=True))
    with pytest.raises(np.linalg.LinAlgError):
        pb.linalg.inv(pb.tensor(np.zeros((2, 2)), requires_grad=True))


def test_equal_eigenvalues_have_a_gradient() -> None:
    a = pb.tensor(np.eye(3), requires_grad=True)
    (pb.linalg.eigvalsh(a) * pb.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert np.isfinite(a.grad.numpy()).all()
    b = pb.tensor(2 * np.eye(3), requires_grad=True)
    left, _, right = pb.linalg.svd(b)
    (left @ right).sum().backward()  # which both turn with each other
    np.testing.assert_allclose(b.grad.numpy(), np.zeros((3, 3)), atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize(
    ("shape", "count"), [((5, 3), 3), ((5, 3), 1), ((3, 3), 0), ((2, 4, 4), 4), ((1, 1), 1), ((2, 0, 0), 0)]
)
def test_products_of_reflections_without_a_gradient_are_lapacks(
    shape: tuple[int, ...], count: int, dtype: str
) -> None:
    a, factors = RNG.normal(size=shape).astype(dtype), RNG.normal(size=(*shape[:-2], count)).astype(dtype)
    if dtype == "complex128":
        a, factors = a + 1j * RNG.normal(size=a.shape), factors - 0.5j
    found = pb.linalg.householder_product(pb.tensor(a), pb.tensor(factors))
    wanted = pb.linalg.householder_product(pb.tensor(a, requires_grad=True), pb.tensor(factors))
    assert type(found) is type(wanted) and found.dtype == wanted.dtype and found.grad_fn is None
    tolerance = 1e-3 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=tolerance, atol=tolerance)
    assert np.shares_memory(found.numpy(), a) is False


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", ["det", "inv", "eigvalsh", "matrix_exp"])
def test_calls_of_a_function_that_is_compiled_by_itself_compare_nothing_of_its_short_way(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []
    monkeypatch.setattr(Content, "is_of", lambda self, value: compared.append(value) or True)
    compiled = pb.compile(getattr(pb.linalg, name))
    compiled(np.eye(3))
    compared.clear()
    compiled(np.eye(3))
    assert not compared
