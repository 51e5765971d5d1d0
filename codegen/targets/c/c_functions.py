"""A function of the loop IR as the template of C asks for it: its signature, its lines, what it calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ....tracer.records import record
from ... import ir
from ..comments import LINE_LENGTH
from .c_names import Names, type_name
from .c_spelling import ATOM, Spelling
from .scopes import with_scopes
from .sections import struct_name, view

IN_PLACE = {"add": "+=", "multiply": "*=", "logical_and": "&="}
LOOPS = ("serial", "parallel", "block", "unrolled")
"""The kinds of loops that are a `for`: C is serial, so a parallel one is run in one part."""
Used = dict[tuple[ir.Buffer, int], str]
"""The extents that a function uses, with what they are called."""
ErrorOf = Callable[[ir.Check | ir.Library], int]


@record(frozen=True)
class Instance:
    """A function of whole rows or matrices, for arrays of some dtypes and numbers of dimensions."""

    function: str
    arrays: tuple[tuple[np.dtype, int], ...]

    @property
    def name(self) -> str:
        """`sort_positions_float64_int64`"""
        names = [dtype.name for dtype, _ in self.arrays]
        return "_".join((self.function, *(names if len({*names}) > 1 else names[:1])))


def instance_of(call: ir.Library) -> Instance:
    """Which function a call needs."""
    sections = [one for one in call.operands if isinstance(one, ir.Section)]
    return Instance(call.function, tuple((one.buffer.dtype, _rank(one)) for one in sections))


def _rank(section: ir.Section) -> int:
    taken = sum(not isinstance(place, ir.Span) for place in section.places)
    return len(section.shape) or len(section.buffer.dims) - taken


class CFunction:
    """One function of a file.

    Attributes:
        returns: "int64_t" if it says whether there was an error, which is not 0, else "void".
        declared_first: lines that declare variables of several blocks.
    """

    def __init__(
        self,
        function: ir.Function,
        called: Callable[[str, np.dtype], None],
        error_of: ErrorOf,
        is_of_views: bool = False,
    ) -> None:
        scoped, first = with_scopes(function)
        self.name = function.name
        self.error_of = error_of
        self.parameters = function.parameters
        self.is_of_views = is_of_views
        names = Names(_names(function))
        self.extents = {} if is_of_views else _used_extents(function, names)
        strided = [one for one in function.parameters if isinstance(one, ir.Buffer)] if is_of_views else []
        self.spell = Spelling(names, self.extents, strided, called)
        self.written = _written(function)
        self.returns = "int64_t" if ir.may_raise(function.statements) else "void"
        given = {*self._own_extents.values()}
        self.prologue = tuple(one for one in scoped.prologue if not _gives_extent(one, given))
        self.body = scoped.body
        self.declared_first = [f"{type_name(dtype)} {names[name]};" for name, dtype in first.items()]

    @property
    def _own_extents(self) -> Used:
        """The extents that are parameters."""
        return {place: name for place, name in self.extents.items() if place[0] in self.parameters}

    @property
    def signature(self) -> str:
        return signature(f"static {self.returns} {self.name}", [*map(self._parameter, self.parameters)])

    def _parameter(self, one: ir.Buffer | ir.Variable) -> str:
        name = self.spell.names[one.name]
        if isinstance(one, ir.Variable):
            return f"{type_name(one.dtype)} {name}"
        if self.is_of_views:
            return f"{struct_name(one)} {name}"
        extents = (f", int64_t {self.extents[one, dim]}" for dim in self.extents_of(one))
        return f"{self._pointer(one)}restrict {name}{''.join(extents)}"

    def _pointer(self, buffer: ir.Buffer) -> str:
        return f"{'' if buffer in self.written else 'const '}{type_name(buffer.dtype)} *"

    def extents_of(self, buffer: ir.Buffer) -> list[int]:
        """The dimensions of a parameter of which the function is told the extents."""
        return sorted(dim for one, dim in self._own_extents if one == buffer)

    # --- lines --------------------------------------------------------------------------------------------

    def line(self, one: ir.Stmt) -> str:
        """The line of a statement that takes one."""
        spell = self.spell
        match one:
            case ir.Let(variable, value):
                return f"{type_name(variable.dtype)} {spell(variable)} = {spell(value)};"
            case ir.Assign(target, value) | ir.Store(target, value):
                return f"{spell(target)} = {spell(value)};"
            case ir.Accumulate(target, value, monoid, True):
                return f"{spell(target)} {IN_PLACE[monoid.fold.name]} {spell(value)};"
            case ir.Accumulate(target):
                return f"{spell(target)} = {spell(one.combined)};"
            case ir.View():
                return self._view(one)
            case ir.Library():
                return f"{self.call(one)};"
            case ir.Return():
                return "return;" if self.returns == "void" else "return 0;"
        raise TypeError(f"{type(one).__name__} takes more than a line")

    def _view(self, one: ir.View) -> str:
        """An address, and the extents that the function uses."""
        extents = [
            f"int64_t {self.extents[one.buffer, dim]} = {self.spell(extent)}; "
            for dim, extent in enumerate(one.shape)
            if (one.buffer, dim) in self.extents
        ]
        names = self.spell.names
        begin = f"{self._pointer(one.buffer)}{names[one.buffer.name]} = {names[one.source.name]};"
        return f"{''.join(extents)}{begin}"

    def call(self, one: ir.Library) -> str:
        """`gemm_float64(1.0, (float64_array){...}, ...)`"""
        return f"{instance_of(one).name}({', '.join(map(self._operand, one.operands))})"

    def _operand(self, one: ir.Section | ir.Expr) -> str:
        return view(one, self.spell) if isinstance(one, ir.Section) else self.spell(one)

    def loop(self, one: ir.For) -> str:
        """The head of a loop."""
        if one.kind not in LOOPS:
            raise TypeError(f"C is written of no loop of kind {one.kind!r}: {one.variable.name}")
        name = self.spell(one.variable)
        step = f"{name}++" if one.step == 1 else f"{name} += {one.step}"
        return f"for (int64_t {name} = {self.spell(one.start)}; {name} < {self.spell(one.stop)}; {step})"

    def negated(self, condition: ir.Expr) -> str:
        """The opposite of a condition."""
        if isinstance(condition, ir.Apply) and condition.function == "not":
            return self.spell(condition.arguments[0])
        return f"!{self.spell(condition, ATOM)}"


def signature(begin: str, parameters: Sequence[str]) -> str:
    """The head of a function, with a line for each parameter if it is long."""
    line = f"{begin}({', '.join(parameters) or 'void'})"
    if len(line) <= LINE_LENGTH:
        return line
    inside = ",\n    ".join(parameters)
    return f"{begin}(\n    {inside}\n)"


def _names(function: ir.Function) -> Iterator[str]:
    """The names of variables and arrays."""
    yield from (one.name for one in function.parameters)
    for one in ir.walk(function.statements):
        if isinstance(one, ir.View):
            yield one.buffer.name
        yield from (part.name for part in ir.parts(*ir.own_expressions(one)) if isinstance(part, ir.Variable))


def _used_extents(function: ir.Function, names: Names) -> Used:
    """The extents that a function reads, or that the places of elements follow from.

    They have the name of the variable that the function gives them first, if there is one.
    """
    lets = [one for one in function.prologue if isinstance(one, ir.Let) and isinstance(one.value, ir.Extent)]
    parameters = {*function.parameters}
    found: Used = {}
    for let in lets:
        assert isinstance(let.value, ir.Extent)
        if let.value.buffer in parameters:
            found.setdefault((let.value.buffer, let.value.dim), names[let.variable.name])
    for buffer, dim in _extents(function):
        if (buffer, dim) not in found:
            found[buffer, dim] = names.new(f"{names[buffer.name]}_{dim}")
    return found


def _extents(function: ir.Function) -> Iterator[tuple[ir.Buffer, int]]:
    for one in ir.expressions(function.statements):
        if isinstance(one, ir.Extent):
            yield one.buffer, one.dim
        elif isinstance(one, ir.Load):
            yield from ((one.buffer, dim) for dim in range(1, len(one.indices)))
    for statement in ir.walk(function.statements):
        if isinstance(statement, ir.Library):
            for operand in statement.operands:
                if isinstance(operand, ir.Section):
                    yield from ((operand.buffer, dim) for dim in range(len(operand.buffer.dims)))


def _gives_extent(one: ir.Stmt, given: set[str]) -> bool:
    """Whether a statement says what a parameter of that name says."""
    return isinstance(one, ir.Let) and isinstance(one.value, ir.Extent) and one.variable.name in given


def _written(function: ir.Function) -> set[ir.Buffer]:
    """The arrays that a function writes, and those whose memory it writes under another name."""
    found: set[ir.Buffer] = set()
    for one in reversed([*ir.walk(function.statements)]):
        if isinstance(one, ir.Store | ir.Accumulate) and isinstance(one.target, ir.Load):
            found.add(one.target.buffer)
        elif isinstance(one, ir.Library):
            found.add([each.buffer for each in one.operands if isinstance(each, ir.Section)][-1])
        elif isinstance(one, ir.View) and one.buffer in found:
            found.add(one.source)
    return found
