"""Small dimensions unrolled: the same results, one loop over the batch, and when not."""

import numpy as np
import pytest
from operator_cases import ROWS
from operator_cases.rows import agrees, graph_of

import pullback as pb
from pullback.codegen.rewriting import unroll
from pullback.codegen.rewriting.simplify import expand_composites
from pullback.errors import DimensionError
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.verify import verify

pytestmark = pytest.mark.part(8)

BATCH = 100


def normals(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def agrees_with_eager(function, *arrays):
    value, gradients = pb.value_and_grad(pb.compile(function), argnums=tuple(range(len(arrays))))(*arrays)
    expected, expected_gradients = pb.value_and_grad(function, argnums=tuple(range(len(arrays))))(*arrays)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for found, wanted in zip(gradients, expected_gradients):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def source_of(function, *arrays):
    compiled = pb.compile(function)
    pb.value_and_grad(compiled, argnums=0)(*arrays)
    return compiled.source(*arrays)


def cross(a, b):
    return np.stack(
        [
            a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1],
            a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2],
            a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0],
        ],
        axis=1,
    )


@pytest.mark.drawn(6)
def test_vectors_of_three_become_one_loop_over_the_batch():
    def area(a, b):
        return np.sum(np.sqrt(np.sum(cross(a, b) ** 2, axis=1)))

    a, b = normals(BATCH, 3), normals(BATCH, 3) + 3
    agrees_with_eager(area, a, b)
    assert source_of(area, a, b).count("for ") == 2  # forward and backward


def test_products_of_small_matrices():
    def rotated(matrices, vectors):
        return np.sum(np.tanh(np.einsum("nij,nj->ni", matrices, vectors)) ** 2)

    agrees_with_eager(rotated, normals(BATCH, 3, 3), normals(BATCH, 3))


@pytest.mark.drawn(4)
def test_parts_of_different_use_are_unrolled_beyond_the_size_of_alike_ones():
    def projected(parameters):
        direction, centre, scale = parameters[:, :4], parameters[:, 4:8], parameters[:, 8:]
        return np.sum(np.sum(direction * centre, axis=1, keepdims=True) * np.exp(scale))

    parameters = normals(BATCH, 12)
    agrees_with_eager(projected, parameters)
    assert "for j" not in source_of(projected, parameters)


def test_gathered_rows_and_their_gradient():
    def energy(points, pairs):
        difference = points[pairs[:, 0]] - points[pairs[:, 1]]
        return np.sum(1 / np.sqrt(1 + np.sum(difference**2, axis=1)))

    rng = np.random.default_rng(1)
    points, pairs = normals(40, 3), rng.integers(0, 40, (BATCH, 2))
    compiled = pb.compile(lambda points: energy(points, pairs))
    value, gradient = pb.value_and_grad(compiled)(points)
    expected, wanted = pb.value_and_grad(lambda points: energy(points, pairs))(points)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-10, atol=1e-12)


def test_the_largest_of_few_is_found_in_pieces():
    """Also of what lies in memory, as of inputs and products; these have constant strides then."""
    x, w = normals(BATCH, 20), normals(20, 5)

    def loss(w, x):
        return pb.logsumexp(x @ w, dim=1).sum()

    agrees_with_eager(loss, w, x)
    source = pb.compile(pb.value_and_grad(loss)).source(w, x)
    assert source.count("for i in range") == 1 and "for j in" not in source
    agrees_with_eager(lambda x: (pb.softmax(x, 1)[:, 0] ** 2).sum(), normals(BATCH, 3))


def test_one_of_few_is_chosen_at_a_position():
    """By comparisons, so that rows are in vectors; a position that is none still raises."""
    x, labels = normals(BATCH, 5), np.arange(BATCH) % 5

    def loss(x, labels):
        return pb.cross_entropy(x, labels)

    both = pb.compile(pb.value_and_grad(loss))
    for found, expected in zip(both(x, labels), pb.value_and_grad(loss)(x, labels)):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    assert "[chosen]" not in both.source(x, labels)
    with pytest.raises(DimensionError, match="dimension 1"):
        both(x, np.where(labels == 3, 5, labels))


def test_gradients_of_pieces_are_in_pieces():
    """Though only a product takes them: they are computed of what would be joined for that, too."""
    x, y, w = normals(BATCH, 20), normals(BATCH), normals(20, 5)

    def loss(w, x, y):
        errors = y[:, None] - x @ w
        return np.maximum(np.linspace(0.1, 0.9, 5) * errors, -errors).sum()

    both = pb.compile(pb.value_and_grad(loss))
    for found, expected in zip(both(w, x, y), pb.value_and_grad(loss)(w, x, y)):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    source = both.source(w, x, y)
    assert source.count("for i in range") == 1 and "for j in" not in source


@pytest.mark.drawn(4)
def test_sums_over_the_batch_are_a_total_for_each_piece():
    """The gradient of a bias, and of weights: no row of terms is put together to be added to an array."""

    def loss(w, b, x):
        return np.sum(np.tanh(x * w + b))

    arrays = normals(3), normals(3), normals(BATCH, 3)
    agrees_with_eager(loss, *arrays)
    source = source_of(loss, *arrays)
    assert "concatenate" not in source and source.count(" += ") >= 3


def test_another_batch_compiles_nothing():
    compiled = pb.compile(lambda a: np.sum(np.sqrt(np.sum(a * a, axis=1))))
    gradient = pb.grad(compiled)
    gradient(normals(BATCH, 3))
    before = compiled.cache_info()
    gradient(normals(BATCH + 17, 3))
    after = compiled.cache_info()
    assert (after.compilations, after.disk_hits) == (before.compilations, before.disk_hits)


def test_large_inner_dimensions_stay_loops():
    def rows(x):
        return np.sum(np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True))

    assert source_of(rows, normals(4, 200)).count("for j") >= 1


@pytest.mark.drawn(4)
def test_arrays_that_loops_write_part_by_part_stay_whole():
    def channels(x, w):
        found = np.empty((2, 8, 8, 3))
        for i in range(8):
            for j in range(8):
                found[:, i, j, :] = np.sum(x[:, i, j, :, None] * w, axis=1)
        return found

    compiled = pb.compile(channels)
    x, w = normals(2, 8, 8, 2), normals(2, 3)
    np.testing.assert_allclose(compiled(x, w), np.einsum("bijc,cd->bijd", x, w), rtol=1e-12)
    assert compiled.source(x, w).count(" if ") <= 1, "an element does not ask which step wrote it"


def test_a_graph_that_would_grow_too_much_is_unrolled_less(monkeypatch):
    monkeypatch.setattr(unroll, "MOST_NODES", 3)

    def length(a):
        return np.sum(np.sqrt(np.sum(a * a, axis=1)))

    assert "for j" in source_of(length, normals(BATCH, 3))
    agrees_with_eager(length, normals(BATCH, 3))


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_every_operator_in_pieces(row, monkeypatch):
    """The table's operators between others, on arrays small enough that every dimension is unrolled."""
    monkeypatch.setattr(unroll, "SMALLEST_BATCH", 1)
    for case in row.cases:
        arrays = row.draw(case, row.dtypes[0])
        graph = expand_composites(graph_of(row, case, arrays))
        unrolled = verify(unroll.unroll_small_dimensions(graph))
        (found,), (wanted,) = evaluate_graph(unrolled, arrays), evaluate_graph(graph, arrays)
        agrees(found, wanted, 8, f"{row.name} {case}")


@pytest.mark.drawn(4)
def test_parts_of_parts_do_not_multiply() -> None:
    """Sweeps that shift a narrow array: parts of what is joined again and again are joined once."""

    def sweeps(x, y):
        for _ in range(12):
            y[1:-1, 1:-1] = 0.2 * x[1:-1, 2:] - 0.25 * x[1:-1, :-2]
            x, y = np.tanh(y * x * np.roll(y, -1, 1)), np.pad(0.3 * x[1:-1, 1:-1], 1)
        return (x**2).sum() + y.sum()

    x, y = np.random.default_rng(0).normal(size=(2, 18, 4))
    compiled = pb.compile(lambda x, y: sweeps(x * 1.0, y * 1.0))
    np.testing.assert_allclose(compiled(x, y), sweeps(x * 1.0, y * 1.0), rtol=1e-10)
    assert len(compiled.forward_source(x, y).splitlines()) < 3000


def test_the_front_of_a_long_row_stays_a_loop() -> None:
    """Ten of 55 columns are ten like each other; six of nine are the rest of a row that is taken apart."""

    def front(x, y):
        return np.sum(np.exp(x[:, :10]) * y, axis=1)

    rng = np.random.default_rng(0)
    source = pb.compile(front).forward_source(rng.normal(size=(100, 55)), rng.normal(size=(100, 10)))
    assert source.count("exp(") == 2  # with its comment
    short = pb.compile(front).forward_source(rng.normal(size=(100, 13)), rng.normal(size=(100, 10)))
    assert short.count("exp(x") == 11


@pytest.mark.drawn(4)
def test_channels_in_front_of_rows_stay_a_loop() -> None:
    """Rows are vectors already: in the kernel the channels are last, in the images they are not."""

    def layer(x, kernel):
        return np.sum(np.tanh(np.einsum("oc,ncl->nol", np.exp(kernel[:, :, 0]), x)) * kernel[0, 0, 0])

    rng = np.random.default_rng(0)
    arrays = rng.normal(size=(5, 4, 90)), rng.normal(size=(100, 4, 3))
    both = pb.compile(pb.value_and_grad(layer, argnums=(0, 1)))
    for found, wanted in zip(both(*arrays)[1], pb.grad(layer, argnums=(0, 1))(*arrays)):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    assert "d_x[i, 0" not in both.source(*arrays)
