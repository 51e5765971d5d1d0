"""From Numba's representation of a kernel to LLVM's instructions.

A variable with one assignment, made before all uses, is a value; another one is in memory until LLVM cleans
up. An array is an address, extents and strides, and an element an address and a load. A function returns the
address of an error, or null; what else it returns, it writes to where its first parameter says, 8 bytes each.
"""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import ir as llvm_ir

from pullback.tracer.spec import BOOL, INT64

from .. import kernel_types
from ..entry import with_known_extents
from ..sharing import PART, Parts
from . import kinds, operations
from .assembly import NumberedNames
from .callees import call_of
from .kinds import NONE, SLICE, Array, ArrayValue, Kind, Other, Tuple, results
from .outline import outline, vector_bits
from .parts import FastMathOptions, fastmathpass, ir
from .translate import NestText, PartText, Text, numbers_from_arrays, translate

_INT1, _INT8, _INT64 = (llvm_ir.IntType(bits) for bits in (1, 8, 64))
ADDRESS = _INT8.as_pointer()
"""A function returns null, or where the length of an error is in 8 bytes, and then the error, pickled."""


Declared = tuple[llvm_ir.Function, Kind]
"""A function in a module, and the kind of its result."""
Declare = Callable[[llvm_ir.Module, FunctionType, tuple[Kind, ...]], Declared | None]


class Functions:
    """The functions of a module and what they call: each once for the kinds of its arguments."""

    def __init__(self, module: llvm_ir.Module, declare: Declare) -> None:
        """`declare` gives those that other modules define."""
        self.module = module
        self._declare = declare
        self._known: dict[tuple[FunctionType, tuple[Kind, ...]], Declared] = {}
        self._nests: dict[Hashable, Declared] = {}

    def define(
        self, function: FunctionType, arguments: tuple[Kind, ...], brief_loops: frozenset[int] = frozenset()
    ) -> Declared:
        """The function for arguments of these kinds, and the kind of its result."""
        key = (function, arguments)
        if key not in self._known:
            declared = self._declare(self.module, function, arguments)
            self._known[key] = declared or self._written(Text.of(function, brief_loops), arguments)
        return self._known[key]

    def _written(self, text: Text, arguments: tuple[Kind, ...]) -> Declared:
        written = self.write(text, arguments)
        return written.function, written.result or NONE

    def write(
        self, text: Text, arguments: tuple[Kind, ...], from_arrays: Iterable[str] = (), name: str = ""
    ) -> _Lowering:
        """A function of a text; elements of arrays have a part in some of its arguments."""
        name = name or f"pullback.kernel.{text.tree.name}.{len(self.module.functions)}"
        return _Lowering(self, name, text, arguments, from_arrays)


    def nest(
        self, text: NestText, arguments: tuple[Kind, ...], from_arrays: Iterable[str], known: Hashable
    ) -> Declared:
        """The function of all nests of a form, given arguments of these kinds of which as much is known."""
        key = text.form, arguments, known
        if key not in self._nests:
            written = self.write(text, arguments, from_arrays)
            written.function.attributes.add("noinline")  # at each place it would be compiled again
            self._nests[key] = written.function, written.result or NONE
        return self._nests[key]


def function_of(module: llvm_ir.Module, name: str, arguments: Sequence[Kind]) -> llvm_ir.Function:
    """A function in a module for arguments of these kinds, without a body."""
    parameters = [one for kind in arguments for one in kinds.field_types(kind)]
    function = llvm_ir.Function(module, llvm_ir.FunctionType(ADDRESS, [ADDRESS, *parameters]), name)
    for argument in function.args:
        if isinstance(argument.type, llvm_ir.PointerType):
            argument.add_attribute("noalias")
            argument.add_attribute("captures(none)")
    return function


def finish(module: llvm_ir.Module, options: kernel_types.CompileOptions) -> None:
    """Give arithmetic its flags and functions their vectors; those that are called often get one body."""
    fastmathpass.rewrite_module(module, FastMathOptions(set(options.fastmath)))
    outline(module, vector_bits(options.vector_width))
    for function in module.functions:
        if function.blocks and options.vector_width:
            # llvmlite knows no attributes with a value, but writes what the set holds
            set.add(function.attributes, f'"prefer-vector-width"="{options.vector_width}"')


Typed = tuple[Kind, Any]
"""A value: what it is, and LLVM's values of it."""


class _Lowering:
    """The instructions of one function, written in the order of its text.

    A variable has the kind of what is assigned to it, and that comes before all uses.
    """

    def __init__(
        self,
        functions: Functions,
        name: str,
        text: Text,
        arguments: tuple[Kind, ...],
        from_arrays: Iterable[str],
    ) -> None:
        """Raises TypeError where an operation does not suit its operands, or a variable changes its kind."""
        translated, self.in_memory = translate(text)
        self.from_arrays = numbers_from_arrays(translated, from_arrays)
        self.functions, self.module = functions, functions.module
        self.home = text.module
        self.result: Kind | None = None
        self.function = function_of(self.module, name, arguments)
        self.function.linkage, self.function.scope = "internal", NumberedNames()
        start = self.builder = llvm_ir.IRBuilder(self.function.append_basic_block("entry"))
        given = iter(self.function.args[1:])
        self.arguments = [(kind, kinds.from_fields(start, kind, given)) for kind in arguments]
        self.known_sizes = {
            id(extent): _INT64(known)
            for kind, value in self.arguments
            if isinstance(kind, Array)
            for extent, known in zip(value.shape, kind.extents)
            if known
        }
        """By the identity of a value that is an extent, that extent where it is known."""
        self.values: dict[str, Typed] = {}
        self.slots: dict[str, tuple[Kind, list[llvm_ir.Value]]] = {}
        self.stores: dict[str, list[llvm_ir.Instruction]] = {}
        self.read: set[str] = set()
        self.blocks = {label: self.function.append_basic_block(f"B{label}") for label in translated}
        start.position_before(start.branch(self.blocks[next(iter(translated))]))
        self.entry = start
        self.builder = llvm_ir.IRBuilder()
        for label, block in translated.items():
            self.builder.position_at_end(self.blocks[label])
            for statement in block.body:
                getattr(self, f"_write_{type(statement).__name__}")(statement)

    # --- variables ----------------------------------------------------------------------------------------

    def _load(self, variable: Any) -> Typed:
        name = variable.name
        if name not in self.in_memory:
            return self.values[name]
        self.read.add(name)
        kind, slots = self.slots[name]
        loaded = [self.builder.load(one) for one in slots]
        return kind, kinds.from_fields(self.builder, kind, iter(loaded))

    def _load_as(self, variable: Any, wanted: Kind) -> Any:
        kind, value = self._load(variable)
        return self._cast(kind, value, wanted)

    def _cast(self, kind: Kind, value: Any, wanted: Kind) -> Any:
        if kind is wanted:
            return value
        if isinstance(kind, Tuple) and isinstance(wanted, Tuple):
            return [self._cast(*one) for one in zip(kind.items, value, wanted.items)]
        if isinstance(kind, np.dtype) and isinstance(wanted, np.dtype):
            return operations.cast(self.builder, value, kind, wanted)
        if kind != wanted:
            raise TypeError(f"{kind} is no {wanted}")
        return value

    def _store(self, name: str, kind: Kind, value: Any) -> None:
        if name not in self.in_memory:
            self.values[name] = kind, value
            return
        if name not in self.slots:
            self.slots[name] = kind, [self.slot(one) for one in kinds.field_types(kind)]
        if self.slots[name][0] != kind:
            self._widen(name, kind)
        known, slots = self.slots[name]
        parts = zip(kinds.fields(known, self._cast(kind, value, known)), slots)
        self.stores.setdefault(name, []).extend(self.builder.store(part, slot) for part, slot in parts)

    def _widen(self, name: str, kind: Kind) -> None:
        """Let a variable hold another kind too: one of two values that may be chosen."""
        known, _ = self.slots[name]
        both = kinds.common(known, kind)
        if both == known:
            return
        if name in self.read:
            raise TypeError(f"{name} is {known} and {kind}")
        here, slot = self.builder, self.slot(kinds.number_type(both))
        for place, store in enumerate(self.stores[name]):
            self.builder = llvm_ir.IRBuilder()
            self.builder.position_after(store)
            value = self._cast(known, store.operands[0], both)
            self.stores[name][place] = self.builder.store(value, slot)
        self.builder, self.slots[name] = here, (both, [slot])

    def slot(self, kind: llvm_ir.Type) -> llvm_ir.Value:
        """Memory of a variable, from the beginning of the function."""
        slot = self.entry.alloca(kind)
        self.entry.store(kind(None), slot)
        return slot

    # --- statements ---------------------------------------------------------------------------------------

    def _write_Assign(self, statement: Any) -> None:
        self._store(statement.target.name, *self._value(statement.value))

    def _write_SetItem(self, statement: Any) -> None:
        array, address = self._address(statement.target, statement.index)
        value = self._load_as(statement.value, array.dtype)
        self.builder.store(self.builder.zext(value, _INT8) if array.dtype == BOOL else value, address)

    def _write_Jump(self, statement: Any) -> None:
        self.builder.branch(self.blocks[statement.target])

    def _write_BackJump(self, statement: Any) -> None:
        """Tell LLVM not to write a loop out several times: vectors it has where that pays.

        Of recurrences it gains nothing, and their copies take up to half of the time to compile them.
        """
        self._jump_back(statement, ["llvm.loop.unroll.runtime.disable"])

    def _write_BriefJump(self, statement: Any) -> None:
        """The same, and to make no vectors of it."""
        disabled = ["llvm.loop.vectorize.enable", _INT1(0)]
        self._jump_back(statement, disabled, ["llvm.loop.unroll.runtime.disable"])

    def _jump_back(self, statement: Any, *hints: list[Any]) -> None:
        jump = self.builder.branch(self.blocks[statement.target])
        nodes = [self.module.add_metadata(hint) for hint in hints]
        loop = llvm_ir.MDValue(self.module, nodes, name=str(len(self.module.metadata)))
        loop.operands = (loop, *nodes)  # by which LLVM tells loops apart
        jump.set_metadata("llvm.loop", loop)

    def _write_Branch(self, statement: Any) -> None:
        kind, value = self._load(statement.cond)
        condition = operations.truth(self.builder, value, kind)
        self.builder.cbranch(condition, self.blocks[statement.truebr], self.blocks[statement.falsebr])

    def _write_StaticRaise(self, statement: Any) -> None:
        content = pickle.dumps((statement.exc_class, statement.exc_args))
        text = llvm_ir.Constant(llvm_ir.ArrayType(_INT8, len(content)), bytearray(content))
        error = llvm_ir.Constant.literal_struct([_INT64(len(content)), text])
        name = f"{self.function.name}.error.{len(self.module.globals)}"
        place = llvm_ir.GlobalVariable(self.module, error.type, name)
        place.linkage, place.global_constant, place.initializer = "internal", True, error
        self.builder.ret(self.builder.bitcast(place, ADDRESS))

    def _write_Return(self, statement: Any) -> None:
        kind, value = self._load(statement.value)
        if self.result not in (None, kind):
            raise TypeError(f"{self.function.name} returns {self.result} and {kind}")
        self.result = kind
        if any(isinstance(one, Array) for one in (kind, *(kind.items if isinstance(kind, Tuple) else ()))):
            raise TypeError("a kernel returns None, a scalar or a tuple of scalars")
        for place, part in enumerate(kinds.fields(kind, value)):
            address = self.builder.gep(self.function.args[0], [_INT64(8 * place)])
            self.builder.store(part, self.builder.bitcast(address, part.type.as_pointer()))
        self.builder.ret(ADDRESS(None))

    # --- expressions --------------------------------------------------------------------------------------

    def _value(self, value: Any) -> Typed:
        if isinstance(value, ir.Var):
            return self._load(value)
        if isinstance(value, ir.Const | ir.Global):
            kind = kinds.of_constant(value.value)
            return kind, kinds.number_type(kind)(value.value) if isinstance(kind, np.dtype) else None
        if isinstance(value, ir.Arg):
            return self.arguments[value.index]
        found: Typed = getattr(self, f"_value_of_{value.op}")(value)
        return found

    def _value_of_binop(self, value: Any) -> Typed:
        return self._binary(value.fn, value)

    def _value_of_inplace_binop(self, value: Any) -> Typed:
        """`+=` alone may be reordered, so that sums vectorise.

        With `reassoc` on all arithmetic LLVM also folds `(a + b) - a` to `b`, and a nan is lost. With `nsz`
        next to it, it does so through a `+=` even where the subtraction itself is exact.
        """
        kind, found = self._binary(value.immutable_fn, value)
        if getattr(found, "opname", None) == "fadd":
            found.flags = ["contract", "reassoc"]
        return kind, found

    def _binary(self, function: Any, value: Any) -> Typed:
        operands = [self._load(one) for one in (value.lhs, value.rhs)]
        both, result = operations.kind_of_binary(function, *(kind for kind, _ in operands))
        left, right = (self._cast(*one, both) for one in operands)
        wraps = value.lhs.name in self.from_arrays or value.rhs.name in self.from_arrays
        return result, operations.binary(self.builder, function, both, left, right, wraps)

    def _value_of_unary(self, value: Any) -> Typed:
        return operations.unary(self.builder, value.fn, *self._load(value.value))

    def _value_of_static_getitem(self, value: Any) -> Typed:
        kind, items = self._load(value.value)
        if not isinstance(kind, Tuple):
            raise TypeError(f"{kind} is no tuple")
        return kind.items[value.index], items[value.index]

    def _value_of_call(self, value: Any) -> Typed:
        function, _ = self._load(value.func)
        if not isinstance(function, Other):
            raise TypeError(f"{function} is no function")
        given = [self._load(one) for one in value.args]
        if isinstance(function.what, PartText):
            self._share(function.what, given, [one.name in self.from_arrays for one in value.args])
            return NONE, None
        if isinstance(function.what, NestText):
            return self._run_nest(function.what, given, [one.name in self.from_arrays for one in value.args])
        called = call_of(function.what, tuple(kind for kind, _ in given), self.home, self.functions.define)
        values = [self._cast(*one, kind) for one, kind in zip(given, called.operands, strict=True)]
        return called.result, called.emit(self, values)

    def _share(self, text: PartText, values: list[Typed], from_arrays: list[bool]) -> None:
        """Run the parts of a body in threads; what one of them raises, this function does."""
        *given, (_, extent), (_, threads) = values
        names = [name for name, one in zip(text.given, from_arrays) if one]
        kinds_of_given = tuple(kind for kind, _ in given)
        part = self.functions.write(text, (*kinds_of_given, INT64, INT64), names).function
        part.attributes.add("noinline")  # as a kernel's, its arguments keep `noalias`
        fields = [kinds.fields(*one) for one in given]
        parts = Parts(self.builder, part, fields, kinds_of_given, text.sharing)
        several = self.builder.mul(threads, _INT64(text.per_thread))
        several = self.builder.select(self.builder.icmp_signed("<", several, extent), several, extent)
        is_alone = self.builder.icmp_signed("<=", threads, _INT64(1))
        count = self.builder.select(is_alone, _INT64(1), several)
        error = parts.run(self.slot(parts.frame), self.slot(PART), extent, count, threads)
        self.leave_if(self.builder.icmp_unsigned("!=", error, ADDRESS(None)), error)

    def _run_nest(self, text: NestText, values: list[Typed], from_arrays: list[bool]) -> Typed:
        """Call the function that nests of one form are, for extents that LLVM knows the same ones."""
        names = [name for name, one in zip(text.given, from_arrays) if one]
        kinds_of_given = tuple(kind for kind, _ in values)
        fields: list[llvm_ir.Value] = []
        for kind, value in values:
            parts = with_known_extents(kind, kinds.fields(kind, value))
            fields += [self.known_sizes.get(id(one), one) for one in parts]
        known = tuple(str(one) if isinstance(one, llvm_ir.Constant) else "" for one in fields)
        function, result = self.functions.nest(text, kinds_of_given, names, (known, *from_arrays))
        return result, self.call(function, result, fields)

    def call(self, function: llvm_ir.Function, result: Kind, arguments: Sequence[llvm_ir.Value]) -> Any:
        """Call a function of the module; what it raises, this one does."""
        types = kinds.field_types(result)
        slot = self.slot(llvm_ir.ArrayType(_INT64, len(types))) if types else None
        place = self.builder.bitcast(slot, ADDRESS) if slot else ADDRESS(None)
        error = self.builder.call(function, [place, *arguments])
        self.leave_if(self.builder.icmp_unsigned("!=", error, ADDRESS(None)), error)
        return kinds.from_fields(self.builder, result, iter(results(self.builder, place, types)))

    def leave_if(self, condition: llvm_ir.Value, error: llvm_ir.Value) -> None:
        """Return the address of an error, which is another one than null, where the condition holds."""
        with self.builder.if_then(condition, likely=False):
            self.builder.ret(self.builder.bitcast(error, ADDRESS))

    def _value_of_getattr(self, value: Any) -> Typed:
        kind, array = self._load(value.value)
        if not isinstance(kind, Array) or value.attr not in ("shape", "T"):
            raise TypeError(f"{kind} has no {value.attr}")
        if value.attr == "shape":
            return Tuple((INT64,) * kind.ndim), array.shape
        return kind.transposed, ArrayValue(array.data, array.shape[::-1], array.strides[::-1])

    def _value_of_build_tuple(self, value: Any) -> Typed:
        items = [self._load(one) for one in value.items]
        return Tuple(tuple(kind for kind, _ in items)), [one for _, one in items]

    def _value_of_exhaust_iter(self, value: Any) -> Typed:
        return self._load(value.value)

    _value_of_cast = _value_of_exhaust_iter

    # --- elements and parts of arrays ---------------------------------------------------------------------

    def _value_of_getitem(self, value: Any) -> Typed:
        array, pieces, indices = self._indexed(value.value, value.index)
        found = array.part([kind for kind, _ in indices])
        if isinstance(found, Array):
            return found, self._part(array, pieces, indices)
        element = self.builder.load(self._at(array, pieces, [one for _, one in indices]))
        return array.dtype, self.builder.icmp_unsigned("!=", element, _INT8(0)) if found == BOOL else element

    def _address(self, variable: Any, index: Any) -> tuple[Array, llvm_ir.Value]:
        """An array, and where one of its elements is."""
        array, pieces, indices = self._indexed(variable, index)
        if isinstance(array.part([kind for kind, _ in indices]), Array):
            raise TypeError(f"{array} has no element at {len(indices)} indices")
        return array, self._at(array, pieces, [one for _, one in indices])

    def _indexed(self, variable: Any, index: Any) -> tuple[Array, ArrayValue, list[Typed]]:
        """An array and indices, whose integers have 64 bits.

        Generated code never counts from the end, so an index is taken as it is.
        """
        array, pieces = self._load(variable)
        if not isinstance(array, Array):
            raise TypeError(f"{array} has no elements")
        kind, value = self._load(index)
        given = zip(kind.items, value) if isinstance(kind, Tuple) else [(kind, value)]
        wide = [(INT64, self._cast(*one, INT64)) if kinds.is_integer(one[0]) else one for one in given]
        return array, pieces, wide

    def _at(self, kind: Array, array: ArrayValue, indices: Sequence[llvm_ir.Value]) -> llvm_ir.Value:
        """The address of the element with as many indices as there are dimensions."""
        if not indices:
            return array.data
        if kind.layout == "C":
            place = indices[0]
            for position, extent in zip(indices[1:], array.shape[1:]):
                place = self._sum(self._product(place, extent), position)
            return self.builder.gep(array.data, [place], inbounds=True)
        bytes_ = functools.reduce(self._sum, map(self._product, indices, array.strides))
        first = self.builder.ptrtoint(array.data, _INT64)
        return self.builder.inttoptr(self.builder.add(first, bytes_), array.data.type)

    def _product(self, one: llvm_ir.Value, other: llvm_ir.Value) -> llvm_ir.Value:
        return self.builder.mul(one, other, flags=["nsw"])

    def _sum(self, one: llvm_ir.Value, other: llvm_ir.Value) -> llvm_ir.Value:
        return self.builder.add(one, other, flags=["nsw"])

    def _part(self, kind: Array, array: ArrayValue, indices: Sequence[Typed]) -> ArrayValue:
        """A view, of the elements with some integers and between some bounds."""
        starts, shape, strides = [], [], []
        for index, extent, stride in itertools.zip_longest(indices, array.shape, array.strides):
            what, value = (SLICE, (None, None)) if index is None else index
            if what == INT64:
                starts.append(value)
                continue
            start, stop = (
                default if one is None else one for one, default in zip(value, (_INT64(0), extent))
            )
            starts.append(start)
            shape.append(extent if value == (None, None) else self._length(start, stop, extent))
            strides.append(stride)
        return ArrayValue(self._at(kind, array, starts), shape, strides)

    def _length(self, start: llvm_ir.Value, stop: llvm_ir.Value, extent: llvm_ir.Value) -> llvm_ir.Value:
        """How many of so many elements lie between two bounds."""
        builder = self.builder
        last = builder.select(builder.icmp_signed(">=", stop, extent), extent, stop)
        is_empty = builder.icmp_signed("<=", last, start)
        return builder.select(is_empty, _INT64(0), builder.sub(last, start))
