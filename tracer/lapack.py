"""Functions of LAPACK, called where SciPy has them: the pointers of `scipy.linalg.cython_lapack`.

Eager code calls them by ctypes, machine code directly (`codegen/lapack.py`): the same routine, driver and
layout. A routine is declared by its arguments in LAPACK's order, from which every way to call it follows.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import math
import sys
from dataclasses import dataclass
from functools import cached_property
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

LETTERS = {"float32": "s", "float64": "d"}
EXTENTS = ("m", "n")
WORKSPACE = ("work", "lwork", "iwork", "liwork")
CHECKED = "w"
SMALL = 6
"""Columns up to which a decomposition by loops in generated code takes no longer than LAPACK's ..."""
SMALL_TRIANGLE = 16
"""... and one by reflections."""
INTEGERS = 8
"""For each column so many integers of workspace, where a routine does not say how many it needs."""


@dataclass(frozen=True)
class Routine:
    """A function of LAPACK with some of its letters.

    `text` are its arguments: letters, the extents m and n, arrays by column, workspace that it says the size
    of, and `info`. Of failure tells the first number of the array w, which is then nan.
    """

    name: str
    function: str
    text: str

    @property
    def tokens(self) -> list[str]:
        return self.text.split()

    @cached_property
    def parameters(self) -> list[str]:
        """What a call is given: extents and arrays, in the order in which they come first."""
        return [
            one
            for one in dict.fromkeys(self.tokens)
            if one.islower() and one not in WORKSPACE and one != "info"
        ]

    def __call__(self, *given: Any) -> None:
        """Call it for one matrix: integers for extents, arrays whose elements lie side by side."""
        self.of_each(1, *given)

    def of_each(self, count: int, *given: Any) -> None:
        """Call it for so many matrices: each array holds one after the other."""
        extents = tuple([one for name, one in zip(self.parameters, given) if name in EXTENTS])
        arrays = {name: one for name, one in zip(self.parameters, given) if name not in EXTENTS}
        _prepared(self, arrays[CHECKED].dtype.name, extents)(count, arrays)


class _Prepared:
    """A routine for matrices of one dtype and size: what is the same in all its calls."""

    def __init__(self, routine: Routine, dtype: str, extents: tuple[int, ...]) -> None:
        tokens = routine.tokens
        self.function = _callable(LETTERS[dtype] + routine.function, len(tokens))
        names = [one for one in routine.parameters if one in EXTENTS]
        numbers = {**dict(zip(names, extents)), "lwork": -1, "liwork": -1, "iwork": 0, "info": 0}
        integers = {name: ctypes.c_int(one) for name, one in numbers.items()}
        letters = {one: ctypes.c_char(one.encode()) for one in tokens if one.isupper()}
        self.kept = integers | letters
        self.fixed = {name: ctypes.addressof(one) for name, one in self.kept.items()}
        asked = np.zeros(1, dtype)
        self.function(*[self.fixed.get(one, asked.ctypes.data) for one in tokens])  # how much workspace
        integers["lwork"].value = enough(int(asked[0]))
        integers["liwork"].value = max(integers["iwork"].value, INTEGERS * numbers["n"])
        self.work = 8 * integers["lwork"].value
        self.room = self.work + 4 * integers["liwork"].value
        self.tokens = tokens

    def __call__(self, count: int, arrays: dict[str, np.ndarray]) -> None:
        """For each of so many matrices in arrays; of failure tells nan."""
        info, room = ctypes.c_int(), np.empty(self.room, np.uint8)
        places = self.fixed | {name: one.__array_interface__["data"][0] for name, one in arrays.items()}
        places["info"] = ctypes.addressof(info)
        places["work"] = room.__array_interface__["data"][0]
        places["iwork"] = places["work"] + self.work
        steps = [(name, one.nbytes // count) for name, one in arrays.items()] if count > 1 else []
        for place in range(count):
            self.function(*[places[one] for one in self.tokens])
            if info.value != 0:
                arrays[CHECKED].reshape(count, -1)[place, 0] = math.nan
            for name, step in steps:
                places[name] += step


_prepared = functools.lru_cache(maxsize=1024)(_Prepared)


def enough(size: int) -> int:
    """At least the workspace that was asked for, whose size a float32 may have rounded."""
    return size + (size >> 20) + 1


WITH_VECTORS = "V L n a n w work lwork iwork liwork info"
TALL = "m n a m w u m v n work lwork iwork info"
ROUTINES = {
    one.name: one
    for one in (
        Routine("eigenvectors", "syevd", WITH_VECTORS),
        Routine("eigenvalues", "syevd", WITH_VECTORS.replace("V", "N")),
        Routine("singular_vectors", "gesdd", f"S {TALL}"),
        Routine("singular_vectors_in_place", "gesdd", "O m n a m w a m v n work lwork iwork info"),
        Routine("singular_values", "gesdd", "N m n a m w a m a n work lwork iwork info"),
        Routine("reflections", "gelqf", "n m a n w work lwork info"),
        Routine("orthonormal_rows", "orglq", "n m n a n w work lwork info"),
    )
}


# --- SciPy's pointers -------------------------------------------------------------------------------------


@functools.cache
def _callable(name: str, count: int) -> Any:
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(address_of("cython_lapack", name))


@functools.cache
def address_of(module: str, name: str) -> int:
    """Where a function of `scipy.linalg.cython_blas` or `scipy.linalg.cython_lapack` is."""
    capsule = cython_module(module).__pyx_capi__[name]
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get_pointer(capsule, get_name(capsule)))


@functools.cache
def cython_module(name: str) -> ModuleType:
    """`scipy.linalg.cython_blas`, say, without the rest of `scipy.linalg`, whose import takes 0.2 s."""
    name = f"scipy.linalg.{name}"
    if "scipy.linalg" in sys.modules:
        return importlib.import_module(name)
    import scipy  # not before it is needed

    spec = PathFinder.find_spec(name, [str(Path(scipy.__file__).parent / "linalg")])
    if spec is None or spec.loader is None:
        return importlib.import_module(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop(name, None)  # whoever imports scipy.linalg gets the same module, and as its attribute
    return module
