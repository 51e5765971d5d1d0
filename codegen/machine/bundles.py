"""Object code as it is kept: with what it calls, and the names of what it expects to find."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ...tracer.records import record


@record(frozen=True)
class Bundle:
    """Objects by the symbols that they define, each behind those that it calls.

    >>> Bundle.unpacked(Bundle({"double": code}, ["malloc"]).packed()).expected
    ['malloc']
    """

    objects: dict[str, bytes]
    expected: list[str]
    """Names of functions that none of them defines."""

    def packed(self) -> bytes:
        """The names, and the lengths of the objects, a line feed, the objects."""
        lengths = {symbol: len(code) for symbol, code in self.objects.items()}
        return json.dumps([self.expected, lengths]).encode() + b"\n" + b"".join(self.objects.values())

    @classmethod
    def unpacked(cls, content: bytes) -> Bundle:
        header, _, rest = content.partition(b"\n")
        expected, lengths = json.loads(header)
        objects: dict[str, bytes] = {}
        for symbol, length in lengths.items():
            objects[symbol], rest = rest[:length], rest[length:]
        return cls(objects, expected)


def linked(called: Iterable[Bundle], expected: Iterable[str], symbol: str, code: bytes) -> Bundle:
    """An object with the bundles of what it calls."""
    found = [*called]
    objects = {symbol: code for one in found for symbol, code in one.objects.items()}
    names = dict.fromkeys([*(name for one in found for name in one.expected), *expected])
    return Bundle({**objects, symbol: code}, [*names])
