"""Linear algebra of complex matrices in calls of arrays of pairs: products where four calls take longer, and
equations.

Small matrices and batches of them are multiplied as they lie: neither are parts read apart, nor are there
four calls. An adjoint is one for BLAS, so neither a transpose nor a conjugate is made of it.
"""

from __future__ import annotations

from pullback.tracer.graph import Node
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.complex_matrices import (
    eliminated_pairs,
    product_of_pairs,
    solved_pairs,
    solved_triangle_pairs,
)
from pullback.tracer.ops.linalg import solve, triangular_solve

from ..cost.machine import this_machine
from .contractions import Indices
from .pairs import Pair, as_pairs, parts_of_pairs


def product_by_call(subscripts: str, a: Pair, b: Pair) -> Pair | None:
    """The product of complex numbers; None where it is better taken of their parts."""
    if a.re is None or a.im is None or b.re is None or b.im is None:
        return None
    indices = Indices.of(subscripts, a.re, b.re)
    if not _is_of_matrices(indices) or not indices.suit_blas or _gains_by_threads(indices):
        return None
    (row,), (column,), (summed,) = indices.rows, indices.columns, indices.summed
    batch = "".join(indices.batch)
    left, is_left_adjoint = _operand(a, indices.left, batch + row + summed)
    right, is_right_adjoint = _operand(b, indices.right, batch + summed + column)
    found = product_of_pairs(left, right, adjoint_a=is_left_adjoint, adjoint_b=is_right_adjoint)
    order = tuple((batch + row + column).index(one) for one in indices.result)
    return parts_of_pairs(found).each(lambda part: m.permute(part, dims=order))


def _is_of_matrices(indices: Indices) -> bool:
    return len(indices.rows) == len(indices.columns) == len(indices.summed) == 1


def _gains_by_threads(indices: Indices) -> bool:
    """Whether real products are shared among threads, which a call is not."""
    multiplications = 4 * indices.size(indices.extents)
    machine = this_machine()
    time = machine.nanoseconds_of_large_gemm(multiplications, indices.dtype.itemsize)
    return not indices.batch and machine.cores > 1 and machine.is_worth_sharing(time)


def _operand(value: Pair, text: str, wanted: str) -> tuple[Node, bool]:
    """The pairs in the order of indices that is wanted, or the adjoint, and whether they are that."""
    (re, order, is_negative), (im, order_of_imag, is_conjugate) = (
        _untransposed(part) for part in (value.real, value.imag)
    )
    if order != order_of_imag or is_negative:
        re, im, order, is_conjugate = value.real, value.imag, tuple(range(len(text))), False
    own = sorted(text, key=lambda letter: order[text.index(letter)])
    target = wanted[:-2] + wanted[:-3:-1] if is_conjugate else wanted
    dims = tuple(own.index(letter) for letter in target)
    moved = (re, im) if dims == tuple(range(len(dims))) else (m.permute(one, dims=dims) for one in (re, im))
    return as_pairs(Pair(*moved)).named("pairs"), is_conjugate


def _untransposed(part: Node) -> tuple[Node, tuple[int, ...], bool]:
    """What a part is made of by transposes and changes of sign, the dimension each of its own is there, and
    whether it has the other sign.
    """
    order, is_negative = tuple(range(part.spec.ndim)), False
    while part.operator in (m.permute, e.negative):
        if part.operator is e.negative:
            is_negative = not is_negative
        else:
            order = tuple(part.attributes["dims"][one] for one in order)
        (part,) = part.operands
    return part, order, is_negative


# --- equations ----------------------------------------------------------------------------------------------

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def solution_by_calls(a: Pair, b: Pair) -> Pair:
    """The x with a x = b."""
    if a.im is None:
        return b.each(lambda part: solve(a.real, part))
    matrix, is_adjoint = _matrix(a)
    sides = as_pairs(b).named("pairs")
    return parts_of_pairs(solved_pairs(matrix, eliminated_pairs(matrix), sides, adjoint=is_adjoint))


def triangular_solution_by_call(a: Pair, b: Pair, lower: bool, transposed: bool, right: bool) -> Pair:
    """The x with a x = b, or a' x = b if `transposed`: by the adjoint, of conjugates; or from the right."""
    if a.im is None:
        options = {"lower": lower, "transposed": transposed, "right": right}
        return b.each(lambda part: triangular_solve(a.real, part, **options))
    of_conjugate = transposed and is_conjugate(a)  # of what the transposed is the adjoint of
    conjugates = transposed and not of_conjugate
    matrix, is_adjoint = _matrix(conjugate(a) if of_conjugate else a)
    sides = as_pairs(conjugate(b) if conjugates else b).named("pairs")
    options = {"lower": lower != is_adjoint, "adjoint": is_adjoint != transposed, "right": right}
    found = parts_of_pairs(solved_triangle_pairs(matrix, sides, **options))
    return conjugate(found) if conjugates else found


def is_conjugate(a: Pair) -> bool:
    """Whether the imaginary part alone is one with the other sign, at the same places."""
    (_, order, is_negative), (_, order_of_imag, is_opposite) = map(_untransposed, (a.real, a.imag))
    return is_opposite and not is_negative and order == order_of_imag == tuple(range(a.real.ndim))


def _matrix(a: Pair) -> tuple[Node, bool]:
    text = LETTERS[: a.real.ndim]
    return _operand(a, text, text)


def conjugate(a: Pair) -> Pair:
    return Pair(a.re, None if a.im is None else e.negative(a.im))
