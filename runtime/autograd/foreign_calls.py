"""Python functions of arrays in a trace: what no graph shows, compiled code calls as it is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context
from functools import partial
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
from ..values.call_text import filling
from ..values.tensor import Tensor, TorchTensor, make
from ..values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber, number_reader

OfValues = Callable[..., Sequence[Any]]
OfBatches = Callable[..., Sequence[Any]]
Settle = Callable[[Sequence[Any]], Sequence[Any]]
_known: WeakKeyDictionary[Any, dict[Any, ForeignFunction]] = WeakKeyDictionary()
"""By the user's function, and what tells its calls apart, so that a later trace makes the same program."""


def as_they_are(results: Sequence[Any]) -> Sequence[Any]:
    return results


def call_python(
    owner: Any,
    key: Any,
    label: str,
    run: OfValues,
    operands: Sequence[Tensor],
    specs: Sequence[Spec],
    settle: Settle = as_they_are,
    run_batch: OfBatches | None = None,
) -> list[Tensor]:
    """The results of `run`, as nodes; those of one precision come from one call.

    Complex numbers are handed over as pairs of real ones, in the same memory.

    Args:
        owner, key: the user's function, and, hashable, what else says what `run` computes. What gives one
            result is asked for it in any shape, unless the key names shapes.
        label: what its user calls it.
        run: gives arrays and numbers of these specs for the operands' values, which are its own to keep.
        operands: Tensors, or what stands for them in a trace.
        settle: makes of what `run` has given, where that does not fit, what does.
        run_batch: the same of arrays with one more dimension in front, whose extent is its first argument.
    """
    given = [apply(pairs_of, one) if _is_complex(spec_of_tensor(one)) else one for one in operands]
    found: dict[int, Tensor] = {}
    for dtype in dict.fromkeys(real_dtype(one.dtype) for one in specs):
        places = [place for place, one in enumerate(specs) if real_dtype(one.dtype) == dtype]
        shapes = [_in_reals(specs[place]).shape for place in places]
        called = _known.setdefault(owner, {})
        given_specs = map(spec_of_tensor, operands)
        as_told = tuple if len(specs) > 1 else _forms_of_any_shape
        identity = (key, as_told(given_specs), as_told(specs), dtype)
        if identity not in called:
            readers = list(map(reader_of, operands))
            fill = _filling(label, run, settle, readers, specs, places)
            fill_batch = _filling_batches(label, run_batch, operands, specs, places) if run_batch else None
            called[identity] = ForeignFunction(label, fill, fill_batch=fill_batch)
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


def _forms_of_any_shape(specs: Iterable[Spec]) -> tuple[tuple[int, np.dtype], ...]:
    return tuple((spec.ndim, spec.dtype) for spec in specs)


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

    if not shape and kind in (PythonNumber, NumpyScalar) and not _is_complex(spec):
        return number_reader(kind, spec.dtype)
    of_number = None if shape else _in_reals(spec).shape

    def read(memory: np.ndarray) -> Any:
        array = memory if of_number is None else memory.reshape(of_number)  # it may be one of one
        array = (of_pairs.evaluate(array) if _is_complex(spec) else array).copy()
        array.setflags(write=False)
        return as_plain(array)

    return read


class Form:
    """What a result must be: numbers of its own types, or an array of its shape and dtype.

    One that is alone has the shape of what it is written into, whatever that was when it was traced.
    """

    def __init__(self, spec: Spec, is_alone: bool) -> None:
        self.spec = Spec(tuple(map(int, spec.shape)), spec.dtype)
        self.is_of_any_shape = is_alone and bool(spec.shape)
        own = (spec.dtype.type, *((type(spec.dtype.type().item()),) if spec.dtype in _PYTHON else ()))
        self.numbers: frozenset[type] = frozenset(() if self.spec.shape else own)

    def expected(self, out: np.ndarray) -> Spec:
        """The result's, of which `out` has room for the numbers, for complex ones as pairs."""
        return Spec(out.shape[: self.spec.ndim], self.spec.dtype) if self.is_of_any_shape else self.spec

    def fits(self, value: Any, out: np.ndarray) -> bool:
        if type(value) is not np.ndarray:
            return type(value) in self.numbers
        shape = out.shape[: self.spec.ndim] if self.is_of_any_shape else self.spec.shape
        return bool(value.shape == shape and value.dtype == self.spec.dtype)


_PYTHON = tuple(np.asarray(one).dtype for one in (False, 0, 0.0, 0j))
"""The dtypes of Python's numbers."""


def _filling(
    label: str,
    run: OfValues,
    settle: Settle,
    readers: Sequence[Reader],
    specs: Sequence[Spec],
    places: Sequence[int],
) -> Callable[..., None]:
    """What computes results and writes those at some places, one behind the other, as real numbers."""
    forms = [Form(spec, len(specs) == 1) for spec in specs]

    def settled(results: Sequence[Any], out: np.ndarray) -> list[np.ndarray]:
        found = list(map(np.asarray, settle(results)))
        if not all(form.fits(one, out) for one, form in zip(found, forms)):
            expected = ", ".join(str(one.expected(out)) for one in forms)
            raise OutputError(
                f"{label} gave {', '.join(str(spec_of(one)) for one in found)}, and {expected} when it was "
                "traced for arguments of these shapes. In compiled functions the shapes of results depend on "
                "those of arguments only."
            )
        return found

    def write(out: np.ndarray, results: Sequence[Any]) -> None:
        chosen = [(results[place], specs[place]) for place in places]
        reals = [pairs_of.evaluate(np.asarray(one)) if _is_complex(spec) else one for one, spec in chosen]
        out[...] = reals[0] if len(reals) == 1 else np.concatenate(reals, None)

    is_plain = len(specs) == 1 and not _is_complex(specs[0])
    return filling(
        readers,
        [one.numbers for one in forms],
        [one.fits for one in forms],
        run,
        settled,
        None if is_plain else write,
    )


def _filling_batches(
    label: str, run: OfBatches, operands: Sequence[Tensor], specs: Sequence[Spec], places: Sequence[int]
) -> Callable[..., None]:
    """What computes results of batches, and writes those at some places, one behind the other in each row."""
    kinds = [type(one) if type(one) is TorchTensor else NumpyTensor for one in operands]
    are_complex = [_is_complex(spec_of_tensor(one)) for one in operands]

    def read(memory: np.ndarray, kind: type[Tensor], is_complex: bool) -> Any:
        array = (of_pairs.evaluate(memory) if is_complex else memory).copy()
        array.setflags(write=False)
        return array if kind is NumpyTensor else make(array, kind=kind)

    def fill(*memory: np.ndarray) -> None:
        out = memory[-1]
        given = map(read, memory, kinds, are_complex)
        found = list(map(np.asarray, Context().run(run, len(out), *given)))
        expected = [Spec((len(out), *map(int, one.shape)), one.dtype) for one in specs]
        if list(map(spec_of, found)) != expected:
            raise OutputError(
                f"{label} is declared to take batches, and gave {', '.join(map(str, map(spec_of, found)))} "
                f"for a batch of {len(out)}; expected {', '.join(map(str, expected))}. Let it and its rules "
                "treat the first dimension of all arrays as that of the batch, or leave `vectorized` out."
            )
        chosen = [found[place] for place in places]
        reals = [pairs_of.evaluate(one) if one.dtype.kind == "c" else one for one in chosen]
        in_rows = [one.reshape(len(out), -1) for one in reals]
        out[...] = reals[0] if len(reals) == 1 else np.concatenate(in_rows, 1)

    return fill


def outside_of_traces(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives where nothing is traced, recorded or differentiated around it."""
    return Context().run(function, *args)


def sample_of(tensor: Tensor) -> Any:
    """What a traced Tensor is in the call under way; of ones where there is none, as in a loop's body."""
    value = tensor.payload
    known = value if isinstance(value, np.ndarray) else current_trace().values.of(value)
    array = np.ones(tuple(map(int, value.shape)), value.dtype) if known is None else known
    return reader_of(tensor)(pairs_of.evaluate(array) if array.dtype.kind == "c" else array)
