"""`python -m pullback.codegen.vector_math` measures the functions' errors against mpmath, and their time.

`--write docs/vector_math.md` renews the table there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from . import measure
from .accuracy import CASES, FORMATS

FEWER = 128
"""Of how many points one is looked at for complex numbers, for which mpmath takes up to 2,300 bits."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pullback.codegen.vector_math", description=__doc__)
    parser.add_argument("names", nargs="*", help="functions to measure; all of them if none is named")
    parser.add_argument("--points", type=int, default=measure.EVERYWHERE, help="float64 of the whole domain")
    parser.add_argument("--every", type=int, default=measure.EVERY, help="of the float32, every which")
    parser.add_argument("--speed", action="store_true", help="also print nanoseconds per number")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the file that holds the table")
    arguments = parser.parse_args()
    if arguments.write and arguments.names:
        parser.error("--write is for the table of all functions")
    rows = []
    print(f"{'function':10} {'dtype':8} {'points':>12} {'bound':>5} {'ulp':>6}  at")
    for name in arguments.names or CASES:
        every = FEWER * arguments.every if CASES[name].whole else arguments.every
        points = arguments.points // FEWER if CASES[name].whole else arguments.points
        for dtype in FORMATS:
            if dtype == "float32":
                measured = measure.measure_float32(name, every)
            else:
                measured = measure.measure(name, dtype, points, points // 5)
            where = ", ".join(map(repr, measured.arguments))
            figures = f"{measured.points:12,} {CASES[name].bound:5g} {measured.error:6.2f}"
            line = f"{name:10} {dtype:8} {figures}  {where}"
            if arguments.speed:
                line += "  {:.2f} ns, NumPy or SciPy {:.2f} ns".format(*measure.nanoseconds(name, dtype))
            print(line, flush=True)
            rows.append(measure.row(name, dtype, measured))
    if arguments.write:
        measure.write_table(rows, arguments.write)


if __name__ == "__main__":
    main()
