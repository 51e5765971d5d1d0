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
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .forks import kept
from .records import record
from .spec import real_dtype

LETTERS = {"float32": "sc", "float64": "dz"}
"""By dtype those of real numbers, and of complex ones whose parts they are."""
EXTENTS = ("m", "n")
OF_COMPLEX = ("rwork", "lrwork")
OF_REAL = ("wi",)
WORKSPACE = ("work", "lwork", "iwork", "liwork", *OF_COMPLEX)
CHECKED = "w"
SMALL = 6
"""Columns up to which a decomposition by loops in generated code takes no longer than LAPACK's ..."""
SMALL_TRIANGLE = 16
"""... and one by reflections."""
INTEGERS = 8
"""For each column so many integers of workspace are enough."""


@record(frozen=True, eq=False)
class Routine:
    """A function of LAPACK with some of its letters.

    `text` are its arguments: letters, the extents m and n, arrays by column, workspace that it says the size
    of, and `info`. Of failure tells the first number of the array w, which is then nan; it may be one that
    LAPACK does not take.
    """

    name: str
    function: str
    text: str
    is_complex: bool = False
    """Whether matrices are of complex numbers, in generated code pairs of real ones. Values are real, but for
    those of general matrices, which real ones have in two arrays."""

    @kept
    def tokens(self) -> list[str]:
        left_out = OF_REAL if self.is_complex else OF_COMPLEX
        return [one for one in self.text.split() if one not in left_out]

    @kept
    def parameters(self) -> list[str]:
        """What a call is given: extents and arrays, in the order in which they come first."""
        return [
            one
            for one in dict.fromkeys((*self.tokens, CHECKED))
            if one.islower() and one not in WORKSPACE and one != "info"
        ]

    def symbol(self, dtype: str) -> str:
        """What LAPACK calls it, for the dtype of real numbers."""
        return LETTERS[dtype][self.is_complex] + self.function

    @kept
    def arrays(self) -> list[str]:
        """Those of the parameters that are no extents, which come first."""
        return [one for one in self.parameters if one not in EXTENTS]

    @kept
    def rank(self) -> int:
        return len(self.parameters) - len(self.arrays)

    @kept
    def place_of_checked(self) -> int:
        return self.arrays.index(CHECKED)

    def __call__(self, *given: Any) -> bool:
        """Call it for one matrix: integers for extents, arrays whose elements lie side by side.

        Whether it has found what it looks for; where it has not, the first number of w is nan as well.
        """
        return self.of_each(1, *given)

    def of_each(self, count: int, *given: Any) -> bool:
        """Call it for so many matrices: each array holds one after the other."""
        arrays = given[self.rank :]
        checked = arrays[self.place_of_checked]
        return _prepared(self, checked.dtype, given[: self.rank])(count, arrays, checked)


class _Prepared:
    """A routine for matrices of one dtype and size: what is the same in all its calls."""

    def __init__(self, routine: Routine, dtype: np.dtype, extents: tuple[int, ...]) -> None:
        tokens, real = routine.tokens, real_dtype(dtype).name
        self.function = _callable(routine.symbol(real), len(tokens))
        names = [one for one in routine.parameters if one in EXTENTS]
        numbers = {
            **dict(zip(names, extents)), "lwork": -1, "liwork": -1, "lrwork": -1, "iwork": 0, "info": 0
        }  # fmt: skip
        integers = {name: ctypes.c_int(one) for name, one in numbers.items()}
        letters = {one: ctypes.c_char(one.encode()) for one in tokens if one.isupper()}
        self.kept = integers | letters
        self.fixed = {name: ctypes.addressof(one) for name, one in self.kept.items()}
        asked = {name: np.zeros(2, real) for name in tokens if name not in self.fixed}
        places = self.fixed | {name: one.ctypes.data for name, one in asked.items()}
        if "lwork" in tokens:
            self.function(*[places[one] for one in tokens])  # which says how much workspace it needs
        integers["lwork"].value = enough(int(asked["work"][0])) if "lwork" in tokens else 0
        integers["lrwork"].value = reals_of(*extents) if routine.is_complex else 0
        integers["liwork"].value = INTEGERS * numbers["n"]
        sizes = (ELEMENT * integers["lwork"].value, ELEMENT * integers["lrwork"].value)
        self.places = {"work": 0, "rwork": sizes[0], "iwork": sum(sizes)}
        self.room = sum(sizes) + 4 * integers["liwork"].value
        self.tokens = tokens
        self.positions = [[at for at, token in enumerate(tokens) if token == one] for one in routine.arrays]
        """Where the address of each array stands."""
        self.free: list[tuple[list[int], Any, np.ndarray]] = []
        """Workspaces that are not in use, of which small ones are kept."""

    def __call__(self, count: int, arrays: Sequence[np.ndarray], checked: np.ndarray) -> bool:
        """For each of so many matrices in arrays; whether there is a result of all."""
        try:
            given, info, _ = room = self.free.pop()
        except IndexError:
            given, info, _ = room = self.with_workspace()
        for positions, one in zip(self.positions, arrays):
            address = _address(one)
            for position in positions:
                given[position] = address
        is_found = True
        for place in range(count):
            if place:
                for positions, one in zip(self.positions, arrays):
                    for position in positions:
                        given[position] += one.nbytes // count
            self.function(*given)
            if info.value:
                is_found = False
                checked.reshape(count, -1)[place, 0] = math.nan
        if self.room <= KEPT:
            self.free.append(room)
        return is_found

    def with_workspace(self) -> tuple[list[int], Any, np.ndarray]:
        """The arguments of a call but for arrays, its answer, and the memory for work."""
        info, room = ctypes.c_int(), np.empty(self.room, np.uint8)
        begin = _address(room) if self.room else 0
        places = self.fixed | {name: begin + place for name, place in self.places.items()}
        places["info"] = ctypes.addressof(info)
        return [places.get(one, 0) for one in self.tokens], info, room


def _address(array: Any) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(array))


_prepared = functools.lru_cache(maxsize=1024)(_Prepared)
KEPT = 2**16
"""Bytes up to which a workspace is kept for the next call: what large matrices need takes no time to get."""
ELEMENT = 16
"""Bytes that are enough for a number of any dtype."""


def enough(size: int) -> int:
    """At least the workspace that was asked for, whose size a float32 may have rounded."""
    return size + (size >> 20) + 1


def reals_of(*extents: int) -> int:
    """How many real numbers of workspace are enough for complex matrices, of which LAPACK's guide says it."""
    most, least = max(extents), min(extents)
    return least * (5 * least + 2 * most + 8) + 1


def _of_both(name: str, function: str, of_complex: str, text: str) -> tuple[Routine, Routine]:
    """A routine for real matrices, and that for complex ones."""
    return Routine(name, function, text), Routine(f"complex_{name}", of_complex, text, True)


WITH_VECTORS = "V L n a n w work lwork rwork lrwork iwork liwork info"
TALL = "m n a m w u m v n work lwork rwork iwork info"
ROUTINES = {
    one.name: one
    for pair in (
        _of_both("eigenvectors", "syevd", "heevd", WITH_VECTORS),
        _of_both("eigenvectors_of_upper", "syevd", "heevd", WITH_VECTORS.replace("L", "U")),
        _of_both("eigenvalues", "syevd", "heevd", WITH_VECTORS.replace("V", "N")),
        _of_both("eigenvalues_of_upper", "syevd", "heevd", WITH_VECTORS.replace("V L", "N U")),
        _of_both("singular_vectors", "gesdd", "gesdd", f"S {TALL}"),
        _of_both(
            "singular_vectors_of_wide", "gesdd", "gesdd", "S n m a n w u n v n work lwork rwork iwork info"
        ),
        _of_both(
            "singular_vectors_in_place", "gesdd", "gesdd", "O m n a m w a m v n work lwork rwork iwork info"
        ),
        _of_both("singular_values", "gesdd", "gesdd", "N m n a m w a m a n work lwork rwork iwork info"),
        _of_both("general_eigenvectors", "geev", "geev", "N V n a n w wi a n v n work lwork rwork info"),
        _of_both("general_eigenvalues", "geev", "geev", "N N n a n w wi a n a n work lwork rwork info"),
        _of_both("reflections", "gelqf", "gelqf", "n m a n w work lwork info"),
        _of_both("orthonormal_rows", "orglq", "unglq", "n m n a n w work lwork info"),
        _of_both("triangular_factor", "potrf", "potrf", "U n a n info"),
    )
    for one in pair
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
