"""NumPy's names, for values that are differentiated: `import pullback.compat.autograd.numpy as np`.

They are NumPy's own functions, which know Tensors; those that make arrays of lists take Tensors in them, and
those that join arrays take any iterable, as HIPS autograd's.
"""

import functools as _functools
from collections.abc import Callable as _Callable
from typing import Any as _Any

import numpy as _numpy

from pullback.compat.autograd.insides import missing_of as _missing_of
from pullback.compat.autograd.libraries import giving_python_values as _giving_python_values
from pullback.compat.autograd.libraries import module_of as _module_of
from pullback.compat.autograd.libraries import with_symmetric_gradient as _with_symmetric_gradient
from pullback.compat.autograd.libraries import without_gradient as _without_gradient
from pullback.runtime.tracing.stand_ins import namespace as _namespace

globals().update(_namespace(_numpy))


def _of_iterables(function: _Callable[..., _Any]) -> _Callable[..., _Any]:
    """A function of a sequence of arrays, for any iterable of them."""

    @_functools.wraps(function)
    def joined(arrays: _Any, *args: _Any, **kwargs: _Any) -> _Any:
        return function(arrays if hasattr(arrays, "__getitem__") else list(arrays), *args, **kwargs)

    return joined


for _name in ("column_stack", "concatenate", "dstack", "hstack", "stack", "vstack"):
    globals()[_name] = _of_iterables(globals()[_name])
for _name in ("int8", "int16", "int32", "int64"):
    globals()[_name] = _without_gradient(getattr(_numpy, _name))
where = _giving_python_values(globals()["where"])


fft = _module_of(f"{__name__}.fft", _numpy.fft)
linalg = _module_of(f"{__name__}.linalg", _numpy.linalg)
linalg.T = _numpy.matrix_transpose  # type: ignore[attr-defined]
linalg.cholesky = _with_symmetric_gradient(_numpy.linalg.cholesky)  # type: ignore[attr-defined]
linalg._dot = _numpy.matmul  # type: ignore[attr-defined]
random = _module_of(f"{__name__}.random", _numpy.random)

from . import numpy_boxes  # noqa: E402, F401

numpy_version = __version__ = _numpy.__version__


def make_diagonal(D: _Any, offset: int = 0, axis1: int = -1, axis2: int = -2) -> _Any:
    """Matrices with the last dimension of D on their diagonals.

    Raises:
        UnsupportedError: another diagonal is asked for.
    """
    if (offset, axis1, axis2) != (0, -1, -2):
        from pullback.errors import UnsupportedError

        raise UnsupportedError("make_diagonal: only offset=0, axis1=-1, axis2=-2 is supported.")
    return D[..., None] * _numpy.eye(_numpy.shape(D)[-1])


def metadata(A: _Any) -> tuple[tuple[int, ...], int, _numpy.dtype, bool]:
    """(shape, number of dimensions, dtype, whether it is complex) of a value."""
    return _numpy.shape(A), _numpy.ndim(A), _numpy.result_type(A), _numpy.iscomplexobj(A)


_missing = _missing_of(__name__)


def __getattr__(name: str) -> _Any:
    return getattr(_numpy, name) if hasattr(_numpy, name) else _missing(name)
