"""Python functions of arrays in a trace: what no graph shows, compiled code calls as it is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from contextvars import Context
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy import asarray

from ...tracer.errors import OutputError
from ...tracer.ops.foreign import ForeignFunction, foreign
from ...tracer.ops.movement import of_pairs, pairs_of, reshape, slice_
from ...tracer.spec import Spec, real_dtype, spec_of
from ...tracer.trace import current_trace
from ..functions.structures import spec_of_tensor
from ..tape.apply import apply
from ..values.tensor import Tensor, TorchTensor, make
from ..values.value_kinds import NumpyTensor

OfValues = Callable[..., Sequence[Any]]
_known: WeakKeyDictionary[Any, dict[Any, ForeignFunction]] = WeakKeyDictionary()
"""By the user's function, and what tells its calls apart, so that a later trace makes the same program."""


def call_python(
    owner: Any, key: Any, label: str, run: OfValues, operands: Sequence[Tensor], specs: Sequence[Spec]
) -> list[Tensor]:
    """The results of `run`, as nodes; those of one precision come from one call.

    Complex numbers are handed over as pairs of real ones, in the same memory.

    Args:
        owner, key: the user's function, and, hashable, what else says what `run` computes.
        label: what its user calls it.
        run: gives arrays and numbers of these specs for the operands' values, which are its own to keep.
        operands: Tensors, or what stands for them in a trace.
    """
    given = [apply(pairs_of, one) if _is_complex(spec_of_tensor(one)) else one for one in operands]
    found: dict[int, Tensor] = {}
    for dtype in dict.fromkeys(real_dtype(one.dtype) for one in specs):
        places = [place for place, one in enumerate(specs) if real_dtype(one.dtype) == dtype]
        shapes = [_in_reals(specs[place]).shape for place in places]
        called = _known.setdefault(owner, {})
        identity = (key, tuple(spec_of_tensor(one) for one in operands), tuple(specs), dtype)
        if identity not in called:
            readers = list(map(reader_of, operands))
            called[identity] = ForeignFunction(label, _joined(label, run, readers, specs, places))
        if len(places) == 1:
            spec = Spec(shapes[0], dtype)
            found[places[0]] = apply(foreign, *given, function=called[identity], spec=spec)
            continue
        ends = list(itertools.accumulate(map(math.prod, shapes)))
        joined = apply(foreign, *given, function=called[identity], spec=Spec((ends[-1],), dtype))
        for place, shape, start, stop in zip(places, shapes, [0, *ends], ends):
            part = apply(slice_, joined, starts=(start,), stops=(stop,), steps=(1,))
            found[place] = apply(reshape, part, shape=shape)
    return [
        apply(of_pairs, found[place]) if _is_complex(spec) else found[place]
        for place, spec in enumerate(specs)
    ]


def _is_complex(spec: Spec) -> bool:
    return spec.dtype.kind == "c"


def _in_reals(spec: Spec) -> Spec:
    """What holds such an array as real numbers."""
    return Spec((*spec.shape, 2), real_dtype(spec.dtype)) if _is_complex(spec) else spec


Reader = Callable[[np.ndarray], Any]


def reader_of(operand: Tensor) -> Reader:
    """What makes of the memory of an operand the value that the plain call would get, to keep."""
    kind, spec = type(operand), spec_of_tensor(operand)
    shape = tuple(map(int, spec.shape))
    example = make(np.zeros(shape, spec.dtype), kind)
    as_plain = example._as_plain if isinstance(example, NumpyTensor) else partial(make, kind=kind)

    def read(memory: np.ndarray) -> Any:
        array = memory.reshape(_in_reals(spec).shape)  # of numbers, code may pass arrays of one
        array = of_pairs.evaluate(array) if _is_complex(spec) else array
        if shape or kind is TorchTensor:
            array = array.copy()
            array.flags.writeable = False
        return as_plain(array)

    def read_number(memory: np.ndarray) -> Any:
        return as_plain(memory if memory.shape == () else memory.reshape(()))

    return read if shape or kind is TorchTensor or _is_complex(spec) else read_number


def _joined(
    label: str, run: OfValues, readers: Sequence[Reader], specs: Sequence[Spec], places: Sequence[int]
) -> Callable[..., np.ndarray]:
    """The results at some places, as real numbers, one behind the other if they are several."""

    expected = [Spec(tuple(map(int, one.shape)), one.dtype) for one in specs]
    forms = [(one.shape, one.dtype) for one in expected]

    def joined(*memory: np.ndarray) -> np.ndarray:
        given = [read(one) for read, one in zip(readers, memory)]
        results = list(map(asarray, Context().run(run, *given)))
        if [(one.shape, one.dtype) for one in results] != forms:
            found = ", ".join(str(spec_of(one)) for one in results)
            raise OutputError(
                f"{label} gave {found}, and {', '.join(map(str, expected))} when it was "
                "traced for arguments of these shapes. In compiled functions the shapes of results depend on "
                "those of arguments only."
            )
        reals = [results[place] for place in places]
        if is_complex:
            reals = [pairs_of.evaluate(one) if one.dtype.kind == "c" else one for one in reals]
        return reals[0] if len(places) == 1 else np.concatenate(reals, None)

    is_complex = any(map(_is_complex, specs))
    return joined


def outside_of_traces(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives where nothing is traced, recorded or differentiated around it."""
    return Context().run(function, *args)


def sample_of(tensor: Tensor) -> Any:
    """What a traced Tensor is in the call under way; of ones where there is none, as in a loop's body."""
    value = tensor.payload
    known = value if isinstance(value, np.ndarray) else current_trace().values.of(value)
    array = np.ones(tuple(map(int, value.shape)), value.dtype) if known is None else known
    return reader_of(tensor)(pairs_of.evaluate(array) if array.dtype.kind == "c" else array)
