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

from .primitives import Number, Symbol

# Multiply and add may be fused. Nothing may be reordered: that would undo the error-free steps.
FLAGS = ("contract",)
VECTOR_LENGTHS = (2, 4, 8, 16)  # of SSE and NEON doubles up to AVX-512 floats
_DOUBLE, _INDEX = ir.DoubleType(), ir.IntType(32)


def define(module: ir.Module, function: Callable[..., Number], types: tuple[ir.Type, ...]) -> ir.Function:
    """The LLVM function in `module` that computes `function` of numbers of these types; it gets inlined."""
    symbol = ".".join(("pullback", function.__name__, *map(str, types)))
    if symbol in module.globals:
        return module.globals[symbol]
    defined = ir.Function(module, ir.FunctionType(types[0], types), symbol)
    defined.linkage = "internal"
    defined.attributes.add("alwaysinline")
    builder = ir.IRBuilder(defined.append_basic_block("entry"))
    builder.ret(function(*(Staged(builder, argument) for argument in defined.args)).value)
    return defined


class _OwnFlags(set):
    """Flags of a call to which Numba adds none of the kernel's: `fabs` with `nsz` could lose a sign."""

    def add(self, flag: str) -> None:
        pass


class Staged(Symbol):
    """A number of type `value.type`; integers are unsigned, and a truth value has one bit.

    Operands that are Python numbers take the type of the other operand, as in NumPy.
    """

    def __init__(self, builder: ir.IRBuilder, value: ir.Value) -> None:
        self.builder = builder
        self.value = value

    @property
    def format_name(self) -> str:
        return {"float": "float32", "double": "float64"}[str(self.value.type)]

    def operand(self, number: Any) -> ir.Value:
        """`number` as an LLVM value of the own type."""
        return number.value if isinstance(number, Staged) else self.value.type(number)

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

    def libm_if_large(self, name: str, limit: float) -> Staged:
        function = _define_libm_if_large(self.builder.module, name, self.value.type, limit)
        call = self.builder.call(function, [self.value])
        call.fastmath = _OwnFlags()
        return Staged(self.builder, call)

    def intrinsic(self, name: str, *others: Any) -> Staged:
        """LLVM's intrinsic `name`, whose operands and result have one type."""
        kind = self.value.type
        operands = [self.value, *map(self.operand, others)]
        signature = ir.FunctionType(kind, [kind] * len(operands))
        function = self.builder.module.declare_intrinsic(f"llvm.{name}", [kind], signature)
        call = self.builder.call(function, operands)
        call.fastmath = _OwnFlags()
        return Staged(self.builder, call)

    def select(self, chosen: Any, other: Any) -> Staged:
        """`chosen` where this truth value holds, else `other`."""
        typed = chosen if isinstance(chosen, Staged) else other
        value = self.builder.select(self.value, typed.operand(chosen), typed.operand(other))
        return Staged(self.builder, value)

    def to_bits(self) -> Staged:
        size = {"float32": 32, "float64": 64}[self.format_name]
        return Staged(self.builder, self.builder.bitcast(self.value, ir.IntType(size)))

    def from_bits(self) -> Staged:
        kind = {32: ir.FloatType(), 64: ir.DoubleType()}[self.value.type.width]
        return Staged(self.builder, self.builder.bitcast(self.value, kind))


def _is_float(number: Staged) -> bool:
    return isinstance(number.value.type, (ir.FloatType, ir.DoubleType))


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


# --- libm for large arguments ------------------------------------------------------------------------------


def _define_libm_if_large(module: ir.Module, name: str, kind: ir.Type, limit: float) -> ir.Function:
    """The LLVM function in `module` that is libm's `name` of x where |x| >= limit, and 0 elsewhere.

    libm takes one number at a time, and a branch around it would keep LLVM from vectorising the loop. So LLVM
    is told of variants for vectors (its VFABI), which look whether any |x| >= limit, and call libm only then.
    """
    symbol = f"pullback.large.{name}.{kind}"
    if symbol in module.globals:
        return module.globals[symbol]
    one = _define_variant(module, symbol, name, kind, 1, limit)
    variants = [_define_variant(module, f"{symbol}.{n}", name, kind, n, limit) for n in VECTOR_LENGTHS]
    mapping = (f"_ZGV_LLVM_N{n}v_{symbol}({v.name})" for n, v in zip(VECTOR_LENGTHS, variants))
    _add_attribute(one, f'"vector-function-abi-variant"="{",".join(mapping)}"')
    _keep(module, variants)
    return one


def _define_variant(
    module: ir.Module, symbol: str, name: str, kind: ir.Type, lanes: int, limit: float
) -> ir.Function:
    """`_define_libm_if_large` for a vector of `lanes` numbers, or for one number."""
    operand_type = ir.VectorType(kind, lanes) if lanes > 1 else kind
    defined = ir.Function(module, ir.FunctionType(operand_type, [operand_type]), symbol)
    defined.linkage = "internal"
    for attribute in ("noinline", "nounwind", "readnone", "willreturn"):
        _add_attribute(defined, attribute)
    (x,) = defined.args
    start, large, end = (defined.append_basic_block(label) for label in ("start", "large", "end"))

    builder = ir.IRBuilder(start)
    suffix = f"v{lanes}{kind.intrinsic_name}" if lanes > 1 else kind.intrinsic_name
    magnitude = builder.call(_declare(module, f"llvm.fabs.{suffix}", defined.function_type), [x])
    above = builder.fcmp_ordered(">=", magnitude, _filled(operand_type, limit), flags=FLAGS)
    lane_bits = ir.IntType(lanes)
    builder.cbranch(builder.icmp_unsigned("!=", builder.bitcast(above, lane_bits), lane_bits(0)), large, end)

    builder.position_at_end(large)
    libm = _declare(module, name, ir.FunctionType(_DOUBLE, [_DOUBLE]))
    zero = result = _filled(operand_type, 0.0)
    for lane in range(lanes):
        y = _call_in_double(builder, libm, builder.extract_element(x, _INDEX(lane)) if lanes > 1 else x)
        result = builder.insert_element(result, y, _INDEX(lane)) if lanes > 1 else y
    builder.branch(end)

    builder.position_at_end(end)
    value = builder.phi(operand_type)
    value.add_incoming(zero, start)
    value.add_incoming(result, large)
    builder.ret(value)
    return defined


def _call_in_double(builder: ir.IRBuilder, function: ir.Function, x: ir.Value) -> ir.Value:
    if x.type == _DOUBLE:
        return builder.call(function, [x])
    return builder.fptrunc(builder.call(function, [builder.fpext(x, _DOUBLE)]), x.type)


def _filled(kind: ir.Type, number: float) -> ir.Constant:
    """`number`, or a vector filled with it."""
    return (
        ir.Constant(kind, [kind.element(number)] * kind.count)
        if isinstance(kind, ir.VectorType)
        else kind(number)
    )


def _declare(module: ir.Module, name: str, function_type: ir.FunctionType) -> ir.Function:
    return module.globals.get(name) or ir.Function(module, function_type, name)


def _add_attribute(function: ir.Function, attribute: str) -> None:
    # llvmlite refuses attributes that it does not know, but writes what the set holds
    set.add(function.attributes, attribute)


def _keep(module: ir.Module, functions: list[ir.Function]) -> None:
    """Keep LLVM from dropping functions that nothing calls before loops are vectorised."""
    name, pointer = "llvm.compiler.used", ir.IntType(8).as_pointer()
    if name not in module.globals:
        ir.GlobalVariable(module, ir.ArrayType(pointer, 0), name)
    used = module.globals[name]
    kept = [
        *(used.initializer.constant if used.initializer else []),
        *(f.bitcast(pointer) for f in functions),
    ]
    used.linkage, used.section = "appending", "llvm.metadata"
    used.value_type = ir.ArrayType(pointer, len(kept))
    used.type = used.value_type.as_pointer()
    used.initializer = ir.Constant(used.value_type, kept)
