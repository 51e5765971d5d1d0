"""One operator behind matmul, dot, tensordot and einsum: a sum of products over shared indices; and `gemm`.

`subscripts` is einsum's text for two operands, e.g. "ij,jk->ik". Each index occurs once in an operand,
and every index of an operand occurs in the other or in the result (sum the others before).
"""

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Protocol

import numpy as np

from ..array_rules import of_arrays
from ..dims import equated
from ..errors import ShapeError
from ..operator import EACH, HOLOMORPHIC, Array, declare
from ..spec import Spec
from .elementwise import ADDITION, common_dtype

GRAD_FN = {"ab,bc->ac": "Mm", "ab,b->a": "Mv", "a,a->": "Dot", "abc,acd->abd": "Bmm"}


@lru_cache(maxsize=4096)
def split_subscripts(subscripts: str) -> tuple[str, str, str]:
    """("ij", "jk", "ik") of "ij,jk->ik"."""
    operands, result = subscripts.split("->")
    left, right = operands.split(",")
    return left, right, result


def _infer(a: Spec, b: Spec, subscripts: str) -> Spec:
    left, right, result = split_subscripts(subscripts)
    extents = dict(zip(left, a.shape))
    for letter, extent in zip(right, b.shape):
        if extents.setdefault(letter, extent) != extent:
            raise ShapeError(
                f"{subscripts}: index {letter} has size {extents[letter]} in {a} and {extent} in {b}; "
                f"the sizes of a shared index must be equal."
            )
        extents[letter] = equated(extents[letter], extent)
    return Spec(tuple(extents[letter] for letter in result), common_dtype("contract", (a, b)))


@lru_cache(maxsize=4096)
def product_of(subscripts: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """A contraction of vectors and matrices as their product, perhaps transposed, also of stacks of matrices;
    None where it is none."""
    left, right, result = split_subscripts(subscripts)
    stacked = list(itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(left, right, result)))
    if count := len(stacked):
        return _product_of_stacks(left[count:], right[count:], result[count:])
    summed = set(left) & set(right)
    if max(len(left), len(right)) > 2 or summed & set(result) or len(summed) > 1:
        return None
    if not summed:
        if result != left + right:
            return None
        return _outer if len(left) == len(right) == 1 else np.multiply.outer
    turns_left, turns_right = left[-1] not in summed, right[0] not in summed
    free = left.strip(*summed) + right.strip(*summed)
    if result != free:  # the rows of the other one
        return lambda a, b: (b if turns_right else b.T).dot(a.T if not turns_left else a)
    if turns_left or turns_right:
        return lambda a, b: (a.T if turns_left else a).dot(b.T if turns_right else b)
    return np.ndarray.dot


def _product_of_stacks(
    left: str, right: str, result: str
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """The same of stacks of one shape, by the indices of a matrix in each."""
    summed = set(left) & set(right)
    if len(left) != 2 or len(right) != 2 or len(result) != 2 or len(summed) != 1 or summed & set(result):
        return None
    turns_left, turns_right = left[-1] not in summed, right[0] not in summed
    if result == left.strip(*summed) + right.strip(*summed):
        return lambda a, b: np.matmul(
            a.swapaxes(-1, -2) if turns_left else a, b.swapaxes(-1, -2) if turns_right else b
        )
    return lambda a, b: np.matmul(
        b if turns_right else b.swapaxes(-1, -2), a if turns_left else a.swapaxes(-1, -2)
    )


def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[:, None] * b


def _evaluate(a: np.ndarray, b: np.ndarray, subscripts: str) -> np.ndarray:
    multiply = product_of(subscripts)
    if multiply is not None:
        return multiply(a, b)
    left, right, result = split_subscripts(subscripts)
    summed = set(left) & set(right) - set(result)
    batch = [letter for letter in result if letter in left and letter in right]
    if len(summed) > 1 or not batch:
        if not batch:
            first, second = ([text.index(letter) for letter in sorted(summed)] for text in (left, right))
            product = np.tensordot(a, b, axes=(first, second))
            order = [letter for letter in left + right if letter not in summed]
            return product.transpose([order.index(letter) for letter in result])
        return np.einsum(subscripts, a, b, optimize=True)
    return _batched(a, b, left, right, result, batch, sorted(summed))


def _batched(
    a: np.ndarray, b: np.ndarray, left: str, right: str, result: str, batch: list[str], summed: list[str]
) -> np.ndarray:
    """np.matmul on (batch, rows, summed) x (batch, summed, columns), each group of indices merged to one."""
    rows = [letter for letter in left if letter not in batch + summed]
    columns = [letter for letter in right if letter not in batch + summed]
    extents = dict(zip(left + right, a.shape + b.shape))

    def grouped(array: np.ndarray, text: str, *groups: list[str]) -> np.ndarray:
        moved = array.transpose([text.index(letter) for group in groups for letter in group])
        leading = [extents[letter] for letter in groups[0]]
        return moved.reshape(
            leading + [int(np.prod([extents[one] for one in group])) for group in groups[1:]]
        )

    product = np.matmul(grouped(a, left, batch, rows, summed), grouped(b, right, batch, summed, columns))
    order = batch + rows + columns
    product = product.reshape([extents[letter] for letter in order])
    return product.transpose([order.index(letter) for letter in result])


def _canonical(subscripts: str) -> str:
    """The same with indices renamed a, b, c ... in order of appearance."""
    names: dict[str, str] = {}
    for letter in subscripts:
        if letter.isalpha():
            names.setdefault(letter, chr(ord("a") + len(names)))
    return "".join(names.get(letter, letter) for letter in subscripts)


@lru_cache(maxsize=4096)
def contraction_title(subscripts: str) -> str:
    """The name that PyTorch gives the tape's node of this contraction."""
    return GRAD_FN.get(_canonical(subscripts), "Bmm")


@lru_cache(maxsize=4096)
def _subscripts_of_rules(subscripts: str) -> tuple[str, str]:
    left, right, result = split_subscripts(subscripts)
    return f"{result},{right}->{left}", f"{left},{result}->{right}"


@lru_cache(maxsize=4096)
def _rules_of_arrays(subscripts: str) -> Sequence[Callable[[np.ndarray, np.ndarray], np.ndarray]]:
    """What the rules compute of arrays, each of its two in the order of the operands."""
    return [
        product_of(one) or partial(_evaluate, subscripts=one) for one in _subscripts_of_rules(subscripts)
    ]


@of_arrays(lambda g, b, subscripts: _rules_of_arrays(subscripts)[0](g, b))
def _left_rule(g: Array, b: Array, subscripts: str) -> Array:
    return contract(g, b, subscripts=_subscripts_of_rules(subscripts)[0])


@of_arrays(lambda g, a, subscripts: _rules_of_arrays(subscripts)[1](a, g))
def _right_rule(g: Array, a: Array, subscripts: str) -> Array:
    return contract(a, g, subscripts=_subscripts_of_rules(subscripts)[1])


contract = declare(
    "contract",
    "contraction",
    "a b",
    infer=_infer,
    evaluate=_evaluate,
    grad_fn="Mm",
    vjp={"a": _left_rule, "b": _right_rule},
    of_complex=HOLOMORPHIC,
    linear=EACH,
    noun="product",
    doc="the sum over shared indices of the product of two arrays",
)

# --- several contractions in one array --------------------------------------------------------------------


class Product(Protocol):
    """One scaled contraction of a sum; what else is known of it, code generation knows."""

    @property
    def subscripts(self) -> str: ...

    @property
    def scale(self) -> float: ...


def _infer_sum(*operands: Spec, products: Sequence[Product]) -> Spec:
    return contract.infer(*operands[:2], subscripts=products[0].subscripts)


def _evaluate_sum(*operands: np.ndarray, products: Sequence[Product]) -> np.ndarray:
    pairs = zip(operands[::2], operands[1::2])
    total: Any = sum(
        one.scale * contract.evaluate(*pair, subscripts=one.subscripts) for one, pair in zip(products, pairs)
    )
    return total + operands[-1] if len(operands) % 2 else total


gemm = declare(
    "gemm",
    "contraction",
    "*operands",
    infer=_infer_sum,
    evaluate=_evaluate_sum,
    monoid=ADDITION,
    noun="product",
    doc="a sum of scaled contractions and, as last of an odd number of operands, a start: calls of BLAS",
)
