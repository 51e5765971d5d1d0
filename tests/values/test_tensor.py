"""Tensors: what they are, how they are made, dtypes and their promotion, conversion, printing, errors."""

import copy
import itertools
import pickle
import subprocess
import sys

import numpy as np
import pytest

import pullback as pb
from pullback.tracer.errors import ArgumentError, DTypeError, GradientError, ShapeError

DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]


def test_attributes() -> None:
    x = pb.zeros(2, 3)
    assert x.shape == (2, 3) and repr(x.shape) == "torch.Size([2, 3])" and x.shape.numel() == 6
    assert repr(x.shape[1:]) == "torch.Size([3])" and x.size() == (2, 3) and x.size(-1) == 3
    assert (x.ndim, x.dim(), x.numel(), len(x), x.nbytes, x.itemsize) == (2, 2, 6, 2, 24, 4)
    assert x.T.shape == (3, 2) and x.mT.shape == (3, 2) and x.stride() == (3, 1) and x.T.stride() == (1, 3)
    assert x.is_contiguous() and not x.T.is_contiguous() and x.T.contiguous().is_contiguous()
    assert x.dtype == pb.float32 and str(x.device) == "cpu" and x.type() == "torch.FloatTensor"
    assert x.is_leaf and not x.requires_grad and x.grad is None and x.grad_fn is None
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.size(2)
    with pytest.raises(ArgumentError, match="'cuda' does not exist"):
        x.to("cuda")


def test_python_values() -> None:
    assert pb.tensor([[2.5]]).item() == 2.5 and float(pb.tensor(2)) == 2.0 and int(pb.tensor(2.7)) == 2
    assert bool(pb.tensor([True])) and [10, 20][pb.tensor(1)] == 20 and 3 in pb.tensor([1, 3])
    assert f"{pb.tensor(3.14159):.2f}" == "3.14" and f"{pb.tensor([1.0])}" == "tensor([1.])"
    assert [row.tolist() for row in pb.tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    assert hash(pb.ones(2)) != hash(pb.ones(2))


@pytest.mark.parametrize(
    ("use", "kind", "message"),
    [
        (
            lambda: pb.ones(2).item(),
            RuntimeError,
            "Tensor with 2 elements cannot .* to Scalar, at .*test_tensor",
        ),
        (lambda: pb.zeros(2).fill_(pb.ones(2)), RuntimeError, "fill_: the value must have no dimensions"),
        (
            lambda: bool(pb.ones(2)),
            RuntimeError,
            "Boolean value of Tensor with more than one value is ambiguous",
        ),
        (lambda: bool(pb.ones(0)), RuntimeError, "Boolean value of Tensor with no values is ambiguous"),
        (lambda: len(pb.ones(())), TypeError, "len\\(\\) of a 0-d tensor"),
        (lambda: iter(pb.ones(())), TypeError, "iteration over a 0-d tensor"),
        (lambda: [1, 2][pb.tensor(1.0)], TypeError, "only integer tensors of a single element"),
        (
            lambda: setattr(pb.ones(2), "grad", pb.ones(3)),
            RuntimeError,
            "assign a gradient of size '\\[3\\]'",
        ),
        (
            lambda: pb.ones(2, dtype=pb.int64).add_(1.5),
            RuntimeError,
            "result type Float can't be cast to .* Long",
        ),
        (lambda: pb.ones(2).add_(pb.ones(2, 2)), RuntimeError, "output with shape \\[2\\] doesn't match"),
        (lambda: pb.ones(1, 3).expand(2, 3).add_(1), RuntimeError, "refers to a single memory location"),
        (
            lambda: copy.deepcopy(pb.ones(2, requires_grad=True) * 2),
            RuntimeError,
            "Only Tensors created explicitly",
        ),
    ],
)
def test_errors_are_pytorchs(use, kind: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(kind, match=message):
        use()


# --- creation -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, "float32"), (1, "int64"), (True, "bool"), ([1, 2.5], "float32"), ([True, False], "bool"),
        ([], "float32"),
        (np.ones(2), "float64"), (np.float32(1), "float32"), (np.arange(2, dtype=np.int8), "int8"),
        ([np.float64(1)], "float64"), ([[1], [2]], "int64"), (range(3), "int64"),
    ],
)  # fmt: skip
def test_dtype_of_data(data: object, dtype: str) -> None:
    assert pb.tensor(data).dtype.name == dtype


def test_tensors_in_lists() -> None:
    assert pb.tensor([pb.tensor(1.0), pb.tensor(2.0)]).tolist() == [1.0, 2.0]
    assert pb.tensor([pb.tensor(1), pb.tensor(2)]).dtype == pb.int64


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: pb.tensor("abc"), DTypeError, r"tensor\(\): invalid data type 'str'"),
        (lambda: pb.tensor(np.array([object()])), DTypeError, "tensor: data has dtype object"),
        (lambda: pb.from_numpy(np.zeros(1, [("a", int)])), DTypeError, "from_numpy: data has dtype"),
        (lambda: pb.from_numpy(np.array(["a"])), DTypeError, "from_numpy: data has dtype <U1"),
        (lambda: pb.from_numpy([1]), TypeError, r"expected np.ndarray \(got list\)"),
        (lambda: pb.tensor([[1, 2], [3]]), ValueError, "expected sequences of one length"),
        (lambda: pb.zeros(-1), ShapeError, "Dimension size must be non-negative"),
        (lambda: pb.zeros(2.5), TypeError, "a size of integers expected"),
        (lambda: pb.zeros(float("nan")), TypeError, "a size of integers expected"),
        (lambda: pb.arange(0, 5, 0), RuntimeError, "step must be nonzero"),
        (lambda: pb.arange(0, 5, -1), RuntimeError, "inconsistent with step sign"),
        (lambda: pb.ones(2, dtype=object), DTypeError, "ones: dtype object is not supported"),
        (lambda: pb.ones(2, dtype="nothing"), DTypeError, "is no dtype"),
        (
            lambda: pb.ones(2, dtype=pb.int64, requires_grad=True),
            GradientError,
            "Only Tensors of floating point",
        ),
        (lambda: pb.set_default_dtype(pb.int64), TypeError, "only floating-point types"),
        (lambda: pb.randint(3, 3, (2,)), ValueError, "expects 'from' to be less than 'to'"),
        (lambda: pb.full((2,), 300, dtype=pb.int8), DTypeError, "300 is no int8"),
    ],
)
def test_bad_data(make, kind: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(kind, match=message):
        make()


def test_memory_is_shared_or_not() -> None:
    array = np.zeros(2)
    shared, copied = pb.from_numpy(array), pb.tensor(array)
    array[0] = 1
    assert shared.tolist() == [1.0, 0.0] and copied.tolist() == [0.0, 0.0]
    shared += 1
    assert array.tolist() == [2.0, 1.0] and shared.numpy() is array
    x = pb.ones(2, requires_grad=True)
    x.detach()[0] = 5
    x.data[1] = 6
    assert x.tolist() == [5.0, 6.0]
    assert pb.as_tensor(x) is x and pb.as_tensor(array).numpy() is array


def test_ranges() -> None:
    assert pb.arange(5).tolist() == [0, 1, 2, 3, 4] and pb.arange(5).dtype == pb.int64
    assert pb.arange(1, 2, 0.25).tolist() == [1.0, 1.25, 1.5, 1.75] and pb.arange(5, 0, -2).tolist() == [
        5,
        3,
        1,
    ]
    assert pb.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1] and pb.linspace(3, 4, 1).tolist() == [3]
    assert pb.logspace(0, 2, 3).tolist() == [1, 10, 100]
    assert pb.linspace(4.7, 9.9, 5, dtype=pb.int64).tolist() == [4, 5, 6, 7, 9]  # from 4 to 9, as PyTorch's
    assert pb.logspace(0.5, 2.9, 3, dtype=pb.int32).tolist() == [1, 10, 100]
    with pytest.raises(pb.errors.ArgumentError, match="not finite"):
        pb.linspace(0, float("inf"), 3, dtype=pb.int64)
    assert pb.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]


def test_like_and_new() -> None:
    x = pb.ones(2, 3, dtype=pb.float64)
    assert pb.zeros_like(x).dtype == pb.float64 and pb.ones_like(x, dtype=pb.int32).dtype == pb.int32
    assert pb.full_like(x, 2).tolist() == [[2.0] * 3] * 2 and pb.empty_like(x).shape == (2, 3)
    assert x.new_zeros(2).dtype == pb.float64 and x.new_tensor([1]).dtype == pb.float64
    assert x.new_full((2,), 3).tolist() == [3.0, 3.0] and x.new_ones((1, 2)).shape == (1, 2)


def test_older_constructors() -> None:
    assert pb.FloatTensor([1, 2]).dtype == pb.float32 and pb.LongTensor(2).shape == (2,)
    assert pb.Tensor(2, 3).shape == (2, 3) and pb.Tensor([1, 2]).dtype == pb.float32
    assert isinstance(pb.ones(1), pb.FloatTensor) and not isinstance(pb.ones(1), pb.DoubleTensor)
    assert isinstance(pb.ones(1), pb.Tensor) and pb.is_tensor(pb.ones(1))


def test_random_numbers_repeat_with_their_seed() -> None:
    def all_kinds() -> list[object]:
        pb.manual_seed(7)
        made = [pb.rand(3), pb.randn(3), pb.randint(10, (3,)), pb.randperm(5), pb.normal(0.0, 1.0, (2,))]
        made += [pb.rand_like(pb.ones(2)), pb.randn_like(pb.ones(2)), pb.bernoulli(pb.full((4,), 0.5))]
        return [one.tolist() for one in made]

    assert all_kinds() == all_kinds()
    state = pb.get_rng_state()
    first = pb.randn(2).tolist()
    pb.set_rng_state(state)
    assert pb.randn(2).tolist() == first
    generator = pb.Generator().manual_seed(3)
    assert pb.rand(2, generator=generator).tolist() != pb.rand(2, generator=generator).tolist()
    assert pb.randn(1000).std().item() == pytest.approx(1, abs=0.2) and pb.rand(1000).mean() < 0.6
    assert set(pb.randint(2, 4, (50,)).tolist()) == {2, 3} and pb.randn(2, dtype=pb.float16).dtype == pb.half


# --- dtypes -------------------------------------------------------------------------------------------------


def test_dtype_objects() -> None:
    assert repr(pb.float) == "torch.float32" and pb.float == pb.float32 == np.float32 == pb.float
    assert np.dtype("float32") == pb.float32 and np.zeros(2, pb.float64).dtype == np.float64
    assert {pb.float32: 1}[np.dtype("float32")] == 1 and pb.float32 != pb.float64 and pb.float32 != None  # noqa: E711
    assert pb.int64.itemsize == 8 and pb.half.is_floating_point and not pb.long.is_floating_point
    assert pickle.loads(pickle.dumps(pb.int8)) is pb.int8
    assert pb.finfo(pb.float32).eps == np.finfo(np.float32).eps and pb.iinfo(pb.int8).max == 127


def test_the_default_dtype() -> None:
    pb.set_default_dtype(pb.float64)
    try:
        assert pb.tensor(1.0).dtype == pb.ones(1).dtype == pb.get_default_dtype() == pb.float64
        assert repr(pb.tensor(1.0)) == "tensor(1.)"
        assert pb.tensor(2).sqrt().dtype == pb.float64
    finally:
        pb.set_default_dtype(pb.float32)
    assert pb.ones(1).dtype == pb.float32


def test_conversions() -> None:
    x = pb.tensor([1.5, -2.5], requires_grad=True)
    assert x.long().tolist() == [1, -2] and x.bool().tolist() == [True, True] and x.float() is x
    assert x.double().grad_fn.name() == "ToCopyBackward0" and x.to(pb.int32).dtype == pb.int32
    assert x.to(pb.ones(1, dtype=pb.float64)).dtype == pb.float64 and x.to("cpu") is x and x.cpu() is x
    assert x.to(pb.float32, copy=True) is not x and x.type(pb.float64).dtype == pb.float64


def test_copies() -> None:
    x = pb.tensor([1.0], requires_grad=True)
    (x * 2).sum().backward()
    copied = copy.deepcopy(x)
    assert copied is not x and copied.requires_grad and copied.grad.tolist() == [2.0]
    restored = pickle.loads(pickle.dumps(x))
    assert restored.tolist() == [1.0] and restored.requires_grad and restored.grad.tolist() == [2.0]
    assert x.clone().grad_fn.name() == "CloneBackward0"


@pytest.mark.parametrize(("a", "b"), list(itertools.product(DTYPES, DTYPES)))
def test_promotion_is_pytorchs(a: str, b: str) -> None:
    torch = pytest.importorskip("torch")
    assert repr(pb.promote_types(a, b)) == repr(torch.promote_types(getattr(torch, a), getattr(torch, b)))
    for shape, other in itertools.product([(), (2,)], [(), (2,)]):
        ours = pb.result_type(pb.ones(shape, dtype=a), pb.ones(other, dtype=b))
        theirs = torch.result_type(
            torch.ones(shape, dtype=getattr(torch, a)), torch.ones(other, dtype=getattr(torch, b))
        )
        assert repr(ours) == repr(theirs)
    for number in (True, 1, 1.5):
        ours, theirs = pb.ones(2, dtype=a), torch.ones(2, dtype=getattr(torch, a))
        assert repr(pb.result_type(ours, number)) == repr(torch.result_type(theirs, number))


# --- printing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: pb.ones(2, 2, requires_grad=True),
            "tensor([[1., 1.],\n        [1., 1.]], requires_grad=True)",
        ),
        (lambda: pb.ones(1, requires_grad=True) + 2, "tensor([3.], grad_fn=<AddBackward0>)"),
        (lambda: pb.ones(1, dtype=pb.float64), "tensor([1.], dtype=torch.float64)"),
        (lambda: pb.tensor([True]), "tensor([True])"),
        (lambda: pb.tensor(3), "tensor(3)"),
    ],
)
def test_printing(make, text: str) -> None:  # type: ignore[no-untyped-def]
    assert repr(make()) == str(make()) == text


def test_methods_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    from pullback.runtime.methods.ndarray_methods import NDARRAY_METHODS
    from pullback.runtime.numpy_api.array_methods import NUMPY_METHODS

    own = {"apply", "cbrt", "expit", "payload", "rank", "refresh", "rsub"}
    ours = {name for name in dir(pb.Tensor) if not name.startswith("_")}
    assert {name for name in ours if not hasattr(torch.Tensor, name)} <= own | {
        *NDARRAY_METHODS,
        *NUMPY_METHODS,
    }


def test_everything_exported_exists() -> None:
    assert all(hasattr(pb, name) for name in pb.__all__)
    assert len(set(pb.__all__)) == len(pb.__all__)


def test_import_is_light() -> None:
    program = (
        "import sys, pullback; print({'scipy', 'numba', 'jinja2', 'optree', 'rich'} & sys.modules.keys())"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"


def test_what_most_programs_do_without_is_imported_late() -> None:
    program = """
import sys, numpy as np, pullback as pb
late = ("runtime.scipy_api", "runtime.solvers.roots", "runtime.testing", "debug")
print([name for name in late if f"pullback.{name}" in sys.modules])
assert {"solve_ivp", "profile", "testing"} <= set(dir(pb))
print(pb.quad(lambda x: x, 0.0, 2.0)[0], pb.testing.__name__, pb.debug.__name__)
import scipy.special
print(round(pb.grad(lambda x: scipy.special.betaln(x, 2.0))(1.0), 12))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n2.0 pullback.testing pullback.debug\n-1.5\n"


def test_dropout_keeps_the_mean() -> None:
    pb.manual_seed(0)
    x = pb.tensor(np.ones(4000), requires_grad=True)
    found = pb.dropout(x, 0.25)
    assert set(found.tolist()) == {0.0, 1 / 0.75}
    assert abs(found.mean().item() - 1.0) < 0.05
    found.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), found.detach().numpy())


def test_a_view_made_without_gradients_is_not_written_to_where_they_are_recorded() -> None:
    base, weights = pb.ones(3, requires_grad=True) * 1, pb.ones(2, requires_grad=True)
    constant = pb.ones(3)
    with pb.no_grad():
        view, other = base[:2], constant[:2]
        view.mul_(2)
    for write in (lambda: view.mul_(2), lambda: view.__setitem__(0, 1.0), lambda: other.mul_(weights)):
        with pytest.raises(GradientError, match="created in no_grad mode"):
            write()
    other.mul_(2)
    base.detach()[:1].mul_(3)
    assert base.tolist() == [6, 2, 1] and constant.tolist() == [2, 2, 1]


def test_data_of_a_tensor_with_gradient_are_floating() -> None:
    leaf = pb.ones(2, requires_grad=True)
    for data in (pb.tensor([1, 2]), pb.tensor([True, False])):
        with pytest.raises(DTypeError, match="must be floating point"):
            leaf.data = data
    leaf.data = pb.zeros(3)
    assert leaf.tolist() == [0, 0, 0]
