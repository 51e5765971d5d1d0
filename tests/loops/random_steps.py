"""Draws functions that take many steps with whole arrays: stencils, sums, writes of parts, gathers."""

import random
from collections.abc import Iterator

STATEMENTS = (
    "{a} = {a} + 0.1 * np.roll({b}, {shift}, {axis})",
    "{a} = 0.9 * {a} + 0.1 * (np.roll({a}, 1, {axis}) + np.roll({a}, -1, {axis}) - 2.0 * {a})",
    "{a} = np.sin({b}) * {a}",
    "{a}, {b} = {b}, 0.5 * ({a} + {b})",
    "s = 0.5 * s + 0.01 * np.sum({a} * {b})",
    "s = 0.5 * s + 0.1 * np.max({a})",
    "{a} = {a} / (1.0 + np.sum({b} * {b}))",
    "{a} = {a} - s * {b}",
    "{a} = {a} - np.mean({b}, axis=0)",
    "{a} = {a} + 0.1 * np.sum({b}, axis=1, keepdims=True)",
    "{a} = {a} - np.mean(np.cos({b}), axis=1)[:, None] * {b}",
    "{a}[1:-1] = 0.5 * ({b}[2:] + {b}[:-2])",
    "{a}[1:-1, 1:-1] = {a}[1:-1, 1:-1] + 0.1 * ({a}[2:, 1:-1] + {a}[:-2, 1:-1] - 2.0 * {a}[1:-1, 1:-1])",
    "{a}[1:] = 0.5 * {a}[:-1] + 0.1 * {b}[1:]",
    "{a}[t] = 0.5 * {b}[t] + {a}[t - 1]",
    "{a}[:, 0] = {b}[:, -1]",
    "{a} = 0.2 * np.cumsum({b}, {axis})",
    "{a} = 0.5 * {b}[order]",
    "{a} = 0.3 * {b} @ w",
    "{a} = np.where({b} > 0.0, {a}, 0.1 * {b})",
    "{a} = 0.1 * {b}[::-1] + {a}",
    "kept[t] = {a}[:, 1]",
)  # fmt: skip


def draw_steps(seed: int) -> str:
    """The text of `program(u, v, w, order)`: matrices (n, m), (n, m), (m, m), and positions (n,)."""
    chance = random.Random(seed)
    loop = [*_statements(chance, chance.randint(1, 5))]
    if chance.random() < 0.15:
        loop += ["for _ in range(9):", *(f"    {one}" for one in _statements(chance, 1))]
    lines = [
        "def program(u, v, w, order):",
        "    u, v, s, kept = u.copy(), v.copy(), 0.3, np.zeros((9, len(u)))",
        "    for t in range(9):",
        *(f"        {one}" for one in loop),
        "    return np.sum(u * u) + 0.5 * np.sum(np.sin(v)) + s + np.sum(kept * kept), u, v",
    ]
    return "\n".join(lines)


def _statements(chance: random.Random, count: int) -> Iterator[str]:
    for _ in range(count):
        a, b = chance.sample(("u", "v"), 2) if chance.random() < 0.8 else ("u", "u")
        text = chance.choice(STATEMENTS)
        if "[" in text.partition("=")[0]:
            yield f"{a} = {a}.copy()"
        yield text.format(a=a, b=b, axis=chance.randint(0, 1), shift=chance.choice((-1, 1)))
