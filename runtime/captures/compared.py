"""Which memory guards compare in each call: what shows it is a constant as long as they hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided


def covers(compared: Sequence[np.ndarray], array: np.ndarray) -> bool:
    """Whether each element of an array lies in the memory that others show.

    Example:
        >>> table = np.zeros((2, 3))
        >>> covers([table[0], table[1]], table.T), covers([table[0]], table.T)
        (True, False)
    """
    root = _root(array)
    others = [one for one in compared if _root(one) is root]
    if not others or not root.flags.forc:
        return False
    is_shown = np.zeros(root.nbytes, bool)
    for one in others:
        _bytes_of(one, root, is_shown)[...] = True
    return bool(_bytes_of(array, root, is_shown).all())


def _root(array: np.ndarray) -> np.ndarray:
    """The array whose memory one shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _bytes_of(view: np.ndarray, root: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """The marks of the bytes of a view, of a mark for each byte of its root."""
    start = view.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return as_strided(marks[start:], (*view.shape, view.itemsize), (*view.strides, 1))
