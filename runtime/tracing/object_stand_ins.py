"""What objects hold that has a stand-in, in attributes and containers: interpolants, streams, arrays.

Arrays have Tensors that share their memory where code calls methods by which they would take Tensors
(`self.data.dot(w)`), or writes into attributes of these names.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from itertools import islice, repeat
from operator import is_
from typing import Any

import numpy as np

from ...tracer.records import record
from ...tracer.spec import SUPPORTED
from ..captures.objects import attributes_of, dictionary_of, is_own_container
from ..captures.reached import LARGEST, first_elements, way_from
from ..captures.standing_names import Holder, Standing, read
from ..tape.inplace import may_overlap
from ..values.tensor import Tensor, make
from ..values.value_kinds import NumpyTensor
from .stand_ins import WRITABLE, StandIns

Place = tuple[Holder, Any]
"""What holds a value, and at which key."""
LISTS, DICTS = (list, tuple, deque), (dict, OrderedDict, defaultdict)
OF_MODULES = ("__builtins__", "__import__")
"""Keys by which the variables of a module, or those that are built in, are told from other dicts."""
MOST_ARRAYS = 100
"""Arrays that are compared with others, in each call, before they are written into."""


def held_by_objects(
    objects: Iterable[Any], names_in: Callable[[Any], frozenset[str] | None]
) -> Iterator[tuple[Any, Any, Any]]:
    """What attributes that code reads hold, and elements of containers, each with its place."""
    for value in objects:
        kind: Any = type(value)
        if kind in LISTS:
            yield from ((value, place, one) for place, one in enumerate([*islice(value, LARGEST)]))
        elif kind in DICTS and value.keys().isdisjoint(OF_MODULES):
            yield from ((value, key, one) for key, one in [*islice(value.items(), LARGEST)])
        elif way_from(kind) == "_from_instance":
            holder, names = dictionary_of(value), names_in(value)
            found = [*holder.items()]  # other threads may add some
            yield from ((holder, name, one) for name, one in found if names is None or name in names)


class SharedMemory:
    """Which arrays share memory with others, found once for the same ones."""

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []
        self._apart: list[bool] = []

    def apart(self, arrays: list[np.ndarray], others: list[np.ndarray]) -> list[bool]:
        """Whether each of the `arrays` shares none with the rest of them, nor with `others`."""
        compared = arrays + others
        if len(compared) != len(self._arrays) or not all(map(is_, compared, self._arrays)):
            self._apart = [
                not any(may_overlap(one, array) for one in others)
                and not any(may_overlap(one, array) for one in arrays if one is not array)
                for array in arrays
            ]
            self._arrays = compared
        return self._apart


@record(frozen=True, slots=True)
class ObjectStandIns:
    """What of a program's objects has stand-ins.

    Attributes:
        standing: what is no array.
        arrays: where arrays are that have Tensors while the program runs.
        others: where other arrays are.
        is_writing: whether the program may write, so that arrays with Tensors must not overlap with others.
    """

    standing: tuple[Standing, ...] = ()
    arrays: tuple[Place, ...] = ()
    others: tuple[Place, ...] = ()
    is_writing: bool = False
    _memory: SharedMemory = field(default_factory=SharedMemory, compare=False)

    @property
    def is_any(self) -> bool:
        return bool(self.standing or self.arrays)

    def are_current(self) -> bool:
        """Whether the objects still hold what stand-ins were found for."""
        for one in self.standing:
            real = read(one)
            if real is not one.real and real is not one.stand_in:
                return False
        return True

    def variables(self, arguments: Sequence[Any]) -> Iterator[Standing]:
        """What to exchange in a run: Tensors are made anew, as a write gives one a place on the tape."""
        yield from self.standing
        found = [(*place, value) for place in self.arrays if _is_array(value := read(place))]
        apart: Iterable[bool] = repeat(True)
        shown: list[Any] = []
        if found and self.is_writing:
            apart = self._memory.apart(
                [one for _, _, one in found], [*filter(_is_array, map(read, self.others))]
            )
            shown = [one._value if isinstance(one, Tensor) else one for one in arguments]
            shown = [*filter(_is_array, shown)]
        tensors: dict[int, Tensor] = {}
        for (holder, key, array), is_apart in zip(found, apart):
            if is_apart and not any(may_overlap(one, array) for one in shown):
                tensor = tensors.setdefault(id(array), make(array, NumpyTensor))
                yield Standing(holder, key, array, tensor, None)


@record(frozen=True, slots=True)
class Holdings:
    """What objects hold that matters: what has stand-ins, and arrays.

    Attributes:
        standing: what has a stand-in, and is no array.
        arrays: where arrays are that have Tensors.
        others: where other arrays are.
        hides_arrays: whether there may be some elsewhere.
    """

    standing: tuple[Standing, ...] = ()
    arrays: tuple[Place, ...] = ()
    others: tuple[Place, ...] = ()
    hides_arrays: bool = False

    def __add__(self, more: Holdings) -> Holdings:
        return Holdings(
            self.standing + more.standing,
            self.arrays + more.arrays,
            self.others + more.others,
            self.hides_arrays or more.hides_arrays,
        )


@record(frozen=True, eq=False, slots=True)
class Survey:
    """What of the objects that code reaches has stand-ins.

    Attributes:
        stand_ins: those that the program needs.
        names_in: the names that code reads of an object; None for all.
        names: the attributes that it reads of modules.
        written: the names of attributes that it writes into.
        takes_all: whether all arrays have Tensors, and not those of such attributes alone.
        is_writing: whether it writes into arrays.
    """

    stand_ins: StandIns
    names_in: Callable[[Any], frozenset[str] | None]
    names: frozenset[str]
    written: frozenset[str]
    takes_all: bool
    is_writing: bool

    def holdings(self, objects: Sequence[Any], elsewhere: Iterable[Place]) -> Holdings:
        """What these objects hold; `elsewhere` are the variables and defaults of functions."""
        standing: list[Standing] = []
        arrays: list[Place] = []
        others: list[Place] = []
        for holder, key, value in held_by_objects(objects, self.names_in):
            if not _is_array(value):
                stand_in = self.stand_ins.of_plain_run(value, self.names)
                if stand_in is not None and not isinstance(holder, tuple):
                    whole = WRITABLE.whole(value) or stand_in
                    standing.append(Standing(holder, key, value, stand_in, whole))
                continue
            is_wanted = (self.takes_all or key in self.written) and not isinstance(holder, tuple)
            (arrays if is_wanted else others).append((holder, key))
        if not self.is_writing:
            return Holdings(tuple(standing), tuple(arrays))
        others += (place for place in elsewhere if _is_array(read(place)))
        return Holdings(tuple(standing), tuple(arrays), tuple(others), any(map(_hides_arrays, objects)))

    def object_stand_ins(self, holdings: Holdings) -> ObjectStandIns:
        """The stand-ins where objects hold this."""
        if not self.is_writing:
            return ObjectStandIns(holdings.standing, holdings.arrays)
        is_too_much = len(holdings.arrays) + len(holdings.others) > MOST_ARRAYS or holdings.hides_arrays
        return ObjectStandIns(
            holdings.standing, () if is_too_much else holdings.arrays, holdings.others, True
        )


def _hides_arrays(value: Any) -> bool:
    """Whether it holds arrays where `held_by_objects` does not look for them."""
    kind: Any = type(value)
    if way_from(kind) != "_from_slotted":
        return False
    elements = first_elements(value) if is_own_container(value) else ()
    return any(map(_is_array, (*attributes_of(value).values(), *elements)))


def _is_array(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype in SUPPORTED
