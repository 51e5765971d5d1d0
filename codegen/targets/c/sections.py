"""The arrays that C's functions of whole rows and matrices are given: an address, extents and strides."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from ...ir import WHOLE, Buffer, Expr, Extent, Section, Span, apply, number
from .c_names import type_name
from .c_spelling import PRODUCT, SUM, Spelling

Dimension = tuple[str, str]
"""The text of an extent and of a stride."""


def struct_name(buffer: Buffer) -> str:
    """`float64_array`"""
    return f"{buffer.dtype.name}_array"


def view(section: Section, spell: Spelling) -> str:
    """A part of an array, as `(float64_array){x + i * m, {m}, {1}}`."""
    buffer = section.buffer
    terms, dims = [*_offsets(section, spell)], [*_dimensions(section, spell)]
    if section.shape:
        shape = section.shape
        dims = [(spell(extent), _product(shape[dim + 1 :], spell)) for dim, extent in enumerate(shape)]
    if section.rows != WHOLE:
        dim = -1 if section.transposed else 0
        terms += _moved(section.rows.start, dims[dim][1], spell)
        dims[dim] = (_length(section.rows, dims[dim][0], spell), dims[dim][1])
    if section.transposed:
        dims = dims[::-1]
    name = spell.names[buffer.name]
    start = f"{name}.data" if buffer in spell.strided else f"({type_name(buffer.dtype)} *){name}"
    address = " + ".join((start, *terms))
    extents, strides = (", ".join(texts) for texts in zip(*dims))
    return f"({struct_name(buffer)}){{{address}, {{{extents}}}, {{{strides}}}}}"


def _offsets(section: Section, spell: Spelling) -> Iterator[str]:
    """How far behind the start of its array a part begins: a text for each dimension where that is not 0."""
    for dim, place in enumerate(section.places):
        start = place.start if isinstance(place, Span) else place
        yield from _moved(start, _stride(section.buffer, dim, spell), spell)


def _moved(start: Expr | None, stride: str, spell: Spelling) -> list[str]:
    if start is None or start == number(0):
        return []
    return [spell(start, SUM) if stride == "1" else f"{spell(start, PRODUCT)} * {stride}"]


def _dimensions(section: Section, spell: Spelling) -> Iterator[Dimension]:
    """The dimensions that a part has."""
    for dim in range(len(section.buffer.dims)):
        place = section.places[dim] if dim < len(section.places) else WHOLE
        if isinstance(place, Span):
            whole = spell.extent(section.buffer, dim)
            yield _length(place, whole, spell), _stride(section.buffer, dim, spell)


def _length(span: Span, whole: str, spell: Spelling) -> str:
    stop = whole if span.stop is None else spell(span.stop, SUM)
    return stop if span.start in (None, number(0)) else f"{stop} - {spell(span.start, PRODUCT)}"


def _stride(buffer: Buffer, dim: int, spell: Spelling) -> str:
    if buffer in spell.strided:
        return f"{spell.names[buffer.name]}.strides[{dim}]"
    return _product(tuple(Extent(buffer, later) for later in range(dim + 1, len(buffer.dims))), spell)


def _product(extents: tuple[Expr, ...], spell: Spelling) -> str:
    if not extents:
        return "1"
    return spell(reduce(lambda one, other: apply("multiply", one, other), extents), PRODUCT)
