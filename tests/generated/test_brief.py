"""Which loops are said to be over after few iterations."""

import numpy as np

import pullback as pb
from pullback.codegen import ir
from pullback.codegen.writing.brief import FEW_IN_ALL, FEW_ITERATIONS, MANY_LOOPS, brief_loops

ONE, INDEX = ir.number(1), ir.Variable("i")


def loop(count: int, *body: ir.Stmt) -> ir.For:
    return ir.For(INDEX, ONE, ONE, body or (ir.Let(ir.Variable("x"), ONE),), count=count)


MANY = (loop(4),) * MANY_LOOPS


def test_few_loops_are_not_worth_a_look():
    assert brief_loops((loop(4),) * (MANY_LOOPS - 1)) == frozenset()
    assert brief_loops(MANY) == frozenset(range(MANY_LOOPS))


def test_iterations_of_a_nest_count_together():
    often = loop(FEW_IN_ALL // 4 + 1, loop(4))
    body = (loop(FEW_ITERATIONS), loop(FEW_ITERATIONS + 1), often, loop(FEW_IN_ALL // 4, loop(4)), *MANY)
    found = brief_loops(body)
    assert 0 in found
    assert 1 not in found, "it fills vectors"
    assert 3 not in found, "it runs often"
    assert 5 in found


def test_unknown_numbers_of_iterations_are_not_few():
    body = (ir.While(ONE, (loop(4),)), loop(0, loop(4)), loop(4), *MANY)
    assert not {0, 1, 2} & brief_loops(body)
    assert 3 in brief_loops(body)


def test_a_program_of_many_small_loops():
    """Its values are those of eager code, and its name does not depend on sizes."""

    def reduced(x):
        total = 0.0
        for k in range(12):
            x = x - np.sum(x[k:] ** 2) * x / (1.0 + np.sum(np.abs(x)))
            x = np.concatenate([x[1:], x[:1] * (k + 1)])
            total = total + np.max(x)
        return total

    compiled = pb.value_and_grad(pb.compile(reduced))
    for size in (16, 17):
        x = np.linspace(0.1, 0.4, size)
        value, slope = compiled(x)
        expected, expected_slope = pb.value_and_grad(reduced)(x)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(slope, expected_slope, rtol=1e-10, atol=1e-14)
