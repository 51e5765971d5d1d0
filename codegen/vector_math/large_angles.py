"""Angles so large that what is left of them after whole turns depends on hundreds of bits of 2/pi.

x = m * 2**e with an integer m of 53 bits. Of x * 2/pi only the remainder to 4 matters: bits of 2/pi that give
multiples of 4 are left out, and so are those that are too small to be seen; 192 are taken (M. Payne and
R. Hanek, Radian reduction for trigonometric functions, SIGNUM Newsletter 18, 1983). No double comes closer to
a multiple of pi/2 than 2**-61, so that of the 126 bits behind the point at least 64 count.
"""

from __future__ import annotations

import itertools

from . import coefficients
from .primitives import (
    FLOAT64,
    Bits,
    Number,
    entry_of,
    exact_product,
    from_integer,
    select,
    split,
    to_bits,
)

_HALF_PI, _HALF_PI_LOW = split(coefficients.HALF_PI, FLOAT64, 53)
_WORD = 2**64 - 1
_LEADING_ZEROS = 64  # for x below 2**52
_WORDS = 20


def _words() -> tuple[int, ...]:
    """2/pi as 64-bit words, behind some zeros."""
    bits = coefficients.TWO_OVER_PI << (64 * _WORDS - _LEADING_ZEROS - coefficients.TWO_OVER_PI_BITS)
    return tuple(bits >> 64 * (_WORDS - 1 - word) & _WORD for word in range(_WORDS))


_TWO_OVER_PI = _words()


def _multiply(a: Bits, b: Bits) -> tuple[Bits, Bits]:
    """The higher and the lower half of a product of 64-bit integers."""
    mask = 2**32 - 1
    a_high, a_low, b_high, b_low = a >> 32, a & mask, b >> 32, b & mask
    low = a_low * b_low
    first = a_high * b_low + (low >> 32)
    second = a_low * b_high + (first & mask)
    return a_high * b_high + (first >> 32) + (second >> 32), a * b


def reduce_large_angle(x: Number) -> tuple[Bits, Number, Number]:
    """Bits that end in n, and r in two parts, with |x| = n * pi/2 + r, of a float64 with |x| >= 2**18."""
    bits = to_bits(x) & (2**63 - 1)
    m = (bits & (2**52 - 1)) | 2**52
    # the first bit of 2/pi that is wanted has the weight 2 after the multiplication
    start = (bits >> 52) - (FLOAT64.bias + 52 + 2 - _LEADING_ZEROS)
    word, shift = start >> 6, start & 63
    words = [entry_of(_TWO_OVER_PI, word + k) for k in range(4)]
    window = [(left << shift) | ((right >> 1) >> (63 - shift)) for left, right in itertools.pairwise(words)]

    high = m * window[0]
    middle_high, low = _multiply(m, window[1])
    lowest_high, _ = _multiply(m, window[2])
    low = low + lowest_high
    high = high + middle_high + select(low < lowest_high, 1, low & 0)

    n = (high + 2**61) >> 62
    high = high - (n << 62)
    negative = high >= 2**63
    high, low = select(negative, ~high, high), select(negative, ~low, low)
    # 41, 52 and 32 bits, each exactly a float
    first = from_integer(high >> 20) * 2.0**-42
    second = from_integer(((high & (2**20 - 1)) << 32) | (low >> 32)) * 2.0**-94
    third = from_integer(low & (2**32 - 1)) * 2.0**-126
    turn = first + second
    turn_low = ((first - turn) + second) + third
    r, error = exact_product(turn, _HALF_PI)
    r_low = error + (turn * _HALF_PI_LOW + turn_low * _HALF_PI)
    total = r + r_low
    r_low = (r - total) + r_low
    return n, select(negative, -total, total), select(negative, -r_low, r_low)
