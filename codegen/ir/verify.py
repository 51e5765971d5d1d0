"""What every program of the loop IR keeps to, whichever passes have made it.

Values are defined before they are used and have the dtypes that they are said to have, what is only read is
not written, and what parts of a parallel loop write is their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import get_args

import numpy as np

from pullback.tracer.spec import BOOL, INT64

from .expressions import (
    FLOAT64,
    PREDICATES,
    Apply,
    Buffer,
    Const,
    Expr,
    Extent,
    Load,
    Select,
    Variable,
    children,
    parts,
)
from .kernels import Kernel, Program, ProgramError
from .statements import (
    PART,
    Accumulate,
    Assign,
    Body,
    Check,
    For,
    Host,
    If,
    Kind,
    Let,
    Library,
    Return,
    Section,
    Shared,
    Span,
    Stmt,
    Store,
    View,
    While,
    defined_in,
    origins_of,
    own_expressions,
)

LOGICAL = frozenset({"and", "or", "not"})
_Truth = tuple[Expr, bool]


def verify(program: Program) -> None:
    """Raise ProgramError if a program is not what a program has to be; the error says where."""
    names = [one.name for one in (*program.inputs, *program.filled)]
    for name in names:
        if names.count(name) > 1:
            raise ProgramError(f"two buffers have the name {name}")
    for kernel in program.kernels:
        if not kernel.function.body:
            raise ProgramError("a kernel does nothing")
        _Verifier(program, kernel).verify()
    owners = {loan.owner for loan in program.loans}
    for owner in owners:
        _verify_memory(program, owner)


def _verify_memory(program: Program, owner: Buffer) -> None:
    """Buffers that lie in the memory of another one are in it, and in use when no other needs the place."""
    tenants = [(0, owner)] + [(loan.offset, loan.buffer) for loan in program.loans if loan.owner == owner]
    for (start, one), (other_start, other) in combinations(tenants, 2):
        (first, last), (other_first, other_last) = program.lifetime(one), program.lifetime(other)
        at_once = first <= other_last and other_first <= last
        if at_once and start < other_start + other.nbytes and other_start < start + one.nbytes:
            raise ProgramError(f"{one.name} and {other.name} are in use at once in the same memory")
    if any(start + one.nbytes > owner.nbytes for start, one in tenants):
        raise ProgramError(f"there is not enough room in {owner.name} for what lies in it")


class _Verifier:
    """Goes through the statements of one kernel, as they would run."""

    def __init__(self, program: Program, kernel: Kernel) -> None:
        parameters, sharing = kernel.function.parameters, kernel.sharing
        self.kernel = kernel
        self.buffers = {one for one in parameters if isinstance(one, Buffer)}
        self.read_only = {*program.inputs}
        self.known = {one.name: one.dtype for one in parameters if isinstance(one, Variable)}
        self.path: frozenset[_Truth] = frozenset()
        """What holds here, since a choice around it was taken."""
        self.on_path: dict[frozenset[_Truth], dict[str, np.dtype]] = {}
        """What is known besides on a path: choices that come later are the same."""
        self.opposites: dict[Expr, Expr] = {}
        self.sharing = sharing
        """How threads share what is verified, if they do."""
        self.of_all: set[str] = set()
        """Variables that are defined in front of what threads share: there is one for all of them."""
        self.walking: set[str] = {PART[0].name}
        """Variables that differ between the parts of what threads share."""
        self.statement: Stmt | None = None
        unknown = self.buffers - {*program.inputs, *program.filled}
        if unknown:
            self._fail(f"{', '.join(sorted(one.name for one in unknown))} is no buffer of the program")

    def verify(self) -> None:
        self._body(self.kernel.function.statements)

    def _fail(self, what: str) -> None:
        one = self.statement
        origin = next(iter(origins_of(one)), None) if one is not None else None
        place = f" of {origin.place_and_text}" if origin is not None else ""
        raise ProgramError(f"{self.kernel.function.name}: {what}, in {type(one).__name__}{place}: {one}")

    def _require(self, truth: bool, what: str) -> None:
        if not truth:
            self._fail(what)

    # --- statements ---------------------------------------------------------------------------------------

    def _body(self, body: Body) -> None:
        for one in body:
            self.statement = one
            for expression in own_expressions(one):
                if not isinstance(one, Let | Assign | For) or expression is not one.variable:
                    self._expression(expression)
            self._one(one)

    def _one(self, one: Stmt) -> None:
        match one:
            case Let(variable, value) | Assign(variable, value):
                self._same(variable.dtype, value.dtype)
                if isinstance(one, Assign):
                    self._require_own(variable)
                self.of_all.discard(variable.name)
                self.known[variable.name] = variable.dtype
                self._note_walk(variable, value)
                if isinstance(value, Apply) and value.function == "not":
                    self.opposites[variable] = value.arguments[0]
            case Store(target, value) | Accumulate(target, value):
                self._same(target.dtype, value.dtype)
                if isinstance(target, Load):
                    self._writes(target.buffer, target.indices)
                else:
                    self._require_own(target)
            case For(variable, start, stop, body):
                self._same(INT64, variable.dtype, start.dtype, stop.dtype)
                self._require(bool(body), "a loop does nothing")
                self._require(one.kind in get_args(Kind), f"{one.kind!r} is no kind of loop")
                with self._inside_of_loop():
                    self.known[variable.name] = variable.dtype
                    self._note_walk(variable, start)
                    if one.kind == "parallel":
                        self.walking.add(variable.name)
                    self._body(body)
                    inside = self.known
                if isinstance(start, Const) and isinstance(stop, Const) and start.value < stop.value:
                    self.known = inside  # it runs
            case While(condition, body):
                self._same(BOOL, condition.dtype)
                with self._inside_of_loop():
                    self._body(body)
            case If(cases):
                self._same(BOOL, *(condition.dtype for condition, _ in cases))
                self._choice(one)
            case Shared():
                self._require(bool(one.body), "parts do nothing")
                self._parts(one)
            case Return():
                self._require(self.sharing is None, "a part ends the function")
            case Check(condition):
                self._same(BOOL, condition.dtype)
            case View(buffer, source):
                self._reads(source)
                self._same(buffer.dtype, source.dtype)
                self.buffers.add(buffer)
                if source in self.read_only:
                    self.read_only.add(buffer)
            case Library(function, operands):
                sections = [operand for operand in operands if isinstance(operand, Section)]
                for section in sections:
                    self._reads(section.buffer)
                is_by_column = function == "gemm" and sections[-1].transposed
                self._require(not is_by_column, "BLAS writes a product by row, not into a transposed view")
                rows = () if sections[-1].rows.start is None else (sections[-1].rows.start,)
                self._writes(sections[-1].buffer, (*sections[-1].places, *rows))
            case Host(_, _, operands):
                self._require(self.sharing is None, "threads that share work call Python")
                for section in operands:
                    self._reads(section.buffer)
                self._writes(operands[-1].buffer, operands[-1].places)

    def _parts(self, one: Shared) -> None:
        """What threads run at once: what one of them defines is known to nobody else, nor behind."""
        self._same(INT64, one.extent.dtype)
        self._require(self.sharing is None, "threads share a body of what they share")
        for buffer in one.sharing.own:
            self._reads(buffer)
        with self._inside():
            self.sharing, self.of_all = one.sharing, {*self.known}
            self.known |= {bound.name: bound.dtype for bound in PART}
            self.walking.add(PART[0].name)
            self._body(one.body)
        self.sharing, self.of_all = None, set()
        for name in defined_in(one.body):
            self.known.pop(name, None)

    def _require_own(self, variable: Variable) -> None:
        self._require(variable.name not in self.of_all, f"all parts write {variable.name}")

    def _choice(self, one: If) -> None:
        """After a choice is known what each side has defined; and what one has, on its path."""
        sides = [(self._truth(condition, True), body) for condition, body in one.cases]
        sides.append((self._truth(one.cases[-1][0], False), one.otherwise))
        after: list[dict[str, np.dtype]] = []
        for truth, body in sides:
            with self._inside():
                self.path |= {truth}
                for path, names in self.on_path.items():
                    if path <= self.path:
                        self.known |= names
                self._body(body)
                if len(sides) == 2:
                    self.on_path.setdefault(self.path, {}).update(self.known)
                after.append(self.known)
        common = set.intersection(*({*names} for names in after))
        self.known |= {name: after[0][name] for name in common}

    def _truth(self, condition: Expr, holds: bool) -> _Truth:
        """A condition that holds or does not; one that is the opposite of another as that."""
        opposite = self.opposites.get(condition)
        return (condition, holds) if opposite is None else (opposite, not holds)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """What is defined inside is not known behind."""
        before = self.known, self.walking, self.path, self.statement
        self.known, self.walking = dict(self.known), set(self.walking)
        yield
        self.known, self.walking, self.path, self.statement = before

    @contextmanager
    def _inside_of_loop(self) -> Iterator[None]:
        """Besides, choices behind it are not those of an iteration."""
        before, self.on_path = self.on_path, {path: dict(names) for path, names in self.on_path.items()}
        with self._inside():
            yield
        self.on_path = before

    # --- expressions --------------------------------------------------------------------------------------

    def _expression(self, one: Expr) -> None:
        for part in children(one):
            self._expression(part)
        match one:
            case Variable(name, dtype):
                self._require(name in self.known, f"{name} is used before it is defined")
                self._same(self.known[name], dtype)
            case Load(buffer, indices):
                self._reads(buffer)
                self._require(
                    len(indices) == len(buffer.dims), f"{buffer.name} is of {len(buffer.dims)} dims"
                )
                self._require(all(index.dtype.kind in "iu" for index in indices), "an index is no integer")
            case Extent(buffer, dim):
                self._reads(buffer)
                self._require(dim < len(buffer.dims), f"{buffer.name} is of {len(buffer.dims)} dims")
            case Apply(function, arguments, dtype):
                given = [argument.dtype for argument in arguments]
                if {*given} != {FLOAT64, INT64}:  # as in `1.0 / n`
                    self._same(*given)
                if function in LOGICAL:
                    self._same(BOOL, arguments[0].dtype)
                self._same(dtype, BOOL if function in PREDICATES else arguments[0].dtype)
            case Select(condition, inside, outside):
                self._same(BOOL, condition.dtype)
                self._same(inside.dtype, outside.dtype)

    def _same(self, *dtypes: np.dtype) -> None:
        if len({*dtypes}) != 1:  # only then are there words for it, which take longer than the question
            self._require(False, f"{' and '.join(map(str, dtypes))} do not agree")

    # --- buffers ------------------------------------------------------------------------------------------

    def _reads(self, buffer: Buffer) -> None:
        self._require(buffer in self.buffers, f"{buffer.name} is no parameter")

    def _writes(self, buffer: Buffer, place: Iterable[Expr | Span]) -> None:
        """A write; where threads share work each part must write places, or buffers, of its own."""
        self._reads(buffer)
        self._require(buffer not in self.read_only, f"{buffer.name} is an input, and written")
        if self.sharing is not None and buffer not in self.sharing.own:
            indices = [index for index in place if not isinstance(index, Span)]
            self._require(any(map(self._walks, indices)), f"all parts write the same of {buffer.name}")

    def _note_walk(self, variable: Variable, value: Expr) -> None:
        """A variable that is computed from one that differs between parts differs as well."""
        change = self.walking.add if self._walks(value) else self.walking.discard
        change(variable.name)

    def _walks(self, value: Expr) -> bool:
        """Whether a position differs between parts: one from data may not."""
        found = [*parts(value)]
        is_free = not any(isinstance(one, Load) for one in found)
        return is_free and any(isinstance(one, Variable) and one.name in self.walking for one in found)
