"""Draws the expressions of Python programs, as text, over the arrays and numbers that are in scope.

The elementary functions are smooth but for maxima, and bounded by their operands or by 1, so that values
stay of moderate size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Field:
    """Which numbers a program computes with, as templates of its text."""

    unary: tuple[str, ...]
    binary: tuple[str, ...]
    extremes: tuple[str, ...]
    """Of arrays; of complex ones something else, as they have no order."""
    bounded: str
    """Keeps a value that is carried from growing."""
    ordered: str
    """What of a number is compared."""
    owned: str
    """A new array that values may be written into."""
    root: str
    dtype: str
    literal: str


REAL = Field(
    unary=(
        "np.sin({})", "np.cos({})", "np.tanh({})", "np.exp(-({}) ** 2)", "np.sqrt(1.0 + ({}) ** 2)", "-{}",
        "0.5 * {}",
    ),
    binary=(
        "{} + {}", "{} - {}", "{} * {}", "{} / (2.0 + np.cos({}))", "np.maximum({}, {})", "np.sin({} * {})",
    ),
    extremes=("np.max({})", "np.min({})"),
    bounded="np.sin({})",
    ordered="{}",
    owned="{} * 1.0",
    root="np.sqrt(1.0 + {} ** 2)",
    dtype="float64",
    literal="{:.2f}",
)  # fmt: skip
COMPLEX = Field(
    unary=(
        "bounded({})", "np.sin(bounded({}))", "np.conj({})", "np.exp(1j * np.real({}))", "np.abs({})", "-{}",
        "0.5j * {}", "np.exp(-np.abs({}) ** 2)",
    ),
    binary=(
        "{} + {}", "{} - {}", "{} * {}", "{} / (2.0 + np.abs({}))", "np.real({}) + 1j * np.imag({})",
        "bounded({} * {})",
    ),
    extremes=("np.sum({}).real", "np.mean({}).imag"),
    bounded="bounded({})",
    ordered="np.real({})",
    owned="{} * (1.0 + 0.0j)",
    root="np.sqrt(1.0 + np.abs({}) ** 2)",
    dtype="complex128",
    literal="({:.2f} - 0.3j)",
)  # fmt: skip


@dataclass
class Index:
    """A loop variable: its values lie in [low, high)."""

    name: str
    low: int
    high: int


class Scope:
    """A program while it is drawn: its lines, what is in scope, and expressions of that.

    Attributes:
        arrays: the arrays in scope and their shapes; `owned` of them may be written.
        numbers: names of numbers in scope.
        indices: loop variables in scope.
        budget: how many statements are left to draw; `loops`: how many Python loops are around.
    """

    def __init__(self, rng: Random, front: str, field: Field = REAL) -> None:
        self.rng = rng
        self.front = front
        self.field = field
        self.lines: list[str] = []
        self.indent = 1
        self.arrays: dict[str, Shape] = {}
        self.owned: set[str] = set()
        self.numbers: list[str] = []
        self.indices: list[Index] = []
        self.made = 0
        self.budget = 0
        self.loops = 0

    # --- helpers ------------------------------------------------------------------------------------------

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def new(self, stem: str) -> str:
        self.made += 1
        return f"{stem}{self.made}"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def choose(self, options: Iterable[Any]) -> Any:
        return self.rng.choice(list(options))

    @contextmanager
    def block(self, line: str) -> Iterator[None]:
        """An indented block; names that it makes are not seen after it."""
        self.write(line)
        arrays, owned, numbers, indices = (
            dict(self.arrays),
            set(self.owned),
            list(self.numbers),
            list(self.indices),
        )
        self.indent += 1
        start = len(self.lines)
        yield
        if len(self.lines) == start:
            self.write("pass")
        self.indent -= 1
        self.arrays, self.owned, self.numbers, self.indices = arrays, owned, numbers, indices

    def of_shape(self, shape: Shape, owned: bool = False) -> list[str]:
        names = self.owned if owned else self.arrays
        return [name for name in self.arrays if name in names and self.arrays[name] == shape]

    # --- expressions --------------------------------------------------------------------------------------

    def expression(self, shape: Shape, depth: int = 2) -> str:
        """An expression of exactly this shape."""
        if depth <= 0 or self.chance(0.2):
            return self.leaf(shape)
        kind = self.rng.random()
        if kind < 0.3:
            return self.choose(self.field.unary).format(self.bracketed(shape, depth))
        if kind < 0.65:
            other = () if self.chance(0.3) else shape
            pair = [self.bracketed(shape, depth), self.bracketed(other, depth)]
            self.rng.shuffle(pair)
            return "(" + self.choose(self.field.binary).format(*pair) + ")"
        return self.special(shape, depth)

    def bracketed(self, shape: Shape, depth: int) -> str:
        text = self.expression(shape, depth - 1)
        return text if text.replace("_", "").replace(".", "").isalnum() else f"({text})"

    def leaf(self, shape: Shape) -> str:
        if shape == ():
            options = [*self.numbers, *self.numbers]
            options += [f"{name}[{self.position(name)}]" for name in self.arrays if self.nonempty(name)]
            options += [f"0.1 * {one.name}" for one in self.indices]
            options.append(self.field.literal.format(self.rng.uniform(-1, 1)))
            return self.choose(options)
        names = self.of_shape(shape)
        rows = [f"{name}[{self.integer(s[0])}]" for name, s in self.arrays.items() if s[1:] == shape and s[0]]
        if names and not (rows and self.chance(0.3)):
            return self.choose(names)
        if rows:
            return self.choose(rows)
        fill = self.choose(("np.ones", "np.zeros"))
        return f"{fill}({shape!r})"

    def nonempty(self, name: str) -> bool:
        return 0 not in self.arrays[name] and bool(self.arrays[name])

    def integer(self, extent: int) -> str:
        """A position below the extent: a number, or a loop variable."""
        options = [str(self.rng.randrange(extent)), str(self.rng.randrange(-extent, 0))]
        for one in self.indices:
            if one.high <= extent and one.low >= -extent:
                options += [one.name] * 4
            if one.high + 1 <= extent and one.low >= 0:
                options += [f"{one.name} + 1"] * 2
            if one.low >= 1 and one.high - 1 <= extent:
                options += [f"{one.name} - 1"] * 3
            if one.low >= 0 and one.high <= extent:
                options += [f"-1 - {one.name}"]
        return self.choose(options)

    def position(self, name: str) -> str:
        return ", ".join(self.integer(extent) for extent in self.arrays[name])

    def special(self, shape: Shape, depth: int) -> str:
        if shape == ():
            name = self.choose(self.arrays)
            found = self.arrays[name]
            whole = self.expression(found, depth - 1)
            options = [f"np.sum({whole})", f"({whole}).sum()"]
            if 0 not in found:
                options += [f"np.mean({whole})", *(one.format(whole) for one in self.field.extremes)]
            if len(found) == 1:
                options += [f"({whole}) @ ({self.expression(found, depth - 1)})"] * 2
                prefixes = [one.name for one in self.indices if one.low >= 0 and one.high <= found[0]]
                options += [f"{name}[:{one}] @ {name}[:{one}]" for one in prefixes] * 2
                options += [f"{name}[{one}:].sum()" for one in prefixes]
            return self.choose(options)
        if len(shape) == 1:
            n = shape[0]
            same = self.expression(shape, depth - 1)
            options = [f"np.cumsum({same})", f"({same})[::-1]", f"np.roll({same}, 1)"]
            compared = self.ordered(same), self.ordered(self.expression((), 0))
            options += [f"np.where({' > '.join(compared)}, {self.expression(shape, 0)}, {same})"]
            options += [f"np.concatenate([({same})[{k}:], ({same})[:{k}]])" for k in range(1, min(n, 3))]
            for name, found in self.arrays.items():
                if len(found) == 2 and found[0] == n:
                    other = self.expression(found[1:], depth - 1)
                    options += [f"({name} @ ({other}))", f"np.sum({name}, axis=1)"]
                    if found[1]:
                        options += [f"{name}[:, {self.integer(found[1])}]"]
                if len(found) == 2 and found[1] == n:
                    other = self.expression(found[:1], depth - 1)
                    options += [f"(({other}) @ {name})", f"np.sum({name}, axis=0)"]
            return self.choose(options)
        first, second = shape
        row, column = self.expression(shape[1:], depth - 1), self.expression(shape[:1], depth - 1)
        same = self.expression(shape, depth - 1)
        options = [
            f"np.outer({column}, {row})",
            f"({column})[:, None] * ({row})[None, :]",
            f"({row}) + ({same})",
        ]
        options += [f"({self.expression(shape[::-1], 0)}).T", f"({same})[::-1]"]
        if first == second:
            options += [f"0.3 * ({same}) @ ({self.expression(shape, 0)})"]
        return self.choose(options)

    def ordered(self, text: str) -> str:
        return self.field.ordered.format(text)

    def condition(self) -> str:
        comparison = self.choose(("<", ">", ">=", "<="))
        text = f"{self.ordered(self.expression((), 1))} {comparison} {self.ordered(self.expression((), 1))}"
        if self.chance(0.15):
            joined = self.choose(("and", "or"))
            text = f"{text} {joined} {self.ordered(self.expression((), 0))} {comparison} 0.1"
        if self.indices and self.chance(0.25):
            one = self.choose(self.indices)
            return self.choose((f"{one.name} % 2 == 0", f"{one.name} > {one.low}"))
        return text
