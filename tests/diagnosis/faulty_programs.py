"""Draws NumPy programs as people write them, with one line that makes nan or inf, or whose gradient does.

`python tests/diagnosis/faulty_programs.py --count 200` says how many anomaly mode names by that line.
"""

from __future__ import annotations

import argparse
import linecache
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

SIZE = 6
SOUND = [
    "{t} = np.tanh({a} * {b})", "{t} = {a} * 0.5 + {b}", "{t} = np.sin({a}) - 0.3 * {b}",
    "{t} = np.exp(-{a} * {a})", "{t} = {a} / (1.0 + {b} * {b})", "{t} = np.sqrt(1.0 + {a} * {a})",
    "{t} = np.log1p({a} * {a}) + {b}", "{t} = np.tanh(A @ {a})", "{t} = np.where({a} > {b}, {a}, 0.1 * {b})",
    "{t} = np.cumsum({a}) / n", "{t} = np.maximum({a}, 0.2) - np.minimum({b}, 0.1)",
    "{t} = {a} - {a}.mean()", "{t} = np.concatenate([{a}[1:], {b}[:1]])", "{t} = {a}[::-1] * np.cos({b})",
    "{t} = ({a} - {a}.mean()) / ({a}.std() + 1.0)", "{t} = smooth({a}, {b})",
]  # fmt: skip
"""Lines with finite values and derivatives for all operands."""
LOOPS = [
    """
    {t} = np.zeros(n)
    {t}[0] = {a}[0]
    for i in range(1, n):
        {t}[i] = 0.5 * {t}[i - 1] + np.sin({b}[i])
    """,
    """
    {t} = {a}
    for _ in range(5):
        {t} = {t} - 0.1 * np.sin({t} + {b})
    """,
    """
    if ({a} * {b}).sum() > 0.0:
        {t} = np.tanh({a})
    else:
        {t} = np.tanh({b}) + 0.1
    """,
    """
    {t} = pb.scan(lambda c, row: (np.tanh(c + row), c * row), {a}, A)[0]
    """,
    """
    {t} = pb.while_loop(lambda c: (c * c).sum() > 0.5, lambda c: 0.5 * c, np.tanh({a} - {b}))
    """,
    """
    {t} = pb.cond({a}.sum() > 0, np.sin, np.cos, {b})
    """,
]
LOOPS_AROUND = (
    "for _ in range(3):\n    {}",
    "for _ in range(20):\n    {}",
    "if n > 2:\n    {}",
    "def part(i, c):\n    {}\n    return c + {t}\n{t} = pb.fori_loop(0, 4, part, np.zeros(n))",
)
"""What a faulty line may stand in."""
FORWARD = [
    "{t} = np.log({a} - {a}.min())", "{t} = np.exp(900.0 * (1.0 + {a} * {a}))", "{t} = 1.0 / ({a} - {a}[2])",
    "{t} = np.sqrt(-1.0 - {a} * {a})", "{t} = np.arccos(1.5 + {a} * {a})", "{t} = (-1.0 - {a} * {a}) ** 0.5",
    "{t} = np.log(1.0 - np.tanh(60.0 + {a} * {a}))", "{t} = {a} / ({b} - {b}).sum()",
    "{t} = np.exp(2000.0 + {a}) / np.exp(2000.0 + {a}).sum()", "{t} = np.log(np.maximum({a} - 100.0, 0.0))",
    "{t} = ({a} - {a}.mean()) / ({b} - {b}).std()", "{t} = inverse({a} - {a}[0])",
    "{t} = np.arctanh(1.0 + np.maximum({a} - {a}.max(), 0.0))", "{t} = np.log2({a} - {a}) * {b}",
    "{t} = np.cosh(800.0 + {a} * {a}) - {b}", "{t} = np.log(np.linalg.det(A - A)) + {a}",
]  # fmt: skip
"""Lines whose value is nan or inf."""
BACKWARD = [
    "{t} = np.sqrt(np.maximum({a} - {a}.max(), 0.0))", "{t} = np.sqrt((({a} - {a}) ** 2).sum()) + {b}",
    "{t} = np.where({a} > 9.0, np.log({a} - {a}), {b})",
    "{t} = np.where({a} < 9.0, {b}, 1.0 / ({a} - {a}[1]))",
    "{t} = (np.abs({a} - {a}[3])) ** 0.5", "{t} = np.arccos(np.clip(5.0 + {a} * {a}, -1.0, 1.0))",
    "{t} = np.where(np.isfinite(np.exp(900.0 + {a})), np.exp(900.0 + {a}), {b})",
    "{t} = np.arcsin(np.tanh(40.0 + {a} * {a}))", "{t} = root({a} - {a}[0]) * {b}",
    "{t} = np.arctan2({a} - {a}, {b} - {b})", "{t} = np.cbrt({a} - {a}[4])",
    "{t} = np.where({a} == {a}[2], 0.0, np.sqrt(np.abs({a} - {a}[2])))",
]  # fmt: skip
"""Lines whose value is finite, and whose derivative is not."""
HELPERS = """
def smooth(u, v):
    w = u * v
    return np.tanh(w) + 0.1 * u

def inverse(u):
    return 1.0 / u  # helper

def root(u):
    return np.sqrt(u * u)  # helper
"""


@dataclass(frozen=True)
class Faulty:
    """A program with one faulty line."""

    seed: int
    text: str
    line: int
    """That line, counted from 1; of a fault in a helper, the line of the helper."""
    is_forward: bool
    kind: str
    function: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]


def drawn(seed: int) -> Faulty:
    """The program of a seed: a function of two vectors and a matrix that gives a number."""
    rng = Random(seed)
    names, lines = ["x", "y"], ["n = x.shape[0]"]
    wanted, is_forward = rng.randint(0, 6), rng.random() < 0.5
    kind = rng.choice(FORWARD if is_forward else BACKWARD)
    for number in range(wanted + 1 + rng.randint(0, 5)):
        template = kind if number == wanted else rng.choice(LOOPS if rng.random() < 0.2 else SOUND)
        name = f"{rng.choice('abcdefgh')}{number}"
        made = textwrap.dedent(template).strip().format(t=name, a=rng.choice(names), b=rng.choice(names))
        if number == wanted:
            made = f"{made}  # fault"
            made = rng.choice(("{}", "{}", "{}", *LOOPS_AROUND)).format(made, t=name)
            faulty = name
        lines += made.splitlines()
        names.append(name)
    terms = dict.fromkeys([names[-1], faulty, rng.choice(names)])
    lines.append("return " + " + ".join(f"({one} * {rng.choice(('x', 'y', '0.5'))}).sum()" for one in terms))
    body = textwrap.indent("\n".join(lines), "    ")
    text = f"import numpy as np\nimport pullback as pb\n{HELPERS}\ndef program(x, y, A):\n{body}\n"
    helper = next((one for one in ("inverse", "root") if f"{one}(" in kind), None)
    rows = text.splitlines()
    mark = "# fault" if helper is None else "# helper"
    start = 0 if helper is None else next(i for i, row in enumerate(rows) if row.startswith(f"def {helper}"))
    line = next(i for i, row in enumerate(rows) if i >= start and mark in row) + 1
    values = np.random.default_rng(seed)
    arguments = (values.normal(size=SIZE), values.normal(size=SIZE), values.normal(size=(SIZE, SIZE)) / 3)
    filename = f"<faulty {seed}>"
    linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    namespace: dict[str, Any] = {}
    exec(compile(text, filename, "exec"), namespace)
    return Faulty(seed, text, line, is_forward, kind, namespace["program"], arguments)


def verdict(one: Faulty) -> str:
    """What anomaly mode says of a program: "named", "silent", "wrong", or "sound", if nothing is broken."""
    import pullback as pb
    from pullback.errors import AnomalyError, LinearAlgebraError

    compiled = pb.compile(one.function)
    on_tape = one.seed % 3 == 0

    def call() -> Any:
        if not on_tape:
            return pb.value_and_grad(compiled, argnums=(0, 1, 2))(*one.arguments)
        given = [pb.tensor(array, requires_grad=True) for array in one.arguments]
        value = compiled(*given)
        value.backward()
        return value.detach().numpy(), [one.grad.numpy() for one in given if one.grad is not None]

    try:
        value, gradients = call()
    except LinearAlgebraError:
        return "sound"  # it says so itself
    broken = not all(np.isfinite(found).all() for found in (value, *gradients))
    try:
        with pb.autograd.detect_anomaly():
            call()
    except AnomalyError as error:
        if not broken:
            return "wrong"
        return "named" if error.place.endswith(f":{one.line}") else "wrong"
    return "silent" if broken else "sound"


def counts(
    seeds: range, wanted: int, way: Callable[[int], AbstractContextManager[None]] = lambda _: nullcontext()
) -> tuple[Counter[str], list[Faulty]]:
    """How many of `wanted` broken programs are named, and which are not. `way`: how that of a seed runs."""
    found: Counter[str] = Counter()
    missed = []
    for seed in seeds:
        one = drawn(seed)
        with way(seed):
            said = verdict(one)
        if said == "sound":
            continue
        found[said] += 1
        found["forward" if one.is_forward else "backward"] += 1
        if said != "named":
            missed.append(one)
        if found["forward"] + found["backward"] == wanted:
            break
    return found, missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    totals, missed = counts(range(options.first, options.first + 10 * options.count), options.count)
    for one in missed:
        print(one.seed, one.line, one.text, sep="\n")
    print(dict(totals))
    sys.exit(bool(totals["wrong"]))
