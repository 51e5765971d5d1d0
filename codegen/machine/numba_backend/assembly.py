"""The text of a module, which LLVM parses: as `str(module)` of llvmlite, in a third of its time.

llvmlite asks each instruction for its text through a handful of calls. Those that kernels consist of are
written here, each in one expression; all else it writes itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from llvmlite.ir import instructions

_VOID = ir.VoidType()
_OF_FUNCTION = (ir.Instruction, ir.Argument, ir.Block)


def assembly(module: ir.Module) -> str:
    """The module in LLVM's language."""
    lines = [f'target triple = "{module.triple}"', f'target datalayout = "{module.data_layout}"']
    for one in module.globals.values():
        if isinstance(one, ir.Function) and one.blocks:
            lines += _function(one)
        else:
            lines.append(str(one))
    lines += map(str, module.metadata)
    return "\n".join(lines)


class NumberedNames:
    """The names of a function's values, in the place of llvmlite's, which looks for one that is free."""

    def __init__(self) -> None:
        self._count = 0

    def register(self, name: str, deduplicate: bool = True) -> str:
        """A name that no other value has."""
        self._count += 1
        return f"{name}_{self._count}"


def _function(function: ir.Function) -> list[str]:
    head: list[str] = []
    function.descr_prototype(head)
    lines = ["".join(head).rstrip(), "{"]
    of_kind = _WRITERS.get
    for block in function.blocks:
        lines.append(f'"{block.name}":')
        for one in block.instructions:
            write = str if one.metadata else of_kind(type(one), str)
            lines.append(write(one))
    return [*lines, "}"]


def _reference(value: Any) -> str:
    """How other instructions name a value: those of a function have names without escapes."""
    return f'%"{value.name}"' if isinstance(value, _OF_FUNCTION) else value.get_reference()


def _typed(value: Any) -> str:
    return f"{value.type} {_reference(value)}"


def _arithmetic(one: ir.Instruction) -> str:
    flags = f" {' '.join(one.flags)}" if one.flags else ""
    return f"{_reference(one)} = {one.opname}{flags} {one.type} {', '.join(map(_reference, one.operands))}"


def _comparison(one: Any) -> str:
    left, right = one.operands
    flags = f" {' '.join(one.flags)}" if one.flags else ""
    return f"{_reference(one)} = {one.opname}{flags} {one.op} {_typed(left)}, {_reference(right)}"


def _cast(one: ir.Instruction) -> str:
    return f"{_reference(one)} = {one.opname} {_typed(one.operands[0])} to {one.type}"


def _load(one: Any) -> str:
    align = "" if one.align is None else f", align {one.align}"
    return f"{_reference(one)} = load {one.type}, {_typed(one.operands[0])}{align}"


def _store(one: Any) -> str:
    value, place = one.operands
    align = "" if one.align is None else f", align {one.align}"
    return f"store {_typed(value)}, {_typed(place)}{align}"


def _address(one: Any) -> str:
    bounds = " inbounds" if one.inbounds else ""
    places = ", ".join(map(_typed, one.indices))
    return f"{_reference(one)} = getelementptr{bounds} {one.source_etype}, {_typed(one.pointer)}, {places}"


def _choice(one: Any) -> str:
    flags = f" {' '.join(one.flags)}" if one.flags else ""
    return f"{_reference(one)} = select{flags} {', '.join(map(_typed, one.operands))}"


def _call(one: Any) -> str:
    """Of a call that says no more than what is called, with what, and how its result may be rounded."""
    kind = one.callee.function_type
    if one.tail or one.cconv or one.attributes or one.arg_attributes or kind.var_arg:
        return str(one)
    result = "" if kind.return_type == _VOID else f"{_reference(one)} = "
    flags = f" {' '.join(sorted(one.fastmath))}" if one.fastmath else ""
    given = ", ".join(map(_typed, one.args))
    return f"{result}call{flags} {kind.return_type} {_reference(one.callee)}({given})"


def _jump(one: ir.Instruction) -> str:
    return f"br {', '.join(map(_typed, one.operands))}"


_WRITERS: dict[type, Callable[[Any], str]] = {
    instructions.Instruction: _arithmetic,
    instructions.ICMPInstr: _comparison,
    instructions.FCMPInstr: _comparison,
    instructions.CastInstr: _cast,
    instructions.LoadInstr: _load,
    instructions.StoreInstr: _store,
    instructions.GEPInstr: _address,
    instructions.SelectInstr: _choice,
    instructions.CallInstr: _call,
    instructions.Branch: _jump,
    instructions.ConditionalBranch: _jump,
}
