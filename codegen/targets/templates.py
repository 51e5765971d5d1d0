"""Templates of generated files, by Jinja."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jinja2

from .. import ir

Environment = jinja2.Environment


def environment(
    package: str | None, filters: Mapping[str, Callable[..., Any]], is_html: bool = False
) -> Environment:
    """The templates of a target, which ask of statements what they are: `one is For`; or those of pages."""
    assert package is not None
    found = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=is_html,
    )
    found.filters |= filters
    for kind in (ir.For, ir.While, ir.If, ir.Shared, ir.Check, ir.Library):
        found.tests[kind.__name__] = _test_of(kind)
    return found


def _test_of(kind: type) -> Callable[[ir.Stmt], bool]:
    return lambda one: isinstance(one, kind)
