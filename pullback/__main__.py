"""The command line: `python -m pullback demo | inspect | profile | cache`."""

import argparse
import dataclasses
import importlib
import importlib.util
import inspect
import operator
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import numpy as np

from .tracer.errors import CompilationError, GraphError, PullbackError
from .tracer.tracebacks import show_them_at_exit
from .tracer.version import __version__

# The views of `inspect`: the option, and what it prints. Each is a method of a compiled function; forward
# and backward stand for forward_source and backward_source. Without any, `source` prints both.
VIEWS = {
    "forward": "the forward source only",
    "backward": "the backward source only",
    "graph": "the traced graph",
    "explain": "kernels, fusion decisions, and what is saved or recomputed",
}

SHAPE_HELP = "[NAME=]SIZES[:DTYPE], such as 3,4 or w=3,4:float32; no sizes for a scalar; float64 unless told"
SHAPE = re.compile(r"(?:(?P<name>[^\W\d]\w*)=)?(?P<sizes>(?:\d+(?:,\d+)*,?)?)(?::(?P<dtype>\w+))?")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line on `arguments` (those of the process by default) and return its exit status.

    Wrong arguments end it with status 2 and one line on standard error, a function that pullback cannot
    take with these shapes with the message of the `PullbackError`.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except _UsageError as error:
        print(f"pullback {options.command}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever reads has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


class _UsageError(Exception):
    """An argument that cannot be meant; the text says which and what to give instead."""


class _Parser(argparse.ArgumentParser):
    """argparse, without its page of usage before every error."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="pullback", description="An autograd compiler that writes the backward code.")
    parser.add_argument("--version", action="version", version=f"pullback {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="{demo,inspect,profile,cache}")

    demo = commands.add_parser("demo", help="train on handwritten digits and show the generated code")
    demo.set_defaults(run=_demo)

    show = commands.add_parser("inspect", help="print what is generated for a function")
    _take_function(show)
    for view, what in VIEWS.items():
        show.add_argument(f"--{view}", action="store_true", help=f"print {what}")
    show.set_defaults(run=_inspect)

    profile = commands.add_parser("profile", help="measure what takes the time of a function and gradient")
    _take_function(profile)
    profile.add_argument("--plot", metavar="FILE", help="draw a picture of it as well, such as profile.png")
    profile.add_argument("--kind", choices=["flame", "roofline"], default="flame", help="which picture")
    profile.set_defaults(run=_profile)

    cache = commands.add_parser("cache", help="show where compiled code is kept, and how much")
    cache.add_argument("--clear", action="store_true", help="remove it")
    cache.add_argument("--export", metavar="FILE", help="write it to a file, for machines like this one")
    cache.add_argument("--load", metavar="FILE", help="take over such a file: only if you trust it")
    cache.set_defaults(run=_cache)
    return parser


def _take_function(parser: argparse.ArgumentParser) -> None:
    """The arguments that name a function and what to call it with."""
    example = "such as model:loss or models/fit.py:loss"
    parser.add_argument("function", metavar="MODULE:FUNCTION", help=example)
    parser.add_argument(
        "--shape",
        dest="shapes",
        action="append",
        default=[],
        type=_shape,
        metavar="SHAPE",
        help=f"one for each argument, in order or by name: {SHAPE_HELP}",
    )


def _demo(options: argparse.Namespace) -> None:
    from .examples import digits  # each command loads what it needs

    digits.main()


def _inspect(options: argparse.Namespace) -> None:
    from . import compile as compile_function
    from .terminal import print_source

    function = _find_function(options.function)
    bound = _bind(function, options.function, options.shapes)
    compiled = function if hasattr(function, "backward_source") else compile_function(function)
    for view in [view for view in VIEWS if getattr(options, view)] or ["source"]:
        method = f"{view}_source" if view in ("forward", "backward") else view
        with _refused_in_words(options.function):
            text = str(getattr(compiled, method)(*bound.args, **bound.kwargs))
        print_source(text, "text" if view in ("graph", "explain") else "python")


def _profile(options: argparse.Namespace) -> None:
    from rich.console import Console

    from . import profile

    function = _find_function(options.function)
    bound = _bind(function, options.function, options.shapes)
    with _refused_in_words(options.function):
        found = profile(function, *bound.args, **bound.kwargs)
    if options.plot:
        try:
            found.plot(options.kind).savefig(options.plot)
        except (OSError, ValueError) as error:
            raise _UsageError(f"{options.plot}: {error}") from None
    if sys.stdout.isatty():
        Console().print(found)
    else:
        print(found)


@contextmanager
def _refused_in_words(function: str) -> Iterator[None]:
    """What pullback refuses is the user's to mend: one line says so."""
    try:
        yield
    except (GraphError, CompilationError):
        raise  # a defect of pullback: the traceback says where
    except PullbackError as error:
        raise _UsageError(f"{function}: {error}") from None


def _find_function(path: str) -> Callable[..., object]:
    module_name, colon, function_name = path.rpartition(":")
    if not colon or not module_name or not function_name:
        raise _UsageError(f"{path!r} names no function: give MODULE:FUNCTION, such as model:loss")
    module = _load_module(module_name)
    try:
        function = operator.attrgetter(function_name)(module)
    except AttributeError:
        raise _UsageError(f"{module_name} has no function {function_name!r}") from None
    if not callable(function):
        raise _UsageError(f"{path} is a {type(function).__name__}, not a function")
    return function


def _load_module(name: str) -> ModuleType:
    """The module of a dotted name, or of a path to a file."""
    if name.startswith(".") and not name.endswith(".py"):
        raise _UsageError(f"there is no module {name!r}: give a module or a file.py")
    if not name.endswith(".py"):
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))  # as `python -m` has it and the installed command has not
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # the module is there; something that it imports is not
            raise _UsageError(f"there is no module {name!r} here: give a module or a file.py") from None
    if not Path(name).is_file():
        raise _UsageError(f"there is no file {name}")
    specification = importlib.util.spec_from_file_location(Path(name).stem, name)
    assert specification is not None and specification.loader is not None  # the name ends in .py
    module = importlib.util.module_from_spec(specification)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(Path(name).resolve().parent))  # so that it finds its neighbours
    specification.loader.exec_module(module)
    return module


@dataclasses.dataclass(frozen=True)
class _Shape:
    """What --shape says of one argument; `name` is None where its position tells which."""

    name: str | None
    sizes: tuple[int, ...]
    dtype: np.dtype

    def example(self, rng: np.random.Generator) -> np.ndarray:
        """An array to trace with.

        Floats are between 1/2 and 3/2, where most functions are defined; integers are zeros, which index
        whatever is not empty; Booleans are true.
        """
        if self.dtype.kind == "f":
            return np.asarray(rng.uniform(0.5, 1.5, self.sizes), self.dtype)
        return np.full(self.sizes, self.dtype.kind == "b", self.dtype)


def _shape(text: str) -> _Shape:
    match = SHAPE.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape: give {SHAPE_HELP}")
    sizes = tuple(int(size) for size in match["sizes"].split(",") if size)
    try:
        dtype = np.dtype(match["dtype"] or "float64")
    except TypeError:
        raise argparse.ArgumentTypeError(f"{match['dtype']!r} in {text!r} is no dtype of NumPy") from None
    if dtype.kind not in "fiub":
        raise argparse.ArgumentTypeError(f"{dtype} in {text!r} is neither a float, an integer nor bool")
    return _Shape(match["name"], sizes, dtype)


def _bind(function: Callable[..., object], path: str, shapes: list[_Shape]) -> inspect.BoundArguments:
    """Example arrays, bound to the parameters of `function`."""
    rng = np.random.default_rng(0)
    positional = [shape.example(rng) for shape in shapes if shape.name is None]
    by_name: dict[str, np.ndarray] = {}
    for shape in shapes:
        if shape.name in by_name:
            raise _UsageError(f"{shape.name!r} has two shapes")
        if shape.name is not None:
            by_name[shape.name] = shape.example(rng)
    try:
        signature = inspect.signature(function)
    except ValueError:
        raise _UsageError(f"{path} is not written in Python: there is nothing to trace") from None
    try:
        return signature.bind(*positional, **by_name)
    except TypeError as error:
        raise _UsageError(f"{path}{signature}: {error}; give one --shape for each argument") from None


def _cache(options: argparse.Namespace) -> None:
    from .codegen.machine import exchange, store

    print(f"{store.folder()}: {store.count()} files, {store.size() / 1e6:.1f} MB")
    if options.clear:
        store.clear()
        print("Cleared.")
    try:
        if options.load:
            print(f"Loaded {exchange.load(options.load)} pieces of machine code.")
        if options.export:
            print(f"Exported {exchange.export(options.export)} pieces of machine code.")
    except (PullbackError, OSError) as error:
        raise _UsageError(str(error)) from None


if __name__ == "__main__":
    show_them_at_exit()  # of what the user's module raises
    sys.exit(main())
