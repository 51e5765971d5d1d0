"""Python functions of arrays in a trace: what no graph shows, compiled code calls as it is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ...tracer.errors import OutputError
from ...tracer.ops.foreign import ForeignFunction, foreign
from ...tracer.ops.movement import of_pairs, pairs_of, reshape, slice_
from ...tracer.spec import Spec, real_dtype, spec_of
from ...tracer.trace import current_trace
from ..functions.structures import spec_of_tensor
from ..tape.apply import apply
from ..values.tensor import Tensor

OfArrays = Callable[..., list[np.ndarray]]
_known: WeakKeyDictionary[Any, dict[Any, ForeignFunction]] = WeakKeyDictionary()
"""By the user's function, and what tells its calls apart, so that a later trace makes the same program."""


def call_python(
    owner: Any, key: Any, label: str, run: OfArrays, operands: Sequence[Tensor], specs: Sequence[Spec]
) -> list[Tensor]:
    """The results of `run`, as nodes; those of one precision come from one call.

    Complex numbers are handed over as pairs of real ones, in the same memory.

    Args:
        owner, key: the user's function, and, hashable, what else says what `run` computes.
        label: what its user calls it.
        run: gives arrays of these specs for the operands' arrays, which are its own to keep.
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
            of_operands = [spec_of_tensor(one) for one in operands]
            called[identity] = ForeignFunction(label, _joined(label, run, of_operands, specs, places))
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


def _joined(
    label: str, run: OfArrays, operands: Sequence[Spec], specs: Sequence[Spec], places: Sequence[int]
) -> Callable[..., np.ndarray]:
    """The results at some places, as real numbers, one behind the other if they are several."""

    def joined(*arrays: np.ndarray) -> np.ndarray:
        given = [_as_described(one, spec) for one, spec in zip(arrays, operands)]
        results = [np.asarray(one) for one in outside_of_traces(run, *given)]
        found = list(map(spec_of, results))
        expected = [Spec(tuple(map(int, one.shape)), one.dtype) for one in specs]
        if found != expected:
            raise OutputError(
                f"{label} gave {', '.join(map(str, found))}, and {', '.join(map(str, expected))} when it was "
                "traced for arguments of these shapes. In compiled functions the shapes of results depend on "
                "those of arguments only."
            )
        reals = [results[place] for place in places]
        reals = [pairs_of.evaluate(one) if one.dtype.kind == "c" else one for one in reals]
        return reals[0] if len(places) == 1 else np.concatenate([one.ravel() for one in reals])

    return joined


def _as_described(array: np.ndarray, spec: Spec) -> np.ndarray:
    """An operand as the function is to see it; code may pass numbers as arrays of one."""
    array = array.reshape(tuple(map(int, _in_reals(spec).shape)))
    return of_pairs.evaluate(array) if _is_complex(spec) else array


def outside_of_traces(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives where nothing is traced, recorded or differentiated around it."""
    return Context().run(function, *args)


def sample_of(tensor: Tensor) -> np.ndarray:
    """The array that a traced Tensor is in the call under way; ones where there is none, as in a loop's
    body."""
    value = tensor.payload
    known = value if isinstance(value, np.ndarray) else current_trace().values.of(value)
    return np.ones(tuple(map(int, value.shape)), value.dtype) if known is None else known.copy()
