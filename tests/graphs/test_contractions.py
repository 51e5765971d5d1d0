"""Contractions: BLAS or loops, in which order, nothing copied or added up apart. Sources run uncompiled."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from uncompiled import gradient_source, normals, run_uncompiled, value_source

import pullback as pb
from pullback.codegen.rewriting.calls import form_calls
from pullback.codegen.rewriting.contractions import Indices
from pullback.tracer.graph import Graph, make_input, make_node
from pullback.tracer.ops.contraction import contract
from pullback.tracer.spec import Spec

pytestmark = pytest.mark.part(8)

Array = np.ndarray


def calls(source: str) -> list[str]:
    return [line.split("#")[0].strip() for line in source.splitlines() if line.strip().startswith("gemm(")]


def loops(source: str) -> int:
    return source.count("for ")


# --- BLAS or loops ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subscripts", "shapes", "suits"),
    [
        ("ab,bc->ac", ((64, 64), (64, 64)), True),
        ("ab,bc->ac", ((12, 12), (12, 12)), True),
        ("ab,bc->ac", ((4, 4), (4, 4)), False),
        ("ab,b->a", ((1000, 1000), (1000,)), False),
        ("a,b->ab", ((1000,), (1000,)), False),
        ("ab,bc->ac", ((10_000, 3), (3, 3)), False),  # unrolled
        ("ab,bc->ac", ((10_000, 2), (2, 50)), False),  # two multiplications for each element written
        ("ab,bc->ac", ((10_000, 50), (50, 2)), True),  # no index is contiguous wherever it occurs
        ("ab,cb->ac", ((10_000, 50), (2, 50)), False),  # rows of both are contiguous
        ("ba,bc->ac", ((10_000, 50), (10_000, 50)), True),
        ("zab,zbc->zac", ((1000, 4, 4), (1000, 4, 4)), False),
        ("zab,zbc->zac", ((8, 256, 64), (8, 64, 256)), True),
    ],
)
def test_which_products_go_to_blas(
    subscripts: str, shapes: tuple[tuple[int, ...], tuple[int, ...]], suits: bool
) -> None:
    left, right, _ = Indices(subscripts, {}, np.dtype("f8")).texts
    extents = dict(zip(left + right, shapes[0] + shapes[1]))
    assert Indices(subscripts, extents, np.dtype("float64")).suit_blas == suits
    assert not Indices(subscripts, extents, np.dtype("int64")).suit_blas


# --- layouts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "call"),
    [
        (lambda x, y: x @ y, "gemm(1.0, x, y, 0.0, value)"),
        (lambda x, y: x.T @ y, "gemm(1.0, x.T, y, 0.0, value)"),
        (lambda x, y: x @ y.T, "gemm(1.0, x, y.T, 0.0, value)"),
        (lambda x, y: x.T @ y.T, "gemm(1.0, x.T, y.T, 0.0, value)"),
        (lambda x, y: (x @ y).T, "gemm(1.0, y.T, x.T, 0.0, value)"),
        (lambda x, y: (x.T @ y.T).T, "gemm(1.0, y, x, 0.0, value)"),
    ],
)
def test_transposes_are_absorbed(function: Callable[..., Any], call: str) -> None:
    source = value_source(function, (20, 20), (20, 20))
    assert calls(source) == [call] and not loops(source)


@pytest.mark.parametrize(
    ("subscripts", "left", "right", "call"),
    [
        ("bij,bjk->bik", (3, 20, 20), (3, 20, 20), "gemm(1.0, x[i], y[i], 0.0, value[i])"),
        ("bij,bkj->bik", (3, 20, 20), (3, 20, 20), "gemm(1.0, x[i], y[i].T, 0.0, value[i])"),
        ("bij,bjk->bki", (3, 20, 20), (3, 20, 20), "gemm(1.0, y[i].T, x[i].T, 0.0, value[i])"),
        ("ibj,bkj->ibk", (20, 3, 20), (3, 20, 20), "gemm(1.0, x[:, i], y[i].T, 0.0, value[:, i])"),
        (
            "bihd,bjhd->bhij",
            (2, 20, 3, 20),
            (2, 20, 3, 20),
            "gemm(1.0, x[i, :, j], y[i, :, j].T, 0.0, value[i, j])",
        ),
    ],
)
def test_stacks_of_matrices_where_they_lie(
    subscripts: str, left: tuple[int, ...], right: tuple[int, ...], call: str
) -> None:
    source = value_source(lambda x, y: pb.einsum(subscripts, x, y), left, right)
    assert calls(source) == [call] and loops(source) == len(left) - 2


def test_indices_side_by_side_count_as_one() -> None:
    source = value_source(lambda x, w: pb.einsum("bqhd,hdm->bqm", x, w), (3, 8, 2, 10), (2, 10, 16))
    (call,) = calls(source)
    assert call == (
        "gemm(1.0, x.reshape((n * m, p * q)), w.reshape((p * q, r)), 0.0, value.reshape((n * m, r)))"
    )
    assert not loops(source)


def test_summed_indices_apart_are_summed_over_calls() -> None:
    """Large matrices are not copied to bring their summed indices together; small ones are."""

    def function(x: Any, y: Any) -> Any:
        return pb.einsum("ijk,kjl->il", x, y)

    assert calls(value_source(function, (40, 3, 40), (40, 3, 40))) == [
        "gemm(1.0, x[:, i], y[:, i], 1.0, value)"
    ]
    (call,) = calls(value_source(function, (12, 3, 12), (12, 3, 12)))
    assert "reshape" in call


def test_a_batch_that_lies_last_is_copied_to_the_front() -> None:
    source = value_source(lambda x, y: pb.einsum("ijb,jkb->bik", x, y), (16, 16, 3), (16, 16, 3))
    assert len(calls(source)) == 1 and "[i, j, k]" not in source.split("gemm(")[1]


# --- sums and factors -------------------------------------------------------------------------------------


def test_a_gradient_of_weights_used_twice_is_accumulated() -> None:
    def function(x: Any, w: Any) -> Any:
        return np.sum(np.tanh(np.tanh(x @ w) @ w) ** 2)

    source = gradient_source(function, (20, 20), (20, 20))
    assert len([call for call in calls(source) if call.endswith("1.0, d_w)")]) == 1
    assert len([call for call in calls(source) if call.endswith("0.0, d_w)")]) == 1
    assert len(calls(source)) == 6


def test_calls_in_loops_add_to_what_a_call_before_them_has_left() -> None:
    def function(x: Any, w: Any) -> Any:
        return np.sum(np.dot(x, x) * w)

    source = gradient_source(function, (3, 4, 4), (3, 4, 3, 4))
    assert [", 1.0, d_x" in call for call in calls(source) if "d_x" in call] == [False, True]
    assert "d_x[i, j, k] = 0.0" not in source


def test_factors_are_taken_into_the_call() -> None:
    source = gradient_source(lambda x, w: np.mean((x @ w) ** 2), (20, 30), (30, 20))
    assert len(calls(source)) == 3
    assert sum(call.startswith("gemm(scale") for call in calls(source)) == 2
    assert "[i, j] =" not in source  # nothing is stored by a loop


def test_a_bias_is_where_the_product_starts() -> None:
    source = value_source(lambda x, w, b: x @ w + b, (20, 30), (30, 20), (20,))
    assert calls(source) == ["gemm(1.0, x, w, 1.0, value)"] and "value[i, j] = b[j]" in source


def test_differences_and_multiples() -> None:
    def function(c: Any, x: Any, w: Any) -> Any:
        return 0.5 * c - 2.0 * (x @ w) + w @ x

    source = value_source(function, (20, 20), (20, 20), (20, 20))
    assert calls(source) == ["gemm(-2.0, x, w, 1.0, value)", "gemm(1.0, w, x, 1.0, value)"]


def test_a_sum_that_a_loop_reads_stays_in_the_loop() -> None:
    source = value_source(lambda x, w, b: np.tanh(x @ w + b), (20, 30), (30, 20), (20,))
    assert [call.split(", ")[3] for call in calls(source)] == ["0.0"] and "tanh(" in source


def test_zero_times_nan_is_nan() -> None:
    """BLAS does not multiply by a factor of 0."""
    x = np.full((20, 20), np.nan)
    program = pb.compile(lambda x: 0.0 * (x @ x)).programs(x)[0]
    assert np.isnan(run_uncompiled(program, [x])[0]).all()


# --- loops around calls -----------------------------------------------------------------------------------


def attention(q: Any, k: Any, v: Any) -> Any:
    weights = pb.softmax(pb.einsum("hqd,hkd->hqk", q, k) / 4.0, -1)
    return np.sum(pb.einsum("hqk,hkd->hqd", weights, v) ** 2)


def test_attention_is_one_loop_over_heads_with_scratch_for_one() -> None:
    source = gradient_source(attention, (3, 16, 20), (3, 16, 20), (3, 16, 20))
    body = [line for line in source.splitlines() if line.startswith("    ") and not line.startswith("     ")]
    assert sum(line.startswith("    for ") for line in body) == 1
    assert len(calls(source)) == 6
    assert re.search(r"weights\[\w, \w\]", source) and not re.search(r"weights\[\w, \w, \w\]", source)


@pytest.mark.drawn(4)
def test_what_is_subtracted_before_a_product_is_stored_for_one_component() -> None:
    """n x k x d numbers are not: `centred` is computed for each call."""

    def whitened(x: Any, means: Any, factors: Any) -> Any:
        centred = x[:, None, :] - means
        return np.sum(np.tanh(pb.einsum("kij,nkj->nki", factors, centred)) * centred)

    source = gradient_source(whitened, (50, 20), (4, 20), (4, 20, 20))
    assert (
        "centred[j, k] =" in source and "centred[i, j, k]" not in source and "centred[j, i, k]" not in source
    )


# --- order ------------------------------------------------------------------------------------------------


def test_chains_end_in_matrix_times_vector() -> None:
    source = gradient_source(lambda a, b, v: np.sum((a @ b @ v) ** 2), (30, 31), (31, 32), (32,))
    assert not calls(source)


@pytest.mark.drawn(4)
def test_long_chains() -> None:
    def function(a: Any, b: Any, c: Any, d: Any, v: Any) -> Any:
        return np.sum((a @ b @ c @ d @ a @ b @ c @ d @ v) ** 2)

    assert not calls(gradient_source(function, *[(20, 20)] * 4, (20,)))


def test_the_small_side_first() -> None:
    """softmax-free attention: k.T @ v is small."""
    source = gradient_source(lambda q, k, v: np.sum((q @ k.T @ v) ** 2), *[(100, 10)] * 3)
    assert len(calls(source)) == 6  # of which one product serves value and gradient
    assert "100" not in source


def test_what_a_loop_needs_is_not_taken_apart() -> None:
    def function(a: Any, b: Any, v: Any) -> Any:
        product = a @ b
        return np.sum(product @ v) + np.sum(np.tanh(product))

    assert "product" in gradient_source(function, (30, 31), (31, 32), (32,))


def test_the_order_stays_where_it_is_good() -> None:
    source = value_source(lambda a, b, c: a @ b @ c, (20, 20), (20, 20), (20, 20))
    assert calls(source) == ["gemm(1.0, a, b, 0.0, products)", "gemm(1.0, products, c, 0.0, value)"]


@pytest.mark.parametrize("dims", [0, 1, (0, 1)])
def test_sums_of_products_are_products_of_sums(dims: Any) -> None:
    source = gradient_source(lambda x, w: np.sum(np.sum(x @ w, axis=dims) ** 2), (30, 40), (40, 20))
    assert not calls(source)


def test_repeated_rows_are_summed_once() -> None:
    """Of `ones @ w.T` nothing is left but the sums of the rows of w."""
    source = gradient_source(lambda x, w: np.sum(np.tanh(x @ w) @ w), (20, 20), (20, 20))
    assert len(calls(source)) == 3


def test_products_in_either_order_are_one() -> None:
    source = value_source(lambda x, y: (x @ y) * (y.T @ x.T).T, (20, 30), (30, 20))
    assert len(calls(source)) == 1


def test_sums_of_products_are_found() -> None:
    source = gradient_source(lambda x, y: np.sum(np.sum(x[:, None, :] * y, -1) ** 2), (30, 20), (40, 20))
    assert len(calls(source)) == 3


def test_bilinear_forms() -> None:
    source = gradient_source(
        lambda x, w, y: np.sum(np.tanh(pb.einsum("bi,ij,bj->b", x, w, y))), (60, 20), (20, 30), (60, 30)
    )
    assert len(calls(source)) == 3


def test_one_row_or_column_is_a_vector() -> None:
    assert not calls(gradient_source(lambda x, y: np.sum((x @ y[:, None]) ** 2), (50, 60), (60,)))
    assert not calls(gradient_source(lambda x, y: np.sum((x[:, None] @ y[None]) ** 2), (50,), (60,)))


# --- operands where they lie ------------------------------------------------------------------------------


def test_parts_of_arrays_are_read_where_they_lie() -> None:
    def function(x: Any, y: Any) -> Any:
        return x[1] @ y[3:23, 2:22] + y[:20, :20].T @ x[0]

    source = value_source(function, (2, 20, 20), (30, 30))
    assert len(calls(source)) == 2 and not loops(source)
    assert "gemm(1.0, x[1], y[3:" in source and ".T, x[0], 1.0, value)" in source


@pytest.mark.drawn(4)
def test_heads_of_attention_are_parts_of_rows() -> None:
    """Split by reshape, not moved: each call takes some columns of all rows."""

    def function(x: Any, y: Any) -> Any:
        q, k = (pb.reshape(one, (40, 2, 20)) for one in (x, y))
        return np.tanh(pb.einsum("qhd,khd->hqk", q, k))

    source = value_source(function, (40, 40), (40, 40))
    assert "gemm(1.0, x[:, " in source and source.count("for ") == 3


def test_every_second_column_is_copied() -> None:
    source = value_source(lambda x, y: x[:, ::2] @ y, (20, 40), (20, 20))
    assert calls(source) == ["gemm(1.0, x_copy, y, 0.0, value)"]


# --- recurrences ------------------------------------------------------------------------------------------


@pytest.mark.drawn(4)
def test_a_recurrence_adds_to_gradients_in_place() -> None:
    def network(xs: Any, state: Any, w: Any, u: Any) -> Any:
        for step in range(12):
            state = np.tanh(xs[step] @ w + state @ u)
        return np.sum(state**2)

    source = gradient_source(network, (12, 20, 16), (20, 24), (16, 24), (24, 24))
    assert len(calls(source)) == 6
    assert sum(" xs[" in call for call in calls(source)) == 2  # each step's matrix where it lies
    assert sum(call.endswith("d_xs[n - i - 1])") for call in calls(source)) == 1
    assert sum(call.endswith(("1.0, d_w)", "1.0, d_u)")) for call in calls(source)) == 2


@pytest.mark.drawn(6)
def test_what_is_stacked_and_multiplied_is_stored_once() -> None:
    def network(xs: Any, state: Any, w: Any, u: Any) -> Any:
        for step in range(30):
            state = np.tanh(xs[step] @ w + state @ u)
        return np.sum(state**2)

    source = gradient_source(network, (30, 12, 40), (12, 48), (40, 48), (48, 48))
    back = source.split("for i in range(n)")[-1]
    (stacked,) = (
        line.split(" = ")[0].strip() for line in back.splitlines() if "[n - i - 1, j, k] = " in line
    )
    array = stacked.split("[")[0]
    assert sum(f"gemm(1.0, {array}[n - i - 1], " in call for call in calls(back)) == 2
    assert sum(f", {array}.reshape(" in call for call in calls(back)) == 2


@pytest.mark.drawn(4)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1_000, 2_184, 2_185, 5_000])
def test_small_products_of_many_rows(dtype: str, rows: int) -> None:
    """Which BLAS sums some rows at a time: 1,092 of these."""

    def products(x: Any, y: Any, z: Any) -> Any:
        return x.T @ y, y.T @ x, z @ y, 2.0 * (z @ y) + x.T @ y

    arrays = [array.astype(dtype) for array in normals((rows, 20), (rows, 24), (20, rows))]
    for found, expected in zip(pb.compile(products)(*arrays), products(*arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-6)


# --- sums of products of parts ----------------------------------------------------------------------------


def _convolution(x: Any, kernel: Any) -> Any:
    size, (height, width) = kernel.shape[2], x.shape[2:]
    framed = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    places = [(i, j) for i in range(size) for j in range(size)]
    return sum(
        np.einsum("oc,nchw->nohw", kernel[:, :, i, j], framed[:, :, i : i + height, j : j + width])
        for i, j in places
    )


@pytest.mark.drawn(4)
def test_a_convolution_and_its_gradients_are_a_product_each() -> None:
    source = gradient_source(lambda x, k: np.sum(_convolution(x, k) ** 2), (3, 4, 12, 10), (8, 4, 3, 3))
    assert len(calls(source)) == 3
    assert source.count("x_parts[") >= 9


@pytest.mark.drawn(4)
def test_a_convolution_beside_other_terms() -> None:
    """And with parts in another order."""

    def function(x: Any, y: Any) -> Any:
        terms = [x[:, k : k + 40] @ y[:, k] for k in (3, 0, 5, 1)]
        return np.tanh(terms[0] + x[:, :40] * 2.0 @ y[:, 7] + terms[1] + terms[2] + terms[3])

    source = value_source(function, (30, 48), (40, 9, 40))
    assert len(calls(source)) == 2
    gradient_source(lambda x, y: np.sum(function(x, y) ** 2), (30, 48), (40, 9, 40))


def test_products_of_the_same_array_are_not_stacked() -> None:
    source = value_source(lambda x, y: x @ y[0] + x @ y[1] + x @ y[2] + x @ y[3], (30, 20), (4, 20, 30))
    assert "parts" not in source


def test_a_long_sum_of_products_needs_no_deep_recursion() -> None:
    inputs = tuple(make_input(Spec((2, 2), np.dtype(float)), f"x_{place}") for place in range(2))
    total = inputs[0] + 0.0
    for _ in range(1500):
        total = total + make_node(contract, inputs, {"subscripts": "ab,bc->ac"})
    (form,) = form_calls(Graph("long", inputs, (total,))).outputs
    assert form.operands
