"""Draws whole Python programs as text: loops, branches, writes into arrays, functions in functions.

A program is a function of two vectors and a matrix that returns a number. It is text, so that one that fails
can be printed and run again.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from random_expressions import COMPLEX, REAL, Index, Scope, Shape


class Program(Scope):
    """A program while statements are drawn."""

    # --- statements ---------------------------------------------------------------------------------------

    def statement(self) -> None:
        self.budget -= 1
        kinds: list[tuple[Callable[[], None], int]] = [
            (self.assign_number, 3), (self.assign_array, 3), (self.write_element, 5), (self.write_slice, 4),
            (self.write_mask, 1), (self.write_view, 2), (self.write_out, 1), (self.update_number, 3),
            (self.update_array, 2), (self.copy_array, 2), (self.gather, 1),
        ]  # fmt: skip
        if self.budget > 0 and self.indent < 5:
            kinds += [(self.if_else, 4), (self.for_loop, 8), (self.recurrence, 2), (self.triangular, 2)]
            kinds += [(self.while_loop, 3), (self.collect, 2)]
        if self.budget > 0 and self.indent < 4:
            kinds += [(self.helper, 2), (self.inner_gradient, 1)]
            if self.front != "numpy":
                kinds += [(self.structured_scan, 1), (self.structured_fori, 1), (self.structured_cond, 1)]
                kinds += [(self.structured_while, 1)]
        (kind,) = self.rng.choices([one for one, _ in kinds], [weight for _, weight in kinds])
        kind()

    def statements(self, low: int, high: int) -> None:
        for _ in range(self.rng.randint(low, high)):
            self.statement()

    def assign_number(self) -> None:
        name = self.choose(self.numbers) if self.numbers and self.chance(0.4) else self.new("s")
        self.write(f"{name} = {self.expression(())}")
        if name not in self.numbers:
            self.numbers.append(name)

    def update_number(self) -> None:
        if not self.numbers:
            return self.assign_number()
        name = self.choose(self.numbers)
        how = self.choose(
            (
                "{0} += {1}",
                "{0} = {0} + {1}",
                f"{{0}} = {self.field.bounded.format('{0} * {1}')}",
                "{0} -= {1}",
                "{0} = 0.5 * {0} + {1}",
            )
        )
        self.write(how.format(name, f"({self.expression((), 1)})"))

    def some_shape(self) -> Shape:
        return self.choose(self.arrays.values())

    def assign_array(self) -> None:
        shape = self.some_shape()
        name = self.new("a")
        text = self.expression(shape)
        self.write(f"{name} = {text}" if self.field is REAL else f"{name} = {self.field.owned.format(text)}")
        self.arrays[name] = shape

    def copy_array(self) -> None:
        shape = self.some_shape()
        name = self.new("a")
        how = self.choose(("copy", "zeros", "ones", "times", "zeros_like"))
        of_dtype = "" if self.field is REAL else ", complex"
        source = self.choose(self.of_shape(shape))
        texts = {
            "copy": f"np.copy({source})", "zeros": f"np.zeros({shape!r}{of_dtype})",
            "ones": f"np.ones({shape!r}{of_dtype})",
            "times": self.field.owned.format(source), "zeros_like": f"np.zeros_like({source})",
        }  # fmt: skip
        self.write(f"{name} = {texts[how]}")
        self.arrays[name] = shape
        self.owned.add(name)

    def target(self, rank: int | None = None) -> str:
        """An array that may be written, made if there is none."""
        names = [
            one
            for one in self.owned
            if one in self.arrays and rank in (None, len(self.arrays[one])) and self.nonempty(one)
        ]
        if names:
            return self.choose(sorted(names))
        shapes = [one for one in self.arrays.values() if rank in (None, len(one)) and 0 not in one]
        shape = self.choose(shapes) if shapes else (3,) * (rank or 1)
        name = self.new("a")
        self.write(f"{name} = {self.field.owned.format(self.expression(shape, 1))}")
        self.arrays[name] = shape
        self.owned.add(name)
        return name

    def assignment(self) -> str:
        return self.choose(("=", "=", "+=", "-=", "*="))

    def write_element(self) -> None:
        name = self.target()
        self.write(f"{name}[{self.position(name)}] {self.assignment()} {self.expression(())}")

    def slice_of(self, extent: int) -> tuple[str, int]:
        options = [(":", extent), ("::-1", extent), ("::2", (extent + 1) // 2)]
        if extent > 1:
            options += [("1:", extent - 1), (":-1", extent - 1)] * 2
        if extent > 2:
            options += [("1:-1", extent - 2)]
        return self.choose(options)

    def write_slice(self) -> None:
        name = self.target()
        parts, shape = [], []
        for extent in self.arrays[name]:
            if len(self.arrays[name]) > 1 and self.chance(0.4):
                parts.append(self.integer(extent))
            else:
                text, size = self.slice_of(extent)
                parts.append(text)
                shape.append(size)
        value = self.expression(() if self.chance(0.2) else tuple(shape), 1)
        self.write(f"{name}[{', '.join(parts)}] {self.assignment()} {value}")

    def write_mask(self) -> None:
        name = self.target()
        mask = f"{self.ordered(name)} {self.choose('<>')} {self.ordered(self.expression((), 1))}"
        self.write(f"{name}[{mask}] {self.choose(('=', '*=', '+='))} {self.expression((), 1)}")

    def gather(self) -> None:
        name = self.target(1)
        extent = self.arrays[name][0]
        positions = [self.rng.randrange(extent) for _ in range(self.rng.randint(1, 3))]
        if self.chance(0.5):
            made = self.new("a")
            self.write(f"{made} = {name}[np.array({positions})]")
            self.arrays[made] = (len(positions),)
        else:
            positions = sorted(set(positions))
            value = self.expression((len(positions),), 1)
            self.write(f"{name}[np.array({positions})] {self.assignment()} {value}")

    def write_view(self) -> None:
        """A view is written, then perhaps its base: both see both."""
        name = self.target()
        shape = self.arrays[name]
        text, size = self.slice_of(shape[0])
        view, seen = self.new("v"), (size, *shape[1:])
        how = self.choose(("slice", "transposed", "row") if len(shape) == 2 else ("slice",))
        if how == "transposed":
            text, seen = f"{name}.T", shape[::-1]
        elif how == "row":
            text, seen = f"{name}[{self.integer(shape[0])}]", shape[1:]
        else:
            text = f"{name}[{text}]"
        self.write(f"{view} = {text}")
        self.arrays[view] = seen
        self.owned.add(view)
        self.write(
            f"{view} {self.choose(('+=', '*=', '-='))} {self.expression(() if self.chance(0.3) else seen, 1)}"
        )

    def write_out(self) -> None:
        name = self.target()
        shape = self.arrays[name]
        function = self.choose(("np.add", "np.multiply", "np.subtract"))
        self.write(f"{function}({self.expression(shape, 1)}, {self.expression(shape, 1)}, out={name})")

    def update_array(self) -> None:
        name = self.target()
        self.write(f"{name} {self.choose(('+=', '*=', '-='))} {self.expression(self.arrays[name], 1)}")

    # --- control flow -------------------------------------------------------------------------------------

    def if_else(self) -> None:
        with self.block(f"if {self.condition()}:"):
            self.statements(1, 3)
        if self.chance(0.3):
            with self.block(f"elif {self.condition()}:"):
                self.statements(1, 2)
        if self.chance(0.6):
            with self.block("else:"):
                self.statements(1, 2)

    def loop_header(self) -> tuple[str, list[Index], list[tuple[str, Shape]]]:
        index = self.new("i")
        extents = sorted({extent for shape in self.arrays.values() for extent in shape})
        extent = self.choose(extents)
        name = self.choose(
            [one for one, shape in self.arrays.items() if extent in shape[:1]] or list(self.arrays)
        )
        size = self.arrays[name][0]
        kind = self.rng.randrange(9)
        if kind <= 2:
            return f"for {index} in range({name}.shape[0]):", [Index(index, 0, size)], []
        if kind == 3:
            return f"for {index} in range(1, {name}.shape[0]):", [Index(index, 1, max(size, 1))], []
        if kind == 4:
            return f"for {index} in reversed(range({name}.shape[0])):", [Index(index, 0, size)], []
        if kind == 5:
            return f"for {index} in range({name}.shape[0] - 1, 0, -1):", [Index(index, 1, max(size, 1))], []
        if kind == 6:
            count = self.choose((2, 4, 9, 12))
            return f"for {index} in range({count}):", [Index(index, 0, count)], []
        row = self.new("r")
        if kind == 7:
            return f"for {row} in {name}:", [], [(row, self.arrays[name][1:])]
        return (
            f"for {index}, {row} in enumerate({name}):",
            [Index(index, 0, size)],
            [(row, self.arrays[name][1:])],
        )

    def for_loop(self) -> None:
        if self.loops >= 3:
            return self.update_number()
        header, indices, rows = self.loop_header()
        if not self.numbers:
            self.assign_number()
        self.loops += 1
        with self.block(header):
            self.indices += [one for one in indices if one.low < one.high]
            for row, shape in rows:
                if shape:
                    self.arrays[row] = shape
                else:
                    self.numbers.append(row)
            self.statements(1, 4)
            if self.chance(0.12):
                with self.block(f"if {self.condition()}:"):
                    self.write(self.choose(("break", "continue")))
                self.statement()
        self.loops -= 1

    def recurrence(self) -> None:
        name = self.target()
        extent = self.arrays[name][0]
        index = self.new("t")
        with self.block(f"for {index} in range(1, {extent}):"):
            if extent > 1:
                self.indices.append(Index(index, 1, extent))
            value = self.expression(self.arrays[name][1:], 1)
            how = self.choose(
                (
                    f"{{0}}[{{1}}] = {self.field.bounded.format('{0}[{1} - 1] + {2}')}",
                    "{0}[{1}] += 0.5 * {0}[{1} - 1] * ({2})",
                    "{0}[{1}] = 0.5 * {0}[{1} - 1] + ({2})",
                )
            )
            self.write(how.format(name, index, value))
            if self.chance(0.3):
                self.statement()

    def triangular(self) -> None:
        if self.loops >= 2:
            return self.update_number()
        name = self.target(2)
        first, second = self.arrays[name]
        extent = min(first, second)
        i, j = self.new("i"), self.new("j")
        inner = self.choose(
            (f"range({i})", f"range({i} + 1)", f"range({i}, {extent})", f"range({i} + 1, {extent})")
        )
        with self.block(f"for {i} in range({extent}):"):
            self.indices.append(Index(i, 0, extent))
            if self.chance(0.3):
                self.write(f"{name}[{i}, {i}] = {self.field.root.format(f'{name}[{i}, {i}]')}")
            with self.block(f"for {j} in {inner}:"):
                self.indices.append(Index(j, 0, extent))
                how = self.choose(
                    (
                        "{0}[{1}, {2}] -= {0}[{1}, :{2}] @ {0}[{2}, :{2}]",
                        "{0}[{1}, {2}] = 0.5 * {0}[{1}, {2}] + {0}[{2}, {1}] * {3}"
                        if first == second
                        else "{0}[{1}, {2}] *= {3}",
                        "{0}[{1}, {2}] += {3}",
                        "{0}[{1}, {2}:] *= {3}",
                        f"{{0}}[{{1}}, :] = {self.field.bounded.format('{0}[{1}, :] + {0}[{2}, :]')}",
                    )
                )
                self.write(how.format(name, i, j, f"({self.expression((), 1)})"))
            if self.chance(0.3):
                self.statement()

    def while_loop(self) -> None:
        if self.loops >= 2:
            return self.update_number()
        count, number = self.new("k"), self.new("s")
        self.write(f"{count}, {number} = 0, {self.expression((), 1)}")
        self.numbers.append(number)
        self.loops += 1
        bound = f"{self.rng.uniform(0.5, 2):.2f}"
        compared = self.ordered(number)
        with self.block(f"while {count} < {self.choose((3, 10))} and {compared} < {bound}:"):
            self.write(f"{count} += 1")
            self.indices.append(Index(count, 1, 11))
            self.statements(0, 2)
            added = f"np.cos({self.ordered(self.expression((), 1))})"
            self.write(f"{number} = {number} + 0.1 + 0.2 * {added} ** 2")
        self.loops -= 1

    def collect(self) -> None:
        rows, index, name = self.new("rows"), self.new("i"), self.new("a")
        count = self.choose((1, 3, 9))
        shape = self.choose(((), (), self.choose([s for s in self.arrays.values() if len(s) == 1])))
        self.write(f"{rows} = []")
        with self.block(f"for {index} in range({count}):"):
            self.indices.append(Index(index, 0, count))
            if self.chance(0.5):
                self.statement()
            self.write(f"{rows}.append({self.expression(shape)})")
        self.write(f"{name} = np.stack({rows})")
        self.arrays[name] = (count, *shape)

    def helper(self) -> None:
        """A function of a number and an array, called twice; it sees what is around it."""
        name, number, array = self.new("f"), self.new("s"), self.new("p")
        shape = self.some_shape()
        arrays, numbers, owned = dict(self.arrays), list(self.numbers), set(self.owned)
        with self.block(f"def {name}({number}, {array}):"):
            # What a helper assigns is local: it may read names from outside, not rebind them.
            self.numbers, self.owned = [number], set()
            self.arrays[array] = shape
            self.indices = []
            outer, self.loops = self.loops, 2
            self.statements(0, 3)
            self.loops = outer
            result = self.expression(())
            self.write(f"return {result}")
        self.arrays, self.numbers, self.owned = arrays, numbers, owned
        for _ in range(self.rng.randint(1, 2)):
            made = self.new("s")
            self.write(f"{made} = {name}({self.expression((), 1)}, {self.expression(shape, 1)})")
            self.numbers.append(made)

    def inner_gradient(self) -> None:
        name, array = self.new("a"), self.new("p")
        shape = self.some_shape()
        arrays, numbers = dict(self.arrays), list(self.numbers)
        self.arrays[array] = shape
        bounded = self.field.bounded.format(array)
        text = f"np.sum({bounded} * {self.expression(shape, 1)}) + {self.expression((), 1)}"
        text = self.ordered(text)
        self.arrays, self.numbers = arrays, numbers
        self.write(
            f"{name} = pb.grad(lambda {array}: {text})({self.field.owned.format(self.expression(shape, 1))})"
        )
        self.arrays[name] = shape

    def pure(
        self, carry: str, shape: Shape, depth: int, extra: tuple[str, Shape] | None = None, index: str = ""
    ) -> str:
        """A new value for what is carried."""
        arrays, numbers, indices = dict(self.arrays), list(self.numbers), list(self.indices)
        for name, one in ((carry, shape), *((extra,) if extra else ())):
            if one:
                self.arrays[name] = one
            else:
                self.numbers.append(name)
        if index:
            self.numbers.append(f"0.1 * {index}")
        text = self.field.bounded.format(f"{carry} + {self.expression(shape, depth)}")
        self.arrays, self.numbers, self.indices = arrays, numbers, indices
        return text

    def started(self, text: str) -> str:
        """What a loop begins with, in the dtype of what it goes on with."""
        return text if self.field is REAL else self.field.owned.format(text)

    def structured_scan(self) -> None:
        carry, row, last, rows = self.new("c"), self.new("q"), self.new("a"), self.new("a")
        shape = self.choose([*self.arrays.values(), ()])
        over = self.choose(self.arrays)
        text = self.pure(carry, shape, 2, (row, self.arrays[over][1:]))
        stacked = self.pure(carry, shape, 1, (row, self.arrays[over][1:]))
        options = self.choose(("", "", ", reverse=True", ", checkpoint=True", ", checkpoint_every=2"))
        init = (
            self.started(self.expression(shape, 1))
            if shape
            else f"pb.tensor(0.3, dtype=pb.{self.field.dtype}) + {self.expression((), 1)}"
        )
        self.write(
            f"{last}, {rows} = pb.scan(lambda {carry}, {row}: ({text}, {stacked}), {init}, {over}{options})"
        )
        if shape:
            self.arrays[last] = shape
        else:
            self.numbers.append(last)
        if len(shape) < 2:
            self.arrays[rows] = (self.arrays[over][0], *shape)

    def structured_fori(self) -> None:
        carry, index, last = self.new("c"), self.new("i"), self.new("a")
        shape = self.some_shape()
        text = self.pure(carry, shape, 2, index=index)
        count = self.choose((0, 1, 3, 8))
        self.write(
            f"{last} = pb.fori_loop(0, {count}, lambda {index}, {carry}: {text}, "
            f"{self.field.owned.format(self.expression(shape, 1))})"
        )
        self.arrays[last] = shape

    def structured_while(self) -> None:
        carry, last = self.new("c"), self.new("s")
        text = self.pure(carry, (), 1)
        init = f"pb.tensor(0.1, dtype=pb.{self.field.dtype}) + {self.expression((), 1)}"
        text = self.ordered(text)
        self.write(
            f"{last} = pb.while_loop(lambda {carry}: {self.ordered(carry)} < 1.5, "
            f"lambda {carry}: {carry} + 0.3 + 0.1 * {text}, {init})"
        )
        self.numbers.append(last)

    def structured_cond(self) -> None:
        name, carry = self.new("a"), self.new("c")
        shape = self.some_shape()
        one, other = self.pure(carry, shape, 1), self.pure(carry, shape, 2)
        condition = f"{self.ordered(self.expression((), 1))} < {self.ordered(self.expression((), 1))}"
        self.write(
            f"{name} = pb.cond(pb.as_tensor({condition}), lambda {carry}: {one}, "
            f"lambda {carry}: {other}, {self.started(self.expression(shape, 1))})"
        )
        self.arrays[name] = shape


BOUNDED = """def bounded(z):
    return z / (1.0 + np.abs(z))


"""


def draw_program(
    seed: int, front: str = "numpy", size: int = 0, is_complex: bool = False
) -> tuple[str, dict[str, Shape]]:
    """The text of `def program(x, y, w)`, and the shapes of its arguments.

    Args:
        front: "numpy", or "mixed" for one that has pullback's own loops in it too.
        size: how many statements; drawn if 0.
        is_complex: whether arguments and variables are complex; the result is real.
    """
    rng = Random(seed)
    n, m = rng.choice(
        ((3, 3), (4, 4), (3, 4), (4, 3), (1, 3), (3, 1), (9, 2), (2, 9), (1, 1), (5, 5), (0, 3))
    )
    shapes = {"x": (n,), "y": (m,), "w": (n, m)}
    drawing = Program(rng, front, COMPLEX if is_complex else REAL)
    drawing.arrays.update(shapes)
    drawing.budget = size or rng.choice((3, 5, 8, 12))
    while drawing.budget > 0:
        drawing.statement()
    terms = [f"np.sum({name} * {rng.uniform(0.5, 1.5):.2f})" for name in drawing.arrays] + drawing.numbers
    kept = terms[-8:] if len(terms) > 8 else terms
    if is_complex:
        kept = [part.format(one) for one in kept for part in ("np.real({})", "np.imag({})")]
    drawing.write(f"return {' + '.join(f'np.sin({one})' for one in kept)}")
    text = "def program(x, y, w):\n" + "\n".join(drawing.lines) + "\n"
    return (BOUNDED + text if is_complex else text), shapes
