"""What the functions say of wrong arguments: pullback's class, PyTorch's words, and the user's line."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.autograd import autograd
from pullback.runtime.functions import METHODS, PUBLIC
from pullback.runtime.functions.signals import fourier
from pullback.runtime.tape.apply import wrap
from pullback.runtime.values.tensor import Tensor
from pullback.tracer.errors import (
    ArgumentError,
    DimensionError,
    DTypeError,
    PullbackError,
    ShapeError,
    TraceError,
)
from pullback.tracer.graph import make_input
from pullback.tracer.spec import spec_of
from pullback.tracer.trace import Trace, tracing


def ones(*shape: int) -> Tensor:
    return wrap(np.ones(shape))


def integers(*shape: int) -> Tensor:
    return wrap(np.ones(shape, np.int64))


X, N, B = ones(2, 3), integers(2, 3), wrap(np.ones((2, 3), bool))
WAVE = wrap(np.array([1 + 2j]))

WRONG: list[tuple[Callable[[], Any], type[PullbackError], str]] = [
    (
        lambda: PUBLIC["std"](X, correction=X[0, 0]),
        ArgumentError,
        "std(): argument 'correction' must be a number, not Tensor",
    ),
    (
        lambda: X + ones(4),
        ShapeError,
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
    ),
    (lambda: PUBLIC["add"]("a", X), ArgumentError, "add(): argument 'other' must be Tensor, not str"),
    (lambda: PUBLIC["sin"]("a"), ArgumentError, "sin(): argument 'input' must be Tensor, not str"),
    (lambda: PUBLIC["sin"](np.array(["a"])), DTypeError, "sin: input has dtype <U1"),
    (
        lambda: PUBLIC["add"](N, N, alpha=0.5),
        ArgumentError,
        "argument alpha must not be a floating point number",
    ),
    (lambda: B - B, DTypeError, "with two bool tensors is not supported"),
    (lambda: -B, DTypeError, "Negation, the `-` operator, on a bool tensor is not supported"),
    (lambda: ~X, DTypeError, "~ (operator.invert) is only implemented on integer and Boolean-type tensors"),
    (lambda: X & X, DTypeError, "bitwise_and: bool or integer operands expected, found float64"),
    (lambda: PUBLIC["narrow"](X, 1, B[0, 0], 1), ArgumentError, "start must be an 0-dim integral Tensor"),
    (lambda: N**-1, ArgumentError, "Integers to negative integer powers are not allowed"),
    (lambda: PUBLIC["div"](X, X, rounding_mode="up"), ArgumentError, "but found 'up'"),
    (lambda: X.clamp(), ArgumentError, "At least one of 'min' or 'max' must not be None"),
    (lambda: PUBLIC["where"](X, X, X), DTypeError, "where expected condition to be a boolean tensor"),
    (lambda: PUBLIC["addcdiv"](N, N, N), DTypeError, "Integer division with addcdiv is no longer supported"),
    (
        lambda: X.sum(2),
        DimensionError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    (lambda: X.sum(dim=0, axis=1), ArgumentError, "sum(): 'axis' and 'dim' are the same; give one"),
    (lambda: X.sum((0, 0)), DimensionError, "names a dimension more than once"),
    (lambda: N.mean(), DTypeError, "mean(): could not infer output dtype"),
    (lambda: N.var(), DTypeError, "expected a floating point dtype, found Long"),
    (
        lambda: X.var(unbiased=True, correction=0),
        ArgumentError,
        "'unbiased' and 'correction' exclude each other",
    ),
    (lambda: ones(0, 3).max(0), ShapeError, "Expected reduction dim 0 to have non-zero size"),
    (lambda: ones(0).argmax(), ShapeError, "Expected reduction dim 0 to have non-zero size"),
    (lambda: X.view(4, 5), ShapeError, "shape '[4, 5]' is invalid for input of size 6"),
    (lambda: X.view(-1, -1), ShapeError, "only one dimension can be inferred"),
    (lambda: X.view(-2), ShapeError, "invalid shape dimension -2"),
    (lambda: X.permute(0), ShapeError, "input.dim() = 2 is not equal to len(dims) = 1"),
    (lambda: X.permute(0, 0), ShapeError, "duplicate dims are not allowed"),
    (lambda: X.transpose(0, 2), DimensionError, "Dimension out of range"),
    (lambda: ones(2, 2, 2).t(), ShapeError, "t() expects a tensor with <= 2 dimensions, but self is 3D"),
    (
        lambda: X.expand(2, 4),
        ShapeError,
        "The expanded size of the tensor (4) must match the existing size (3)",
    ),
    (
        lambda: X.expand(3),
        ShapeError,
        "must be greater or equal to the number of dimensions in the tensor (2)",
    ),
    (lambda: X.repeat(2), ShapeError, "can not be smaller than number of dimensions of tensor"),
    (lambda: X.tile(-1), ShapeError, "Trying to create tensor with negative dimension"),
    (lambda: X.narrow(0, 1, 3), DimensionError, "start (1) + length (3) exceeds dimension size (2)"),
    (lambda: X.select(0, 2), DimensionError, "select(): index 2 out of range"),
    (lambda: PUBLIC["cat"]([]), ArgumentError, "expected a non-empty list of Tensors"),
    (lambda: PUBLIC["cat"](X), ArgumentError, "must be tuple of Tensors, not Tensor"),
    (
        lambda: PUBLIC["cat"]([X, ones(2)]),
        ShapeError,
        "Tensors must have same number of dimensions: got 2 and 1",
    ),
    (
        lambda: PUBLIC["cat"]([X, ones(2, 4)]),
        ShapeError,
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4",
    ),
    (
        lambda: PUBLIC["cat"]([ones(), ones()]),
        ShapeError,
        "zero-dimensional tensor (at position 0) cannot be concatenated",
    ),
    (
        lambda: PUBLIC["stack"]([X, ones(2)]),
        ShapeError,
        "stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [2] at entry 1",
    ),
    (lambda: X.split([1, 2]), ArgumentError, "split_with_sizes expects split_sizes to sum exactly to 2"),
    (lambda: ones().split(1), DimensionError, "Dimension specified as 0 but tensor has no dimensions"),
    (lambda: ones().narrow(0, 0, 1), DimensionError, "narrow(): Dimension specified as 0"),
    (lambda: X.repeat_interleave([1, 2, 3], 0), ShapeError, "must be 2 numbers from 0 on"),
    (lambda: X.chunk(0), ArgumentError, "chunk expects `chunks` to be greater than 0, got: 0"),
    (lambda: PUBLIC["pad"](X, (1,)), ArgumentError, "Padding length must be divisible by 2"),
    (
        lambda: PUBLIC["pad"](X, (3, 3), mode="reflect"),
        ShapeError,
        "Padding size should be less than the corresponding input dimension",
    ),
    (lambda: X @ X, ShapeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
    (lambda: X @ ones(2), ShapeError, "size mismatch, got input (2), mat (2x3), vec (2)"),
    (lambda: ones(3) @ ones(4), ShapeError, "inconsistent tensor size, expected tensor [3] and src [4]"),
    (
        lambda: X @ ones(),
        ShapeError,
        "both arguments to matmul need to be at least 1D, but they are 2D and 0D",
    ),
    (lambda: X @ N.mT, DTypeError, "expected m1 and m2 to have the same dtype, but got: Double"),
    (lambda: ones(2, 2, 3) @ ones(3, 3, 2), ShapeError, "batch shapes (2,) and (3,) do not broadcast"),
    (lambda: X.dot(X), ShapeError, "1D tensors expected, but got 2D and 2D tensors"),
    (lambda: X.mm(ones(3)), ShapeError, "mm: Expected 2-D argument mat2, a matrix, but got 1-D"),
    (lambda: X.bmm(X), ShapeError, "batch1 must be a 3D tensor"),
    (
        lambda: PUBLIC["tensordot"](X, X.mT),
        ShapeError,
        "contracted dimensions need to match, but first has size 2 in dim 0 and second has size 3 in dim 0",
    ),
    (
        lambda: PUBLIC["einsum"]("ij,jk", X),
        ArgumentError,
        "fewer operands were provided than specified in the equation",
    ),
    (
        lambda: PUBLIC["einsum"]("ijk", X),
        ArgumentError,
        "does not match the number of dimensions (2) for operand 0",
    ),
    (
        lambda: PUBLIC["einsum"]("ij->z", X),
        ArgumentError,
        "output subscript z does not appear in the equation",
    ),
    (
        lambda: PUBLIC["einsum"]("ij,ij", X, X.mT),
        ShapeError,
        "subscript i of 'ij,ij' has size 3 which does not broadcast with previously seen size 2",
    ),
    (
        lambda: PUBLIC["linear"](X, ones(4, 2)),
        ShapeError,
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)",
    ),
    (lambda: X.gather(1, N + 5), DimensionError, "index 6 is out of bounds for dimension 1 with size 3"),
    (lambda: X.gather(1, X), DTypeError, "gather(): Expected dtype int64 for index"),
    (
        lambda: X.gather(1, integers(3)),
        ShapeError,
        "Index tensor must have the same number of dimensions as input tensor",
    ),
    (lambda: X.masked_fill(N, 0), DTypeError, "masked_fill only supports boolean masks"),
    (lambda: PUBLIC["histogram"](X, wrap(np.array([1.0, 0.0]))), ArgumentError, "must be a vector in order"),
    (lambda: PUBLIC["histogramdd"](X, [2, 2]), ShapeError, "bins and ends for each of 3 coordinates"),
    (lambda: N.masked_fill(B, 1j), DTypeError, "masked_fill(): a complex value cannot be put into"),
    (lambda: N.masked_fill(B, wrap(np.asarray(1j))), DTypeError, "masked_fill(): a complex value"),
    (lambda: X.scatter_add(0, N * 0, N), DTypeError, "scatter_add(): Expected self.dtype to be equal to src"),
    (lambda: PUBLIC["gradient"](X, dim=(1, -1)), DimensionError, "names a dimension more than once"),
    (lambda: PUBLIC["embedding"](N, ones(2)), ShapeError, "embedding(): 'weight' must be 2-D"),
    (
        lambda: PUBLIC["conv1d"](ones(1, 1, 4), ones(1, 1, 2), integers(1)),
        DTypeError,
        "conv1d(): Input type (Double) and bias type (Long) should be the same",
    ),
    (
        lambda: PUBLIC["conv_transpose1d"](ones(1, 1, 4), integers(1, 1, 2)),
        DTypeError,
        "conv_transpose1d(): Input type (Double) and weight type (Long) should be the same",
    ),
    (
        lambda: PUBLIC["linear_cross_entropy"](X, X, X[:, :2], ignore_index=1),
        ArgumentError,
        "probabilities as target have no ignore_index",
    ),
    (
        lambda: PUBLIC["linear_cross_entropy"](X[0], ones(2, 2, 3), X),
        ShapeError,
        "linear_cross_entropy(): input is (features,) or (n, features)",
    ),
    (lambda: fourier.fftn(ones(), dim=0), DimensionError, "Dimension specified as 0 but tensor has no"),
    (lambda: PUBLIC["one_hot"](N, 1), ArgumentError, "Class values must be from 0 to num_classes - 1 = 0"),
    (lambda: X.topk(4), DimensionError, "selected index k out of range"),
    (lambda: N.softmax(0), DTypeError, "softmax(): expected a floating point dtype, found Long"),
    (lambda: X.softmax(), ArgumentError, "softmax(): say along which dimension"),
    (
        lambda: PUBLIC["gelu"](X, approximate="erf"),
        ArgumentError,
        "approximate argument must be either none or tanh",
    ),
    (lambda: PUBLIC["cross_entropy"](X, integers(2) * 7), DimensionError, "Target 7 is out of bounds"),
    (lambda: PUBLIC["cross_entropy"](X, integers(3)), ShapeError, "Expected target of shape (2,)"),
    (
        lambda: PUBLIC["mse_loss"](X, X, reduction="max"),
        ArgumentError,
        "max is not a valid value for reduction",
    ),
    (lambda: X.sum("a"), ArgumentError, "'dim' must be int or tuple of ints, not 'a' of type str"),
    (lambda: X.mean(1.5), ArgumentError, "'dim' must be int or tuple of ints, not 1.5"),
    (lambda: X.sum((0, "a")), ArgumentError, "must be int or tuple of ints"),
    (lambda: ones(2).add_(ones(3, 2)), ShapeError, "What is written in place keeps its shape"),
    (lambda: integers(2).add_(0.5), DTypeError, "What is written in place keeps its dtype"),
    (lambda: ones(2).index_put((integers(1),), WAVE), DTypeError, "Index put requires the source and"),
    (lambda: ones(2).__setitem__(integers(1), WAVE), DTypeError, "got Double for the destination and"),
    (lambda: ones(2).index_add(0, integers(1), WAVE), DTypeError, "index_add requires the source and"),
    (lambda: ones(2).index_copy(0, integers(1), WAVE), DTypeError, "of complex numbers source.real"),
    (lambda: ones(2).index_fill(0, integers(1), 1j), DTypeError, "a complex value cannot be put into"),
    (lambda: (X > 0) ** (X > 0), DTypeError, "\"pow\" not implemented for 'Bool'"),
    (lambda: (X > 0) % True, DTypeError, "\"remainder\" not implemented for 'Bool'"),
    (
        lambda: PUBLIC["binary_cross_entropy"](X * 2, X),
        ArgumentError,
        "all elements of input should be between 0 and 1",
    ),
    (
        lambda: PUBLIC["layer_norm"](X, (2,)),
        ShapeError,
        "Given normalized_shape=[2], expected input with shape [*, 2]",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), WRONG, ids=[message[:50] for _, _, message in WRONG])
def test_a_wrong_argument_is_explained(
    call: Callable[[], Any], error: type[PullbackError], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        call()
    if error is not DTypeError or "has dtype" not in message:
        assert "test_functions_errors.py:" in str(caught.value), "the message names the user's line"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x.nonzero(), TraceError),
        (lambda x: x.masked_select(x > 0), TraceError),
        (lambda x: x.equal(x), TraceError),
        (lambda x: x.allclose(x), TraceError),
        (lambda x: PUBLIC["unique"](x), TraceError),
    ],
)
def test_what_needs_values_says_so_in_a_trace(
    call: Callable[[Tensor], Any], error: type[PullbackError]
) -> None:
    with tracing(Trace("values")):
        x = wrap(make_input(spec_of(np.ones((2, 3))), "x"))
        with pytest.raises(error, match="traced"):
            call(x)


def test_every_public_function_is_documented_with_an_example() -> None:
    lacking = [name for name, function in PUBLIC.items() if ">>>" not in (function.__doc__ or "")]
    assert lacking == []


def test_what_is_no_operand_is_left_to_the_other_side() -> None:
    class Right:
        def __radd__(self, other: Any) -> str:
            return "right"

    assert X + Right() == "right"
    assert (X == None) is False  # noqa: E711
    with pytest.raises(TypeError, match="unsupported operand"):
        X * object()
    assert METHODS["__mul__"](X, object()) is NotImplemented


def test_axis_and_keepdims_are_dim_and_keepdim() -> None:
    np.testing.assert_array_equal(X.sum(axis=1, keepdims=True).numpy(), [[3.0], [3.0]])
    np.testing.assert_array_equal(X.softmax(axis=0).numpy(), np.full((2, 3), 0.5))


def test_a_pair_prints_as_pytorchs() -> None:
    pair = wrap(np.array([[1, 3], [5, 4]])).max(1)
    assert repr(pair) == "torch.return_types.max(\nvalues=tensor([3, 5]),\nindices=tensor([1, 0]))"
    assert pair[0] is pair.values


def test_second_derivatives_at_special_points() -> None:
    """sinc'' is -pi**2 / 3 at 0; a product with zeros is exact in every order."""
    x = wrap(np.array([0.0])).requires_grad_()
    (first,) = autograd.grad(PUBLIC["sinc"](x).sum(), [x], create_graph=True)
    (second,) = autograd.grad(first.sum(), [x])
    np.testing.assert_allclose(second.numpy(), -(np.pi**2) / 3)


Y = pb.ones(4)
CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: pb.cat([pb.ones(2, 3), Y]), "cat(tensors: [float32[2, 3], float32[4]])"),
    (lambda: np.concatenate([Y, np.ones((2, 3))]), "numpy.concatenate(arrays: [float32[4], float64[2, 3]])"),
    (lambda: np.linalg.solve(pb.ones(2, 3), Y), "numpy.linalg.solve(a: float32[2, 3], b: float32[4])"),
    (lambda: pb.bmm(Y, mat2=Y), "bmm(input: float32[4], mat2=float32[4])"),
    (lambda: np.linalg.cholesky(pb.ones(2, 3)), "numpy.linalg.cholesky(a: float32[2, 3])"),
    (lambda: Y.sum(5), "sum(input: float32[4], dim: 5)"),
    (lambda: Y.reshape(7), "reshape(input: float32[4], 7)"),
    (lambda: Y.view(5, 5), "view(self: float32[4], 5, 5)"),
    (lambda: pb.fft.fft(Y, dim=7), "fft(input: float32[4], dim=7)"),
    (lambda: Y[7], "float32[4] at [7]"),
    (lambda: Y[1:, ..., None, [9]], "float32[4] at [1:, ..., None, [9]]"),
    (lambda: pb.einsum("ij,jk", Y, Y), "einsum('ij,jk', float32[4], float32[4])"),
    (lambda: pb.grad(lambda t: np.sum(t, 2))(np.ones(4)), "numpy.sum(a: float64[4], axis: 2)"),
    (lambda: pb.compile(lambda t: t.reshape(7))(np.ones(4)), "float64[4].reshape(7)"),
    (lambda: pb.vmap(lambda row: row.view(5))(pb.ones(2, 4)), "view(self: float32[4], 5)"),
]


@pytest.mark.parametrize(("call", "expected"), CALLS, ids=[expected for _, expected in CALLS])
def test_what_is_wrong_with_arguments_notes_the_call(call: Callable[[], Any], expected: str) -> None:
    with pytest.raises((ShapeError, DimensionError, ArgumentError)) as raised:
        call()
    assert [note for note in raised.value.__notes__ if "  in " in note] == [f"  in {expected}"]


R, V = np.ones((2, 3)), np.ones(4)
OF_NUMPY: dict[str, Callable[[Any], Any]] = {
    "operator -": lambda x: V - x,
    "operator @": lambda x: x @ np.ones((2, 2)),
    "operator +=": lambda x: written_to(x),
    "operator ~": lambda x: ~x,
    "indexing": lambda x: x[0, 3],
    "ndarray.sum": lambda x: x.sum(axis=2),
    "ndarray.reshape": lambda x: x.reshape(4, 2),
    "numpy.add": lambda x: np.add(x, V),
    "numpy.add.reduce": lambda x: np.add.reduce(x, axis=2),
    "numpy.mean": lambda x: np.mean(x, axis=(0, 0)),
    "numpy.stack": lambda x: np.stack([x, x[0]]),
    "numpy.clip": lambda x: np.clip(x, V, None),
    "numpy.linalg.inv": lambda x: np.linalg.inv(x),
    "numpy.expand_dims": lambda x: np.expand_dims(x, axis=4),
    "float64.reshape": lambda x: x[0, 0].reshape(2),
}


def written_to(x: Any) -> Any:
    y = np.zeros(4)
    y += x
    return y


@pytest.mark.parametrize("name", OF_NUMPY)
@pytest.mark.parametrize("way", [pb.compile, pb.grad])
def test_what_is_wrong_with_arrays_is_said_in_numpys_words(
    name: str, way: Callable[[Any], Callable[[Any], Any]]
) -> None:
    with pytest.raises((TypeError, ValueError, IndexError)) as plain:
        OF_NUMPY[name](R)
    with pytest.raises(PullbackError) as raised:
        way(OF_NUMPY[name])(R)
    words = " ".join(str(plain.value).split()).rstrip(".").removeprefix("matmul: ")
    assert str(raised.value).startswith(f"{name}: {words}.")
    line = re.search(r"\n  at test_functions_errors.py:\d+  (.*)", str(raised.value))
    assert line is not None and (name == "operator +=" or line[1].startswith(f'"{name}"'))


def test_what_numpy_does_not_tell_is_translated_and_large_arrays_are_not_copied() -> None:
    with pytest.raises(DimensionError, match=r"numpy.fft.fft: axis out of range \(expected"):
        pb.grad(lambda x: np.fft.fft(x, axis=3).real.sum())(R)
    large = np.broadcast_to(1.0, (1500, 1500))
    with pytest.raises(ShapeError, match=r"operator \+: operands .* \(1500,1500\) \(4,\)"):
        pb.grad(lambda x: (x + V).sum())(large)


def test_pytorchs_values_have_pytorchs_words() -> None:
    with pytest.raises(ShapeError, match="^add: The size of tensor a"):
        pb.compile(lambda x: x + V)(pb.ones(2, 3))


def test_what_is_wrong_with_the_arguments_of_a_compiled_function_notes_its_call() -> None:
    @pb.compile
    def loss(weights, *, scale=1.0):
        return (weights**2).sum() * scale

    with pytest.raises(pb.errors.DTypeError) as raised:
        pb.grad(loss)(np.ones(2, int), scale=2.0)
    assert "  in loss_grad(weights: int64[2], scale=2.0)" in raised.value.__notes__


@pytest.mark.parametrize(
    "call", [lambda: X + ones(4), lambda: pb.add(X, Y), lambda: pb.sin("a"), lambda: pb.linalg.svd(Y)]
)
def test_a_call_that_the_message_tells_is_not_told_again(call: Callable[[], Any]) -> None:
    with pytest.raises((ShapeError, ArgumentError)) as raised:
        call()
    assert not [note for note in getattr(raised.value, "__notes__", ()) if "  in " in note]


def test_what_code_finds_of_a_matrix_names_the_line() -> None:
    matrix = np.array([[2.0, 0.5, 0.1], [0.3, 1.0, 0.2], [0.0, 0.7, 3.0]])
    compiled = pb.compile(lambda a: np.linalg.eigvals(a))
    compiled(matrix)
    with pytest.raises(np.linalg.LinAlgError) as raised:
        compiled(matrix * np.nan)
    assert "test_functions_errors.py" in "".join(raised.value.__notes__)


def failing(*_: Any) -> Any:
    raise RuntimeError("users' code")


class Odd(int):
    __repr__ = failing


class OddList(list):
    __iter__ = __repr__ = failing


class OddClass(type):
    __getattr__ = failing


HOLDING_ITSELF: list[Any] = [np.ones(2)]
HOLDING_ITSELF.append(HOLDING_ITSELF)
ODD: list[tuple[Any, str | None]] = [
    (Odd(7), None),
    ([Odd(7)], "[Odd]"),
    (slice(Odd(7)), "slice(None, Odd, None)"),
    (10**6000, "int"),
    ([1] * 10**6, f"[{'1, ' * 13}..."),
    ([[[1]]] * 2, "[[list], [list]]"),
    (HOLDING_ITSELF, "[float64[2], [float64[2], list]]"),
    (OddList([1]), None),
    (OddClass("Of", (), {})(), None),
]


@pytest.mark.parametrize(("value", "shown"), ODD, ids=[str(shown) for _, shown in ODD])
def test_what_cannot_be_told_of_an_argument_keeps_no_error_back(value: Any, shown: str | None) -> None:
    with pytest.raises((TypeError, ValueError, IndexError)) as raised:
        pb.bmm(Y, value)
    notes = [note for note in getattr(raised.value, "__notes__", ()) if "  in " in note]
    assert notes == ([] if shown is None else [f"  in bmm(input: float32[4], mat2: {shown})"])


@pytest.mark.parametrize(
    ("module", "name", "remedy"),
    [(pb, "optim", "scipy.optimize"), (pb, "cuda", "CPU"), (pb.nn, "Linear", "pullback.nn.functional")],
)
def test_parts_of_torch_that_are_left_out_say_what_to_do(module: Any, name: str, remedy: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'\. .*{remedy}"):
        getattr(module, name)
