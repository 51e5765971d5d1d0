"""Random programs that write through views, under modes, into arguments and what they reach: as PyTorch's."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch")
PARTS = (
    "[1:]", "[:, ::2]", ".T[1:3]", "[0]", "[:, 1]", ".reshape(2, 6)[1]", ".view(12)[3:9]", "[...]",
    ".transpose(0, 1)[0]", "[1:, 2:]", "",
)  # fmt: skip
VALUES = ("{a} * {b}", "{a} + 0.5 * {b}", "m.sin({a})", "{a}.detach() * {b}", "({a} * {a}).clone()")
WRITES = (
    "{t}.copy_({s})", "{t}.zero_()", "{t}.fill_({c})", "{t}.add_({s}, alpha={c})", "{t}.mul_({s})",
    "{t}.sub_({s}.detach())", "{t}.mul_({c})",
)  # fmt: skip
REACHED = ("x", "p", "buffer", "state.mean")
MODES = ("m.no_grad()", "m.set_grad_enabled(False)")


class Program:
    """The text of a function of `x` and of the leaf `p`, drawn by a seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.made: list[str] = []
        self.lines: list[str] = []
        self.compute()
        kinds = (self.compute, self.write, self.write_unrecorded, self.write_unrecorded, self.count)
        for _ in range(self.draw.randrange(5, 11)):
            self.draw.choice(kinds)()
        used = self.draw.sample(self.made, min(len(self.made), 3))
        self.lines.append(f"loss = {' + '.join(f'({one} * 1.5).sum()' for one in used)} + (p * x).sum()")
        self.steps = self.draw.random() < 0.4
        if self.steps:
            self.lines += ["p.grad = None", "loss.backward()", "with m.no_grad():", "    p -= 0.1 * p.grad"]
        self.lines.append(f"return loss, {self.made[-1]}.detach().clone()")

    @property
    def text(self) -> str:
        return "def function(x, p):\n" + "".join(f"    {line}\n" for line in self.lines)

    def value(self) -> str:
        return self.draw.choice((*self.made, *REACHED))

    def compute(self, indent: str = "") -> None:
        form = self.draw.choice(VALUES).format(a=self.value(), b=self.value())
        self.lines.append(f"{indent}v{len(self.made)} = {form}")
        self.made.append(f"v{len(self.made)}")

    def write_into(self, target: str, indent: str) -> None:
        part, constant = self.draw.choice(PARTS), round(self.draw.uniform(0.2, 1.5), 2)
        source = self.draw.choice([one for one in (*self.made, *REACHED) if one != target])
        form = self.draw.choice(WRITES)
        self.lines.append(indent + form.format(t=target + part, s=source + part, c=constant))

    def write(self) -> None:
        self.write_into(self.draw.choice(self.made), "")

    def write_unrecorded(self) -> None:
        self.lines.append(f"with {self.draw.choice(MODES)}:")
        self.write_into(self.draw.choice((*self.made, *REACHED[1:])), "    ")
        if self.draw.random() < 0.3:
            self.lines.append("    with m.enable_grad():")
            self.compute("        ")

    def count(self) -> None:
        self.lines.append("state.count += 1")


class State:
    def __init__(self, mean: Any) -> None:
        self.mean = mean
        self.count = 0


def run(program: Program, m: Any, compiled: Callable[[Any], Any]) -> list[Any]:
    """All that a caller can see of three calls; it ends with the first error."""
    rng = np.random.default_rng(0)
    p, x, leaf, buffer, mean = (m.tensor(rng.standard_normal((3, 4))) for _ in range(5))
    p.requires_grad_()
    leaf.requires_grad_()
    state, name = State(mean), f"<program {id(program)}>"
    linecache.cache[name] = (len(program.text), None, program.text.splitlines(True), name)
    names = {"m": m, "state": state, "buffer": buffer}
    exec(compile(program.text, name, "exec"), names)
    function, seen = compiled(names["function"]), []
    for argument in (x, leaf, x):
        try:
            loss, value = function(argument, p)
            seen += [loss.item(), value.tolist()]
            if not program.steps:
                loss.backward()
        except RuntimeError as error:
            return [*seen, type(error).__mro__[-3].__name__]
        gradients = [None if one.grad is None else one.grad.tolist() for one in (p, leaf)]
        seen += [*gradients, p.tolist(), leaf.tolist(), buffer.tolist(), mean.tolist(), state.count]
        seen += [one.requires_grad for one in (p, leaf, buffer, mean)]
    return seen


@pytest.mark.drawn(4)
@pytest.mark.parametrize("seed", range(30))
def test_programs_that_write_are_pytorchs(seed: int) -> None:
    program = Program(seed)
    expected = run(program, torch, lambda function: function)
    for compiled in (lambda function: function, pb.compile):
        found = run(program, pb, compiled)
        assert len(found) == len(expected), program.text
        for one, other in zip(found, expected):
            assert type(one) is type(other), program.text
            if one is not None and not isinstance(one, str):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10, err_msg=program.text)
