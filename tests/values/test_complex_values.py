"""Complex numbers as values: how they are made, printed, promoted, viewed and written; what refuses them."""

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import errors

pytestmark = pytest.mark.part(8)

Z = np.array([1 + 2j, -3.5 + 0.5j, 2 - 1j])
M = np.array([[1 + 2j, 3 - 1j], [0.5j, -2 + 1j]])
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")


def test_constructors() -> None:
    assert pb.tensor([1 + 2j]).dtype == pb.complex64 and pb.tensor(1j).dtype == pb.complex64
    assert pb.tensor(Z).dtype == pb.complex128 and pb.tensor([1j, 2], dtype=pb.complex128).tolist() == [1j, 2]
    assert pb.zeros(2, dtype=pb.cfloat).tolist() == [0j, 0j]
    assert pb.ones(1, dtype=complex).tolist() == [1 + 0j]
    assert pb.full((2,), 1j).tolist() == [1j, 1j] and pb.eye(2, dtype=pb.cdouble).dtype == pb.complex128
    assert pb.randn(1000, dtype=pb.complex64).abs().pow(2).mean().item() == pytest.approx(1.0, abs=0.2)
    assert pb.rand(5, dtype=pb.complex128).dtype == pb.complex128
    assert pb.complex(pb.tensor([1.0]), pb.tensor([2.0])).tolist() == [1 + 2j]
    np.testing.assert_allclose(pb.polar(pb.tensor([2.0]), pb.tensor([np.pi / 2])).numpy(), [2j], atol=1e-6)
    assert pb.from_numpy(Z).dtype == pb.complex128 and pb.as_tensor(Z)._value is Z
    assert pb.tensor([pb.tensor(1j), pb.tensor(2.0)]).dtype == pb.complex64
    assert pb.tensor(Z).item is not None and complex(pb.tensor(2j)) == 2j and pb.tensor(2j).item() == 2j


def test_random_numbers_in_place_are_of_both_parts() -> None:
    z = pb.zeros(20000, dtype=pb.complex128).normal_(1.0, 2.0)
    for one in (z.real, z.imag):
        assert one.mean().item() == pytest.approx(1.0, abs=0.05)
        assert one.std().item() == pytest.approx(np.sqrt(2), abs=0.05)
    u = pb.zeros(1000, dtype=pb.complex64).uniform_(-1, 3)
    assert u.dtype == pb.complex64 and (u.real - u.imag).abs().max().item() > 1
    assert all(bool(((part >= -1) & (part < 3)).all()) for part in (u.real, u.imag))
    with pytest.raises(errors.DTypeError, match="expected a floating point dtype"):
        u.exponential_()


def test_what_tensors_say_of_themselves() -> None:
    z, x = pb.tensor(Z), pb.tensor([1.0])
    assert z.is_complex() and pb.is_complex(z) and z.dtype.is_complex and not z.is_floating_point()
    assert not x.is_complex() and not x.dtype.is_complex and z.dtype.is_signed
    assert pb.isreal(pb.tensor([1 + 0j, 1j])).tolist() == [True, False] and not z.is_conj()
    assert np.iscomplexobj(z) and not np.isrealobj(z) and np.iscomplexobj(Z)
    assert pb.complex64.to_real() == pb.float32 and pb.float64.to_complex() == pb.complex128
    assert pb.finfo(pb.complex64).dtype == "float32" and str(pb.complex64) == "torch.complex64"
    assert z.type() == "torch.ComplexDoubleTensor"


def test_printed_as_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    for values in (Z, M, Z.astype(np.complex64), np.array(1j), np.array([1e-9 + 1e5j, 3])):
        assert repr(pb.tensor(values)) == repr(torch.tensor(values))
    assert repr(pb.tensor(Z, requires_grad=True) * 2) == repr(torch.tensor(Z, requires_grad=True) * 2)


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", ["complex64", "complex128"])
def test_promotion_is_pytorchs(a: str, b: str) -> None:
    torch = pytest.importorskip("torch")
    for shapes in (((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())):
        ours = [pb.zeros(*shape, dtype=getattr(pb, name)) for shape, name in zip(shapes, (a, b))]
        theirs = [torch.zeros(shape, dtype=getattr(torch, name)) for shape, name in zip(shapes, (a, b))]
        if torch.result_type(*theirs) != torch.complex32:  # half precision by parts is not here
            assert str(pb.result_type(*ours)) == str(torch.result_type(*theirs))
            assert str((ours[0] + ours[1]).dtype) == str((theirs[0] + theirs[1]).dtype)
    if a != "float16":
        tensors = pb.zeros(2, dtype=getattr(pb, a)), torch.zeros(2, dtype=getattr(torch, a))
        assert str((tensors[0] * 1j).dtype) == str((tensors[1] * 1j).dtype)


@pytest.mark.parametrize("name", DTYPES)
def test_promotion_of_arrays_is_numpys(name: str) -> None:
    x = np.ones(2, name)
    for other in (1j, np.complex64(1j), np.ones(2, np.complex64), np.ones(2, complex)):
        wanted = x * other
        value, _ = pb.vjp(lambda w, x=x, other=other: (x * other) * w, np.ones(2, np.float32))
        assert value.dtype == (wanted * np.ones(2, np.float32)).dtype
        inside, _ = pb.vjp(lambda w, x=x, other=other: np.multiply(w, other), np.ones(2, np.float32))
        assert inside.dtype == np.multiply(np.ones(2, np.float32), other).dtype


def test_views_share_memory() -> None:
    z = pb.tensor(M)
    z.real[0] = 7.0
    z.imag[:, 1] *= 2
    pb.view_as_real(z)[1, 0, 0] = -1.0
    np.testing.assert_array_equal(z.numpy(), [[7 + 2j, 7 - 2j], [-1 + 0.5j, -2 + 2j]])
    pairs = pb.tensor(np.zeros((2, 2)))
    pb.view_as_complex(pairs)[1] = 3 + 4j
    np.testing.assert_array_equal(pairs.numpy(), [[0, 0], [3, 4]])
    assert pb.view_as_real(z.T).shape == (2, 2, 2) and pb.view_as_real(z)._value.base is not None
    z.real = 0.0
    assert not z.real.any()


def test_parts_of_arrays_in_transforms() -> None:
    def function(z: Any) -> Any:
        z = z * 1
        z.imag[0] = 5.0
        z.real += 1
        return z.conj() + z.conjugate().T + np.conj(z)

    value, _ = pb.vjp(function, Z)
    np.testing.assert_allclose(value, function(Z.copy()))


def test_casts_discard_with_a_warning() -> None:
    with pytest.warns(np.exceptions.ComplexWarning):
        assert pb.tensor(Z).to(pb.float64).tolist() == [1.0, -3.5, 2.0]
    assert pb.tensor([1.0]).to(pb.complex128).tolist() == [1 + 0j]
    assert pb.tensor([1]).cfloat().dtype == pb.complex64
    assert pb.tensor([1]).cdouble(memory_format=pb.preserve_format).dtype == pb.complex128
    assert pb.tensor([1.0]).to(pb.complex64, memory_format=pb.contiguous_format).dtype == pb.complex64
    assert pb.tensor(2j).__rdiv__(1).item() == -0.5j
    x = pb.tensor([1.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        abs(x.to(pb.complex128) * 3j).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0]


def test_indexing_joining_and_writing() -> None:
    z = pb.tensor(M)
    assert z[0, 1].item() == 3 - 1j and z[z.real > 0].tolist() == [1 + 2j, 3 - 1j]
    np.testing.assert_array_equal(pb.cat([z, z.conj()]).numpy(), np.concatenate([M, M.conj()]))
    assert pb.stack([z, z]).dtype == pb.complex128 and pb.cat([z, pb.ones(1, 2)]).dtype == pb.complex128
    z[0] = 1j
    z[1, pb.tensor([0])] = pb.tensor([2.0 + 1j], dtype=pb.complex128)
    np.testing.assert_array_equal(z.numpy(), [[1j, 1j], [2 + 1j, -2 + 1j]])
    np.testing.assert_array_equal(pb.where(z.imag == 1, z, 0j).numpy(), z.numpy())
    found = pb.zeros(2, dtype=pb.complex128).index_add(0, pb.tensor([1, 1]), pb.tensor(Z[:2]))
    np.testing.assert_allclose(found.numpy(), [0, Z[0] + Z[1]])
    assert z.mH.tolist() == np.conj(z.numpy().T).tolist() == z.H.tolist() == z.adjoint().tolist()
    x = pb.zeros(2)
    with pytest.raises(errors.DTypeError, match="result type ComplexFloat can't be cast"):
        x += 1j


@pytest.mark.parametrize(
    "function", [pb.conj, pb.adjoint, lambda z: z.mH, lambda z: z.H[0], lambda z: z.conj()]
)
def test_conjugates_are_not_written_to(function: Callable[[Any], Any]) -> None:
    """In PyTorch the tensor itself would change."""
    z = pb.tensor(M)
    conjugates = function(z)
    for write in (lambda: conjugates.mul_(2), lambda: conjugates.real.zero_()):
        with pytest.raises(errors.MutationError, match="not to be written to.*conj_physical"):
            write()
    np.testing.assert_array_equal(z.numpy(), M)
    for own in (conjugates.clone(), conjugates.resolve_conj(), conjugates * 1, pb.conj_physical(z)):
        own[0] = 7.0
    np.testing.assert_array_equal(np.asarray(function(z)), np.asarray(function(pb.tensor(M))))
    x = pb.ones(2, 2)
    pb.conj(x)[0] = x.mH[1] = 5.0
    assert x.tolist() == [[5, 5], [1, 5]]


CUTS = np.array([complex(a, b) for a in (-2.0, -1.0, -0.5, 0.0, 0.5, 2.0) for b in (-1.0, -0.0, 0.0, 1.0)])


@pytest.mark.parametrize(
    "name",
    ["sqrt", "log", "log2", "log10", "log1p", "exp", "expm1", "arcsin", "arccos", "arctan", "arcsinh",
     "arccosh", "arctanh", "sin", "tanh"],
)
def test_branch_cuts_are_numpys(name: str) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(getattr(np, name)(pb.tensor(CUTS)).numpy(), getattr(np, name)(CUTS))


FUNCTIONS: list[Callable[[Any], Any]] = [
    np.sum, np.prod, np.mean, np.std, np.var, np.cumsum, np.cumprod, np.abs, np.angle, np.real, np.imag,
    np.conj, np.conjugate, np.negative, np.positive, np.square, np.reciprocal, np.isfinite, np.isnan,
    np.isreal, np.iscomplex, np.count_nonzero, np.any, np.all, np.trace, np.transpose, np.diag, np.tril,
    np.ravel, np.flip, np.linalg.inv, np.linalg.det, np.linalg.norm, np.linalg.cond, np.linalg.svdvals,
    np.linalg.matrix_rank, np.linalg.eigvals, np.cov, np.corrcoef, np.sinc, np.nan_to_num, np.diff,
    np.real_if_close, np.sign, lambda a: np.vdot(a, a**2), lambda a: np.inner(a, a),
    lambda a: np.outer(a, a), lambda a: np.kron(a, a), lambda a: np.dot(a, a), lambda a: np.tensordot(a, a),
    lambda a: np.einsum("ij,kj->ik", a, np.conj(a)), lambda a: np.vecdot(a, 1j * a),
    lambda a: np.correlate(a[0], a[1] * 1j, "full"), lambda a: np.gradient(a[0]),
    lambda a: np.convolve(a[0], a[1]), lambda a: np.linalg.slogdet(a)[0],
    lambda a: np.linalg.solve(a, a[:, 0]), lambda a: np.where(a.real > 0, a, 1j),
    lambda a: np.isclose(a, a + 1e-12), lambda a: np.round(a.real), lambda a: np.linalg.matrix_power(a, 3),
    lambda a: np.linalg.pinv(a[:, :1]), lambda a: a.T @ a.conj(),
    lambda a: np.linalg.lstsq(a[:, :1], a, rcond=None)[0],
    lambda a: np.linalg.lstsq(a[:, :1], a, rcond=None)[1], lambda a: np.linalg.eigvalsh(a),
    lambda a: np.abs(np.linalg.eigh(a)[1]), lambda a: a ** (1 + 1j), lambda a: np.power(a, 2),
    lambda a: np.trapezoid(a), lambda a: np.average(a, axis=0, weights=[1.0, 2.0]), lambda a: np.pad(a, 1),
    lambda a: np.roll(a, 1), lambda a: np.unwrap(np.angle(a)), lambda a: a / np.abs(a), lambda a: 2**a,
    lambda a: np.exp2(a), lambda a: 1j * a + 2, lambda a: a == a.conj(), lambda a: a != 1j,
    lambda a: np.linalg.qr(a)[0] @ np.linalg.qr(a)[1], lambda a: np.linalg.norm(a, 1),
    lambda a: np.ptp(np.abs(a)), lambda a: np.linalg.multi_dot([a, a, a]), lambda a: abs(a),
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_numpys_functions_give_what_numpy_gives(function: Callable[[Any], Any]) -> None:
    wanted = function(M)
    found: list[Any] = []

    def kept(a: Any) -> Any:
        found.append(np.asarray(pb.stop_gradient(function(a))))
        return np.abs(a).sum()

    pb.vjp(kept, M)
    np.testing.assert_allclose(found[0], wanted, atol=1e-12)
    assert found[0].dtype == np.asarray(wanted).dtype


@pytest.mark.parametrize(
    "call",
    [
        lambda z: z < z, lambda z: z >= 1, lambda z: pb.max(z), lambda z: z.min(dim=0),
        lambda z: pb.argmax(z), lambda z: pb.sort(z), lambda z: pb.maximum(z, z), lambda z: pb.clamp(z, 0),
        lambda z: z // 2, lambda z: z % 2, lambda z: pb.floor(z), lambda z: pb.round(z),
        lambda z: pb.sign(z), lambda z: pb.erf(z), lambda z: pb.atan2(z, z), lambda z: pb.relu(z),
        lambda z: pb.softmax(z, 0), lambda z: pb.median(z), lambda z: pb.topk(z, 1), lambda z: pb.unique(z),
        lambda z: pb.cummax(z, 0), lambda z: pb.lgamma(z),
        lambda z: np.arctan2(z, z), lambda z: np.floor(z),
        lambda z: np.interp(z, z, z), lambda z: pb.logical_and(z, z) | (z < 1),
    ],
)  # fmt: skip
def test_what_orders_or_rounds_refuses(call: Callable[[Any], Any]) -> None:
    with pytest.raises((errors.DTypeError, errors.UnsupportedError)) as caught:
        call(pb.tensor(Z))
    assert "complex" in str(caught.value)


@pytest.mark.parametrize("call", [float, int, operator.index, lambda z: z.__floor__()])
def test_no_real_number_is_made_of_a_complex_one(call: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, RuntimeError)):
        call(pb.tensor(1j))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.complex(pb.tensor([1]), pb.tensor([2])), r"complex\(\): Expected both inputs to be"),
        (lambda: pb.complex(pb.ones(1), pb.ones(1, dtype=pb.float64)), "one dtype but got real of float32"),
        (lambda: pb.imag(pb.ones(2)), "imag is not implemented for tensors with non-complex dtypes"),
        (lambda: pb.ones(2).imag, "imag is not implemented for tensors with non-complex dtypes"),
        (lambda: pb.view_as_real(pb.ones(2)), "only supported for complex tensors"),
        (lambda: pb.view_as_complex(pb.ones(2, dtype=pb.int64)), "only supported for float32 and float64"),
        (lambda: pb.matmul(pb.tensor(M), pb.ones(2, 2)), "ComplexDouble of shape"),
        (lambda: pb.set_default_dtype(pb.complex64), "only floating-point types"),
        (lambda: pb.tensor(M).chalf(), r"chalf\(\): there are no such numbers here.*Use cfloat\(\)"),
        (lambda: pb.ones(2).bfloat16(), r"bfloat16\(\): there are no such numbers here.*Use float\(\)"),
    ],
)  # fmt: skip
def test_wrong_dtypes(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(errors.DTypeError, match=message):
        call()
