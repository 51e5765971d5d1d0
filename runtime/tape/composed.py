"""The short way of a function that is composed of operators: a straight line of NumPy's calls, and one node.

An operator of a composed function costs a frame, a tensor and a node in each call. Once a function has been
called often with arrays of the same shapes, it is traced: its graph, and that of the derivatives, become two
functions in Python that call what evaluates the operators on arrays, one after the other. Before they are
used they must have given, for the arguments at hand, the value of the ordinary way bit by bit, and its
gradients. What asks for values, draws, writes, or gives a view, keeps to the ordinary way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from ...tracer.errors import GradientError
from ...tracer.graph import Graph, Node, make_input, toposort
from ...tracer.interpret import evaluate_graph
from ...tracer.ops.elementwise import identity
from ...tracer.quiet import IGNORED, floating_errors, quiet_context
from ...tracer.records import record
from ...tracer.spec import Spec
from ...tracer.trace import ConstantNeeded, Trace, innermost, tracing
from ..values.dtypes import default_float
from ..values.modes import is_recording
from ..values.nodes import (
    GONE,
    SavingNode,
    edge_of,
    observers,
    overwritten_message,
    place_of,
    tensor_at,
)
from ..values.saved import Cell, saved_values
from ..values.tensor import Tensor, TorchTensor, make
from ..values.value_kinds import NumpyScalar, NumpyTensor
from .anomaly import is_anomaly_enabled
from .apply import apply, of_kind

ndarray = np.ndarray
Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
OFTEN = 32
"""Calls with arrays of the same shapes after which tracing pays."""
MOST, MOST_COUNTED = 64, 256
"""Kinds of calls of one function that are traced, and that are counted."""
FEW_REFUSED = 2
"""Kinds of calls, none of which could be traced, after which no others are."""
LARGEST = 1 << 12
"""Elements of an array beyond which NumPy's own work outweighs that of the tape."""
KINDS = frozenset((TorchTensor, NumpyTensor, NumpyScalar))
OF_KEYS = frozenset((int, bool, str, type(None)))
"""Arguments that are the same where they are equal; of floats 0.0 is not -0.0."""
FAMILIES = frozenset((
    "elementwise", "reduction", "scan", "movement", "contraction", "indexing", "creation", "composite",
    "linalg", "decomposition", "eager", "ordering",
))  # fmt: skip
"""Of operators that NumPy and SciPy evaluate, without an effect."""
UNKNOWN: Any = object()
UNWRITTEN: Cell = [0, None]
"""The version cell of what nobody else holds."""
run = quiet_context().run


def of_several(short: F) -> F:
    """A short way that makes several nodes: what is called often has a shorter one, `composed`."""
    short.of_several = True  # type: ignore[attr-defined]
    return short


def composed(function: Function, before: Function | None = None, fewest: int = 1) -> Function:
    """The short way of a pure function of tensors, also in lists, and of numbers and names.

    What it is not for, and all calls before the function has been traced for their like, are NotImplemented.

    Args:
        function: the ordinary way, with all that public functions do around it.
        before: another short way, which does what this one doesn't if it is `of_several`, else all.
        fewest: operators that the function must be made of.
    """
    if before is not None and not hasattr(before, "of_several"):
        return before
    programs: dict[Any, _Program | None] = {}
    counts: dict[Any, int] = {}
    may_be = True

    def short(*arguments: Any, **options: Any) -> Any:
        nonlocal may_be
        if not may_be or innermost() is not None or observers:
            return NotImplemented
        key: list[Any] = [is_recording(), default_float()]
        operands: list[Any] = []
        values: list[ndarray] = []
        given: Sequence[Any] = arguments if not options else (*arguments, *options.values())
        lists = [one for one in enumerate(given) if _is_list(one[1])]
        if lists:
            key += [(place, type(one), len(one)) for place, one in lists]
            given = _flat(given)
        for one in given:
            kind = type(one)
            if kind in KINDS:
                view = one._view
                if view is not None and view.seen != one._cell[0]:
                    one.refresh()
                value = one._value
                needs_gradient = one._requires_grad
            elif kind in OF_KEYS:
                key += (kind, one)
                continue
            elif kind is float:
                key += (kind, one or str(one))
                continue
            elif kind is tuple and _is_of_integers(one):
                key += (kind, one)
                continue
            else:
                value, needs_gradient = one, False
            if type(value) is not ndarray or value.size > LARGEST or not value.flags.c_contiguous:
                return NotImplemented
            key += (kind, value.dtype.char, value.shape, needs_gradient)
            operands.append(one)
            values.append(value)
        names = tuple(key) if not options else (*key, *options)
        program = programs.get(names, UNKNOWN)
        if program is UNKNOWN:
            count = counts[names] = counts.get(names, 0) + 1
            if count <= OFTEN or len(programs) >= MOST:
                if len(counts) > MOST_COUNTED:
                    counts.clear()
                return NotImplemented
            found: Any = _traced(function, arguments, options, fewest)
            program = programs[names] = found or None
            may_be = any(programs.values()) or (found is not False and len(programs) < FEW_REFUSED)
        return NotImplemented if program is None else composed_call(program, operands, values)

    def either(*arguments: Any, **options: Any) -> Any:
        found = short(*arguments, **options)
        return before(*arguments, **options) if found is NotImplemented and before is not None else found

    chosen = short if before is None else either
    chosen.takes_options = chosen.takes_any = before is None  # type: ignore[attr-defined]
    return chosen


def _flat(given: Sequence[Any]) -> list[Any]:
    """Arguments, with the elements of lists in their place."""
    found: list[Any] = []
    for one in given:
        if _is_list(one):
            found += one
        else:
            found.append(one)
    return found


def _is_list(one: Any) -> bool:
    return type(one) is list or (type(one) is tuple and not _is_of_integers(one))


def _is_of_integers(sizes: tuple[Any, ...]) -> bool:
    return all(type(one) is int or (type(one) is tuple and _is_of_integers(one)) for one in sizes)


# --- what is run --------------------------------------------------------------------------------------------


@record(eq=False, slots=True)
class _Program:
    """A function of arrays and its derivatives, as straight lines."""

    kind: type[Tensor]
    """Of the result."""
    title: str
    """What the node is called."""
    evaluate: Function
    """(*values) -> the result and what is saved for the derivatives."""
    pull: Function | None
    """(g, *saved) -> the cotangents of the operands; None where none needs one."""
    positions: tuple[int, ...]
    """Of the operands that get one."""
    derivatives: Graph | None
    """The cotangents at these positions as a graph, of what is saved and g."""
    reads: tuple[tuple[int, int], ...]
    """(place among what is saved, operand) where that shows the operand's memory; -1 is the result's."""
    again: Function
    """The function of the operands, in the ordinary way."""


def composed_call(program: _Program, operands: Sequence[Any], values: list[ndarray]) -> Any:
    if is_anomaly_enabled():
        return NotImplemented
    try:
        result, saved = run(program.evaluate, *values)
    except Exception:  # which the ordinary way explains
        return NotImplemented
    tensor = make(result, program.kind)
    if program.pull is None:
        return tensor
    versions: tuple[Any, ...] = (0, UNWRITTEN, 0) if saved else ()
    cells = [one._cell if type(one) in KINDS else UNWRITTEN for one in operands]
    for place, operand in program.reads:
        cell = tensor._cell if operand < 0 else cells[operand]
        versions += (place, cell, cell[0])
    count, noted = len(saved), saved_values()
    kept, sources = list(saved), values
    if noted is not None:
        sources = []
        for place, (one, value, cell) in enumerate(zip(operands, values, cells), count):
            if cell is not UNWRITTEN:
                versions += (place, cell, cell[0])
            kept.append(value if cell is not UNWRITTEN else noted.of_array(one))
        for place, operand in program.reads:
            if operand >= 0 and cells[operand] is UNWRITTEN:
                kept[place] = noted.of_array(kept[place])
    node = ComposedBackward([
        place_of(one) if type(one) in KINDS and one._requires_grad else None for one in operands
    ])  # fmt: skip
    node.program, node.count, node.kinds = program, count, list(map(type, operands))
    node.operands, node.sources, node.result, node.versions = kept, sources, None, versions
    node.cells_then = [(one, one[0]) for one in cells]
    if noted is not None:
        noted.note(node)
    tensor._grad_fn = node
    tensor._requires_grad = True
    return tensor


class ComposedBackward(SavingNode):
    """Of a composed function: it keeps what the derivatives read, and the function's operands.

    These lie behind the others where writes are let be, and so have to be seen: see `saved.py`.
    """

    __slots__ = ("cells_then", "count", "kinds", "program", "sources")
    runs_rules = is_in_graph = True
    program: _Program
    count: int
    """How many of the `operands` are what the derivatives read."""
    sources: list[ndarray]
    """The function's operands, unless they are behind these."""
    kinds: list[type]
    """Of the function's operands."""
    cells_then: list[tuple[Cell, int]]
    """The version cells of the function's operands, and the versions."""

    def name(self) -> str:
        return self.program.title

    def given_out(self) -> ComposedBackward:
        if type(self) is ComposedBackward:
            self.__class__ = _class_called(self.name())
        return self

    def pull_all(self, g: Any) -> Sequence[Any]:
        versions = self.versions
        if versions and (versions[1][0] != versions[2] or len(versions) > 3):
            self.require_saved()
        pull: Any = self.program.pull
        return pull(g, *(self._saved() if not self.sources else self.operands or ()))

    def _saved(self) -> Sequence[Any]:
        """What the derivatives read."""
        return (self.operands or ())[: self.count]

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        (g,) = cotangents
        if create_graph:
            self.require_saved()
            return self._pulled_again(g)
        if type(g) is ndarray:
            return self.pull_all(g)
        self.require_saved()
        derivatives: Any = self.program.derivatives
        found = evaluate_graph(derivatives, [*self._saved(), g])
        by_position = dict(zip(self.program.positions, found))
        return [by_position.get(position) for position in range(len(self.edges))]

    def _pulled_again(self, g: Tensor) -> list[Any]:
        """The cotangents by the tape of the ordinary way, which records them."""
        from .engine import Pass  # which runs nodes

        operands: list[Any] = []
        values = self.sources or (self.operands or ())[self.count :]
        for value, edge, kind, (cell, version) in zip(values, self.edges, self.kinds, self.cells_then):
            if kind is ndarray:
                operands.append(value)
                continue
            if cell[0] != version and saved_values() is None:
                raise GradientError(overwritten_message(value, edge, cell, version))
            tensor = tensor_at(value, edge, cell)
            operands.append(of_kind(apply(identity, tensor), kind))
        result = self.program.again(*operands)
        targets = [edge_of(one) if edge is not None else None for one, edge in zip(operands, self.edges)]
        one_pass = Pass(True, True, [one for one in targets if one is not None])
        one_pass.run([place_of(result)], [g])
        return [None if one is None else one_pass.found.get((id(one[0]), one[1])) for one in targets]

    def overwritten(self) -> str:
        for position, cell, version in self.each_version():
            if cell[0] != version:
                return overwritten_message((self.operands or ())[position], None, cell, version)
        return ""

    def release(self) -> None:
        if self.versions:
            self.operands, self.sources, self.versions = None, [], GONE


@functools.cache
def _class_called(name: str) -> type[ComposedBackward]:
    return type(name, (ComposedBackward,), {"__slots__": ()})


# --- how it is made -----------------------------------------------------------------------------------------


def _traced(
    function: Function, arguments: Sequence[Any], options: Mapping[str, Any], fewest: int
) -> _Program | bool | None:
    """The program of a call; None where it would not be the same, False if that holds for all calls."""
    errors = floating_errors.set(IGNORED)
    try:
        return _Tracing(function, arguments, options, fewest).program()
    except _NeverAlike:
        return False
    except (Exception, ConstantNeeded):  # whatever the function does with a value that is not known
        return None
    finally:
        floating_errors.reset(errors)


class _Unlike(Exception):
    """A program would not do what the function does, or nobody can tell."""


class _NeverAlike(_Unlike):
    """Nor would that of other arguments."""


class _Gap:
    """Where an operand stood."""


class _Ordinary:
    """A call of the function, of other operands: it keeps none of its own."""

    def __init__(self, function: Function, arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
        self._function = function
        self._arguments = [self._with_gaps(one) for one in arguments]
        self._options = {name: self._with_gaps(one) for name, one in options.items()}

    def _with_gaps(self, one: Any) -> Any:
        if type(one) in (list, tuple):
            return type(one)(map(self._with_gaps, one))
        return _Gap if _is_operand(one) else one

    def __call__(self, *operands: Any) -> Any:
        waiting = iter(operands)

        def filled(one: Any) -> Any:
            if type(one) in (list, tuple):
                return type(one)(map(filled, one))
            return next(waiting) if one is _Gap else one

        arguments = [filled(one) for one in self._arguments]
        return self._function(*arguments, **{name: filled(one) for name, one in self._options.items()})


class _Tracing:
    """A call that is traced, with copies of what it was given."""

    def __init__(
        self, function: Function, arguments: Sequence[Any], options: Mapping[str, Any], fewest: int
    ) -> None:
        self._of, self._fewest = _Ordinary(function, arguments, options), fewest
        self._operands = list(filter(_is_operand, _flat((*arguments, *options.values()))))
        self._values = [(one._value if type(one) in KINDS else one).copy() for one in self._operands]

    def _standing(self, payloads: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for one, payload in zip(self._operands, payloads):
            if type(one) is ndarray and type(payload) is ndarray:
                found.append(payload)
                continue
            tensor = make(payload, NumpyTensor if type(one) is ndarray else type(one))
            tensor._requires_grad = _needs_gradient(one)
            found.append(tensor)
        return found

    def program(self) -> _Program:
        self._require_operands()
        leaves = self._standing(self._values)
        expected = self._of(*leaves)
        _require_unwritten(leaves, self._values)
        _require(type(expected) in KINDS, "several results", is_final=True)
        _require(expected._value.dtype.kind == "f", "no floats")
        is_own = not any(np.may_share_memory(expected._value, one) for one in self._values)
        _require(is_own, "memory of the operands", is_final=True)
        inputs = [make_input(Spec(one.shape, one.dtype), "") for one in self._values]
        with tracing(Trace("composed", differentiable=True)) as trace:
            stand_ins = self._standing(inputs)
            result = self._of(*stand_ins)
            _require_unwritten(stand_ins, inputs)
            output, constants = result._value, {node: array for array, node in trace.captured}
        _require(not (trace.guards or trace.drawn or trace.recorded_writes), "it asks, draws or writes")
        is_computed = type(output) is Node and bool(output.operands)
        _require(is_computed, "nothing is computed")
        wanted, pulled, g = [], [], make_input(output.spec, "")
        if expected._requires_grad:
            from ...codegen.derivatives.differentiate import differentiate  # not at start

            wanted = [node for node, one in zip(inputs, leaves) if _needs_gradient(one)]
            with tracing(trace):
                pulled = differentiate(wanted, {output: g})
        made = self._made(inputs, output, pulled, g, constants, expected)
        self._require_agreement(made, expected, leaves)
        return made

    def _require_operands(self) -> None:
        floats = {one.dtype for one in self._values if one.dtype.kind == "f"}
        kinds = {one.dtype.kind for one in self._values}
        _require(kinds <= set("fbiu") and len(floats) == 1, "floats of several dtypes, or none")
        kinds_of_tensors = set(map(type, self._operands))
        _require(not kinds_of_tensors.issuperset((TorchTensor, ndarray)), "arrays beside Tensors")
        _require(kinds_of_tensors != {ndarray}, "arrays alone")

    def _made(
        self, inputs: list[Node], output: Node, pulled: list[Any], g: Node,
        constants: dict[Node, ndarray], expected: Tensor,
    ) -> _Program:  # fmt: skip
        forward = toposort([output])
        operators = sum(bool(node.operands) for node in forward)
        _require(operators >= self._fewest, "few operators", is_final=True)
        before = set(forward) | set(inputs)
        known = [one for one in pulled if one is not None]
        later = [node for node in toposort(known) if node not in before and node is not g]
        read = dict.fromkeys([one for node in later for one in node.operands] + known)
        saved = [one for one in read if one in before and not _is_fixed(one, constants)]
        names = _Names(constants)
        for node in (*forward, *later):
            is_evaluated = node.operator.family in FAMILIES or node in names or node.is_input
            _require(is_evaluated, f"{node.operator} of family {node.operator.family}")
        kept = f"({_listed(map(names.of, saved))})"
        evaluate = names.function(inputs, forward, f"{names.of(output)}, {kept}")
        found = run(evaluate, *self._values)[0]
        if found.base is not None or any(np.may_share_memory(found, one) for one in self._values):
            evaluate = names.function(inputs, forward, f"own({names.of(output)}), {kept}")
        if not known:
            _require(not expected._requires_grad, "no gradient")
            return _Program(type(expected), "", evaluate, None, (), None, (), self._of)
        waiting = iter(pulled)
        each = [next(waiting) if _needs_gradient(one) else None for one in self._operands]
        given = [self._given(one, each[:place], names, constants) for place, one in enumerate(each)]
        return _Program(
            kind=type(expected),
            title=cast(Any, expected._grad_fn).name(),
            evaluate=evaluate,
            pull=names.function([g, *saved], later, f"({_listed(given)})"),
            positions=tuple(place for place, one in enumerate(each) if one is not None),
            derivatives=Graph("derivatives", (*saved, g), tuple(known)),
            reads=self._reads(evaluate),
            again=self._of,
        )

    @staticmethod
    def _given(one: Node | None, former: list[Node | None], names: _Names, constants: Any) -> str:
        """How a cotangent is spelled, which nobody else must hold."""
        if one is None:
            return "None"
        return f"own({names.of(one)})" if one in former or _is_fixed(one, constants) else names.of(one)

    def _reads(self, evaluate: Function) -> tuple[tuple[int, int], ...]:
        result, saved = run(evaluate, *self._values)
        sources = [(-1, result), *enumerate(self._values)]
        return tuple(
            (place, operand)
            for place, one in enumerate(saved)
            for operand, source in sources
            if np.may_share_memory(one, source)
        )

    def _require_agreement(self, made: _Program, expected: Tensor, leaves: Sequence[Any]) -> None:
        """It must give what the ordinary way does, in memory of its own."""
        from .engine import Pass  # which runs nodes

        result, saved = run(made.evaluate, *self._values)
        value = expected._value
        _require(type(result) is ndarray and result.dtype == value.dtype, "another dtype")
        _require((result.shape, result.strides) == (value.shape, value.strides), "another layout")
        _require(result.tobytes() == value.tobytes(), "another value")
        _require(result.base is None, "memory of something else")
        if made.pull is None:
            return
        g = np.linspace(0.5, 1.5, value.size).reshape(value.shape).astype(value.dtype)
        edges = [place_of(one) for one in leaves if _needs_gradient(one)]
        one_pass = Pass(False, True, edges)
        one_pass.run([place_of(expected)], [g])
        pulled = run(made.pull, g, *saved)
        mine = [one for one in pulled if one is not None]
        for leaf, one in zip(leaves, pulled):
            other: Any = one_pass.found.get((id(leaf), 0)) if _needs_gradient(leaf) else None
            _require((one is None) == (other is None), "a gradient that is none")
            if one is None:
                continue
            _require(type(one) is ndarray and one.shape == other.shape, "another shape of the gradient")
            is_same = one.dtype == other.dtype and np.allclose(one, other, 1e-7, 1e-12, equal_nan=True)
            _require(is_same, "another gradient")
            owned = one.base is None  # to a view nothing is added in place
            others = [*saved, *(another for another in mine if owned and another is not one)]
            _require(not any(np.may_share_memory(one, kept) for kept in others), "a gradient that is kept")


def _require_unwritten(operands: Sequence[Any], values: Sequence[Any]) -> None:
    for one, value in zip(operands, values):
        is_same = one is value or (one._value is value and not one._cell[0])
        _require(is_same, "it writes into its operands", is_final=True)


def _require(holds: bool, otherwise: str, is_final: bool = False) -> None:
    if not holds:
        raise (_NeverAlike if is_final else _Unlike)(otherwise)


def _is_operand(one: Any) -> bool:
    return type(one) in KINDS or type(one) is ndarray


def _needs_gradient(one: Any) -> bool:
    return type(one) in KINDS and one._requires_grad


def _checked(evaluate: Function) -> Function:
    """What reads or writes at positions, which it must not count from the end: the graph has done that."""

    def at(*operands: Any, **attributes: Any) -> Any:
        for one in operands:
            if one.dtype.kind == "i" and one.size and one.min() < 0:
                raise IndexError("a negative position")
        return evaluate(*operands, **attributes)

    return at


def _is_fixed(node: Node, constants: Mapping[Node, ndarray]) -> bool:
    """Whether its value is the same in every call."""
    return node in constants or (not node.operands and not node.is_input)


def _listed(names: Any) -> str:
    return "".join(f"{one}, " for one in names)


class _Names:
    """What functions of nodes call them, and what else they name."""

    def __init__(self, constants: Mapping[Node, ndarray]) -> None:
        self._space: dict[str, Any] = {"asarray": np.asarray, "own": functools.partial(np.array, order="K")}
        self._names: dict[Node, str] = {}
        for node, array in constants.items():
            self._space[self.of(node)] = array.copy()

    def of(self, node: Node) -> str:
        return self._names.setdefault(node, f"v{len(self._names)}")

    def __contains__(self, node: Node) -> bool:
        return node in self._names

    def function(self, parameters: Sequence[Node], nodes: Sequence[Node], result: str) -> Function:
        lines = []
        for node in nodes:
            name = self.of(node)
            if node in parameters or name in self._space:
                continue
            call, attributes = f"f{name}", dict(node.attributes)
            if not node.operands:
                self._space[name] = np.asarray(node.operator.evaluate(**attributes))
                continue
            evaluate = node.operator.evaluate
            self._space[call] = _checked(evaluate) if node.operator.family == "indexing" else evaluate
            given = _listed(map(self.of, node.operands))
            if attributes:
                self._space[f"a{name}"] = attributes
                given += f"**a{name}"
            text = f"{call}({given})"
            lines.append(f"    {name} = {text if node.spec.shape else f'asarray({text})'}\n")
        head = f"def line({_listed(map(self.of, parameters))}):\n"
        exec(f"{head}{''.join(lines)}    return {result}", self._space)
        return self._space.pop("line")
