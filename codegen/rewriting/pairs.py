"""What stands for a complex value where its parts are values of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pullback.tracer.graph import Node
from pullback.tracer.ops import composite as c
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m


class Pair(NamedTuple):
    """The parts of a complex value; None for one that is 0, but not both."""

    re: Node | None
    im: Node | None

    @property
    def real(self) -> Node:
        return _zeros(self.im) if self.re is None else self.re

    @property
    def imag(self) -> Node:
        return _zeros(self.re) if self.im is None else self.im

    @property
    def whole(self) -> Pair:
        """The same with both parts."""
        return Pair(self.real, self.imag)

    def each(self, change: Callable[[Node], Node]) -> Pair:
        """A linear change of both parts."""
        return Pair(*(None if part is None else change(part) for part in self))

    def each_named(self, name: str, change: Callable[[Node, str], Node]) -> Pair:
        """A linear change of both parts, given what they are called: `z_real`, `z_imag` of `z`."""
        names = (f"{name}_{part}" if name else "" for part in ("real", "imag"))
        return Pair(*(None if part is None else change(part, one) for part, one in zip(self, names)))


def _zeros(part: Node | None) -> Node:
    assert part is not None
    return e.zeros_like(part)


def as_pairs(a: Pair) -> Node:
    """The parts side by side, as in memory."""
    return c.stack(a.real, a.imag, dim=a.real.ndim)


def parts_of_pairs(x: Node) -> Pair:
    """What lies side by side."""
    zeros, stops = (0,) * (x.ndim - 1), x.shape[:-1]
    parts = [
        m.slice_(x, starts=(*zeros, place), stops=(*stops, place + 1), steps=(1,) * len(x.shape))
        for place in (0, 1)
    ]
    re, im = (m.reshape(one, shape=stops) for one in parts)
    return Pair(re, im)


Value = Node | Pair


def whole(value: Value) -> Value:
    """A value with both of its parts, if it has any."""
    return value.whole if isinstance(value, Pair) else value


def parts_of(value: Value) -> tuple[Node, ...]:
    """The nodes that a value is made of, the real part first."""
    return (value,) if isinstance(value, Node) else tuple(part for part in value if part is not None)


def flat(values: Iterable[Value]) -> tuple[Node, ...]:
    """The nodes that values are made of, in order."""
    return tuple(part for value in values for part in parts_of(value))


__all__ = ["Pair", "Value", "as_pairs", "flat", "parts_of", "parts_of_pairs", "whole"]
