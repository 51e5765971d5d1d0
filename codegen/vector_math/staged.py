"""A number that is not known yet: arithmetic on it writes LLVM instructions.

The functions of this package are straight-line arithmetic. Called with floats they compute; called with
`Staged` numbers they write the instructions of the same computation, in about a millisecond, where Numba
would take some ten for each line of their source. A Python `if` on a staged number is an error, so what
can be staged has no branches, and LLVM vectorises the loop that calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from .primitives import Condition, GoesOn, Number, State, Step, Symbol

# Multiply and add may be fused. Nothing may be reordered: that would undo the error-free steps.
FLAGS = ("contract",)
_FLOATS = {"float32": ir.FloatType(), "float64": ir.DoubleType()}
_SIZES = {"float32": 32, "float64": 64}


def define(module: ir.Module, function: Callable[..., Number], types: tuple[ir.Type, ...]) -> ir.Function:
    """The LLVM function in `module` that computes `function` of numbers of these types; it gets inlined."""
    symbol = ".".join(("pullback", function.__name__, *map(str, types)))
    if symbol in module.globals:
        return module.globals[symbol]
    defined = ir.Function(module, ir.FunctionType(types[0], types), symbol)
    defined.linkage = "internal"
    defined.attributes.add("alwaysinline")
    write(defined, function)
    if len(defined.blocks) > 1:  # LLVM makes no vectors of a loop around a loop
        from . import rare  # which stages what it defines

        rare.offer_vectors(defined, function)
    return defined


def write(defined: ir.Function, function: Callable[..., Number]) -> None:
    """Let an LLVM function compute `function` of its arguments."""
    builder = ir.IRBuilder(defined.append_basic_block("entry"))
    builder.ret(function(*(Staged(builder, argument) for argument in defined.args)).value)


class _OwnFlags(set):
    """Flags of a call to which Numba adds none of the kernel's: `fabs` with `nsz` could lose a sign."""

    def add(self, flag: str) -> None:
        pass


class Staged(Symbol):
    """A number of type `value.type`; integers are unsigned, and a truth value has one bit.

    Operands that are Python numbers take the type of the other operand, as in NumPy. The type may also be a
    vector, of floats or integers.
    """

    def __init__(self, builder: ir.IRBuilder, value: ir.Value) -> None:
        self.builder = builder
        self.value = value

    @property
    def format_name(self) -> str:
        return {"float": "float32", "double": "float64"}[str(_element_type(self.value.type))]

    def operand(self, number: Any) -> ir.Value:
        """`number` as an LLVM value of the own type."""
        if isinstance(number, Staged):
            return number.value
        kind = self.value.type
        return kind([kind.element(number)] * kind.count) if isinstance(kind, ir.VectorType) else kind(number)

    def like(self, number: Any) -> Staged:
        """`number` as a symbol of the own type."""
        return Staged(self.builder, self.operand(number))

    def __bool__(self) -> bool:
        raise TypeError("A branch on a number that is not known yet: use select().")

    def __abs__(self) -> Staged:
        return self.intrinsic("fabs")

    def __neg__(self) -> Staged:
        return Staged(self.builder, self.builder.fneg(self.value))

    def __invert__(self) -> Staged:
        return Staged(self.builder, self.builder.not_(self.value))

    def unfused_product(self, other: Any) -> Staged:
        """The rounded product, which no addition may absorb."""
        # a flag that says nothing about products, so that Numba leaves them alone
        return Staged(self.builder, self.builder.fmul(self.value, self.operand(other), flags=("arcp",)))

    def replace_rare(
        self, usual: Any, is_rare: Callable[[Number], Condition], slow: Callable[[Number], Number]
    ) -> Staged:
        from . import rare  # which stages what it defines

        kind = self.value.type
        function = rare.define(self.builder.module, _element_type(kind), is_rare, slow)
        if isinstance(kind, ir.VectorType):
            function = self.builder.module.globals[f"{function.name}.{kind.count}"]
        call = self.builder.call(function, [self.value, self.operand(usual)])
        call.fastmath = _OwnFlags()
        return Staged(self.builder, call)

    def repeat_while(self, goes_on: GoesOn, step: Step, state: State) -> State:
        builder = self.builder
        before = builder.block
        head, body, end = (builder.append_basic_block(label) for label in ("head", "body", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        current = tuple(Staged(builder, builder.phi(one.value.type)) for one in state)
        open_ones = goes_on(*current)
        builder.cbranch(open_ones.is_any(), body, end)
        builder.position_at_end(body)
        following = tuple(map(open_ones.select, step(*current), current))
        for one, first, new in zip(current, state, following):
            one.value.add_incoming(first.value, before)
            one.value.add_incoming(new.value, builder.block)
        builder.branch(head)
        builder.position_at_end(end)
        return current

    def is_any(self) -> ir.Value:
        """This truth value, or whether any of a vector holds."""
        if not isinstance(self.value.type, ir.VectorType):
            return self.value
        mask = ir.IntType(self.value.type.count)
        return self.builder.icmp_unsigned("!=", self.builder.bitcast(self.value, mask), mask(0))

    def intrinsic(self, name: str, *others: Any) -> Staged:
        """LLVM's intrinsic `name`, whose operands and result have one type."""
        kind = self.value.type
        operands = [self.value, *map(self.operand, others)]
        signature = ir.FunctionType(kind, [kind] * len(operands))
        lanes = f"v{kind.count}" if isinstance(kind, ir.VectorType) else ""
        symbol = f"llvm.{name}.{lanes}{_element_type(kind).intrinsic_name}"
        module = self.builder.module
        function = module.globals.get(symbol) or ir.Function(module, signature, symbol)
        call = self.builder.call(function, operands)
        call.fastmath = _OwnFlags()
        return Staged(self.builder, call)

    def select(self, chosen: Any, other: Any) -> Staged:
        """`chosen` where this truth value holds, else `other`."""
        typed = chosen if isinstance(chosen, Staged) else other
        value = self.builder.select(self.value, typed.operand(chosen), typed.operand(other))
        return Staged(self.builder, value)

    def to_bits(self) -> Staged:
        return self._cast(self.builder.bitcast, ir.IntType(_SIZES[self.format_name]))

    def from_bits(self) -> Staged:
        return self._cast(self.builder.bitcast, self._float_of_this_size())

    def from_integer(self) -> Staged:
        return self._cast(self.builder.uitofp, self._float_of_this_size())

    def _float_of_this_size(self) -> ir.Type:
        return {32: ir.FloatType(), 64: ir.DoubleType()}[_element_type(self.value.type).width]

    def _cast(self, convert: Callable[[ir.Value, ir.Type], ir.Value], element: ir.Type) -> Staged:
        """The number, or each of a vector, as an `element`."""
        kind = self.value.type
        wanted = ir.VectorType(element, kind.count) if isinstance(kind, ir.VectorType) else element
        return Staged(self.builder, convert(self.value, wanted))

    def converted(self, format_name: str) -> Staged:
        size, wanted = _SIZES[self.format_name], _SIZES[format_name]
        convert = self.builder.fpext if size < wanted else self.builder.fptrunc
        return self if size == wanted else self._cast(convert, _FLOATS[format_name])

    def entry_of(self, table: tuple[int, ...]) -> Staged:
        kind, module = self.value.type, self.builder.module
        constant = ir.Constant(ir.ArrayType(kind, len(table)), [kind(entry) for entry in table])
        name = f"pullback.table.{hash(table) & 2**64 - 1:x}"
        if name not in module.globals:
            array = ir.GlobalVariable(module, constant.type, name)
            array.linkage, array.global_constant, array.initializer = "internal", True, constant
        pointer = self.builder.gep(module.globals[name], [kind(0), self.value], inbounds=True)
        return Staged(self.builder, self.builder.load(pointer))


def _element_type(kind: ir.Type) -> ir.Type:
    return kind.element if isinstance(kind, ir.VectorType) else kind


def _is_float(number: Staged) -> bool:
    return isinstance(_element_type(number.value.type), (ir.FloatType, ir.DoubleType))


def _binary(floating: str | None, integral: str | None) -> Callable[[Staged, Any], Staged]:
    """An operator, from the names of the builder's methods for floats and for integers."""

    def operate(left: Staged, right: Any) -> Staged:
        method = floating if _is_float(left) else integral
        if method is None:
            raise TypeError(f"No such operator for {left.value.type}.")
        flags = {"flags": FLAGS} if _is_float(left) else {}
        return Staged(left.builder, getattr(left.builder, method)(left.value, left.operand(right), **flags))

    return operate


def _reflected(operate: Callable[[Staged, Any], Staged]) -> Callable[[Staged, Any], Staged]:
    return lambda right, left: operate(Staged(right.builder, right.operand(left)), right)


def _comparison(sign: str) -> Callable[[Staged, Any], Staged]:
    def compare(left: Staged, right: Any) -> Staged:
        builder, operands = left.builder, (left.value, left.operand(right))
        if not _is_float(left):
            return Staged(builder, builder.icmp_unsigned(sign, *operands))
        # of all comparisons != alone holds for nan; with flags of its own it gets none of the kernel's
        floating = builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered
        return Staged(builder, floating(sign, *operands, flags=FLAGS))

    return compare


for _name, _methods in {
    "add": ("fadd", "add"),
    "sub": ("fsub", "sub"),
    "mul": ("fmul", "mul"),
    "truediv": ("fdiv", None),
    "and": (None, "and_"),
    "or": (None, "or_"),
    "xor": (None, "xor"),
    "lshift": (None, "shl"),
    "rshift": (None, "lshr"),
}.items():
    setattr(Staged, f"__{_name}__", _binary(*_methods))
    setattr(Staged, f"__r{_name}__", _reflected(_binary(*_methods)))
for _name, _sign in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(Staged, f"__{_name}__", _comparison(_sign))
