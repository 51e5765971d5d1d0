"""Diagonals: of products, taken without these; of matrices; written. Sources run uncompiled."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from uncompiled import gradient_source, normals, value_source

import pullback as pb


def depth_of(source: str) -> int:
    """How many loops are in each other."""
    return max((len(line) - len(line.lstrip())) // 4 for line in re.findall(r"^ *for .*", source, re.M))


OF_PRODUCTS: dict[str, Callable[..., Any]] = {
    "trace": lambda a, b: np.trace(a @ b),
    "a sum": lambda a, b: (np.diag(b - 2.0 * (a @ np.exp(b))) ** 2).sum(),
    "batches": lambda a, b: np.prod(np.diagonal(np.stack([a, b]) @ b, 0, 1, 2), 0).sum(),
    "a diagonal matrix": lambda a, b: (np.diag(np.diag(np.diag(a) * 2.0)) * b[0]).sum() + b[0, 0],
}


@pytest.mark.parametrize("name", OF_PRODUCTS)
def test_the_diagonal_of_a_product_is_computed_alone(name: str) -> None:
    assert depth_of(gradient_source(OF_PRODUCTS[name], (6, 6), (6, 6))) == (3 if name == "batches" else 2)


def test_a_product_with_itself_is_left_whole() -> None:
    assert depth_of(value_source(lambda a: np.diag(np.einsum("ij,jk->ik", a, a) @ a), (5, 5))) == 3


BY_DIAGONALS: dict[str, Callable[..., Any]] = {
    "from the left": lambda v, b: ((np.diag(v) @ b) ** 2).sum(),
    "from the right": lambda v, b: ((b @ np.diag(v)) ** 2).sum(),
    "of a batch": lambda v, b: ((pb.diag_embed(pb.stack([v, 2.0 * v])) @ pb.stack([b, b])) ** 2).sum(),
}


@pytest.mark.parametrize("name", BY_DIAGONALS)
def test_in_gradients_a_diagonal_matrix_scales(name: str) -> None:
    """One product, the user's, is of whole matrices; the source's values are those of eager code."""
    source = gradient_source(BY_DIAGONALS[name], (6,), (6, 6))
    depth = 3 + (name == "of a batch")
    assert len(re.findall(rf"^ {{{4 * depth}}}for ", source, re.M)) == 1


@pytest.mark.drawn(6)
def test_the_gradient_of_a_determinant_by_cholesky_has_no_product() -> None:
    def log_determinant(a: Any) -> Any:
        return 2.0 * np.log(np.diag(np.linalg.cholesky(a))).sum()

    (a,) = normals((40, 40))
    a = a @ a.T + np.eye(40)
    compiled = pb.compile(pb.grad(log_determinant))
    of_lower = compiled(a)
    np.testing.assert_allclose(0.5 * (of_lower + of_lower.T), np.linalg.inv(a), rtol=1e-8, atol=1e-10)
    assert "gemm" not in compiled.source(a)


def test_zeros_beside_a_diagonal_times_infinity_are_nan() -> None:
    a, b = normals((3,), (3, 3))
    b[0, 1] = np.inf
    found = pb.compile(lambda a, b: np.diag(a) @ b)(a, b)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.isnan(found), np.isnan(np.diag(a) @ b))


def test_positions_on_a_diagonal_need_no_division() -> None:
    source = gradient_source(lambda a: np.log(np.diag(a @ a.T)).sum() + np.diag(a**2, 1).sum(), (6, 6))
    assert "%" not in source and "//" not in source


def test_cholesky_needs_no_mirror_image() -> None:
    source = gradient_source(lambda a: np.log(np.diag(np.linalg.cholesky(a @ a.T))).sum(), (6, 9))
    before, _, _ = source.partition("if not factor_cholesky(")
    assert " if " not in before.partition("def ")[2]


@pytest.mark.parametrize("offset", [-7, -2, 0, 1, 9])
@pytest.mark.parametrize("shape", [(4, 4), (3, 6), (6, 2), (0, 3)])
def test_writes_through_a_view_of_a_diagonal(shape: tuple[int, int], offset: int) -> None:
    def written(lib: Any, x: Any) -> Any:
        y = x * 1.0
        shown = lib.diagonal(y, offset)
        shown *= 3.0
        shown[1:] = shown[1:] + 2.0
        return y

    x = np.random.default_rng(0).standard_normal(shape)
    y = x.copy()
    count = len(np.diagonal(x, offset))
    rows, columns = np.arange(count) + max(-offset, 0), np.arange(count) + max(offset, 0)
    y[rows, columns] = 3.0 * x[rows, columns] + np.where(np.arange(count) > 0, 2.0, 0.0)
    np.testing.assert_array_equal(written(pb, pb.tensor(x)).numpy(), y)
    compiled = pb.compile(lambda x: written(pb, x))  # of which a product and a sum may be one instruction
    np.testing.assert_allclose(compiled(pb.tensor(x)).numpy(), y, rtol=1e-15)
    leaf = pb.tensor(x, requires_grad=True)
    (written(pb, leaf) ** 2).sum().backward()
    factors = np.ones(shape)
    factors[rows, columns] = 3.0
    np.testing.assert_allclose(leaf.grad.numpy(), 2.0 * y * factors)
