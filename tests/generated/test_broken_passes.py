"""Passes broken on purpose: what `verify` and `interpret` are for is to find it.

Each of them is a mistake that a pass could make. The program that it then writes is refused, or accesses what
it must not when it is run, or computes something else than the user's function.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from test_blocking import data, energy
from test_golden import diffusion_step, normal
from test_loop_ir import gradient_program_of, program_of

import pullback as pb
from pullback.codegen import ir
from pullback.codegen.ir.verify import verify
from pullback.codegen.nests import allocation, fuse, plan, tree, updates
from pullback.codegen.nests.allocation import Allocation
from pullback.codegen.nests.interior import Stretch
from pullback.codegen.program import Program
from pullback.codegen.rewriting import slices
from pullback.codegen.writing import stores, write
from pullback.tracer.errors import DimensionError

Function = Callable[..., Any]
Break = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Broken:
    """A mistake, a function whose program it spoils, and what is then said."""

    make: Break
    function: Function
    arrays: tuple[np.ndarray, ...]
    found: str
    parallel: bool = False
    gradient: bool = False

    def program(self) -> Program:
        build = gradient_program_of if self.gradient else program_of
        return build(self.function, *self.arrays, parallel=self.parallel)

    def wanted(self) -> Sequence[np.ndarray]:
        if self.gradient:
            return pb.value_and_grad(lambda *given: self.function(*given).sum())(*self.arrays)  # type: ignore[no-any-return]
        result = self.function(*self.arrays)
        return result if isinstance(result, tuple) else (result,)

    def examine(self) -> None:
        """Raise ProgramError if the program is not right."""
        program = self.program()
        verify(program.lowered)
        results = [program.run_interpreted(self.arrays, seed) for seed in range(3)]
        wanted = [*map(np.asarray, self.wanted())]
        for found in results:
            pairs = zip(found, wanted, strict=True)
            if not all(np.allclose(*pair, rtol=1e-9, atol=1e-9, equal_nan=True) for pair in pairs):
                raise ir.ProgramError("it computes something else")


def patched(owner: Any, name: str, new: Any) -> Break:
    return lambda patch: patch.setattr(owner, name, new)


def changed(owner: Any, name: str, change: Callable[[Any], Any]) -> Break:
    """What a function gives is given with a change."""
    original = getattr(owner, name)
    return patched(owner, name, lambda *given, **options: change(original(*given, **options)))


def all_of(*breaks: Break) -> Break:
    def make(patch: pytest.MonkeyPatch) -> None:
        for one in breaks:
            one(patch)

    return make


def in_the_other_order(tree: Any) -> Any:
    tree.items.reverse()
    return tree


def shared_by_all(sharing: ir.Sharing | None) -> ir.Sharing | None:
    return sharing and replace(sharing, totals=(), private=())


def column_sums(x: Any) -> Any:
    return pb.exp(x).sum(0)


def products(x: Any) -> Any:
    return pb.sin(x) @ pb.cos(x)


def used_again(x: Any) -> Any:
    first = pb.sin(x) @ x
    second = pb.cos(first) @ x
    return second @ first


def stepped(x: Any) -> Any:
    for _ in range(12):
        x = pb.sin(x) - 0.001 * x.sum()
    return x


def one_row_further(found: tuple[ir.Expr, ir.Expr]) -> tuple[ir.Expr, ir.Expr]:
    start, stop = found
    longer = ir.apply("min", ir.apply("add", stop, ir.number(1)), ir.number(60))
    return (start, longer) if found == ir.PART else found


def overlapping(x: Any) -> Any:
    y = x * 1.0
    y[2:] = pb.sin(x[2:])
    y[:4] = pb.cos(x[:4])
    return y


BROKEN: dict[str, Broken] = {
    "the border is taken for the interior": Broken(
        patched(Stretch, "range", property(lambda _: (5, 5))), diffusion_step, (normal(40),),
        "is no place in an array",
    ),
    "positions from data are not compared": Broken(
        changed(fuse, "range_checks", lambda found: ([], found[1])),
        lambda table, words: table[words], (normal(5, 2), np.array([0, 7])), "is no place in an array",
    ),
    "values in use at once share scratch": Broken(
        patched(Allocation, "_may_follow", lambda own, node, held: own._are_alike(held, node)),
        used_again, (normal(12, 12),), "computes something else",
    ),
    "memory that is in use is lent": Broken(
        patched(allocation._Tenant, "is_in_use", lambda *_: False), products, (normal(70, 70),),
        "in use at once in the same memory",
    ),
    "a total is not begun": Broken(
        patched(stores.RootWriter, "_filled_with", lambda *_: ir.Let(ir.Variable("nothing"), ir.number(0))),
        column_sums, (normal(6, 5),),
        "is read before it is written",
    ),
    "what is made is read before": Broken(
        changed(plan, "fuse", in_the_other_order), products, (normal(12, 12),),
        "reads what is not written|is read before it is written",
    ),
    "a largest value begins with 0": Broken(
        patched(stores.RootWriter, "_initial", lambda _, node: ir.Const(0, node.dtype)),
        lambda x: pb.amax(x, dim=1), (normal(6, 5) - 2.0,), "computes something else",
    ),
    "totals of threads are not their own": Broken(
        changed(plan.Plan, "sharing", shared_by_all), column_sums, (normal(60, 5),),
        "all parts write the same of", parallel=True,
    ),
    "totals of a step are not those of a part": Broken(
        changed(plan.Plan, "sharing", shared_by_all), stepped, (normal(60, 5),),
        "all parts write the same of", parallel=True,
    ),
    "a part of a step writes its neighbour's rows": Broken(
        changed(write.Writer, "_range", one_row_further), stepped, (normal(60, 5),),
        "a part writes what another one uses", parallel=True,
    ),
    "a write that is not covered is dropped": Broken(
        all_of(patched(slices, "covers", lambda *_: True), patched(updates, "covers", lambda *_: True)),
        overlapping, (normal(9),), "computes something else|is read before it is written",
    ),
    "blocks of rows are longer than their scratch": Broken(
        patched(allocation, "rows_of_block", lambda: 8), energy, data(), "is no place in an array",
        gradient=True,
    ),
    "an output takes the place of what is read again": Broken(
        all_of(*(patched(Allocation, name, lambda *_: True) for name in ("_gains", "_ends_as"))),
        lambda x: pb.exp(x @ x) + (x @ x).T, (normal(12, 12),), "computes something else",
    ),
    "a running total is shared by threads": Broken(
        patched(tree.Scan, "may_be_shared", lambda *_: True), lambda x: pb.cumsum(x, dim=0), (normal(60, 5),),
        "is read before it is written|all parts write", parallel=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_pass_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = BROKEN[name]
    try:
        one.examine()
    except DimensionError:
        assert "positions" in name  # the error that the comparison is for
    one.make(monkeypatch)
    with pytest.raises(ir.ProgramError, match=one.found):
        one.examine()
