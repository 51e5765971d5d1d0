"""SciPy's solvers, integrals and sparse solvers against closed forms: values and two derivatives."""


import mpmath
import numpy as np
import pytest
from extent import machine_code
from scipy_solver_rows import SOLVERS

import pullback as pb

pytestmark = pytest.mark.part(8)

rows = pytest.mark.parametrize("name", SOLVERS)
AT = 1.3


def exactly(name: str, order: int) -> float:
    with mpmath.workdps(30):
        return float(mpmath.diff(SOLVERS[name].exact, mpmath.mpf(AT), order))


@rows
def test_values_and_slopes(name: str) -> None:
    row = SOLVERS[name]
    value, slope = pb.value_and_grad(row.program)(AT)
    np.testing.assert_allclose(value, exactly(name, 0), rtol=row.tolerance)
    np.testing.assert_allclose(slope, exactly(name, 1), rtol=row.tolerance)


@pytest.mark.drawn(2)
@rows
def test_second_derivatives(name: str) -> None:
    row = SOLVERS[name]
    found = pb.grad(pb.grad(row.program))(AT)
    np.testing.assert_allclose(found, exactly(name, 2), rtol=10 * row.tolerance, atol=1e-12)


@rows
@pytest.mark.part(12)
def test_in_compiled_code(name: str) -> None:
    row = SOLVERS[name]
    with machine_code(name):
        value, slope = pb.value_and_grad(pb.compile(row.program))(AT)
        np.testing.assert_allclose(value, exactly(name, 0), rtol=row.tolerance)
        np.testing.assert_allclose(slope, exactly(name, 1), rtol=row.tolerance)
