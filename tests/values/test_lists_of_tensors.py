"""Lists that hold Tensors where NumPy takes lists of numbers or arrays: values and gradients are NumPy's."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.signal
import scipy.sparse.linalg

import pullback as pb
from pullback import errors
from pullback.runtime.tracing import stand_ins

X = np.array([0.6, 1.3, 2.1])
W = np.array([1.5, -0.5, 2.0])


def written(x: Any) -> Any:
    y = x * 1.0
    y[:2] = [x[1], x[0] * 3]
    return y


def written_rows(x: Any) -> Any:
    y = np.zeros((3, 3))
    y[0] = x
    y[1] = (x[0], 1.0, x[1])
    y[[2, 0], 1] = [x[2], 2.0]
    y[2, np.array([True, False, True])] = x[0], x[1]
    return y


def written_nested(x: Any) -> Any:
    y = np.zeros((2, 2))
    y[:] = [[x[1], 2.0], [x[0], x[2]]]
    return y


PROGRAMS: list[Callable[[Any], Any]] = [
    written,
    written_rows,
    written_nested,
    lambda x: np.concatenate([[v] for v in x]),
    lambda x: np.concatenate([[x[0], 1.0], x, (x[1],)]),
    lambda x: np.vstack([[x[0], 1.0, 2.0], [x[1], x[2], 3.0]]),
    lambda x: np.column_stack([x, [x[0], 1.0, 2.0]]),
    lambda x: np.linalg.multi_dot([[[x[0], 1.0], [0.0, 1.0]], [[x[1], 2.0], [1.0, 1.0]]]),
    lambda x: np.histogramdd((x, x**2), bins=2, range=2 * [(-9, 20)], weights=x**3)[0],
    lambda x: np.einsum("i,i->", [x[0], x[1]], [x[1], 2.0]),
    lambda x: np.where([True, False], [x[0], 1.0], [x[1], x[2]]),
    lambda x: np.full((3, 2), [x[0], x[1]]),
    lambda x: x * np.size([x[0], x[1]]) * np.shape([x, x])[0] * np.ndim([x, x]),
    lambda x: np.array([x, [1.0, x[0], 3.0]]) @ [x[0], 1.0, 2.0],
    lambda x: np.linalg.solve([[2.0, x[0]], [x[1], 3.0]], [1.0, x[2]]),
    lambda x: np.interp([0.5, 1.5], [0.0, 1.0, 2.0], [x[0], x[1], x[2]]),
    lambda x: np.cov([x, [x[0], 1.0, 2.0]]) + np.average([x[0], x[1]], weights=[x[2], 1.0]),
    lambda x: np.mean([x * k for k in range(3)], axis=0) + np.std([x[0], x[1], x[2]]),
    lambda x: np.add.reduce([x[0], x[1]]) * np.maximum([x[0], x[1]], [1.0, x[2]]),
    lambda x: np.array(deque([x[0], x[1]], maxlen=3)) * np.mean(deque(x, maxlen=2)),
    lambda x: np.stack([deque(x), x]) * np.max([deque([x[0], 1.0]), deque([x[1], x[2]])], axis=0)[0],
    lambda x: abs(np.fft.rfft([x[0], 1.0, x[1], x[2]])),
    lambda x: scipy.integrate.simpson([x[0], x[1], 1.0], x=[0.0, x[2], 3.0]),
    lambda x: scipy.integrate.trapezoid([x[0], 1.0, x[1]], dx=x[2]),
    lambda x: scipy.signal.lfilter([1.0, x[0]], [1.0, 0.1 * x[1]], [x[2], 1.0, 2.0]),
    lambda x: scipy.sparse.linalg.cg(scipy.sparse.diags_array([2.0, 3.0]), [x[0], x[1]], rtol=1e-13)[0],
]


def summed(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def total(x: Any) -> Any:
        found = function(x)
        weights = np.cos(np.arange(1.0, 1 + np.size(found))).reshape(np.shape(found))
        return (weights * found).sum()

    return total


@pytest.mark.parametrize("function", PROGRAMS)
def test_lists_of_tensors(function: Callable[[Any], Any]) -> None:
    total = summed(function)
    steps = np.eye(3) * 1e-6
    expected = [(total(X + step) - total(X - step)) / 2e-6 for step in steps]
    value, gradient = pb.value_and_grad(total)(X)
    np.testing.assert_allclose(value, total(X))
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("function", [written_rows, PROGRAMS[5], PROGRAMS[8], PROGRAMS[9]])
def test_compiled_lists_of_tensors(function: Callable[[Any], Any]) -> None:
    total = summed(function)
    value, gradient = pb.compile(pb.value_and_grad(total))(X)
    np.testing.assert_allclose(value, total(X))
    np.testing.assert_allclose(gradient, pb.grad(total)(X))


def test_a_list_is_written_into_a_tensor_with_its_gradient() -> None:
    x = pb.tensor(X).requires_grad_()
    y = pb.zeros(3, dtype=pb.float64)
    y[1:] = [x[0], x[1] * 2]
    (y * pb.tensor(W)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [-0.5, 4.0, 0.0])


def test_a_list_beside_an_array_is_refused() -> None:
    for function in (lambda x: (W * [x[0], x[1], 1.0]).sum(), lambda x: W @ [x[0], x[1], 1.0]):
        with pytest.raises(errors.GradientError, match=r"W [*@] \[x\[0\].* makes one.*numpy\.stack"):
            pb.grad(function)(X)


@pytest.mark.parametrize("join", [np.concatenate, lambda parts: np.concatenate(parts, axis=0), np.hstack])
def test_a_list_of_tensors_beside_an_array_that_is_written_is_numpys(join: Callable[[Any], Any]) -> None:
    def function(x: Any) -> Any:
        t = np.asarray(x.clone())
        t[0] = 5.0
        return join([t, [x.sum()]]).std()  # PyTorch's would divide by one less

    found, plain = pb.compile(function)(pb.tensor(X)), function(pb.tensor(X))
    assert type(found) is type(plain) and abs(found - plain) < 1e-12


@pytest.mark.parametrize("real", [np.add, np.dot], ids=["ufunc", "function"])
def test_arguments_that_are_no_lists_are_not_looked_into(real: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_into, joined = [], stand_ins.joined
    monkeypatch.setattr(stand_ins, "joined", lambda one: looked_into.append(one) or joined(one))
    called, x = stand_ins.LISTED[real], np.array([1.0, 2.0])
    for one in (x, x[0], 2.0, pb.tensor(x), pb.tensor(3.0, dtype=pb.float64)):
        for given in ((one, x), (x, one)):
            found, expected = called(*given), real(*given)
            assert type(found) is type(expected)
            np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    assert not looked_into
    found = called([pb.tensor(1.0), 2.0], x)
    np.testing.assert_array_equal(np.asarray(found), real([1.0, 2.0], x))
    assert looked_into
