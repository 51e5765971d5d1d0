"""Draws functions of plain Python whose `while` loops values steer: in each other, beside `for`, with state.

A function takes two numbers and returns one. It is text, so that one that fails can be printed and run again.
"""

from __future__ import annotations

from random import Random


class Loops:
    """A function while statements are drawn."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.lines: list[str] = []
        self.indent = 1
        self.loops = 0
        self.whiles = 0
        self.budget = self.rng.randint(4, 12)
        self.numbers = ["x", "y"]
        self.counts: list[str] = []

    def write(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def number(self) -> str:
        return self.rng.choice(self.numbers)

    def expression(self) -> str:
        one, other = self.number(), self.number()
        scale = round(self.rng.uniform(-0.9, 0.9), 2)
        forms = [
            f"{scale} * {one} + 0.3 * {other}", f"np.sin({one}) + {scale}", f"np.tanh({one} * {other})",
            f"{one} / (1.5 + {other} * {other})", f"0.5 * ({one} - {other})", f"max({one}, {scale})",
            f"abs({one}) + 0.1",
        ]  # fmt: skip
        if self.counts and self.chance(0.15):
            forms.append(f"{one} * (1 + 0.01 * {self.rng.choice(self.counts)})")
        return self.rng.choice(forms)

    def block(self, opening: str, fewest: int = 1) -> None:
        self.write(opening)
        self.indent += 1
        for _ in range(self.rng.randint(fewest, 3)):
            self.statement()
        self.indent -= 1

    def statement(self) -> None:
        self.budget -= 1
        kinds = [self.assign] * 5 + [self.swap, self.count]
        if self.budget > 0 and self.indent < 5:
            kinds += [self.branch] * 2 + [self.while_loop] * 4 + [self.for_loop, self.helper, self.guarded]
        self.rng.choice(kinds)()

    def assign(self) -> None:
        name = self.number() if self.chance(0.7) else f"v{len(self.numbers)}"
        self.write(f"{name} = {self.expression()}")
        if name not in self.numbers and self.indent == 1:
            self.numbers.append(name)

    def swap(self) -> None:
        one, other = self.number(), self.number()
        self.write(f"{one}, {other} = 0.9 * {other}, {one}")

    def count(self) -> None:
        if self.counts and self.chance(0.7):
            self.write(f"{self.rng.choice(self.counts)} += 1")
        elif self.indent == 1:
            self.counts.append(f"n{len(self.counts)}")
            self.write(f"{self.counts[-1]} = 0")
        else:
            self.assign()

    def branch(self) -> None:
        self.block(f"if {self.number()} > {round(self.rng.uniform(-1, 1), 2)}:")
        if self.chance(0.6):
            self.block("else:")

    def for_loop(self) -> None:
        self.loops += 1
        self.block(f"for k{self.loops} in range({self.rng.randint(1, 4)}):")

    def guarded(self) -> None:
        self.block("try:")
        self.write("finally:")
        self.write(f"    {self.number()} = {self.expression()}")

    def while_loop(self) -> None:
        """A loop that ends: what decides becomes smaller with each turn."""
        self.whiles += 1
        left = f"w{self.whiles}"
        scale, more = self.rng.choice((1, 3, 8)), self.rng.choice((0, 0.5))
        self.write(f"{left} = abs({self.number()}) * {scale} + {more}")
        limit = f" and {self.rng.choice(self.counts)} < 40" if self.counts and self.chance(0.2) else ""
        endless = self.chance(0.2)
        self.write("while True:" if endless else f"while {left} > 1{limit}:")
        self.indent += 1
        if endless:
            self.write(f"if {left} < 1:")
            self.write("    break")
        self.write(f"{left} = {left} / {self.rng.choice((1.5, 2, 3))} - 0.05")
        if self.chance(0.2):
            self.write(f"if {self.number()} > {round(self.rng.uniform(0, 2), 2)}:")
            self.write(f"    {self.rng.choice(('break', 'continue'))}")
        for _ in range(self.rng.randint(1, 3)):
            self.statement()
        self.indent -= 1
        if self.chance(0.2) and not endless:
            self.write("else:")
            self.write(f"    {self.number()} = {self.expression()}")

    def helper(self) -> None:
        """A call of a function with a loop of its own."""
        self.whiles += 1
        self.write(f"def f{self.whiles}(a, b):")
        self.write("    z = a")
        self.write(f"    while abs(z) > {self.rng.choice((0.05, 0.3))}:")
        self.write(f"        z = {self.rng.choice(('0.6 * z + 0.01 * b', '0.5 * z', 'z / (2 + b * b)'))}")
        self.write("        if abs(b) > 1:" if self.chance(0.3) else "        if z > 5:")
        self.write("            return z")
        self.write("    return z + b")
        self.write(f"{self.number()} = f{self.whiles}({self.number()}, np.tanh({self.number()}))")


def draw_loops(seed: int) -> str:
    """The text of a function `program(x, y)`."""
    drawing = Loops(seed)
    drawing.while_loop()
    while drawing.budget > 0:
        drawing.statement()
    result = " + ".join(f"np.tanh({one})" for one in drawing.numbers)
    counts = "".join(f" + 0.1 * {one}" for one in drawing.counts)
    return "\n".join(["def program(x, y):", *drawing.lines, f"    return {result}{counts}", ""])
