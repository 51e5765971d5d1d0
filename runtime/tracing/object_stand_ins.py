"""What objects hold that has a stand-in, in attributes and containers: interpolants, streams, arrays.

Arrays have Tensors that share their memory where code calls methods by which they would take Tensors
(`self.data.dot(w)`), or writes into attributes of these names.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ...tracer.records import record
from ...tracer.spec import SUPPORTED
from ..captures.objects import attributes_of, is_own_container
from ..captures.reached import LARGEST, Reached, first_elements, way_from
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


def held_by_objects(code: Reached) -> Iterator[tuple[Any, Any, Any]]:
    """What attributes that code reads hold, and elements of containers, each with its place."""
    for value in code.seen:
        kind: Any = type(value)
        if kind in LISTS:
            yield from ((value, place, one) for place, one in enumerate([*islice(value, LARGEST)]))
        elif kind in DICTS and value.keys().isdisjoint(OF_MODULES):
            yield from ((value, key, one) for key, one in [*islice(value.items(), LARGEST)])
        elif way_from(kind) == "_from_instance":
            holder, names = vars(value), code.names_in(value)
            found = [*holder.items()]  # other threads may add some
            yield from ((holder, name, one) for name, one in found if names is None or name in names)


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

    @property
    def is_any(self) -> bool:
        return bool(self.standing or self.arrays)

    def are_current(self) -> bool:
        """Whether the objects still hold what stand-ins were found for."""
        return all(real is one.real or real is one.stand_in for one in self.standing for real in [read(one)])

    def variables(self, arguments: Sequence[Any]) -> Iterator[Standing]:
        """What to exchange in a run: Tensors are made anew, as a write gives one a place on the tape."""
        yield from self.standing
        found = [(*place, value) for place in self.arrays if _is_array(value := read(place))]
        shown: list[Any] = []
        if found and self.is_writing:
            others = (*map(read, self.others), *arguments)
            shown = [one._value if isinstance(one, Tensor) else one for one in others]
            shown = [*filter(_is_array, shown)]
        tensors: dict[int, Tensor] = {}
        for holder, key, array in found:
            alike = (one for _, _, one in found if one is not array) if self.is_writing else ()
            if not any(may_overlap(one, array) for one in (*shown, *alike)):
                tensor = tensors.setdefault(id(array), make(array, NumpyTensor))
                yield Standing(holder, key, array, tensor, None)


def object_stand_ins(
    code: Reached,
    stand_ins: StandIns,
    names: frozenset[str],
    written: frozenset[str],
    takes_all: bool,
    is_writing: bool,
    elsewhere: Sequence[Place],
) -> ObjectStandIns:
    """What of the objects that code reaches has stand-ins.

    Args:
        names: the attributes that code reads of modules.
        written: the names of attributes that it writes into.
        takes_all: whether all arrays have Tensors, and not those of such attributes alone.
        is_writing: whether it writes into arrays.
        elsewhere: the variables and defaults of functions.
    """
    standing: list[Standing] = []
    arrays: list[Place] = []
    others: list[Place] = []
    for holder, key, value in held_by_objects(code):
        if not _is_array(value):
            stand_in = stand_ins.of_plain_run(value, names)
            if stand_in is not None and not isinstance(holder, tuple):
                standing.append(Standing(holder, key, value, stand_in, WRITABLE.whole(value) or stand_in))
            continue
        is_wanted = (takes_all or key in written) and not isinstance(holder, tuple)
        (arrays if is_wanted else others).append((holder, key))
    if not is_writing:
        return ObjectStandIns(tuple(standing), tuple(arrays))
    others += (place for place in elsewhere if _is_array(read(place)))
    if len(arrays) + len(others) > MOST_ARRAYS or any(map(_hides_arrays, code.seen)):
        arrays = []
    return ObjectStandIns(tuple(standing), tuple(arrays), tuple(others), True)


def _hides_arrays(value: Any) -> bool:
    """Whether it holds arrays where `held_by_objects` does not look for them."""
    kind: Any = type(value)
    if way_from(kind) != "_from_slotted":
        return False
    elements = first_elements(value) if is_own_container(value) else ()
    return any(map(_is_array, (*attributes_of(value).values(), *elements)))


def _is_array(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype in SUPPORTED
