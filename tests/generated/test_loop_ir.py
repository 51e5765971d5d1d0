"""Programs in the loop IR: what holds for all of them, and that a broken one is found."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_golden import CASES, normal

import pullback as pb
from pullback.codegen import ir
from pullback.codegen.ir.interpret import TooLong, interpret
from pullback.codegen.ir.verify import verify
from pullback.codegen.program import Program
from pullback.codegen.targets.c.c_file import Entry
from pullback.codegen.targets.c.c_file import emit as c_of
from pullback.codegen.targets.python.emit import emit as python_of
from pullback.codegen.targets.python.spelling import spell
from pullback.tracer.errors import DimensionError
from pullback.tracer.interpret import evaluate_graph

pytestmark = pytest.mark.part(8)

Change = Callable[[ir.Stmt], tuple[ir.Stmt, ...]]


def program_of(function: Callable[..., Any], *arrays: np.ndarray, parallel: bool = False) -> Program:
    compiled = pb.compile(function, parallel=parallel or None)
    return compiled._known_for(arrays, {}).programs[0].forward


def gradient_program_of(function: Callable[..., Any], *arrays: np.ndarray, parallel: bool = False) -> Program:
    both = pb.value_and_grad(pb.compile(lambda *given: function(*given).sum(), parallel=parallel or None))
    return both._known_for(arrays, {}).programs[0].forward


def changed(program: ir.Program, change: Change) -> ir.Program:
    """The program with some of its statements replaced."""

    def body(statements: ir.Body) -> ir.Body:
        inside = (ir.with_bodies(one, body) for one in statements)
        return tuple(new for one in inside for new in change(one))

    def kernel(one: ir.Kernel) -> ir.Kernel:
        function = replace(one.function, prologue=body(one.function.prologue), body=body(one.function.body))
        return replace(one, function=function)

    return replace(program, kernels=tuple(map(kernel, program.kernels)))


def once(kind: type, change: Change, where: Callable[[Any], bool] = lambda one: True) -> Change:
    """Changes the first statement of a kind only."""
    found: list[ir.Stmt] = []

    def first(one: ir.Stmt) -> tuple[ir.Stmt, ...]:
        if isinstance(one, kind) and not found and where(one):
            found.append(one)
            return change(one)
        return (one,)

    return first


def dropped(one: ir.Stmt) -> tuple[ir.Stmt, ...]:
    return ()


# --- programs that are right ------------------------------------------------------------------------------


@pytest.mark.drawn(4)
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_agrees_with_the_graph(name: str, parallel: bool) -> None:
    """Also where parts run in another order, each with memory of its own."""
    function, arrays = CASES[name]
    programs = [program_of(function, *arrays, parallel=parallel)]
    if name not in ("spread", "position_of_largest"):
        programs.append(gradient_program_of(function, *arrays, parallel=parallel))
    for program in programs:
        verify(program.lowered)
        wanted = evaluate_graph(program.graph, list(arrays))
        for seed in range(1 + parallel):
            for one, reference in zip(program.run_interpreted(arrays, seed), wanted, strict=True):
                np.testing.assert_allclose(one, reference, rtol=1e-11, atol=1e-13)


def test_room_is_enlarged_until_it_suffices() -> None:
    def doubled(x: Any) -> Any:
        return pb.while_loop(lambda v: (v * v).sum() < 1e60, lambda v: v + pb.sin(v) * 1e-3 + v, x).sum()

    x = np.array([1e-3, 2e-3])
    program = pb.value_and_grad(pb.compile(doubled))._known_for((x,), {}).programs[0].forward
    value, gradient = program.run_interpreted((x,))
    expected, slope = pb.value_and_grad(doubled)(x)
    np.testing.assert_allclose(value, expected)
    np.testing.assert_allclose(gradient, slope)


def test_errors_are_those_of_a_call() -> None:
    table, words = normal(5, 2), np.array([0, 7])
    program = program_of(lambda table, words: table[words], table, np.array([0, 1]))
    with pytest.raises(DimensionError, match="out of range of table, dimension 0"):
        program.run_interpreted((table, words))


# --- programs that are broken: found before they run -----------------------------------------------------


def row_sums(x: Any) -> Any:
    totals = pb.exp(x).sum(dim=1)
    return x / totals.reshape((-1, 1))


def in_loads(function: Callable[[ir.Load], ir.Load]) -> Change:
    """Changes the places that statements write."""

    def change(one: ir.Stmt) -> tuple[ir.Stmt, ...]:
        return (replace(one, target=function(one.target)),)  # type: ignore[type-var,attr-defined,call-arg]

    return once(ir.Store, change)


def as_float32(one: Any) -> tuple[ir.Stmt, ...]:
    return (replace(one, variable=ir.Variable(one.variable.name, np.dtype("float32"))),)


def of_unknown_kind(one: ir.Stmt) -> tuple[ir.Stmt, ...]:
    return (replace(one, kind="vector"),) if isinstance(one, ir.For) else (one,)


BROKEN: dict[str, tuple[Change, str]] = {
    "an extent that nobody defines": (once(ir.Let, dropped), "is used before it is defined"),
    "a value of another dtype": (once(ir.Let, as_float32), "float32 and int64 do not agree"),
    "an input that is written": (
        in_loads(lambda load: ir.Load(ir.Buffer("x", load.dtype, (6, 5), "input"), load.indices)),
        "x is an input, and written",
    ),
    "an array that is no parameter": (
        in_loads(lambda load: ir.Load(replace(load.buffer, name="other"), load.indices)),
        "other is no parameter",
    ),
    "a place of too few dimensions": (
        in_loads(lambda load: ir.Load(load.buffer, load.indices[1:])),
        "is of 2 dims",
    ),
    "a loop of a kind that there is not": (of_unknown_kind, "'vector' is no kind of loop"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_program_is_refused(name: str) -> None:
    change, error = BROKEN[name]
    with pytest.raises(ir.ProgramError, match=error):
        verify(changed(program_of(row_sums, normal(6, 5)).lowered, change))


def test_no_target_takes_a_loop_of_a_kind_that_it_does_not_know() -> None:
    x = normal(6, 5)
    program = changed(program_of(row_sums, x).lowered, of_unknown_kind)
    with pytest.raises(ir.ProgramError, match="a loop of kind 'vector'"):
        interpret(program, (x,))
    with pytest.raises(TypeError, match="Python is written of no loop of kind 'vector'"):
        python_of(program.functions("kernel"), imports=())
    with pytest.raises(TypeError, match="C is written of no loop of kind 'vector'"):
        c_of([Entry(program, "kernel")])


def test_what_one_side_of_a_choice_defines_is_not_known_behind_it() -> None:
    x, truth = ir.Buffer("x", ir.FLOAT64, (1,), "output"), ir.Variable("truth", np.dtype("bool"))
    value = ir.Variable("value", ir.FLOAT64)
    one = ir.Assign(value, ir.Const(1.0, ir.FLOAT64))
    store = ir.Store(ir.Load(x, (ir.number(0),)), value)
    let = ir.Let(truth, ir.Const(True, np.dtype("bool")))

    def program(*body: ir.Stmt) -> ir.Program:
        return ir.Program((), (x,), (ir.Kernel(ir.Function("kernel", (x,), (), body)),))

    verify(program(let, ir.If(((truth, (one,)),), (one,)), store))
    verify(program(let, ir.If(((truth, (one,)),)), ir.If(((truth, (store,)),))))
    with pytest.raises(ir.ProgramError, match="value is used before it is defined"):
        verify(program(let, ir.If(((truth, (one,)),)), store))


def test_a_product_that_is_written_by_column_is_refused() -> None:
    """BLAS would take its columns for rows, and write past its end."""
    x = normal(70, 80)
    program = program_of(lambda x: pb.sin(x) @ pb.cos(x).T, x).lowered
    verify(program)

    def by_column(one: Any) -> tuple[ir.Stmt, ...]:
        *others, out = one.operands
        return (replace(one, operands=(*others, replace(out, transposed=True))),)

    with pytest.raises(ir.ProgramError, match="not into a transposed view"):
        verify(changed(program, once(ir.Library, by_column)))


def test_code_knows_how_far_numbers_of_pairs_are_apart_that_python_takes() -> None:
    program = gradient_program_of(lambda x: abs(np.fft.fft(x)), normal(9, 5)).lowered
    pairs = [one for one in program.filled if one.dims[2:] == (2,)]
    assert pairs and {one.extents for one in pairs} == {(0, 0, 2)}


def in_parts(*body: ir.Stmt) -> ir.Program:
    """Threads share a body, which may use a variable `all`."""
    x = ir.Buffer("x", ir.FLOAT64, (9,), "output")
    shared = ir.Shared(ir.number(9), body, ir.Sharing(9))
    prologue = (ir.Let(ir.Variable("all"), ir.number(0)),)
    return ir.Program((), (x,), (ir.Kernel(ir.Function("kernel", (x, ir.THREADS), prologue, (shared,))),))


def test_what_threads_share_in_a_function_keeps_to_its_own() -> None:
    x, i, everyones = ir.Buffer("x", ir.FLOAT64, (9,), "output"), ir.Variable("i"), ir.Variable("all")

    def loop(place: ir.Expr) -> ir.For:
        return ir.For(i, *ir.PART, (ir.Store(ir.Load(x, (place,)), ir.Const(1.0, ir.FLOAT64)),), "parallel")

    verify(in_parts(loop(i)))
    interpret(in_parts(loop(i)), ())
    for body, error in (
        (loop(everyones), "all parts write the same of x"),
        (ir.Assign(everyones, ir.PART[0]), "all parts write all"),
        (ir.Shared(ir.number(9), (loop(i),), ir.Sharing(9)), "share a body of what they share"),
        (ir.Return(), "a part ends the function"),
    ):
        with pytest.raises(ir.ProgramError, match=error):
            verify(in_parts(body))
    to_neighbour = loop(ir.apply("modulo", ir.apply("add", i, ir.number(1)), ir.number(9)))
    reads = replace(to_neighbour, body=(ir.Let(ir.Variable("y", ir.FLOAT64), ir.Load(x, (i,))),))
    with pytest.raises(ir.ProgramError, match="a part writes what another one uses|before it is written"):
        for seed in range(9):
            interpret(in_parts(loop(i), reads, to_neighbour), (), seed)


def test_parts_that_write_the_same_are_refused() -> None:
    program = program_of(lambda x: pb.exp(x).sum(dim=0), normal(60, 5), parallel=True).lowered
    (kernel,) = (one for one in program.kernels if one.sharing)
    verify(program)
    shared = replace(kernel, sharing=replace(kernel.sharing, totals=()))
    with pytest.raises(ir.ProgramError, match="all parts write the same of value"):
        verify(replace(program, kernels=(shared,)))


def test_kernels_that_do_nothing_are_refused() -> None:
    program = program_of(lambda x: pb.exp(x).sum(), normal(60)).lowered
    (kernel,) = program.kernels
    idle = replace(kernel, function=replace(kernel.function, body=()))
    with pytest.raises(ir.ProgramError, match="a kernel does nothing"):
        verify(replace(program, kernels=(kernel, idle)))


# --- programs that are broken: found as they run ---------------------------------------------------------


def longer(one: Any) -> tuple[ir.Stmt, ...]:
    return (replace(one, stop=ir.apply("add", one.stop, ir.number(1))),)


def reversed_body(one: Any) -> tuple[ir.Stmt, ...]:
    return (replace(one, body=one.body[::-1]),)


def is_start(one: Any) -> bool:
    return isinstance(one.value, ir.Const)


WRONG: dict[str, tuple[Callable[..., Any], Change, str]] = {
    "a loop that goes too far": (row_sums, once(ir.For, longer), "is no place in an array of shape"),
    "a total that begins with nothing": (
        lambda x: pb.exp(x).sum(dim=0),
        once(ir.Store, dropped, is_start),
        "is read before it is written",
    ),
    "a value that is never stored": (
        lambda x: pb.cumsum(x, dim=1).sum(dim=0),
        once(ir.Store, dropped),
        "is read before it is written",
    ),
    "a dependence that is turned around": (
        lambda x: pb.fori_loop(0, 3, lambda i, v: pb.sin(v) @ x, x),
        once(ir.For, reversed_body, lambda one: len(one.body) > 1),
        "what is not written|read before it is written",
    ),
    "a matrix that is larger than its array": (
        lambda x: x @ x,
        once(ir.Library, lambda one: (with_longer_operand(one),)),
        "0:13 is no part of a dimension of 12",
    ),
    "loops whose iterations follow one another, at once": (
        lambda x: pb.cumsum(x, dim=0),
        lambda one: (replace(one, kind="parallel"),) if isinstance(one, ir.For) else (one,),
        "is read before it is written",
    ),
}


def with_longer_operand(one: Any) -> ir.Library:
    scale, left, *others = one.operands
    longer_left = replace(left, places=(ir.Span(ir.number(0), ir.number(13)),))
    return replace(one, operands=(scale, longer_left, *others))


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_access_is_found(name: str) -> None:
    function, change, error = WRONG[name]
    x = normal(12, 12)
    program = program_of(function, x).lowered
    interpret(program, (x,))
    with pytest.raises(ir.ProgramError, match=error):
        interpret(changed(program, change), (x,))


def test_a_position_that_nobody_compares_is_found() -> None:
    table, words = normal(5, 2), np.array([0, 7])
    program = program_of(lambda table, words: table[words], table, np.array([0, 1])).lowered
    unchecked = changed(program, lambda one: () if isinstance(one, ir.Check) else (one,))
    with pytest.raises(ir.ProgramError, match="is no place in an array of shape"):
        interpret(unchecked, (table, words))


def test_buffers_in_use_that_share_memory_are_found() -> None:
    x = normal(12, 12)
    program = program_of(lambda x: pb.sin(x) @ pb.cos(x), x).lowered
    one, other = [buffer for buffer in program.filled if buffer.role == "scratch"]
    interpret(program, (x,))
    sharing = replace(program, loans=(ir.Loan(other, one, 0),))
    with pytest.raises(ir.ProgramError, match="in use at once in the same memory"):
        verify(sharing)
    with pytest.raises(ir.ProgramError, match="what is not written|read before it is written"):
        interpret(sharing, (x,))


def test_a_total_that_begins_with_another_number_differs() -> None:
    x = normal(6, 6)
    program = program_of(lambda x: x.sum(), x).lowered

    def one_more(one: Any) -> tuple[ir.Stmt, ...]:
        return (replace(one, value=ir.Const(1.0, ir.FLOAT64)),)

    other = changed(program, once(ir.Let, one_more, is_start))
    assert abs(interpret(other, (x,))[0] - interpret(program, (x,))[0]) == pytest.approx(1.0)


def test_so_many_statements_run() -> None:
    x = normal(20)
    program = program_of(lambda x: (pb.sin(x) ** 2).sum(), x).lowered
    interpret(program, (x,), most=200)
    with pytest.raises(TooLong):
        interpret(program, (x,), most=20)


# --- text -------------------------------------------------------------------------------------------------


def trees(depth: int, rng: np.random.Generator) -> ir.Expr:
    """A random expression of whole numbers."""
    if depth == 0:
        return ir.number(int(rng.integers(-3, 4)))
    binary = ("add", "subtract", "multiply", "bit_and", "bit_or", "bit_xor")
    kinds = (*binary, "negative", "bit_not", "select", "less", "min")
    kind = kinds[rng.integers(len(kinds))]
    first, second, third = (trees(depth - 1, rng) for _ in range(3))
    if kind in ("negative", "bit_not"):
        return ir.apply(kind, first)
    if kind == "select":
        other = ir.apply("not", ir.apply("equal", first, third))
        return ir.Select(ir.apply("and", ir.apply("less", first, second), other), second, third)
    if kind == "less":
        test = ir.apply("or", ir.apply("less", first, second), ir.apply("less", third, first))
        return ir.Select(test, first, third)
    return ir.apply(kind, first, second)


def variants(count: int) -> Iterator[ir.Expr]:
    rng = np.random.default_rng(0)
    return (trees(int(rng.integers(1, 5)), rng) for _ in range(count))


def test_brackets_say_what_the_tree_says() -> None:
    """The text of an expression, read by Python, has the value that the interpreter gives it."""
    out, x = ir.Buffer("out", np.dtype("int64"), (1,), "output"), ir.number(0)
    for expression in variants(300):
        body = (ir.Store(ir.Load(out, (x,)), expression),)
        program = ir.Program((), (out,), (ir.Kernel(ir.Function("kernel", (out,), (), body)),))
        ((value,),) = interpret(program, ())
        assert eval(spell(expression)) == value


def test_statements_in_which_nothing_changes_are_the_same_objects() -> None:
    """So what exchanges a few variables in a large program makes only anew what has them in it."""
    program = gradient_program_of(lambda x: pb.fori_loop(0, 3, lambda _, y: pb.sin(y) * x, x), np.ones(5))
    bodies = [kernel.function.body for kernel in program.lowered.kernels]
    assert any(isinstance(one, ir.For) for body in bodies for one in body)
    for body in bodies:
        assert ir.with_expressions(body, lambda _: None) is body
        variable = next(one for one in ir.expressions(body) if isinstance(one, ir.Variable))
        changed_body = ir.with_expressions(body, {variable: replace(variable, name="other")}.get)
        assert not ir.mentions(variable, changed_body)
        for one, old in zip(changed_body, body, strict=True):
            assert (one is old) != ir.mentions(variable, (old,))
