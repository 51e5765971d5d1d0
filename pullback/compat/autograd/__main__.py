"""`python -m pullback.compat.autograd script.py args...`: the script, with pullback for HIPS autograd."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from types import ModuleType, TracebackType

from .installation import install


def main() -> None:
    """Run a script, a module or a command as `__main__`, as Python does: its errors show its own frames."""
    parser = argparse.ArgumentParser("python -m pullback.compat.autograd", description=__doc__)
    parser.add_argument("--compiled", action="store_true", help="compile what is differentiated")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("-m", dest="module", action="store_true", help="run a module, as python -m does")
    how.add_argument("-c", dest="command", action="store_true", help="run a line of code, as python -c does")
    parser.add_argument("program", help="a script; with -m a module, with -c code")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args()
    if not (given.module or given.command or os.path.exists(given.program)):
        parser.error(f"can't open file {given.program!r}")
    install(compiled=given.compiled)
    sys.argv = ["-c" if given.command else given.program, *given.arguments]
    try:
        if given.command:
            sys.path[0] = ""
            sys.modules["__main__"] = module = ModuleType("__main__")
            exec(compile(given.program, "<string>", "exec"), vars(module))
        elif given.module:
            sys.path[0] = os.getcwd()
            runpy.run_module(given.program, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(given.program))
            runpy.run_path(given.program, run_name="__main__")
    except Exception as error:
        error.__traceback__ = _of_program(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(1)


def _of_program(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames that start the program."""
    starters = {one.__code__.co_filename for one in (main, runpy.run_path)}
    while traceback is not None and traceback.tb_frame.f_code.co_filename in starters:
        traceback = traceback.tb_next
    return traceback


if __name__ == "__main__":
    main()
