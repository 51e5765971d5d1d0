"""Operators that have no form in code: Python evaluates them, and generated code calls that.

A call takes whole arrays, the last of which it fills. It is a function of SciPy's where one does just that,
else a `HostCall`. Machine code finds it by a symbol, which says what it is; so does code from the disk.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..tracer.graph import Node
from ..tracer.operator import OPERATORS, Operator
from ..tracer.ops.complex_parts import on_pairs
from ..tracer.ops.foreign import FOREIGN, ForeignFunction, draw, foreign
from ..tracer.ops.movement import of_pairs
from ..tracer.quiet import Quiet
from .fourier import OWN

FAMILY = "eager"
"""Of operators that have no form in code."""
SYMBOL_PREFIX = "pullback_host_"
Filling = Callable[..., object]
"""(*operands, result): writes into the last array."""


class Raised(Exception):
    """What Python evaluates has raised its cause."""

    def __init__(self, symbol: str) -> None:
        super().__init__(symbol)
        self.symbol = symbol


_functions: dict[str, Filling] = {}
"""By symbol, what machine code calls; for ever, as that may be called as long."""
_quiet = Quiet()


def runs_on_host(node: Node) -> bool:
    return node.operator.family == FAMILY


class HostCall:
    """A function of arrays, the last of which is its result: an operator, with attributes, as Python has it.

    >>> largest = HostCall("scatter_extreme", largest=True)
    >>> largest(x, src, index, out)
    """

    __slots__ = ("attributes", "operator", "pairs", "run", "symbol")

    def __init__(self, operator: str, **attributes: Any) -> None:
        self.operator = operator
        self.attributes = attributes
        self.pairs: tuple[int, ...] = ()
        """Which of the arrays hold pairs of real numbers, that the function gets as complex ones."""
        declared = OPERATORS[operator]
        if declared.fills:
            self.symbol = f"{SYMBOL_PREFIX}{declared.fills}"
            self.run = _functions.setdefault(self.symbol, _imported(declared.fills))
        else:
            content = hashlib.sha256(repr(sorted(attributes.items())).encode()).hexdigest()[:16]
            self.symbol = f"{SYMBOL_PREFIX}{operator}_{content}"
            self.run = _functions.setdefault(self.symbol, _filling(declared, attributes, self.symbol))

    @staticmethod
    def of(node: Node) -> HostCall:
        """What a node is computed by."""
        if node.operator in (draw, foreign):
            return ForeignCall(node.attributes["function"].name)
        if node.operator is on_pairs:
            whole, pairs, options = (node.attributes[name] for name in ("of", "pairs", "options"))
            return ComplexCall(whole, pairs, **_untold(OPERATORS[whole], dict(options)))
        return HostCall(node.operator.name, **_untold(node.operator, node.attributes))

    @property
    def place(self) -> tuple[str, str] | None:
        """The module and the name of the library's function that it is, if it is one."""
        module, _, name = OPERATORS[self.operator].fills.rpartition(".")
        return (module, name) if module else None

    @property
    def public_name(self) -> str:
        """What code calls it, if nothing else has this name."""
        return self.place[1] if self.place else self.operator

    def __call__(self, *arrays: np.ndarray) -> None:
        self.run(*arrays)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostCall) and other.symbol == self.symbol

    def __hash__(self) -> int:
        return hash(self.symbol)

    def __repr__(self) -> str:
        return f'HostCall("{self.operator}"{self._options()})'

    def _options(self) -> str:
        """The attributes as they are written in a call."""
        return "".join(f", {name}={_literal(value)}" for name, value in self.attributes.items())


class ComplexCall(HostCall):
    """An operator on complex numbers, which lie in memory as pairs of real ones.

    >>> rfft = ComplexCall("rfft", (1,), dim=0, norm="backward")
    >>> rfft(signal, spectrum)  # spectrum: shape (n, 2)
    """

    __slots__ = ()

    def __init__(self, operator: str, pairs: tuple[int, ...], **attributes: Any) -> None:
        super().__init__(operator, **attributes)
        self.pairs = pairs

    @property
    def public_name(self) -> str:
        return f"i{self.operator}" if self.attributes.get("inverse") else self.operator

    def __call__(self, *arrays: np.ndarray) -> None:
        given = (of_pairs.evaluate(one) if place in self.pairs else one for place, one in enumerate(arrays))
        self.run(*given)

    def __repr__(self) -> str:
        return f'ComplexCall("{self.operator}", {self.pairs!r}{self._options()})'


class ForeignCall(HostCall):
    """A function of the user's, which it finds by its name."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        self.operator = foreign.name
        self.attributes = {"function": FOREIGN[name]}
        self.pairs = ()
        self.symbol = f"{SYMBOL_PREFIX}{foreign.name}_{name}"
        self.run = _functions.setdefault(self.symbol, _filling_by(FOREIGN[name], self.symbol))

    @property
    def public_name(self) -> str:
        label: str = self.attributes["function"].label
        return label

    def __repr__(self) -> str:
        return f'ForeignCall("{self.attributes["function"].name}")'


def _untold(operator: Operator, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that the result does not tell."""
    return {name: value for name, value in attributes.items() if name not in operator.told_by_result}


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def symbol_of(function: object) -> str | None:
    """The symbol of what generated code calls; None if Python does not run it."""
    if isinstance(function, HostCall):
        return function.symbol
    return next((symbol for symbol, one in _functions.items() if one is function), None)


def function_of(symbol: str) -> Filling:
    """What machine code calls under a symbol."""
    return _functions[symbol]


def _imported(path: str) -> Filling:
    module, _, name = path.rpartition(".")
    function: Filling = getattr(importlib.import_module(module), name)
    return function


def _filling_by(function: ForeignFunction, symbol: str) -> Filling:
    write = function.fill

    def fill(*arrays: np.ndarray) -> None:
        try:
            write(*arrays)
        except Exception as error:
            raise Raised(symbol) from error

    return fill


def _filling(operator: Operator, attributes: dict[str, Any], symbol: str) -> Filling:
    def copied(*arrays: np.ndarray, **attributes: Any) -> None:
        *operands, out = arrays
        out[...] = operator.evaluate(*operands, **attributes)

    write = OWN.get(operator.name) or operator.into or copied

    def fill(*arrays: np.ndarray) -> None:
        try:
            _quiet.run(write, *arrays, **attributes)
        except Exception as error:
            raise Raised(symbol) from error

    return fill
