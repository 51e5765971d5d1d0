"""The short way of a `primitive`: its call with arrays and numbers, outside of traces, is one node.

All else, as containers, Tensors of PyTorch's kind and rules of tangents, takes the general way of
`ruled_calls.py`, to the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...tracer.spec import Spec
from ...tracer.trace import innermost
from ..tape.apply import of_kind
from ..values.flatten import flatten
from ..values.modes import is_recording
from ..values.nodes import GONE, SavingNode, Versions, observers, tensor_at
from ..values.saved import saved_values
from ..values.tensor import Tensor, make
from ..values.value_kinds import NumpyScalar, NumpyTensor
from .rules import fitted

if TYPE_CHECKING:
    from .custom_rules import primitive

ndarray = np.ndarray
TENSORS = (NumpyTensor, NumpyScalar)
RESULTS = (ndarray, np.float64, np.float32)
ARRAYS = (ndarray, np.floating)
NUMBERS = (float, int, bool, np.float64, np.float32)
OPTIONS = frozenset((*NUMBERS, str, type(None)))


def recorded_directly(owner: primitive, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, Any]:
    """Whether a call takes the short way, and its result; that of the plain function if it has been called.

    NotImplemented if not even that.
    """
    noted = saved_values()
    if innermost() is not None or observers or not is_recording() or not owner._has_pull():
        return False, NotImplemented
    if kwargs and not OPTIONS.issuperset(map(type, kwargs.values())):
        return False, NotImplemented
    values, edges, given, kinds = [], [], [], []
    is_recorded = False
    versions: list[Any] = []
    for position, one in enumerate(args):
        kind, edge, passed = type(one), None, one
        kinds.append(kind)
        if kind in TENSORS:
            if one._view is not None:
                one.refresh()
            value = one._value
            if type(value) is not ndarray or value.dtype.kind != "f":
                return False, NotImplemented
            if one._requires_grad:
                if not owner._has_rule(position):
                    return False, NotImplemented
                edge, is_recorded = (one._grad_fn or one, one._output_nr), True
            if kind is NumpyTensor:
                versions += position, one._cell, one._cell[0]
                passed = value
            else:
                passed = value[()]
            values.append(passed)
        elif kind is ndarray:
            values.append(one if noted is None else noted.of_array(one))
        elif kind in NUMBERS:
            values.append(one)
        else:
            return False, NotImplemented
        edges.append(edge)
        given.append(passed)
    if not is_recorded:
        return False, NotImplemented
    result = owner.function(*given, **kwargs)
    if type(result) not in RESULTS or result.dtype.kind != "f":
        return False, result
    array = np.asarray(result)
    tensor = make(array, NumpyTensor if type(result) is ndarray else NumpyScalar)
    if noted is not None:
        noted.share(tensor._cell)
    versions += -1, tensor._cell, 0
    node = PrimitiveBackward(owner, edges, kinds, values, kwargs, array, type(tensor), tuple(versions))
    if noted is not None:
        noted.note(node)
    tensor._grad_fn = node
    tensor._requires_grad = True
    return True, tensor


class PrimitiveBackward(SavingNode):
    """Of a call of a primitive: it keeps the arguments and the result for the rules."""

    __slots__ = ("kind", "kinds", "options", "owner")
    runs_rules = True
    gives_own = False  # a rule may give an array that it keeps

    def __init__(
        self,
        owner: primitive,
        edges: Sequence[Any],
        kinds: list[type],
        operands: list[Any],
        options: dict[str, Any],
        result: ndarray,
        kind: type[Tensor],
        versions: Versions,
    ) -> None:
        super().__init__(edges)
        self.owner = owner
        self.kinds = kinds
        self.operands = operands
        self.options = options
        self.result = result
        self.kind = kind
        self.versions = versions

    def name(self) -> str:
        return f"{self.owner._name}Backward"

    def pull_all(self, g: Any) -> Sequence[Any]:
        return self._pulled([position for position, edge in enumerate(self.edges) if edge is not None], g)

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        positions = [position for position, is_wanted in enumerate(wanted) if is_wanted]
        (g,) = cotangents
        if not create_graph:
            return self._pulled(positions, g)
        self.require_saved()
        arguments, result = self._as_tensors()
        g = of_kind(g if isinstance(g, Tensor) else make(np.asarray(g)), self.kind)
        pulled = self.owner._cotangents(positions, result, tuple(arguments), self.options, g)
        found: list[Any] = [None] * len(self.edges)
        for position, one in zip(positions, pulled):
            found[position] = one
        return self._fitted(found)

    def _pulled(self, positions: Sequence[int], g: Any) -> Sequence[Any]:
        """The cotangents of the arguments at these positions, of an array."""
        self.require_saved()
        operands, result = tuple(self.operands or ()), self.result
        if self.kind is NumpyScalar:
            result, g = result[()], g[()]
        pulled = self.owner._cotangents(positions, result, operands, self.options, g)
        found: list[Any] = [None] * len(self.edges)
        fit = True
        for position, one in zip(positions, pulled):
            operand = operands[position]
            if type(one) is np.float64 and type(operand) is np.float64:
                one = np.asarray(one)
            found[position] = one
            fit = fit and _fits(one, operand)
        return found if fit else [one if one is None else one.payload for one in self._fitted(found)]

    def _fitted(self, found: Sequence[Any]) -> Sequence[Tensor | None]:
        """The cotangents as Tensors of the shapes and dtypes of the arguments."""
        operands = tuple(self.operands or ())
        call = self.owner._with_keywords(operands, self.options)
        return fitted(call, found, flatten(operands)[1], list(map(_spec_of, operands)))

    def _as_tensors(self) -> tuple[list[Any], Tensor]:
        """What was kept, at its place on the tape."""
        cells = {position: cell for position, cell, _ in self.each_version()}
        arguments = list(self.operands or ())
        for position, kind in enumerate(self.kinds):
            if kind in TENSORS:
                value, cell = np.asarray(arguments[position]), cells.get(position) or [0, None]
                arguments[position] = of_kind(tensor_at(value, self.edges[position], cell), kind)
        return arguments, of_kind(tensor_at(self.result, (self, 0), cells[-1]), self.kind)

    def release(self) -> None:
        self.operands, self.result, self.versions = None, None, GONE


def _spec_of(value: Any) -> Spec | None:
    return Spec(value.shape, value.dtype) if isinstance(value, ARRAYS) else None


def _fits(cotangent: Any, argument: Any) -> bool:
    """Whether a cotangent is one as it is: none, or an array of an argument's shape and dtype."""
    if cotangent is None:
        return True
    if type(cotangent) is not ndarray or not isinstance(argument, ARRAYS):
        return False
    return cotangent.shape == argument.shape and cotangent.dtype == argument.dtype
