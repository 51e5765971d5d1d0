"""Which public names a page of the reference lists.

    .. names:: pullback.special
       :declared: elementwise eager

       logsumexp softmax

lists what it names, and those that follow from declarations of operators of these families alone, unless some
page names them.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from pullback.tracer.operator import WRITTEN_OUT, operators

DIRECTIVE = re.compile(r"^\.\. names:: (\S+)\n(?:   :declared: (.+)\n)?(?:\n((?:   .+\n)+))?", re.M)


def directives(pages: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Of each directive the module, the families and the names that it writes."""
    for page in sorted(pages.glob("*.rst")):
        for module, families, names in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            yield module, families, names.split()


def listed(pages: Path) -> list[str]:
    """The full names that are listed on any page, in order."""
    return [
        f"{module}.{name}"
        for module, families, names in directives(pages)
        for name in [*names, *declared(pages, module, families)]
    ]


def declared(pages: Path, module: str, families: str) -> list[str]:
    """The names in a module that follow from operators of these families, less those that pages write."""
    written = {name for where, _, names in directives(pages) if where == module for name in names}
    found = {
        name
        for operator in operators()
        if operator.family in families.split() and operator.arguments != WRITTEN_OUT
        for namespace, _, name in (one.rpartition(".") for one in operator.torch)
        if f"pullback.{namespace}".rstrip(".") == module
    }
    return sorted(found - written)
