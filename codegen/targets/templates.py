"""Templates of generated files, by Jinja."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jinja2
from jinja2.bccache import Bucket

from .. import ir
from ..machine import store

Environment = jinja2.Environment


class _KeptTemplates(jinja2.BytecodeCache):
    """Templates as Python's byte code, in the cache on disk: to make it takes as long as a small trace.

    Jinja compares each with the text of its template, and with the version of Python.
    """

    def load_bytecode(self, bucket: Bucket) -> None:
        if kept := store.read(f"template.{bucket.key}"):
            bucket.bytecode_from_string(kept)

    def dump_bytecode(self, bucket: Bucket) -> None:
        store.write(f"template.{bucket.key}", bucket.bytecode_to_string())


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
        bytecode_cache=_KeptTemplates(),
        auto_reload=False,  # which looks for changes of the files each time
    )
    found.filters |= filters
    for kind in (ir.For, ir.While, ir.If, ir.Shared, ir.Check, ir.Library):
        found.tests[kind.__name__] = _test_of(kind)
    return found


def _test_of(kind: type) -> Callable[[ir.Stmt], bool]:
    return lambda one: isinstance(one, kind)
