"""Operators on complex numbers in graphs that know real ones alone, as those that code is made of.

Functions of numbers have an operator for each part of their value: `sqrt_real`, `sqrt_imag`. What Python
evaluates takes and gives arrays of pairs, with a last dimension of 2: the memory that complex numbers have.
Both have the rules of the operator on complex numbers; `differentiate` splits the complex values in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..operator import OPERATORS, Array, Operator, WholeCall, declare
from ..spec import Spec, complex_dtype, real_dtype
from . import decompositions, general_eigenvalues
from .complex_matrices import DETERMINANT, LOGARITHM, SIGN, cofactors_of_pairs, determinant_of_pairs
from .elementwise import complex_of, convert, elementwise, imag, multiply, real, zeros_like
from .movement import of_pairs, pairs_of

# --- functions of numbers -------------------------------------------------------------------------------

Parts = tuple[Operator, Operator]
PARTS_OF: dict[str, Parts] = {}
"""By the name of an operator on complex numbers those of the parts of its value, of the operands' parts."""


def _whole(parts: Sequence[Array]) -> list[Array]:
    """The complex operands."""
    return [complex_of(re, im) for re, im in zip(parts[::2], parts[1::2])]


def _declare_parts(name: str) -> Parts:
    whole = OPERATORS[name]
    operands = "re im" if len(whole.operands) == 1 else "a_real a_imag b_real b_imag"
    return _declare_part(whole, "real", operands), _declare_part(whole, "imag", operands)


def _declare_part(whole: Operator, part: str, operands: str) -> Operator:
    names, name = operands.split(), f"{whole.name}_{part}"
    arguments = ", ".join(f"{{{one}}}" for one in names)

    def evaluate(*parts: Any) -> Any:
        found = whole.evaluate(*_whole(parts))
        return np.array(found.real if part == "real" else found.imag)

    return elementwise(
        name, operands, numpy=evaluate, scalar=f"{name}({arguments})", cost=2 * whole.cost,
        vjp={one: _rule(whole, part, place, operands) for place, one in enumerate(names)},
        doc=f"the {'imaginary' if part == 'imag' else part} part of {whole.doc.replace('x', 'z')}",
        domain=whole.domain,
    )  # fmt: skip


def _rule(whole: Operator, part: str, place: int, operands: str) -> Callable[..., Array]:
    """The operator's own rule, of a cotangent whose other part is 0."""

    def pulled(g: Array, *parts: Array) -> Array:
        given = _whole(parts)
        result = complex_of(*(one(*parts) for one in PARTS_OF[whole.name]))
        dtype = complex_dtype(np.dtype(getattr(g.dtype, "numpy", g.dtype)))
        cotangent = convert(g, dtype=dtype)
        if part == "imag":
            cotangent = multiply(cotangent, 1j)
        specs = [Spec(tuple(one.shape), dtype) for one in (*given, g)]
        found = whole.pull_back(place // 2, cotangent, given, specs[:-1], result, specs[-1], {})
        return imag(found) if place % 2 else real(found)

    if operands == "re im":
        return lambda g, re, im: pulled(g, re, im)
    return lambda g, a_real, a_imag, b_real, b_imag: pulled(g, a_real, a_imag, b_real, b_imag)


for _name in (
    "divide", "reciprocal", "sqrt", "exp", "expm1", "log", "log1p", "power", "sigmoid", "sin", "cos", "tan",
    "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh",
):  # fmt: skip
    PARTS_OF[_name] = _declare_parts(_name)


# --- what Python evaluates --------------------------------------------------------------------------------

Options = tuple[tuple[str, Any], ...]


def whole_spec(pairs: Spec) -> Spec:
    """That of the complex numbers."""
    return Spec(pairs.shape[:-1], complex_dtype(pairs.dtype))


def paired_spec(spec: Spec) -> Spec:
    """That of the pairs that complex numbers are; of real numbers theirs."""
    return Spec((*spec.shape, 2), real_dtype(spec.dtype)) if spec.dtype.kind == "c" else spec


def _whole_specs(specs: Sequence[Spec], pairs: tuple[int, ...]) -> list[Spec]:
    return [whole_spec(spec) if place in pairs else spec for place, spec in enumerate(specs)]


def _infer(*specs: Spec, of: str, pairs: tuple[int, ...], options: Options) -> Spec:
    return paired_spec(OPERATORS[of].infer(*_whole_specs(specs, pairs), **dict(options)))


def _evaluate(*operands: np.ndarray, of: str, pairs: tuple[int, ...], options: Options) -> np.ndarray:
    given = [of_pairs.evaluate(one) if place in pairs else one for place, one in enumerate(operands)]
    found = np.asarray(OPERATORS[of].evaluate(*given, **dict(options)))
    return pairs_of.evaluate(found) if found.dtype.kind == "c" else found


def _cotangent(
    g: Array, y: Array, operands: Sequence[Array], index: int, specs: Sequence[Spec], y_spec: Spec,
    of: str, pairs: tuple[int, ...], options: Options,
) -> Array:  # fmt: skip
    """By the operator's own rule, whose complex numbers `differentiate` splits; 0 where it has none."""
    if OPERATORS[of].rule_for(index) is None:
        return zeros_like(operands[index])
    given = [of_pairs(one) if place in pairs else one for place, one in enumerate(operands)]
    if len(operands) in pairs:
        g, y, y_spec = of_pairs(g), of_pairs(y), whole_spec(y_spec)
    found = OPERATORS[of].pull_back(
        index, g, given, _whole_specs(specs, pairs), y, y_spec, dict(options)
    )
    return pairs_of(found) if index in pairs else found


def _declare_on_pairs(name: str, family: str, **fields: Any) -> Operator:
    return declare(
        name, family, "*operands", infer=_infer, evaluate=_evaluate, vjp={"operands": _cotangent},
        doc="what an operator on complex numbers makes of pairs; which arrays, operands or result, are those "
        "is said by position",
        **fields,
    )  # fmt: skip


def _chosen_as_for(operator: Operator) -> Callable[..., int]:
    assert operator.call is not None
    choose = operator.call.choose
    return lambda a, of, pairs, options: choose(a, **dict(options))


on_pairs = _declare_on_pairs("on_pairs", "eager")
BY_CALLS: dict[str, Operator] = {
    one.name: _declare_on_pairs(
        f"{one.name}_on_pairs", one.family, noun=one.noun,
        call=WholeCall(
            one.call.of_pairs, _chosen_as_for(one), dims=one.call.dims + 1, refusal=one.call.refusal
        ),
    )
    for one in {**vars(decompositions), **vars(general_eigenvalues)}.values()
    if isinstance(one, Operator) and one.call is not None and one.call.of_pairs
}  # fmt: skip
"""By the name of an operator on complex numbers the same for those that generated code has a function of."""
BY_CALLS |= {
    name: _declare_on_pairs(
        f"{name}_on_pairs", "composite", body=determinant_of_pairs(row, name == "logabsdet"),
        needs_own_rule=True,
    )
    for name, row in (("det", DETERMINANT), ("sign_of_det", SIGN), ("logabsdet", LOGARITHM))
}  # fmt: skip


def _body_of_pairs(*operands: Array, of: str, pairs: tuple[int, ...], options: Options) -> Array:
    body = OPERATORS[of].body
    assert body is not None
    given = (of_pairs(one) if place in pairs else one for place, one in enumerate(operands))
    return pairs_of(body(*given, **dict(options)))


BY_CALLS |= {
    name: _declare_on_pairs(f"{name}_on_pairs", "composite", body=body, needs_own_rule=True)
    for name, body in (
        *((one, _body_of_pairs) for one in ("pinv", "pinv_of_parts", "remainder_of_parts", "among_values")),
        ("cofactors", cofactors_of_pairs),
    )
}  # fmt: skip
BY_CALLS["cholesky"] = _declare_on_pairs(
    "cholesky_on_pairs", "decomposition", noun="factor",
    call=WholeCall(("factor_hermitian",), dims=3, refusal=("linalg.cholesky", "positive definite")),
)  # fmt: skip
BY_CALLS["cholesky_cotangent"] = _declare_on_pairs(
    "cholesky_cotangent_on_pairs", "decomposition", noun="cotangent",
    call=WholeCall(("pull_back_hermitian",), dims=3),
)  # fmt: skip

