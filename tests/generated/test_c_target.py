"""The target that prints C: programs compute what they do as machine code of Numba.

Many programs are one file, which the compiler of C takes at once. More random ones:
`python tests/c_programs.py --count 500`.
"""

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import COMPILER, FLAGS, Call, CompiledByC, Recorder, compare, load, random_calls
from extent import drawn, some_of
from operator_cases import ROWS
from test_codegen import cases_where, compiled_parts, direct, is_derived_in_code, run_pair, trial_of
from test_golden import CASES, normal
from test_loop_ir import gradient_program_of, program_of, variants

import pullback as pb
from pullback.codegen import decompositions, ir
from pullback.codegen.ir.interpret import interpret
from pullback.codegen.ir.reading import read_function
from pullback.codegen.ir.verify import verify
from pullback.codegen.pipeline import build_forward, build_pair
from pullback.codegen.program import Program
from pullback.codegen.targets.c.c_file import Entry, emit
from pullback.tracer.errors import DimensionError, LinearAlgebraError
from pullback.tracer.interpret import evaluate_graph

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no compiler of C here, no `cc`")
RANDOM = 4
WITHOUT_GRADIENT = ("spread", "position_of_largest")


def evaluated(program: Program, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """What the program's graph computes by NumPy."""
    with np.errstate(all="ignore"):
        return tuple(map(np.asarray, evaluate_graph(program.graph, list(arrays))))


def golden_calls(run: Callable[..., Any], parallel: bool = False) -> list[Call]:
    record = Recorder(run)
    for name, (function, arrays) in CASES.items():
        record(program_of(function, *arrays, parallel=parallel), arrays)
        if name not in WITHOUT_GRADIENT:
            record(gradient_program_of(function, *arrays, parallel=parallel), arrays)
    return record.calls


def test_golden_programs(tmp_path: Path) -> None:
    compare(golden_calls(Program.__call__), tmp_path)


@pytest.mark.drawn(3)
def test_programs_that_threads_share_run_in_one_part(tmp_path: Path) -> None:
    compare(golden_calls(evaluated, parallel=True), tmp_path)


def test_every_operator_in_every_dtype(tmp_path: Path) -> None:
    trials = [
        trial_of([(row, case, row.draw(case, dtype)) for case in row.cases], direct)
        for name in drawn(ROWS, one_in=3)
        for row in [ROWS[name]]
        for dtype in some_of(row.dtypes, name)
    ]
    programs = [build_forward(trial.graph) for trial in trials]
    compiled = CompiledByC(programs, tmp_path)
    for trial, program in zip(trials, programs):
        trial.check(compiled.run(program, trial.arrays), evaluated(program, trial.arrays))


@pytest.mark.drawn(3)
def test_operators_as_numba_compiles_them(tmp_path: Path) -> None:
    """Values and gradients of a quarter of the cases that are compiled, many in a program."""
    record, rng = Recorder(Program.__call__), np.random.default_rng(1)
    groups = compiled_parts(cases_where(is_derived_in_code))
    for parameters in some_of(groups, "as numba compiles them", count=len(groups) // 4):
        trial = trial_of(parameters.values[0], direct)
        pair, outputs = build_pair(trial.graph, trial.wrt), trial.graph.outputs
        cotangents = [rng.standard_normal(one.shape).astype(one.dtype) for one in outputs]
        run_pair(pair, trial.arrays, len(outputs), cotangents, record)
    compare(record.calls, tmp_path)


@pytest.mark.drawn(4)
def test_random_programs(tmp_path: Path) -> None:
    compare(random_calls(RANDOM, 0, Program.__call__), tmp_path)


# --- functions of whole rows and matrices -----------------------------------------------------------------


def positive_definite(size: int) -> np.ndarray:
    factor = np.random.default_rng(size).standard_normal((size, size))
    return np.asarray(factor @ factor.T + size * np.eye(size))


WHOLES: dict[str, Callable[..., Any]] = {
    "cholesky": pb.linalg.cholesky,
    "solve": lambda a: pb.linalg.solve(a, a[:, :3]),
    "inv": pb.linalg.inv,
    "slogdet": lambda a: pb.linalg.slogdet(a)[1],
    "solve_triangular": lambda a: pb.linalg.solve_triangular(a, a[:, :3], upper=True),
    "from the right": lambda a: pb.linalg.solve_triangular(a, a[:20], upper=True, left=False),
    "from the right, by column": lambda a: pb.linalg.solve_triangular(a.mT, a[:3], upper=True, left=False),
    "sort": lambda a: pb.sort(a, dim=0)[0],
    "sort positions": lambda a: a * pb.sort(a.round(), dim=0)[1],
    "searchsorted": lambda a: a * pb.searchsorted(a[0], a) + a * pb.searchsorted(a[0], a, right=True),
    "eigh": lambda a: pb.linalg.eigh(a)[0],
    "eigvalsh": lambda a: pb.linalg.eigvalsh(a),
    "eigvals": lambda a: abs(pb.linalg.eigvals(a * (1 + pb.tril(a)))).sum(),
    "svd": lambda a: pb.linalg.svdvals(a[:, :3]),
    "complex qr": lambda a: abs(pb.linalg.qr(a + 1j * a.mT)[0]),
    "complex products": lambda a: abs((a + 1j * a.mT) @ (a - 2j).mH).sum(),
    "complex solve": lambda a: abs(pb.linalg.solve(a + 1j * a.mT, a[:, :3] + 0j)).sum(),
    "complex from the right": lambda a: abs(
        pb.linalg.solve_triangular((a + 1j * a.mT).mH, a[:20] + 0j, upper=False, left=False)
    ).sum(),
    "determinant": pb.grad(lambda a: pb.linalg.det(a / a.shape[0])),
    "complex determinant": pb.grad(lambda a: abs(pb.linalg.det((a + 1j * a.mT) / a.shape[0]))),
    "complex cholesky": lambda a: abs(pb.linalg.cholesky(a + 0.01j * (a.tril() - a.tril().mT))).sum(),
    "complex eigh": lambda a: pb.linalg.eigh(a + 1j * a.mT)[0],
    "complex svd": lambda a: pb.linalg.svdvals(a[:, :3] * (1 + 2j)) + pb.linalg.svd(a + 1j * a.mT)[1][:3],
    "qr": lambda a: pb.linalg.qr(a[:, :3])[1],
    "lu": lambda a: pb.linalg.lu(a)[1],
    "exponential": lambda a: pb.linalg.matrix_exp(a / 10),
    "product": lambda a: pb.sin(a) @ pb.cos(a),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_of_matrices(dtype: str, tmp_path: Path) -> None:
    """Those of less than a block of columns, and of more; LAPACK's is SciPy's in both."""
    record = Recorder(Program.run_uncompiled)
    for name in drawn(WHOLES, one_in=2):
        function = WHOLES[name]
        for size in some_of((3, 40), f"{name} in {dtype}"):
            given = positive_definite(size).astype(dtype)
            record(program_of(function, given), [given])
            record(gradient_program_of(function, given), [given])
    compare(record.calls, tmp_path)


def not_understood(a: np.ndarray, out: np.ndarray) -> None:
    """Python that functions of matrices are not written in."""
    out[0] = sum(a[i] for i in range(3))


def test_python_that_is_not_understood_is_refused() -> None:
    with pytest.raises(SyntaxError, match=r"not_understood, line 3: .*range.* is not understood"):
        read_function(not_understood, [(ir.FLOAT64, 1)] * 2)


def test_an_operand_takes_the_wider_dtype() -> None:
    """As Numba has it: a total that begins with 0.0 is float64, whatever is added."""
    single = np.dtype("float32")
    read = read_function(decompositions.reflect, [(single, 2), (single, 3)])
    variables = [one.variable for one in ir.walk(read.body) if isinstance(one, ir.Let)]
    dtypes = {one.name: one.dtype.name for one in variables}
    assert (dtypes["below"], dtypes["size"], dtypes["length"]) == ("float64", "int64", "float64")


# --- errors -----------------------------------------------------------------------------------------------


def test_errors_are_those_of_a_call(tmp_path: Path) -> None:
    table, words, matrix = normal(5, 2), np.array([0, 1]), np.zeros((3, 3))
    looked_up = program_of(lambda table, words: table[words], table, words)
    inverted = program_of(pb.linalg.inv, matrix)
    compiled = CompiledByC([looked_up, inverted], tmp_path)
    with pytest.raises(DimensionError, match="out of range of table, dimension 0"):
        compiled.run(looked_up, [table, np.array([0, 7])])
    with pytest.raises(LinearAlgebraError, match="is not invertible|singular"):
        compiled.run(inverted, [matrix])


@pytest.mark.drawn(3)
def test_room_is_enlarged_until_it_suffices(tmp_path: Path) -> None:
    def doubled(x: Any) -> Any:
        return pb.while_loop(lambda v: (v * v).sum() < 1e60, lambda v: v + pb.sin(v) * 1e-3 + v, x).sum()

    x = np.array([1e-3, 2e-3])
    program = pb.value_and_grad(pb.compile(doubled))._known_for((x,), {}).programs[0].forward
    record = Recorder(Program.run_uncompiled)
    record(program, [x])
    compare(record.calls, tmp_path)


# --- text -------------------------------------------------------------------------------------------------


def test_words_of_c_are_no_names(tmp_path: Path) -> None:
    def function(double: Any, int: Any, rows: Any) -> Any:
        short = pb.exp(double) + int
        error = short.sum(dim=0) * rows
        return short * error

    arrays = [normal(4, 3), normal(4, 3), normal(3)]
    record = Recorder(evaluated)
    record(program_of(function, *arrays), arrays)
    compare(record.calls, tmp_path)


def test_a_backslash_at_the_end_of_a_line_continues_no_comment(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return pb.sin(x) * \
            pb.cos(x)  # fmt: skip

    program = program_of(function, normal(4))
    record = Recorder(evaluated)
    record(program, [normal(4)])
    compare(record.calls, tmp_path)
    assert "\\\n" not in pb.compile(function).c_source(normal(4))


def test_brackets_say_what_the_tree_says(tmp_path: Path) -> None:
    """The text of an expression, read by the compiler, has the value that the interpreter gives it."""
    found = list(variants(300))
    out = ir.Buffer("out", np.dtype("int64"), (len(found),), "output")
    body = tuple(ir.Store(ir.Load(out, (ir.number(place),)), one) for place, one in enumerate(found))
    program = ir.Program((), (out,), (ir.Kernel(ir.Function("kernel", (out,), (), body)),))
    (wanted,) = interpret(program, ())
    library = load(emit([Entry(program, "expressions")]), tmp_path)
    given = np.zeros(len(found), np.int64)
    assert library.expressions(ctypes.c_void_p(given.ctypes.data)) == 0
    np.testing.assert_array_equal(given, wanted)


def test_a_variable_is_declared_where_all_who_use_it_see_it(tmp_path: Path) -> None:
    """One that both sides of a choice make, and one that a loop begins anew."""
    x, i = ir.Buffer("x", ir.FLOAT64, (4,), "output"), ir.Variable("i")
    value, part = ir.Variable("value", ir.FLOAT64), ir.Variable("part", ir.FLOAT64)
    is_first = ir.apply("equal", i, ir.number(0))
    choice = ir.If(
        ((is_first, (ir.Let(value, ir.Const(2.0, ir.FLOAT64)),)),), (ir.Let(value, ir.Cast(i, ir.FLOAT64)),)
    )
    add = ir.Let(part, ir.apply("add", value, value))
    loop = ir.For(i, ir.number(0), ir.number(4), (choice, add, ir.Store(ir.Load(x, (i,)), part)))
    program = ir.Program((), (x,), (ir.Kernel(ir.Function("kernel", (x,), (), (loop,))),))
    verify(program)
    library = load(emit([Entry(program, "choice")]), tmp_path)
    given = np.zeros(4)
    assert library.choice(ctypes.c_void_p(given.ctypes.data)) == 0
    assert given.tolist() == [4.0, 2.0, 4.0, 6.0]


def test_a_file_is_c11_that_needs_nothing_else(tmp_path: Path) -> None:
    """As `c_source` shows it: forward and backward, which the compiler takes without a warning."""
    function, arrays = CASES["layer_norm"]
    path = tmp_path / "layer_norm.c"
    path.write_text(pb.compile(function).c_source(*arrays))
    command = [COMPILER, *FLAGS, "-pedantic", "-c", "-o", str(path.with_suffix(".o")), str(path)]
    subprocess.run(command, check=True)
