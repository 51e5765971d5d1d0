"""Programs of SciPy's functions of arrays, which are held to SciPy's values and to differences: one table."""

from __future__ import annotations

from scipy_programs import Program

from . import distances, exponentials, interpolants, signals

PROGRAMS: dict[tuple[str, str], Program] = {
    (module.__name__.rpartition(".")[2], name): program
    for module in (distances, exponentials, interpolants, signals)
    for name, program in module.PROGRAMS.items()
}
"""By subject and name."""
