"""`python -m pullback.compat.autograd script.py args...`: the script, with pullback for HIPS autograd."""

from __future__ import annotations

import argparse
import os
import runpy
import sys

from .installation import install


def main() -> None:
    """Run a script or a module as `__main__`, as Python does."""
    parser = argparse.ArgumentParser("python -m pullback.compat.autograd", description=__doc__)
    parser.add_argument("--compiled", action="store_true", help="compile what is differentiated")
    parser.add_argument("-m", dest="module", action="store_true", help="run a module, as python -m does")
    parser.add_argument("program", help="a script, or with -m a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args()
    install(compiled=given.compiled)
    sys.argv = [given.program, *given.arguments]
    if given.module:
        sys.path[0] = os.getcwd()
        runpy.run_module(given.program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(given.program))
        runpy.run_path(given.program, run_name="__main__")


if __name__ == "__main__":
    main()
