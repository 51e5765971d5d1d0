"""`np.nditer` over arrays that are differentiated or traced: in the order of memory, elements are views."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy_checks import check
from uncompiled import uncompiled

import pullback as pb

MATRIX = np.array([[0.3, -1.2, 0.7], [1.1, 0.4, -0.6]])


def written(a):
    a = a.copy()
    with np.nditer(a, flags=["multi_index"], op_flags=["readwrite"]) as it:
        for x in it:
            x[...] = x**2 * (1 + it.multi_index[1])
    return (a * np.arange(6.0).reshape(2, 3)).sum()


def of_several(a):
    it = np.nditer([a, a[0] * 2.0, None])
    for x, y, z in it:
        z[...] = x * y
    return (it.operands[2] * np.arange(6.0).reshape(2, 3)).sum()


def in_order_of_memory(a):
    total = 0.0
    for array in (a.T, a[::-1], a[:, ::2]):
        for x in np.nditer(array):
            total = 0.5 * total + x**2
    for x in np.nditer(a.T, order="C"):
        total = 0.9 * total + x
    return total


def by_steps(a):
    it, out = np.nditer(a, flags=["f_index"], op_flags=["readwrite"]), np.zeros(a.size)
    while not it.finished:
        out[it.index] = it[0] ** 2
        it.iternext()
    return (out * np.arange(6.0)).sum()


@pytest.mark.parametrize("function", [written, of_several, in_order_of_memory, by_steps])
@pytest.mark.usefixtures("uncompiled")
def test_elements_are_visited_as_by_numpy(function: Callable) -> None:
    check(function, MATRIX)
    check(lambda a: function(np.asfortranarray(a)), MATRIX)


def test_copies_of_elements_are_refused() -> None:
    with (
        uncompiled(),
        pytest.raises(pb.errors.UnsupportedError, match="numpy.nditer: external_loop is not supported"),
    ):
        pb.compile(lambda a: sum(x.sum() for x in np.nditer(a, flags=["external_loop"])))(MATRIX)
