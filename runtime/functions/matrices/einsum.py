"""Einstein's notation: any sum of products, told by the indices of the operands and of the result.

Operands are first brought to distinct indices (a repeated one is a diagonal, one that occurs nowhere else
is summed), then contracted pair by pair, from three on in the order that opt_einsum finds.
"""

from __future__ import annotations

import functools
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ....tracer.errors import ArgumentError, DTypeError, ShapeError
from ....tracer.ops import elementwise as e
from ....tracer.ops import reduction as r
from ....tracer.ops.contraction import contract, contraction_title
from ....tracer.spec import BOOL
from ...tape.apply import apply
from ...tape.direct import direct
from ...values.tensor import Tensor
from ..common import array_dtype, as_dtype, elementwise, fail, tensor, with_short_way
from ..shapes.movement import expand_to, permuted, reshape_to
from ..shapes.parts import diagonal
from .contraction import LETTERS, contracted, in_order

__all__ = ["bilinear", "chain_matmul", "einsum", "multi_dot"]

SPARE = string.ascii_letters


def einsum(*arguments: Any) -> Tensor:
    """The sum of products that `equation` describes.

    Args:
        arguments: the equation, as "ij,jk->ik", and the operands, one by one or as one list; or operands each
            followed by a list of numbers that name its dimensions, and at last the result's list. `...`
            stands
            for dimensions that broadcast. Without "->" the result has the indices that occur once, sorted.

    Raises:
        ArgumentError: an equation that does not fit the operands.
        ShapeError: an index has two sizes.
        DTypeError: operands of several dtypes.

    Example:
        >>> einsum("ij,j->i", tensor([[1.0, 2.0]]), tensor([3.0, 4.0]))
        tensor([11.])
    """
    equation, given = _equation_and_operands(arguments)
    operands = [tensor(one, "einsum", f"operands[{place}]") for place, one in enumerate(given)]
    if len(operands) == 1 and array_dtype(operands[0]).kind in "biu":
        (term,), result = parse_equation(equation, [operands[0].ndim])
        if set(term) - set(result):  # a sum of integers, as `sum`
            operands = [as_dtype(operands[0], np.dtype(np.int64))]
    return einsum_in_their_dtype(equation, operands)


def einsum_in_their_dtype(*arguments: Any) -> Tensor:
    """`einsum` as NumPy's, which sums integers in the dtype that they have."""
    equation, given = _equation_and_operands(arguments)
    operands = [tensor(one, "einsum", f"operands[{place}]") for place, one in enumerate(given)]
    for one in operands[1:]:
        if array_dtype(one) != array_dtype(operands[0]):
            found = ", ".join(str(x.dtype) for x in operands)
            fail(
                DTypeError,
                f"einsum(): expected operands of one dtype, but got: {found}. Convert some, e.g. with "
                ".to(dtype).",
            )
    terms, result = parse_equation(equation, [one.ndim for one in operands])
    extents = _extents(equation, terms, operands)
    return _contract_all(operands, terms, result, extents)


def einsum_directly(equation: Any = None, a: Any = None, b: Any = None, *more: Any) -> Any:
    """The product of two operands whose indices are distinct, summed over shared ones, by a short way.

    NotImplemented for what takes a closer look.
    """
    if type(equation) is not str or more or not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        return NotImplemented
    left, right = a._value.shape, b._value.shape
    found = _plain_product(equation, len(left), len(right))
    if found is None or any(left[place] != right[other] for place, other in found.shared):
        return NotImplemented
    return found.multiply(a, b, subscripts=found.subscripts)


with_short_way(einsum, einsum_directly)


class _PlainProduct(NamedTuple):
    """A product of two operands that is one contraction."""

    subscripts: str
    shared: Sequence[tuple[int, int]]
    """The dimensions of both that have one index."""
    multiply: Callable[..., Any]


@functools.lru_cache(maxsize=1024)
def _plain_product(equation: str, rank: int, other_rank: int) -> _PlainProduct | None:
    """What an equation says of two operands if that is one contraction, else None."""
    if "." in equation:
        return None
    try:
        (left, right), result = parse_equation(equation, (rank, other_rank))
    except (ArgumentError, ValueError):  # which the general way explains
        return None
    are_distinct = len(set(left)) == len(left) and len(set(right)) == len(right)
    alone = set(left) ^ set(right)
    if not (left and right and are_distinct and alone <= set(result)):
        return None
    subscripts = f"{left},{right}->{result}"
    shared = [(left.index(letter), right.index(letter)) for letter in left if letter in right]
    return _PlainProduct(subscripts, shared, _product_called(contraction_title(subscripts)))


@functools.cache
def _product_called(title: str) -> Callable[..., Any]:
    return direct(contract, grad_name=f"{title}Backward0")


def _equation_and_operands(arguments: tuple[Any, ...]) -> tuple[str, Sequence[Any]]:
    if not arguments:
        fail(ArgumentError, "einsum(): must specify the equation string and at least one operand")
    if isinstance(arguments[0], str):
        equation, *given = arguments
        operands = given[0] if len(given) == 1 and isinstance(given[0], list | tuple) else given
    elif len(arguments) > 1 and isinstance(arguments[1], str):
        fail(ArgumentError, "einsum(): argument 'equation' (position 1) must be str, not the operands")
    else:
        equation, operands = _from_lists(arguments)
    if not operands:
        fail(ArgumentError, "einsum(): must specify the equation string and at least one operand")
    return equation, operands


def _from_lists(arguments: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """The equation of the form operand, [0, 1], operand, [1, 2], [0, 2]."""
    paired = len(arguments) // 2 * 2

    def term(names: Sequence[Any]) -> str:
        return "".join("..." if name is Ellipsis else SPARE[int(name)] for name in names)

    equation = ",".join(term(arguments[place]) for place in range(1, paired, 2))
    if len(arguments) > paired:
        equation += "->" + term(arguments[-1])
    return equation, [arguments[place] for place in range(0, paired, 2)]


def parse_equation(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The indices of each operand and of the result, `...` replaced by letters that the equation does not
    use."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        fail(
            ArgumentError,
            f"einsum(): fewer operands were provided than specified in the equation, or more: {equation!r} "
            f"names {len(terms)}, found {len(ranks)}",
        )
    spare = [letter for letter in SPARE if letter not in equation]
    width = max([rank - len(term) + 3 for term, rank in zip(terms, ranks) if "..." in term], default=0)
    ellipsis = "".join(spare[: max(width, 0)])
    terms = [
        _spelled_out(term, rank, ellipsis, place) for place, (term, rank) in enumerate(zip(terms, ranks))
    ]
    if arrow:
        result = right.replace("...", ellipsis)
    else:
        counts = Counter("".join(terms))
        result = ellipsis + "".join(sorted(one for one in counts if counts[one] == 1 and one not in ellipsis))
    _require_known(equation, terms, result)
    return terms, result


def _spelled_out(term: str, rank: int, ellipsis: str, place: int) -> str:
    """A term with its `...` as letters: the last ones, since what broadcasts aligns at the end."""
    if "..." in term:
        own = rank - len(term) + 3
        term = term.replace("...", ellipsis[len(ellipsis) - own :] if own > 0 else "") if own >= 0 else term
    if len(term) != rank or (not term.isalpha() and term):
        fail(
            ArgumentError,
            f"einsum(): the number of subscripts in the equation ({len(term)}: {term!r}) does not match the "
            f"number of dimensions ({rank}) for operand {place}",
        )
    return term


def _require_known(equation: str, terms: Sequence[str], result: str) -> None:
    for letter in result:
        if not any(letter in term for term in terms):
            fail(
                ArgumentError,
                f"einsum(): output subscript {letter} does not appear in the equation {equation!r}",
            )
        if result.count(letter) > 1:
            fail(ArgumentError, f"einsum(): output subscript {letter} appears more than once in {equation!r}")


def _extents(equation: str, terms: Sequence[str], operands: Sequence[Tensor]) -> dict[str, int]:
    """The size of each index; a size of 1 broadcasts."""
    found: dict[str, int] = {}
    for term, one in zip(terms, operands):
        for letter, extent in zip(term, one._value.shape):
            known = found.get(letter, 1)
            if 1 not in (known, extent) and known != extent:
                shapes = ", ".join(str(tuple(x.shape)) for x in operands)
                fail(
                    ShapeError,
                    f"einsum(): subscript {letter} of {equation!r} has size {extent} which does not "
                    f"broadcast with previously seen size {known}: operands of shapes {shapes}",
                )
            found[letter] = extent if known == 1 else known
    return found


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1 @ weight[k] @ input2 for each k, plus bias: shapes (..., n), (..., m), (k, n, m) give (..., k).

    Example:
        >>> bilinear(ones(1, 2), ones(1, 3), ones(4, 2, 3))
        tensor([[6., 6., 6., 6.]])
    """
    result = einsum("...i,kij,...j->...k", input1, weight, input2)
    return result if bias is None else elementwise(e.add, result, bias, function="bilinear")


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the order that costs least; the first and last may be vectors.

    Example:
        >>> multi_dot([tensor([1.0, 2.0]), tensor([[3.0], [4.0]])])
        tensor([11.])
    """
    if len(tensors) < 2:
        fail(ArgumentError, f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    letters = LETTERS[: len(tensors) + 1]
    terms = [letters[index : index + 2] for index in range(len(tensors))]
    if tensors[0].ndim == 1:
        terms[0] = terms[0][1:]
    if tensors[-1].ndim == 1:
        terms[-1] = terms[-1][:1]
    result = (terms[0][:1] if tensors[0].ndim == 2 else "") + (terms[-1][1:] if tensors[-1].ndim == 2 else "")
    return einsum(f"{','.join(terms)}->{result}", *tensors)


def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, in the order that costs least.

    Example:
        >>> chain_matmul(ones(2, 3), ones(3, 4)).shape
        torch.Size([2, 4])
    """
    return multi_dot(matrices) if len(matrices) > 1 else apply(e.identity, matrices[0])


# --- one operand -----------------------------------------------------------------------------------------


def _distinct(x: Tensor, term: str) -> tuple[Tensor, str]:
    """Repeated indices as diagonals."""
    repeated = next((letter for letter in term if term.count(letter) > 1), None)
    if repeated is None:
        return x, term
    first = term.index(repeated)
    second = term.index(repeated, first + 1)
    rest = term[:first] + term[first + 1 : second] + term[second + 1 :]
    return _distinct(diagonal(x, 0, first, second), rest + repeated)


def _without(x: Tensor, term: str, unwanted: set[str]) -> tuple[Tensor, str]:
    """Summed over the unwanted indices."""
    dims = tuple(place for place, letter in enumerate(term) if letter in unwanted)
    if not dims:
        return x, term
    kept = "".join(letter for letter in term if letter not in unwanted)
    total = r.any_ if array_dtype(x) == BOOL else r.sum_  # as NumPy adds bools
    return apply(total, x, dims=dims, keepdim=False), kept


def _without_broadcast(x: Tensor, term: str, extents: dict[str, int]) -> tuple[Tensor, str]:
    """Without dimensions of size 1 whose index is larger elsewhere."""
    shape = x._value.shape
    kept = [place for place, letter in enumerate(term) if shape[place] == extents[letter]]
    return reshape_to(x, tuple(shape[place] for place in kept)), "".join(term[place] for place in kept)


# --- pairs ------------------------------------------------------------------------------------------------


def _contract_all(
    operands: Sequence[Tensor], terms: Sequence[str], result: str, extents: dict[str, int]
) -> Tensor:
    pending = []
    for x, term in zip(operands, terms):
        pending.append(_without_broadcast(*_distinct(x, term), extents))
    for pair in _path([term for _, term in pending], result, extents):
        chosen = [pending[place] for place in pair]
        for place in sorted(pair, reverse=True):
            del pending[place]
        wanted = result + "".join(term for _, term in pending)
        pending.append(_contract_pair(*chosen, wanted=wanted))
    (x, term), *_ = pending
    x, term = _without(x, term, set(term) - set(result))
    missing = [letter for letter in result if letter not in term]  # only size 1 or broadcast: put back
    if missing:
        x, term = reshape_to(x, (*x._value.shape, *(1 for _ in missing))), term + "".join(missing)
    return _as_result(in_order(x, term, result), extents, result, len(operands))


def _as_result(x: Tensor, extents: dict[str, int], result: str, count: int) -> Tensor:
    x = expand_to(x, tuple(extents[letter] for letter in result))
    return permuted(x, range(x.ndim)) if count == 1 and x.ndim else x


def _contract_pair(a: tuple[Tensor, str], b: tuple[Tensor, str], *, wanted: str) -> tuple[Tensor, str]:
    """The product of two operands, summed over the indices that nothing else wants, the others in order."""
    x, left = _without(*a, set(a[1]) - set(b[1]) - set(wanted))
    y, right = _without(*b, set(b[1]) - set(a[1]) - set(wanted))
    result = "".join(one for one in dict.fromkeys(wanted) if one in left or one in right)
    if set(left) & set(right) <= set(wanted) and array_dtype(x).kind == "b":
        fail(DTypeError, "einsum(): bool operands are not supported; convert them first, e.g. with .long().")
    if not left or not right:
        result = left or right
        return apply(e.multiply, x, y), result
    return contracted(x, y, f"{left},{right}->{result}"), result


def _path(terms: Sequence[str], result: str, extents: dict[str, int]) -> list[tuple[int, int]]:
    """Which two of the pending operands to contract, step by step; a product goes to the end of the list."""
    if len(terms) < 3:
        return [(0, 1)] if len(terms) == 2 else []
    import opt_einsum  # not at start

    shapes = [np.broadcast_to(0.0, [extents[letter] for letter in term]) for term in terms]
    steps, _ = opt_einsum.contract_path(f"{','.join(terms)}->{_present(terms, result)}", *shapes)
    return [cast(tuple[int, int], tuple(sorted(step))) for step in steps if len(step) == 2]


def _present(terms: Sequence[str], result: str) -> str:
    return "".join(letter for letter in result if any(letter in term for term in terms))
