"""Which public names a page of the reference lists.

    .. names:: pullback.special
       :declared: elementwise eager

       logsumexp softmax

lists what it names, and those that follow from declarations of operators of these families alone, unless some
page names them.
"""

import re
from pathlib import Path
from typing import NamedTuple

from pullback.tracer.operator import WRITTEN_OUT, operators

DIRECTIVE = re.compile(r"^\.\. names:: (\S+)\n(?:   :declared: (.+)\n)?(?:\n((?:   .+\n)+))?", re.M)


class Directive(NamedTuple):
    """What one writes: the module, the families, and names."""

    module: str
    families: str
    names: list[str]


def directives(pages: Path) -> list[Directive]:
    """Those on all pages, in order."""
    texts = [page.read_text(encoding="utf-8") for page in sorted(pages.glob("*.rst"))]
    found = [match for text in texts for match in DIRECTIVE.findall(text)]
    return [Directive(module, families, names.split()) for module, families, names in found]


def listed(pages: Path) -> list[str]:
    """The full names that are listed on any page, in order."""
    known = directives(pages)
    return [f"{one.module}.{name}" for one in known for name in [*one.names, *declared(one, known)]]


def declared(directive: Directive, known: list[Directive]) -> list[str]:
    """The names that follow from operators of a directive's families, less those that directives write."""
    if not directive.families:
        return []
    written = {name for one in known if one.module == directive.module for name in one.names}
    found = {
        name
        for operator in operators()
        if operator.family in directive.families.split() and operator.arguments != WRITTEN_OUT
        for namespace, _, name in (public.rpartition(".") for public in operator.torch)
        if f"pullback.{namespace}".rstrip(".") == directive.module
    }
    return sorted(found - written)
