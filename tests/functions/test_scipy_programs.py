"""Programs of SciPy's functions of arrays: its values, and first and second derivatives, compiled or not."""

import pytest
from scipy_programs import assert_derivatives, assert_values
from scipy_tables import PROGRAMS

pytestmark = pytest.mark.part(8)

programs = pytest.mark.parametrize(("subject", "name"), PROGRAMS)
EXACT = {"distances": 1e-12}
"""Subjects whose values have all digits."""


@pytest.mark.drawn(2)
@programs
def test_values_are_scipys(subject: str, name: str) -> None:
    assert_values(name, PROGRAMS[subject, name], EXACT.get(subject, 1e-9))


@pytest.mark.drawn(4)
@programs
@pytest.mark.part(16)
def test_first_and_second_derivatives(subject: str, name: str) -> None:
    assert_derivatives(name, PROGRAMS[subject, name])
