"""The table of operators: one row for each, from which the tests of operators and of generated code come.

A row has what NumPy or SciPy says an operator computes, the operands to try it on, and how far results may
differ. `test_completeness.py` fails for an operator without a row.
"""

from pullback.tracer import ops  # noqa: F401  fills OPERATORS
from pullback.tracer.operator import OPERATORS

from .complex_parts import PLANE
from .elementwise import ARITHMETIC, COPIES, LOGIC, STEPS, TRANSCENDENTAL
from .indexing import INDEXING, WINDOWED
from .movement import CREATION, MOVEMENT
from .reductions import COMPOSITES, CONTRACTIONS, REDUCTIONS, SUM_ORDER, SUM_ULPS, summed_products
from .rows import NUMBERS, Row

ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        *ARITHMETIC, *TRANSCENDENTAL, *STEPS, *LOGIC, *COPIES, *MOVEMENT, *REDUCTIONS, *COMPOSITES,
        Row("contract", summed_products, CONTRACTIONS, dtypes=NUMBERS, ulps=SUM_ULPS, because=SUM_ORDER),
        *INDEXING, *WINDOWED, *CREATION, *PLANE,
    )
}  # fmt: skip
DERIVED_BY_PYTHON = frozenset(("igamma", "igammac"))
"""Operators with a form in code whose derivative by the shape has none."""
MATRICES = "of square matrices alone: tests/functions/test_linalg.py"
EAGER = "evaluated by NumPy and SciPy alone: tests/functions/test_special.py"
OF_PARTS = "of complex numbers alone: tests/functions/test_complex_operators.py"
OF_SCIPY = "of matrices: tests/functions/test_scipy_linalg.py"
DECOMPOSED = "of matrices: tests/functions/test_decompositions.py"
NOT_IN_THE_TABLE = {
    **{operator.name: EAGER for operator in OPERATORS.values() if operator.family == "eager"},
    **{operator.name: OF_PARTS for operator in OPERATORS.values() if operator.family == "complex"},
    **{operator.name: DECOMPOSED for operator in OPERATORS.values() if operator.family == "decomposition"},
    **dict.fromkeys(
        ("product_of_pairs", "eliminated_pairs", "eliminated_pairs_solution", "solved_pairs"),
        "of complex matrices: tests/graphs/test_split_complex.py",
    ),
    **dict.fromkeys(
        (
            "determined_pairs", "det_on_pairs", "sign_of_det_on_pairs", "logabsdet_on_pairs", "pinv_on_pairs",
            "pinv_of_parts_on_pairs", "remainder_of_parts_on_pairs", "among_values_on_pairs",
            "cofactors_on_pairs",
        ),
        DECOMPOSED,
    ),
    "matrix_exp": DECOMPOSED,
    "expm_frechet": DECOMPOSED,
    "exponential_of_steps": DECOMPOSED,
    "sqrtm_of_parts": OF_SCIPY,
    "logm_of_parts": OF_SCIPY,
    "pinv": DECOMPOSED,
    "pinv_of_parts": DECOMPOSED,
    "remainder_of_parts": DECOMPOSED,
    "among_values": DECOMPOSED,
    "pinv_product": DECOMPOSED,
    "gemm": "made by code generation alone: tests/graphs/test_contractions.py",
    "parameter": "an input has a value only in a call",
    "in_place_of": "its rule is no derivative: tests/tracing/test_training_steps.py",
    **dict.fromkeys(
        ("jacobian", "gradient", "tangent"),
        "taken of a graph, when its trace ends: tests/gradients/test_derivatives_in_traces.py",
    ),
    "ruled": "its attributes hold graphs: tests/gradients/test_custom_rules.py",
    "loop": "its attributes hold a graph: tests/loops/test_loops.py",
    "loop_result": "of a loop alone: tests/loops/test_loops.py",
    **dict.fromkeys(
        ("searchsorted", "selection", "selected_positions", "selected_values"),
        "of rows in order: tests/functions/test_sorting.py",
    ),
    "solve": MATRICES,
    "solve_factored": MATRICES,
    "definite_solution": MATRICES,
    "lu_solve": MATRICES,
    "det": MATRICES,
    "cofactors": MATRICES,
    "logabsdet": MATRICES,
    "logabsdet_factored": MATRICES,
    "sign_of_det": MATRICES,
    "sign_of_det_factored": MATRICES,
    "cholesky": MATRICES,
    "cholesky_cotangent": MATRICES,
    "factor_cotangent": MATRICES,
    "unit_like": MATRICES,
    "lower_half": MATRICES,
    "symmetric": MATRICES,
    "triangle": MATRICES,
    "triangular_solve": MATRICES,
    "cholesky_factor": MATRICES,
    "triangular_solution": MATRICES,
    "eliminated": MATRICES,
    "eliminated_solution": MATRICES,
    "inverse_norm": MATRICES,
    "reciprocal_condition": MATRICES,
}
