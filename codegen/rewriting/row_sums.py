"""Whether a result is a sum over rows of data, proven on the graph, and which values add up to it.

Each value of the graph is found to be of a kind (`row_kinds.py`), from what it is computed of and by what. A
value that is of none, as one that rows are centred by, is refused, at the user's line. So parts of the data
may be computed anywhere: sums of parts add up, and are divided at last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.tracer.dims import Computed, Formula, Source, canonical, formula_of
from pullback.tracer.errors import SeparationError
from pullback.tracer.graph import Graph, Node
from pullback.tracer.operator import Walk
from pullback.tracer.ops import composite, contraction, creation, indexing, reduction
from pullback.tracer.ops import elementwise as e
from pullback.tracer.origin import located_at
from pullback.tracer.spec import reshape_groups

from ...tracer.records import record
from .row_kinds import COUNT, Kind, Numbers, Power, Refused, Rows, Shared, Total


@record(frozen=True)
class RowSum:
    """A result as sums over rows: `graph` gives the sums, then the denominators, then what is added once."""

    graph: Graph
    by_count: tuple[bool, ...]
    """Of each sum whether it is divided by the number of rows."""
    denominators: tuple[int | None, ...]
    """Of each sum which of the denominators it is divided by."""
    has_shared: bool

    @property
    def sums(self) -> int:
        return len(self.by_count)


def split_row_sum(graph: Graph, kinds: Sequence[Kind], rows: int = 0) -> RowSum:
    """The sums over rows of which the graph's one result, a scalar, is made.

    Args:
        kinds: of the inputs.
        rows: a number of rows that no other extent has by chance: whatever has it counts them.

    Raises:
        SeparationError: the result is no sum over rows; it names the user's line.
    """
    (result,) = graph.outputs
    found = _Kinds(graph, kinds, rows).of(result)
    if isinstance(found, Shared):
        found = Total({}, result)
    if not isinstance(found, Total):
        raise _refusal(result, "it is not summed over the rows; end with .sum() or .mean()")
    denominators = [one for one in found.sums if isinstance(one, Node)]
    places = {one: place for place, one in enumerate(denominators)}
    once = () if found.shared is None else (found.shared,)
    return RowSum(
        graph.with_outputs((*found.sums.values(), *denominators, *once)),
        tuple(one == COUNT for one in found.sums),
        tuple(places.get(one) if isinstance(one, Node) else None for one in found.sums),
        bool(once),
    )


def _refusal(node: Node, reason: str) -> SeparationError:
    return SeparationError(
        f"{node.origin.place}  {node.origin.text}\n  This is no sum over the rows of the data: {reason}. "
        "What each row adds must depend on this row and the parameters alone."
    )


OF_NUMBERS = "it depends on the number of a row, which is another in each part of the data"
FURTHER_ROWS = "a value has as many elements as there are rows, and they are no rows"


def _combines(node: Node) -> SeparationError:
    return _refusal(node, f"{node.operator.name} combines rows, or is not known to keep them apart")


class _Kinds:
    """The kinds of a graph's values, found on the way to the one asked for."""

    def __init__(self, graph: Graph, kinds: Sequence[Kind], rows: int) -> None:
        self.known: dict[Node, Kind] = dict(zip(graph.inputs, kinds, strict=True))
        self.counts: set[Formula] = set()
        self.sizes: set[Formula] = set()
        """Of the inputs' other dimensions; of a number of another origin nobody knows what it has to do with
        rows."""
        others = [node for node, kind in zip(graph.inputs, kinds) if not isinstance(kind, Rows | Numbers)]
        self.rows = 0 if any(rows in node.shape for node in others) else rows
        for node, kind in zip(graph.inputs, kinds):
            formulas = [canonical(one) for one in map(formula_of, node.shape) if one is not None]
            if isinstance(kind, Rows) and formulas and formula_of(node.shape[0]) is not None:
                self.counts.add(formulas.pop(0))
            self.sizes.update(formulas)

    def of(self, node: Node) -> Kind:
        """The kind of a value, and of all that it is computed of."""
        pending = [node]
        while pending:
            one = pending[-1]
            unknown = [operand for operand in _read(one) if operand not in self.known]
            pending += unknown
            if not unknown:
                self._find(pending.pop())
        return self.known[node]

    def _find(self, node: Node) -> None:
        if node not in self.known:
            with located_at(node.origin):
                kind = self._found(node)
            own = kind.dim if isinstance(kind, Rows | Numbers) else None
            if not isinstance(kind, Refused) and self._has_further_rows(node, own):
                if node.operands:
                    raise _refusal(node, FURTHER_ROWS)
                kind = Refused(FURTHER_ROWS)
            self.known[node] = kind

    def _has_further_rows(self, node: Node, own: int | None) -> bool:
        """Whether another dimension counts rows, too, of which parts of the data have a part each."""
        counts = [self._is_count(extent) or bool(self.rows and extent == self.rows) for extent in node.shape]
        return any(found and dim != own for dim, found in enumerate(counts))

    def _found(self, node: Node) -> Kind:
        wrapped = _wrapped_index(node)
        if wrapped is not None:
            return self._of_wrapped(node, self.known[wrapped])
        kinds = [self.known[one] for one in node.operands]
        if not kinds:
            return self._of_constant(node)
        reason = next((one.reason for one in kinds if isinstance(one, Refused)), None)
        if reason is not None:
            raise _refusal(node, reason)
        if any(isinstance(one, Power) for one in kinds) and not any(isinstance(one, Total) for one in kinds):
            return self._of_powers(node, kinds)
        if any(isinstance(one, Total) for one in kinds):
            return self._linear(node, kinds)
        of_parameters = any(one.of_parameters for one in kinds)
        dim = self._counts_rows(node)
        if all(isinstance(one, Shared) for one in kinds):
            return Shared(of_parameters) if dim is None else Rows(dim, of_parameters)
        return self._of_rows(node, kinds, of_parameters)

    def _of_wrapped(self, node: Node, kind: Kind) -> Kind:
        """Of positions that count from the end where they are negative; numbers of rows are not."""
        if node.operands[2].operator is creation.iota:
            return kind
        end = node.operands[1].operands[1]
        if self._is_count(end.scalar_value):
            raise _refusal(node, "rows are taken from other places")
        of_parameters = kind.of_parameters
        return Rows(kind.dim, of_parameters) if isinstance(kind, Rows) else Shared(of_parameters)

    # --- constants and counts -----------------------------------------------------------------------------

    def _of_constant(self, node: Node) -> Kind:
        dim = self._counts_rows(node)
        if node.operator is creation.iota and (dim is not None or node.shape == (self.rows,)):
            return Numbers(0)
        formula = formula_of(node.scalar_value)
        exponent = 0 if formula is None else self._exponent_of(canonical(formula))
        if exponent is None:
            return Refused("it depends on how many rows there are, other than by dividing by that")
        if exponent:
            return Power(exponent)
        return Shared(False) if dim is None else Rows(dim, False)

    def _counts_rows(self, node: Node) -> int | None:
        """The dimension that has as many elements as there are rows, by its name."""
        return next((dim for dim, extent in enumerate(node.shape) if self._is_count(extent)), None)

    def _is_count(self, number: Any) -> bool:
        formula = formula_of(number)
        return formula is not None and canonical(formula) in self.counts

    def _exponent_of(self, formula: Any) -> int | None:
        """Which power of the number of rows a formula is: 0 without it, None if it depends on it
        otherwise."""
        if formula in self.counts:
            return 1
        if isinstance(formula, Source):
            return 0 if formula in self.sizes else None
        if not isinstance(formula, Computed):
            return 0
        exponents = [self._exponent_of(one) for one in formula.operands]
        if not any(exponents):
            return None if None in exponents else 0
        if None in exponents:
            return None
        if formula.function in ("float", "negative"):
            return exponents[0]
        if formula.function == "divide":
            return (exponents[0] or 0) - (exponents[1] or 0)
        return sum(one or 0 for one in exponents) if formula.function == "multiply" else None

    def _of_powers(self, node: Node, kinds: Sequence[Kind]) -> Kind:
        """Of a constant that depends on the number of rows: moved, or as many times a shared value."""
        if node.operator in (e.convert, e.identity) or node.operator.family == "movement":
            return kinds[0]
        if (
            node.operator is e.multiply
            and {Power(1)} < set(kinds)
            and any(isinstance(one, Shared) for one in kinds)
        ):
            return Total({None: node}, None, any(one.of_parameters for one in kinds))
        raise _refusal(node, "it uses how many rows there are, other than to divide a sum by it")

    # --- rows ---------------------------------------------------------------------------------------------

    def _of_rows(self, node: Node, kinds: Sequence[Kind], of_parameters: bool) -> Kind:
        operator = node.operator
        if operator is indexing.gather:
            return self._gathered(node, kinds, of_parameters)
        if any(isinstance(one, Numbers) for one in kinds):
            return self._of_numbers(node, kinds)
        if operator.family == "elementwise" or (operator.fills and not node.attributes):
            return Rows(self._aligned(node, kinds), of_parameters)
        if operator is composite.mean:
            return self._mean(node, kinds[0], of_parameters)
        if operator.body is not None:
            return self._of_body(node)
        rule = _BY_OPERATOR.get(operator.name) or _BY_FAMILY.get(operator.family)
        dim = None if rule is None else rule(self, node, kinds)
        if dim is None:
            raise _combines(node)
        return Total({None: node}, None, of_parameters) if dim == SUMMED else Rows(dim, of_parameters)

    def _of_body(self, node: Node) -> Kind:
        body = node.operator.body
        assert body is not None
        try:
            found = self.of(body(*node.operands, **node.attributes))
        except SeparationError:
            raise _combines(node) from None
        if isinstance(found, Total) and node.operator.needs_own_rule:
            raise _combines(node)
        return found

    def _of_numbers(self, node: Node, kinds: Sequence[Kind]) -> Kind:
        """Moved and converted they are still the numbers of rows."""
        if node.operator in (e.convert, e.identity) and isinstance(kinds[0], Numbers):
            return kinds[0]
        raise _refusal(node, OF_NUMBERS)

    def _aligned(self, node: Node, kinds: Sequence[Kind]) -> int:
        """The dimension of rows, where operands are broadcast against each other."""
        dims = {
            one.dim + node.ndim - operand.ndim
            for one, operand in zip(kinds, node.operands)
            if isinstance(one, Rows)
        }
        if len(dims) > 1:
            raise _refusal(node, "rows meet other rows")
        (dim,) = dims
        for one, operand in zip(kinds, node.operands):
            own = dim - (node.ndim - operand.ndim)
            if isinstance(one, Shared) and own >= 0 and operand.shape[own] != 1:
                raise _refusal(
                    node, f"a value of shape {operand.shape}, which is none of the data, has a row for each"
                )
        return dim

    def _mean(self, node: Node, kind: Kind, of_parameters: bool) -> Kind:
        assert isinstance(kind, Rows)
        (x,), dims, keepdim = node.operands, node.attributes["dims"], node.attributes["keepdim"]
        if kind.dim not in dims:
            return Rows(_reduced_dim(kind.dim, dims, keepdim), of_parameters)
        others = math.prod(int(x.shape[dim]) for dim in dims if dim != kind.dim)
        total = reduction.sum_(x, dims=dims, keepdim=keepdim)
        scaled = total if others == 1 else e.multiply(total, 1.0 / others if others else math.nan)
        return Total({COUNT: scaled}, None, of_parameters)

    def _gathered(self, node: Node, kinds: Sequence[Kind], of_parameters: bool) -> Kind:
        (x, *indices), (kind, *kinds_of_indices) = node.operands, kinds
        rank = max(one.ndim for one in indices)
        is_own_row = (
            isinstance(kind, Rows) and kind.dim < len(indices) and _counts(indices[kind.dim], x, kind.dim)
        )
        aligned = {
            one.dim + rank - index.ndim
            for one, index in zip(kinds_of_indices, indices)
            if isinstance(one, Rows)
        }
        numbered = [place for place, one in enumerate(kinds_of_indices) if isinstance(one, Numbers)]
        if is_own_row:
            assert isinstance(kind, Rows)
            aligned.add(rank - 1)
            numbered = [place for place in numbered if place != kind.dim]
        if numbered:
            raise _refusal(node, OF_NUMBERS)
        if isinstance(kind, Rows) and kind.dim >= len(indices) and not aligned:
            return Rows(kind.dim - len(indices) + rank, of_parameters)
        if len(aligned) == 1 and (isinstance(kind, Shared) or is_own_row):
            return Rows(aligned.pop(), of_parameters)
        raise _refusal(node, "rows are taken from other places")

    # --- sums ---------------------------------------------------------------------------------------------

    def _linear(self, node: Node, kinds: Sequence[Kind]) -> Kind:
        operator = node.operator
        of_parameters = any(one.of_parameters for one in kinds)
        if any(isinstance(one, Rows | Numbers) for one in kinds):
            raise _refusal(node, "a sum over all rows meets single rows, as where data are centred")
        if operator in (e.add, e.subtract):
            return self._added(node, kinds, of_parameters)
        if operator in (e.multiply, e.divide) and any(isinstance(one, Power) for one in kinds):
            return self._scaled_by_count(node, kinds, of_parameters)
        if operator is e.divide and isinstance(kinds[1], Total):
            return self._weighted(node, kinds, of_parameters)
        (place,) = [place for place, one in enumerate(kinds) if isinstance(one, Total)][:1]
        is_linear = operator in _LINEAR or _moves_linearly(node)
        is_linear = is_linear and not (operator is e.convert and not node.spec.is_continuous)
        one_only = sum(isinstance(one, Total) for one in kinds) == 1
        if not one_only or not is_linear or (operator is e.divide and place == 1):
            raise _refusal(node, f"{operator.name} of a sum over rows is no sum over rows")
        return self._mapped(kinds[place], lambda part: _with_operand(node, place, part), of_parameters)

    @staticmethod
    def _mapped(kind: Kind, change: Callable[[Node], Node], of_parameters: bool) -> Total:
        assert isinstance(kind, Total)
        sums = {by: change(one) for by, one in kind.sums.items()}
        return Total(sums, None if kind.shared is None else change(kind.shared), of_parameters)

    def _added(self, node: Node, kinds: Sequence[Kind], of_parameters: bool) -> Total:
        first, second = map(_as_total, kinds, node.operands)
        if any(isinstance(one, Power) for one in kinds):
            raise _refusal(node, "the number of rows is added to a sum over them")
        sums = {
            by: _both(node, first.sums.get(by), second.sums.get(by))
            for by in dict.fromkeys((*first.sums, *second.sums))
        }
        is_shared = first.shared is not None or second.shared is not None
        return Total(sums, _both(node, first.shared, second.shared) if is_shared else None, of_parameters)

    def _scaled_by_count(self, node: Node, kinds: Sequence[Kind], of_parameters: bool) -> Total:
        """A sum divided by the number of rows is a mean."""
        place = next((place for place, one in enumerate(kinds) if isinstance(one, Power)), 0)
        power, kind = kinds[place], kinds[1 - place]
        assert isinstance(power, Power)
        exponent = -power.exponent if node.operator is e.divide else power.exponent
        if (
            not isinstance(kind, Total)
            or kind.shared is not None
            or (node.operator is e.divide and place == 0)
        ):
            raise _refusal(
                node, "what is divided by the number of rows, or multiplied with it, is no mere sum"
            )
        before, after = (
            ((None, COUNT) if exponent == -1 else (COUNT, None)) if abs(exponent) == 1 else ("", "")
        )
        if set(kind.sums) != {before}:
            raise _refusal(node, "a sum is divided by the number of rows twice, or multiplied with it")
        whole = kind.sums[before]
        if node.operator is e.multiply:  # the constant holds 1 / (n k): what is left of it is 1 / k
            factor = float(node.operands[place].scalar_value or 0.0) * float(self._rows()) ** -exponent
        else:
            factor = float(self._rows()) ** power.exponent / float(node.operands[place].scalar_value or 1.0)
        return Total({after: whole if factor == 1.0 else e.multiply(whole, factor)}, None, of_parameters)

    def _rows(self) -> int:
        """How many rows there are in the part that is traced."""
        return next(
            int(node.shape[kind.dim])
            for node, kind in self.known.items()
            if isinstance(kind, Rows) and node.is_input
        )

    def _weighted(self, node: Node, kinds: Sequence[Kind], of_parameters: bool) -> Total:
        """A sum divided by a sum, as a mean with weights."""
        above, below = kinds
        if not (_is_mere_sum(above) and _is_mere_sum(below)) or below.of_parameters:
            raise _refusal(
                node, "only a mere sum may be divided by another, and that must not depend on parameters"
            )
        assert isinstance(above, Total) and isinstance(below, Total)
        return Total({below.sums[None]: above.sums[None]}, None, of_parameters)


def _wrapped_index(node: Node) -> Node | None:
    """The x of where(x < 0, x + size, x)."""
    if node.operator is not e.where:
        return None
    is_negative, moved, x = node.operands
    is_less = is_negative.operator is e.less and is_negative.operands[0] is x
    is_moved = moved.operator is e.add and moved.operands[0] is x and moved.operands[1].is_constant
    return x if is_less and is_moved and is_negative.operands[1].scalar_value == 0 else None


def _counts(index: Node, x: Node, dim: int) -> bool:
    """Whether an index names the positions of a dimension in order, so that each row is taken where it is."""
    wrapped = _wrapped_index(index)
    iota = index if wrapped is None else wrapped
    return iota.operator is creation.iota and iota.shape == (x.shape[dim],)


def _read(node: Node) -> tuple[Node, ...]:
    """The operands that say what kind a value is of."""
    wrapped = _wrapped_index(node)
    return node.operands if wrapped is None else (wrapped,)


def _is_mere_sum(kind: Kind) -> bool:
    return isinstance(kind, Total) and set(kind.sums) == {None} and kind.shared is None


def _with_operand(node: Node, place: int, operand: Node) -> Node:
    operands = [operand if one == place else before for one, before in enumerate(node.operands)]
    return node.operator(*operands, **node.attributes)


def _as_total(kind: Kind, node: Node) -> Total:
    """A value that is added to a sum over rows: adding 0 adds nothing."""
    if isinstance(kind, Total):
        return kind
    return Total({}, None if node.scalar_value == 0 else node)


def _both(node: Node, first: Node | None, second: Node | None) -> Node:
    """The sum or difference of two parts, of which one may be missing."""
    if second is None:
        assert first is not None
        return first
    if first is None:
        return second if node.operator is e.add else e.negative(second)
    return node.operator(first, second)


# --- how operators treat a dimension of rows --------------------------------------------------------------

SUMMED = -1
"""In place of a dimension: the rows are added up."""
_LINEAR = (
    e.negative, e.convert, e.identity, e.multiply, e.divide, e.stop_gradient, reduction.sum_, composite.mean,
    contraction.contract,
)  # fmt: skip


def _moves_linearly(node: Node) -> bool:
    """Whether each element of the result is one of the only operand's, or 0."""
    moves = node.operator.movement
    is_one = node.operator.family == "movement" and len(node.operands) == 1
    return is_one and (moves.rearranges or moves.walks is not None or _is_padded_with_zeros(node))


def _is_padded_with_zeros(node: Node) -> bool:
    return bool(node.parts.parts) and node.parts.around == 0


def _reduced_dim(dim: int, dims: Sequence[int], keepdim: bool) -> int:
    return dim if keepdim else dim - sum(one < dim for one in dims)


def _of_reduction(kinds: _Kinds, node: Node, given: Sequence[Kind]) -> int | None:
    (kind,), attributes = given, node.attributes
    assert isinstance(kind, Rows)
    dims = attributes["dims"]
    if kind.dim in dims:
        return SUMMED if node.operator is reduction.sum_ else None
    return _reduced_dim(kind.dim, dims, attributes["keepdim"])


def _of_movement(kinds: _Kinds, node: Node, given: Sequence[Kind]) -> int | None:
    if node.operator.name == "reshape":
        return _of_reshape(node, given[0])
    parts = node.parts
    if parts.parts:
        return _of_parts(node, given)
    walks = node.walks
    if len(given) != 1 or not walks or not isinstance(given[0], Rows):
        return None
    walk, extent = walks[given[0].dim], node.operands[0].shape[given[0].dim]
    if sum(one is not None and walk is not None and one.dim == walk.dim for one in walks) > 1:
        return None  # of a row an element, not the same of all
    is_whole = isinstance(walk, Walk) and walk == Walk(walk.dim) and node.shape[walk.dim] == extent
    return walk.dim if walk is not None and is_whole else None


def _of_parts(node: Node, given: Sequence[Kind]) -> int | None:
    """Of what puts operands beside each other, but not rows beside rows."""
    dims = {one.dim for one in given if isinstance(one, Rows)}
    if len(dims) != 1:
        return None
    (dim,) = dims
    is_apart = all(
        one.behind != dim
        and (not one.starts or one.starts[dim] == 0)
        and one.steps[dim : dim + 1] in ((), (1,))
        and node.operands[one.operand].shape[dim] == node.shape[dim]
        for one in node.parts.parts
    )  # fmt: skip
    return dim if is_apart and all(isinstance(one, Rows) for one in given) else None


def _of_reshape(node: Node, kind: Kind) -> int | None:
    assert isinstance(kind, Rows)
    for before, after in reshape_groups(node.operands[0].shape, node.shape):
        if before == [kind.dim] and len(after) == 1:
            return after[0]
    return None


def _of_contraction(kinds: _Kinds, node: Node, given: Sequence[Kind]) -> int | None:
    left, right, result = contraction.split_subscripts(node.attributes["subscripts"])
    letters = {text[one.dim] for text, one in zip((left, right), given) if isinstance(one, Rows)}
    if len(letters) != 1:
        return None
    (letter,) = letters
    if any(isinstance(one, Shared) and letter in text for text, one in zip((left, right), given)):
        return None
    return result.index(letter) if letter in result else SUMMED


def _of_scatter(kinds: _Kinds, node: Node, given: Sequence[Kind]) -> int | None:
    """Additions at positions that rows name."""
    (_, *indices), (kind, *of_indices) = node.operands, given
    rank = max(one.ndim for one in indices)
    if not isinstance(kind, Rows) or kind.dim >= rank:
        return None
    dims = {one.dim + rank - index.ndim for one, index in zip(of_indices, indices) if isinstance(one, Rows)}
    return SUMMED if dims == {kind.dim} else None


def _of_scan(kinds: _Kinds, node: Node, given: Sequence[Kind]) -> int | None:
    dims = {one.dim for one in given if isinstance(one, Rows)}
    return dims.pop() if len(dims) == 1 and node.attributes["dim"] not in dims else None


def _of_matrices(kinds: _Kinds, node: Node, given: Sequence[Kind]) -> int | None:
    """A matrix for each row."""
    dims = {
        one.dim if operand.ndim == node.ndim else None
        for one, operand in zip(given, node.operands)
        if isinstance(one, Rows)
    }
    if len(dims) != 1 or len(given) != 1:
        return None
    dim = dims.pop()
    return dim if dim is not None and dim < node.operands[0].ndim - 2 else None


Rule = Callable[[_Kinds, Node, Sequence[Kind]], int | None]
_BY_FAMILY: dict[str, Rule] = {
    "reduction": _of_reduction,
    "movement": _of_movement,
    "contraction": _of_contraction,
    "scan": _of_scan,
    "matrix": _of_matrices,
}
_BY_OPERATOR: dict[str, Rule] = {"scatter_add": _of_scatter}
"""From the operator's node and the kinds of its operands to the dimension of rows, or `SUMMED`; None:
refused."""
