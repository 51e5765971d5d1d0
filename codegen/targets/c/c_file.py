"""From programs of the loop IR to a file of C: what their functions call, and for each one that runs it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.tracer.errors import UnsupportedError
from pullback.tracer.lapack import EXTENTS, ROUTINES, WORKSPACE, Routine

from ....tracer.records import record
from ... import ir, sorting
from ...ir.reading import read_function
from ...vector_math import FUNCTIONS
from ...whole_calls import MODULES
from ..comments import commented, said_once
from ..templates import Environment, environment
from .c_functions import CFunction, Instance, instance_of, signature
from .c_names import Names, type_name
from .vector_math import Definitions

BLAS = {"float64": "cblas_dgemm", "float32": "cblas_sgemm"}
BLAS_OF_PAIRS = {"float64": "cblas_zgemm", "float32": "cblas_cgemm"}
TRSM = {
    "solve_triangle": {"float64": "cblas_dtrsm", "float32": "cblas_strsm"},
    "solve_triangle_of_pairs": {"float64": "cblas_ztrsm", "float32": "cblas_ctrsm"},
}
NO_MEMORY, MORE_ROWS = -1, -2
FLAGS = "cc -std=c11 -O3 -fwrapv -ffp-contract=off -c; link with -lm"


@record(frozen=True)
class Entry:
    """A program, and the name of the function that runs it.

    The function takes the addresses of inputs and outputs, in the program's order, and how many rows there
    are in growing buffers, if it has any. It returns 0, or the number of an error, which a comment explains.
    """

    program: ir.Program
    name: str
    header: Sequence[str] = ()


def emit(entries: Sequence[Entry]) -> str:
    """The source of programs in C11: what they call, their functions, and for each one that runs it."""
    file, names = _File(), Names(())
    for entry in entries:
        name = names.new("".join(character for character in entry.name if character.isascii()))
        file.add_program(replace(entry, name=name))
    definitions = file.definitions.texts
    libraries = {"a CBLAS": "cblas_", "LAPACKE": "LAPACKE_"}
    needed = [one for one, name in libraries.items() if any(name in text for text in definitions.values())]
    library = "".join(f", and {one}" for one in needed)
    return _template("file.c.j2").render(
        compiled=f"Compile with {FLAGS}{library}.",
        has_bits=any("bits" in text for text in definitions.values()),
        arrays=[(name, type_name(np.dtype(name))) for name in sorted(file.dtypes)],
        functions=[*definitions.values(), *file.functions],
    )


def errors_of(program: ir.Program) -> list[str | int]:
    """What can go wrong: names of what positions lie outside of, and numbers of calls without a result.

    The function of C that runs the program returns the place of one in this list, counted from 1.
    """
    statements = [one for kernel in program.kernels for one in ir.walk(kernel.function.statements)]
    found = [_what(one) for one in statements if isinstance(one, ir.Check) or _may_fail(one)]
    return [*dict.fromkeys(found)]


def _may_fail(one: ir.Stmt) -> bool:
    return isinstance(one, ir.Library) and one.failure is not None


def _what(one: Any) -> str | int:
    return one.error if isinstance(one, ir.Check) else one.failure


class _Code:
    """The number that is returned for an error."""

    def __init__(self, errors: list[str | int]) -> None:
        self.errors = errors

    def __call__(self, one: ir.Check | ir.Library) -> int:
        return self.errors.index(_what(one)) + 1


def _explained(program: ir.Program, errors: list[str | int]) -> list[tuple[int, str]]:
    found = []
    for code, what in enumerate(errors, 1):
        without = f"call {what} has no result"
        found.append((code, without if isinstance(what, int) else f"a position is out of range of {what}"))
    if any(one.role == "scratch" for one in program.filled):
        found.append((NO_MEMORY, "there is not enough memory"))
    if program.growing:
        found.append((MORE_ROWS, f"more rows are needed: as many as {program.filled[-1].name} says"))
    return found


class _File:
    """What the functions of a file call, each thing once."""

    def __init__(self) -> None:
        self.definitions = Definitions()
        self.functions: list[str] = []
        self.dtypes: set[str] = set()
        self._known: set[Instance] = set()

    def add_program(self, entry: Entry) -> None:
        """The functions of a program, and the one that runs them.

        Raises UnsupportedError where they call Python.
        """
        for host in (one for kernel in entry.program.kernels for one in ir.host_calls(kernel.function.body)):
            at = f"{host.origins[0].place}  {host.origins[0].text}"
            raise UnsupportedError(
                f"{host.function.operator}() has no form in C: Python evaluates it.\n  at {at}"
            )
        program, errors = entry.program, errors_of(entry.program)
        self.functions.append("".join(f"// {line}\n" for line in entry.header))
        functions = []
        for place, kernel in enumerate(program.kernels):
            body = said_once(kernel.function.body)
            named = replace(kernel.function, name=f"{entry.name}_kernel_{place}", body=body)
            functions.append(CFunction(named, self.call, _Code(errors)))
            self.add(functions[-1])
        driver = _driver(entry, functions)
        self.functions.append(_template("driver.c.j2").render(errors=_explained(program, errors), **driver))

    def call(self, function: str, dtype: np.dtype) -> None:
        """Define a scalar function."""
        if dtype.kind == "f":
            self.definitions.define(FUNCTIONS[function], dtype.name)
            return
        name = f"{function}_{dtype.name}"
        if name not in self.definitions.texts:
            module = _template("integers.c.j2").module
            text = getattr(module, function)(name, type_name(dtype), dtype.kind == "i")
            self.definitions.texts[name] = text.rstrip("\n")

    def add(self, function: CFunction) -> None:
        """A function, behind what it calls."""
        for one in ir.walk((*function.prologue, *function.body)):
            if isinstance(one, ir.Library):
                self._need(instance_of(one))
        template = _template("function.c.j2").module
        self.functions.append(template.function(function))

    def _need(self, instance: Instance) -> None:
        if instance in self._known:
            return
        self._known.add(instance)
        self.dtypes |= {dtype.name for dtype, _ in instance.arrays}
        text = self._library(instance)
        if text:
            self.definitions.texts[instance.name] = text.rstrip("\n")
            return
        found = next(vars(one)[instance.function] for one in MODULES if instance.function in vars(one))
        function = replace(read_function(found, instance.arrays), name=instance.name)
        self.add(CFunction(function, self.call, lambda one: 1, is_of_views=True))

    def _library(self, instance: Instance) -> str:
        """The text of what a library does, or C itself; none for what is written in Python."""
        template, dtype = _template("arrays.c.j2").module, instance.arrays[0][0]
        common = (dtype.name, type_name(dtype))
        if instance.function == "gemm":
            return str(template.gemm(*common, BLAS[dtype.name]))
        if instance.function == "gemm_of_pairs":
            return str(template.gemm_of_pairs(*common, BLAS_OF_PAIRS[dtype.name]))
        if instance.function in TRSM:
            macro = getattr(template, instance.function)
            return str(macro(*common, TRSM[instance.function][dtype.name]))
        if instance.function in ROUTINES:
            return _lapack(ROUTINES[instance.function], instance)
        if instance.function == sorting.pack.__name__:
            nan_key = sorting.NAN_KEYS[dtype.name]
            return str(template.packing(instance.name, *common, 8 * dtype.itemsize, nan_key))
        if any(instance.function == one.__name__ for one in sorting.FUNCTIONS):
            return str(template.sorting(instance.name, *common, instance.function == "order"))
        return ""


def _lapack(routine: Routine, instance: Instance) -> str:
    """A routine as LAPACKE has it, which finds the workspace itself."""
    dtype = instance.arrays[0][0]
    type_ = type_name(dtype)
    tokens = [one for one in routine.tokens if one not in (*WORKSPACE, "info")]
    kinds = ["char" if one.isupper() else "int" if one in EXTENTS else f"{type_} *" for one in tokens]
    given = [
        f"'{one}'" if one.isupper() else f"(int){one}" if one in EXTENTS else f"{one}.data" for one in tokens
    ]
    parameters = [
        f"int64_t {one}" if one in EXTENTS else f"{dtype.name}_array {one}" for one in routine.parameters
    ]
    called = f"LAPACKE_{routine.symbol(dtype.name)}"
    macro = _template("arrays.c.j2").module.lapack
    return str(macro(instance.name, type_, parameters, called, ["int", *kinds], given))


def _driver(entry: Entry, kernels: Sequence[CFunction]) -> dict[str, Any]:
    """The parts of the function that runs a program: it has the extents of the call that was traced."""
    program = entry.program
    names = Names(one.name for one in (*program.inputs, *program.filled))
    borrowed = {loan.buffer for loan in program.loans}
    scratch = [one for one in program.filled if one.role == "scratch" and one not in borrowed]
    outputs = [one for one in program.filled if one.role != "scratch"]

    def extents(buffer: ir.Buffer) -> list[str]:
        first = [f"rows[{program.growing[buffer]}]"] if buffer in program.growing else []
        return [*first, *map(str, buffer.dims[len(first) :])]

    def call(kernel: ir.Kernel, function: CFunction) -> str:
        given_last = (0, kernel.sharing.extent) if kernel.sharing else (1,) * kernel.shares_bodies
        numbers = iter((*kernel.numbers, *given_last))
        given: list[str] = []
        for one in kernel.function.parameters:
            if isinstance(one, ir.Variable):
                given.append(str(next(numbers)))
            else:
                given += [names[one.name], *(extents(one)[dim] for dim in function.extents_of(one))]
        return f"{function.name}({', '.join(given)})"

    def address(buffer: ir.Buffer) -> str:
        return f"{type_name(buffer.dtype)} *{names[buffer.name]}"

    parameters = [*(f"const {address(one)}" for one in program.inputs), *map(address, outputs)]
    parameters += ["const int64_t *rows"] if program.growing else []
    needed = names[program.filled[-1].name] if program.growing else ""
    return {
        "signature": signature(f"int64_t {entry.name}", parameters),
        "scratch": [
            (address(one), names[one.name], " * ".join((f"sizeof({type_name(one.dtype)})", *extents(one))))
            for one in scratch
        ],
        "loans": [
            f"{address(loan.buffer)} = (void *)((char *){names[loan.owner.name]} + {loan.offset});"
            for loan in program.loans
        ],
        "calls": [(call(*one), one[1].returns != "void") for one in zip(program.kernels, kernels)],
        "needed": [f"{needed}[{place}]" for place in range(program.filled[-1].dims[0])] if needed else [],
    }


def _template(name: str) -> Any:
    return _environment().get_template(name)


@functools.cache
def _environment() -> Environment:
    return environment(__package__, {"commented": functools.partial(commented, sign="//")})
