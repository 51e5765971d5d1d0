"""From a Python kernel to object code: Numba's representation of it, LLVM's instructions, optimised once.

`njit` does more than generated code needs, and its time is what a person waits for. Here

- Numba's modules are loaded without all that `import numba` loads (`parts`, the one file that imports it);
- the text of a kernel goes straight into Numba's representation (`translate`), whose statements write their
  instructions one after the other (`lowering`, `operations`): each value knows its kind (`kinds`);
- the functions that kernels call do so as well (`callees`): those of vector_math become small LLVM
  functions, which are inlined, so that loops vectorise; a product of matrices calls BLAS;
- a kernel, what it calls and its entry are one module, which is optimised once (`objects`);
- large functions of whole matrices are modules of their own (`units`), compiled once on a machine, in other
  threads meanwhile (`tasks`);
- the way in from Python reads the fields of the arrays itself: see `entry`.

It is imported when a kernel is not in the cache.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType

import numpy as np

from ....tracer.collection import count_as_old
from ...vector_math import rare
from .. import kernel_types
from ..bundles import Bundle, linked
from ..entry import Entry, Result
from ..sharing import SharedEntry
from .kinds import NONE, Array, Kind, Tuple
from .lowering import Functions, finish
from .objects import empty_module, make_object, spared_passes, text_of
from .outline import vector_bits
from .parts import global_compiler_lock
from .tasks import Tasks
from .units import Units


@contextlib.contextmanager
def compilation() -> Iterator[Compilation]:
    """Several kernels at once, in one thread of Python's at a time."""
    with global_compiler_lock, spared_passes(), Tasks() as tasks:
        yield Compilation(tasks)


class Compilation:
    """Kernels that are compiled together, with the units that they share."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._units: dict[tuple[frozenset[str], int], Units] = {}

    def begin(
        self,
        function: FunctionType,
        argument_types: Sequence[kernel_types.ArrayType | kernel_types.ScalarType],
        options: kernel_types.CompileOptions,
        symbol: str,
    ) -> Callable[[], Bundle]:
        """What waits for object code with the entry `symbol`, on which LLVM works from now on."""
        units = self._units_for(options)
        module = empty_module(symbol)
        rare.prefer(module, vector_bits(options.vector_width))
        functions = Functions(module, units.declare)
        kernel, kind = functions.define(function, tuple(map(_kind, argument_types)), options.brief_loops)
        kernel.attributes.add("noinline")  # inlined, the arguments would lose `noalias` as attributes
        if options.sharing is None:
            Entry(kernel, argument_types, _result(kind), symbol)
        else:
            SharedEntry(kernel, argument_types, symbol, options.sharing)
        finish(module, options)
        calls, expected = units.expected_by(module)
        task = self._tasks.add(functools.partial(make_object, text_of(module, symbol)))
        units.begin()

        def made() -> Bundle:
            called = [units.bundle(one) for one in calls]  # while another thread has the kernel
            return linked(called, expected, symbol, task.value())

        return made

    def _units_for(self, options: kernel_types.CompileOptions) -> Units:
        key = options.fastmath, options.vector_width
        if key not in self._units:
            self._units[key] = Units(options, self._tasks)
        return self._units[key]


def _kind(argument: kernel_types.ArrayType | kernel_types.ScalarType) -> Kind:
    if isinstance(argument, kernel_types.ScalarType):
        return argument.dtype
    return Array(argument.dtype, argument.ndim, argument.layout, argument.extents)


def _result(kind: Kind) -> Result:
    """The dtype of a scalar result, dtypes of a tuple of them, or None."""
    if kind == NONE:
        return None
    if isinstance(kind, Tuple):
        return tuple(one for one in kind.items if isinstance(one, np.dtype))
    assert isinstance(kind, np.dtype)
    return kind


count_as_old()
