"""Programs at the border of Python, NumPy and traced values: the same plainly, compiled and under transforms.

`python tests/border_programs.py --count 2000` runs more of them.
"""

import border_cases
import border_programs
import pytest
from border_checks import outcomes
from extent import drawn

PROGRAMS = 60
COMPILED = (7, 33)
"""The seeds of those that run as machine code."""


def check(seed: int) -> None:
    program = border_programs.draw(seed)
    found = [one for one in outcomes(program.case()) if one.is_finding]
    assert not found, border_programs.report(seed, program, found[0])


@pytest.mark.drawn(4)
@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("seed", drawn(range(PROGRAMS), one_in=2))
def test_a_program(seed: int) -> None:
    check(seed)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("seed", COMPILED)
def test_a_program_as_machine_code(seed: int) -> None:
    check(seed)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("case", border_cases.CASES, ids=lambda case: case.name)
def test_a_known_case(case: border_cases.Run | border_cases.Script) -> None:
    for library in ("pandas", "xarray"):
        if f"import {library}" in case.text:
            pytest.importorskip(library)
    outcome = border_cases.outcome_of(case)
    assert not outcome.startswith("WRONG"), f"{outcome}\n{case.text}"
