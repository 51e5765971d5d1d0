"""The instructions of operators and conversions, a table from Python's operators to LLVM's builder."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from pullback.tracer.spec import BOOL

from . import kinds
from .kinds import FLOAT64, Kind

Combine = Callable[[ir.IRBuilder, np.dtype, ir.Value, ir.Value], ir.Value]


def cast(builder: ir.IRBuilder, value: ir.Value, kind: np.dtype, wanted: np.dtype) -> ir.Value:
    """A number in another kind."""
    if kind == wanted:
        return value
    if wanted == BOOL:
        return truth(builder, value, kind)
    target, is_signed = kinds.number_type(wanted), kind.kind == "i"
    if kind.kind == "f":
        if wanted.kind == "f":
            return (builder.fpext if wanted.itemsize > kind.itemsize else builder.fptrunc)(value, target)
        return (builder.fptosi if wanted.kind == "i" else builder.fptoui)(value, target)
    if wanted.kind == "f":
        return (builder.sitofp if is_signed else builder.uitofp)(value, target)
    if target.width <= value.type.width:
        return value if target == value.type else builder.trunc(value, target)
    return (builder.sext if is_signed else builder.zext)(value, target)


def truth(builder: ir.IRBuilder, value: ir.Value, kind: Kind) -> ir.Value:
    """Whether a number is not 0. Raises TypeError for another kind."""
    if kind == BOOL:
        return value
    if not isinstance(kind, np.dtype):
        raise TypeError(f"{kind} is no truth value")
    zero = value.type(0)
    if kind.kind == "f":
        return builder.fcmp_unordered("!=", value, zero)
    return builder.icmp_unsigned("!=", value, zero)


# --- operators --------------------------------------------------------------------------------------------


@functools.cache
def kind_of_binary(function: Any, left: Kind, right: Kind) -> tuple[np.dtype, np.dtype]:
    """What the operands become, and the result."""
    if function in SIGNS:
        both = kinds.common(left, right)
        if both.kind == "f" and kinds.is_integer(left) and kinds.is_integer(right):
            raise TypeError(f"{left} and {right} cannot be compared")
        return both, BOOL
    if function is operator.truediv:
        kind = kinds.common(left, right)
        kind = kind if kind.kind == "f" else FLOAT64
    elif function in BITWISE:
        kind = BOOL if left == right == BOOL else kinds.of_arithmetic(left, right)
    else:
        kind = kinds.of_arithmetic(left, right)
    is_float = kind.kind == "f"
    if is_float if function in BITWISE else ARITHMETIC[function][is_float] is None:
        raise TypeError(f"no {function.__name__} of {left} and {right}")
    return kind, kind


def binary(
    builder: ir.IRBuilder, function: Any, kind: np.dtype, left: ir.Value, right: ir.Value, wraps: bool = False
) -> ir.Value:
    """An operator of two numbers of one kind; integers may wrap around, as NumPy's, or are said not to."""
    if function in SIGNS:
        return compare(builder, SIGNS[function], kind, left, right)
    if function in BITWISE:
        return BITWISE[function](builder, left, right)
    if wraps and function in WRAPPING and kind.kind != "f":
        return WRAPPING[function](builder, left, right)
    combine = ARITHMETIC[function][kind.kind == "f"]
    assert combine is not None
    return combine(builder, kind, left, right)


def compare(builder: ir.IRBuilder, sign: str, kind: np.dtype, left: ir.Value, right: ir.Value) -> ir.Value:
    if kind.kind == "f":
        return (builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered)(sign, left, right)
    return (builder.icmp_signed if kind.kind == "i" else builder.icmp_unsigned)(sign, left, right)


def unary(builder: ir.IRBuilder, function: Any, kind: Kind, value: Any) -> tuple[np.dtype, ir.Value]:
    """An operator of a number, and the kind of the result."""
    if function is operator.not_:
        return BOOL, builder.not_(truth(builder, value, kind))
    result = BOOL if function is operator.invert and kind == BOOL else kinds.of_arithmetic(kind)
    value = cast(builder, value, kinds.common(kind), result)
    if function is operator.pos:
        return result, value
    if function is operator.invert:
        if result.kind == "f":
            raise TypeError(f"no {function.__name__} of {kind}")
        return result, builder.not_(value)
    return result, builder.fsub(value.type(-0.0), value) if result.kind == "f" else builder.neg(value)


def magnitude(builder: ir.IRBuilder, kind: np.dtype, value: ir.Value) -> ir.Value:
    """`abs(x)`"""
    if kind.kind == "f":
        return builder.call(builder.module.declare_intrinsic("llvm.fabs", [value.type]), [value])
    is_negative = builder.icmp_signed("<", value, value.type(0))
    return builder.select(is_negative, builder.neg(value), value) if kind.kind == "i" else value


def extreme(sign: str) -> Combine:
    """The lesser or the larger of two integers."""
    return lambda builder, kind, one, other: builder.select(
        compare(builder, sign, kind, one, other), one, other
    )


def quotient(builder: ir.IRBuilder, kind: np.dtype, dividend: ir.Value, given: ir.Value) -> ir.Value:
    return _divided(builder, kind, dividend, given, gives_quotient=True)


def remainder(builder: ir.IRBuilder, kind: np.dtype, dividend: ir.Value, given: ir.Value) -> ir.Value:
    return _divided(builder, kind, dividend, given, gives_quotient=False)


def _divided(
    builder: ir.IRBuilder, kind: np.dtype, dividend: ir.Value, given: ir.Value, gives_quotient: bool
) -> ir.Value:
    """As NumPy's floor_divide and remainder of integers, which are 0 where the divisor is.

    The processor divides neither by 0 nor the least integer by -1: these divisors are 1 for it. A quotient
    by -1 is the negative, which for the least integer is itself.
    """
    zero, one = (given.type(number) for number in (0, 1))
    is_zero = builder.icmp_unsigned("==", given, zero)
    if kind.kind != "i":
        divisor = builder.select(is_zero, one, given)
        found = (builder.udiv if gives_quotient else builder.urem)(dividend, divisor)
        return builder.select(is_zero, zero, found) if gives_quotient else found
    is_negation = builder.icmp_unsigned("==", given, given.type(-1))
    divisor = builder.select(builder.or_(is_zero, is_negation), one, given)
    rest = builder.srem(dividend, divisor)
    has_rest = builder.icmp_unsigned("!=", rest, zero)
    is_rounded_up = builder.and_(has_rest, builder.icmp_signed("<", builder.xor(rest, divisor), zero))
    if not gives_quotient:
        return builder.select(is_rounded_up, builder.add(rest, divisor), rest)
    found = builder.sub(builder.sdiv(dividend, divisor), builder.zext(is_rounded_up, given.type))
    found = builder.select(is_negation, builder.sub(zero, dividend), found)
    return builder.select(is_zero, zero, found)


def left_shift(builder: ir.IRBuilder, kind: np.dtype, value: ir.Value, places: ir.Value) -> ir.Value:
    """As NumPy's: nothing is left where the places are none of the number's."""
    shifted = builder.shl(value, places)
    return builder.select(_is_place(builder, places), shifted, value.type(0))


def right_shift(builder: ir.IRBuilder, kind: np.dtype, value: ir.Value, places: ir.Value) -> ir.Value:
    """As NumPy's: but the sign nothing is left where the places are none of the number's."""
    shift = builder.ashr if kind.kind == "i" else builder.lshr
    sign = shift(value, value.type(value.type.width - 1)) if kind.kind == "i" else value.type(0)
    return builder.select(_is_place(builder, places), shift(value, places), sign)


def _is_place(builder: ir.IRBuilder, places: ir.Value) -> ir.Value:
    return builder.icmp_unsigned("<", places, places.type(places.type.width))


def gcd(builder: ir.IRBuilder, kind: np.dtype, one: ir.Value, other: ir.Value) -> ir.Value:
    """The greatest common divisor, by Euclid's algorithm, in a function of the module."""
    symbol = f"pullback.gcd.{kind.name}"
    if symbol not in builder.module.globals:
        _define_gcd(builder.module, symbol, kind)
    return builder.call(builder.module.globals[symbol], [one, other])


def _define_gcd(module: ir.Module, symbol: str, kind: np.dtype) -> None:
    number = kinds.number_type(kind)
    function = ir.Function(module, ir.FunctionType(number, (number, number)), symbol)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    begins = [magnitude(builder, kind, one) for one in function.args]
    greatest, _ = _loop_until_zero(builder, begins, lambda greater, less: (less, builder.urem(greater, less)))
    builder.ret(greatest)


def _loop_until_zero(
    builder: ir.IRBuilder, begins: Sequence[ir.Value], turn: Callable[..., Sequence[ir.Value]]
) -> list[ir.Value]:
    """What a loop carries, at its end: each turn takes all of it and gives it anew until the last is zero."""
    start = builder.block
    head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    carried = [builder.phi(begin.type) for begin in begins]
    builder.cbranch(builder.icmp_unsigned("==", carried[-1], carried[-1].type(0)), end, body)
    builder.position_at_end(body)
    for phi, begin, following in zip(carried, begins, turn(*carried)):
        phi.add_incoming(begin, start)
        phi.add_incoming(following, body)
    builder.branch(head)
    builder.position_at_end(end)
    return carried


def power(builder: ir.IRBuilder, kind: np.dtype, base: ir.Value, exponent: ir.Value) -> ir.Value:
    """An integer to an integer power, which wraps around, in a function of the module."""
    symbol = f"pullback.power.{kind.name}"
    if symbol not in builder.module.globals:
        _define_power(builder.module, symbol, kind)
    return builder.call(builder.module.globals[symbol], [base, exponent])


def _define_power(module: ir.Module, symbol: str, kind: np.dtype) -> None:
    """By squaring (D. E. Knuth, The Art of Computer Programming 2, 4.6.3).

    Of a negative exponent the fraction is dropped, so nothing is left but of 1 and -1.
    """
    number = kinds.number_type(kind)
    function = ir.Function(module, ir.FunctionType(number, (number, number)), symbol)
    function.linkage = "internal"
    base, exponent = function.args
    builder = ir.IRBuilder(function.append_basic_block())

    def square_and_multiply(product: ir.Value, square: ir.Value, left: ir.Value) -> tuple[ir.Value, ...]:
        multiplied = builder.select(_is_odd(builder, left), builder.mul(product, square), product)
        return multiplied, builder.mul(square, square), builder.lshr(left, number(1))

    product, _, _ = _loop_until_zero(builder, (number(1), base, exponent), square_and_multiply)
    if kind.kind != "i":
        builder.ret(product)
        return
    sign = builder.select(_is_odd(builder, exponent), base, number(1))
    is_unit = builder.icmp_unsigned("<=", builder.add(base, number(1)), number(2))  # -1, 0 and 1
    is_unit = builder.and_(is_unit, builder.icmp_unsigned("!=", base, number(0)))
    inverse = builder.select(is_unit, sign, number(0))
    builder.ret(builder.select(builder.icmp_signed("<", exponent, number(0)), inverse, product))


def _is_odd(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return builder.icmp_unsigned("!=", builder.and_(value, value.type(1)), value.type(0))


def _integral(method: Callable[..., ir.Value]) -> Combine:
    """Signed integers do not overflow: sizes and indices, of which LLVM knows more so."""
    return lambda builder, kind, one, other: method(
        builder, one, other, flags=["nsw"] if kind.kind == "i" else []
    )


def _floating(method: Callable[..., ir.Value]) -> Combine:
    return lambda builder, kind, one, other: method(builder, one, other)


_BUILDER = ir.IRBuilder
SIGNS: dict[Any, str] = {
    operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.le: "<=",
    operator.gt: ">", operator.ge: ">=",
}  # fmt: skip
BITWISE: dict[Any, Callable[..., ir.Value]] = {
    operator.and_: _BUILDER.and_, operator.or_: _BUILDER.or_, operator.xor: _BUILDER.xor,
}  # fmt: skip
WRAPPING: dict[Any, Callable[..., ir.Value]] = {
    operator.add: _BUILDER.add, operator.sub: _BUILDER.sub, operator.mul: _BUILDER.mul,
}  # fmt: skip
ARITHMETIC: dict[Any, tuple[Combine | None, Combine | None]] = {
    operator.add: (_integral(_BUILDER.add), _floating(_BUILDER.fadd)),
    operator.sub: (_integral(_BUILDER.sub), _floating(_BUILDER.fsub)),
    operator.mul: (_integral(_BUILDER.mul), _floating(_BUILDER.fmul)),
    operator.truediv: (None, _floating(_BUILDER.fdiv)),
    operator.floordiv: (quotient, None),
    operator.mod: (remainder, None),
}
"""Of integers and of floats."""
