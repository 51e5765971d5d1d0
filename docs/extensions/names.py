"""The directive `names`: a table of public names of a module, then the documentation of each.

    .. names:: pullback.linalg

       cholesky det inv

With an option `declared` the table has more, see `listing.py`. `tensor-methods` lists what
`Tensor` has.

Examples in docstrings that are one expression and show no result get the one that they have.
"""

import builtins
import contextlib
import doctest
import importlib
import inspect
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.parsers.rst.directives import unchanged_required
from listing import Directive, declared, directives
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.ext.napoleon import GoogleDocstring
from sphinx.util.docutils import SphinxDirective


class Names(SphinxDirective):
    """Documents each name; what it is decides by which directive."""

    has_content = True
    required_arguments = 1
    option_spec = {"declared": unchanged_required}

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(self.arguments[0])
        this = Directive(module.__name__, self.options.get("declared", ""), " ".join(self.content).split())
        names = [*this.names, *declared(this, directives(Path(self.env.srcdir) / "reference"))]
        rows = [(f":py:obj:`{name}`", _summary(getattr(module, name))) for name in names]
        lines = [f".. py:currentmodule:: {module.__name__}", "", *_table(rows)]
        for name in names:
            lines += ["", *_documentation(module, name, self.config)]
        return self.parse_text_to_nodes("\n".join(lines))


class Methods(SphinxDirective):
    """What `Tensor` has: attributes, methods that are functions as well, others, and those in place."""

    def run(self) -> list[nodes.Node]:
        import pullback

        names = [name for name in dir(pullback.Tensor) if not name.startswith("_") and name not in INNER]
        found = {name: inspect.getattr_static(pullback.Tensor, name) for name in names}
        methods = {name: value for name, value in found.items() if inspect.isroutine(value)}
        functions = {name for name in pullback.__all__ if inspect.isroutine(getattr(pullback, name))}
        in_place = {name for name in methods if name.endswith("_") and name[:-1] in methods}
        both, alone = functions & methods.keys() - in_place, methods.keys() - functions - in_place
        lines = ["Attributes", "----------", ""]
        lines += _table([(f"`{name}`", _summary(found[name])) for name in names if name not in methods])
        lines += ["Methods that are functions as well", "----------------------------------", ""]
        lines += ["`x.sum(dim=0)` is `pullback.sum(x, dim=0)`: the first argument is the tensor.", ""]
        lines += _table([(f":py:obj:`~pullback.{name}`", _summary(methods[name])) for name in sorted(both)])
        lines += ["Methods alone", "-------------", "", ".. py:currentmodule:: pullback", ""]
        for name in sorted(alone):
            lines += [f".. automethod:: Tensor.{name}", ""]
        lines += ["In place", "--------", ""]
        lines += ["`x.sin_()` writes what `x.sin()` gives into `x`, and returns `x`. So do", ""]
        lines += [", ".join(f"`{name}`" for name in sorted(in_place)) + "."]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


INNER = {"apply", "payload", "rank", "refresh"}
"""What pullback itself asks of tensors."""


def _summary(value: Any) -> str:
    """The first paragraph of a docstring."""
    if isinstance(value, _dtype()):
        return f"The dtype `{value}`."
    if value is None or isinstance(value, bool):
        return f"`{value}`"
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())


def _dtype() -> type:
    import pullback

    return pullback.dtype


def _table(rows: list[tuple[str, str]]) -> list[str]:
    """A table of two columns."""
    lines = [".. list-table::", "   :class: names", "   :widths: 1 3", ""]
    for row in rows:
        lines += [f"   {mark} - {cell}" for mark, cell in zip("* ", row)]
    return [*lines, ""]


def _documentation(module: ModuleType, name: str, config: Config) -> list[str]:
    value = getattr(module, name)
    if (elsewhere := _first_place(module, name, value)) != module.__name__:
        kind, text = _kind(value), [f"The same as :py:obj:`{elsewhere}.{name}`."]
    elif inspect.isroutine(value):
        return [f".. autofunction:: {name}"]
    elif inspect.isclass(value) and value.__name__ == name:
        lines = [f".. autoclass:: {name}", "   :members:", "   :exclude-members: tells_call"]
        others = [base.__name__ for base in value.__mro__ if base.__module__ == "builtins"]
        if issubclass(value, Exception) and (also := others[: others.index("Exception")]):
            lines += ["", f"   Python's handlers of {' and '.join(also)} catch it as well."]
        return lines
    elif isinstance(value, _dtype()):
        kind, text = _kind(value), [f"{_summary(value)} An element takes {8 * value.itemsize} bits."]
    else:
        kind, text = _kind(value), GoogleDocstring(inspect.getdoc(value) or "", config).lines()
    return [f".. py:{kind}:: {name}", "", *(f"   {line}" for line in text)]


def _kind(value: Any) -> str:
    return "class" if inspect.isclass(value) else "function" if inspect.isroutine(value) else "data"


def _first_place(module: ModuleType, name: str, value: Any) -> str:
    """The outermost of the packages around a module that have the same under this name."""
    parts = module.__name__.split(".")
    around = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return next(one for one in around if getattr(importlib.import_module(one), name, None) is value)


def show_results(app: Sphinx, kind: str, full: str, value: Any, options: Any, lines: list[str]) -> None:
    """Puts its result behind an example that is one expression and shows none."""
    import numpy

    import pullback

    name = full.rpartition(".")[2]
    example = next((line for line in lines if line.lstrip().startswith(f">>> {name}(")), None)
    shown = doctest.DocTestParser().get_examples("\n".join(lines))
    if example is None or len(shown) > 1 or shown[0].want:
        return
    ours = {"np": numpy, "pb": pullback, "pullback": pullback, **vars(pullback)}
    names = {**ours, **vars(builtins), name: value}
    with TemporaryDirectory() as folder, contextlib.chdir(folder):  # that of a file an example writes
        result = repr(eval(example.lstrip(" >"), names))
    if result != "None":
        indent = example[: -len(example.lstrip())]
        at = lines.index(example) + 1
        lines[at:at] = [f"{indent}{line}" for line in result.splitlines()]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("names", Names)
    app.add_directive("tensor-methods", Methods)
    app.connect("autodoc-process-docstring", show_results, priority=400)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
