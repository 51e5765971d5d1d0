"""Programs that ask for values compute compiled what they compute plain: a table of them, and random ones."""

from typing import Any

import numpy as np
import pytest
from asking_programs import INPUTS, PROGRAMS, Function, X, agree, gradient, no_warning
from extent import examples, is_drawn, machine_code
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb


def test_nothing_is_looked_up_where_a_mask_has_no_elements() -> None:
    agree(lambda x: x[1:1][x[1:1] > 0].sum() + x.sum(), X)


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    "program", [one for one in PROGRAMS if is_drawn(one.__name__, one_in=2)], ids=lambda one: one.__name__
)
def test_compiled_agrees_with_eager(program: Function) -> None:
    compiled, slope = pb.compile(program), pb.compile(pb.grad(program))
    with no_warning(), machine_code(program.__name__):
        for array in INPUTS:
            agree(program, array, compiled=compiled)
            np.testing.assert_allclose(slope(array), gradient(program, array)[1], rtol=1e-12)


CONDITIONS = (
    "(a * b).sum() > 0.1", "a[0] < b[1] + 0.05", "max(a[0], c[1]) > 0.3", "not (c > -0.7).all()",
    "0.2 < abs(b.sum()) < 1.1", "len(a) > 2 and c.norm() > 0.9", "int(a.sum() * 2) == 1",
    "b.detach().max().item() > 2",
)  # fmt: skip


ASSIGNMENTS = (
    "a = pb.sin(a * 1.3) + 0.4 * c", "b = a * b + 0.2", "c = pb.tanh(c - b)", "a, b = b, a", "b = b * 0.7",
    "c = pb.where(a > b, a * c, b)", "a = a + int(c.sum())", "c = c * float((a > 0).any()) + a",
    "b = pb.cat((b[: 1 + bool(a[1] > 0)], c))[:3]",
)  # fmt: skip


@st.composite
def blocks(draw: Any, depth: int = 2) -> list[str]:
    """Statements on the vectors a, b and c: assignments, branches and loops in each other."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(("assign", "if", "while", "for") if depth else ("assign",)))
        if kind == "assign":
            lines.append(draw(st.sampled_from(ASSIGNMENTS)))
            continue
        condition = draw(st.sampled_from(CONDITIONS))
        body = [f"    {line}" for line in draw(blocks(depth=depth - 1))]
        if kind == "if":
            other = [f"    {line}" for line in draw(blocks(depth=depth - 1))]
            lines += [f"if {condition}:", *body, "else:", *other]
        elif kind == "while":
            count = f"n{depth}"
            lines += [f"{count} = 0", f"while {condition} and {count} < 4:", *body, f"    {count} += 1"]
        else:
            lines += [f"for _ in range({draw(st.integers(1, 3))}):", *body]
    return lines


@given(blocks(), st.integers(0, 2**16))
@settings(max_examples=examples(24), derandomize=True)
def test_random_programs(lines: list[str], seed: int) -> None:
    text = "\n".join(["def program(a, b):", "    c = a * b", *(f"    {line}" for line in lines)])
    namespace: dict[str, Any] = {"pb": pb}
    exec(f"{text}\n    return (a * b).sum() + (c * c).sum()", namespace)
    program = namespace["program"]
    compiled = pb.compile(program)
    slope = pb.value_and_grad(compiled, (0, 1))
    rng = np.random.default_rng(seed)
    for number in range(4):
        arrays = rng.normal(size=(2, 3))
        expected = gradient(program, *arrays)
        with machine_code(text):
            value, slopes = slope(*arrays)
            found = gradient(compiled, *arrays) if number % 2 else [value, *slopes]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
