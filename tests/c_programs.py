"""Programs of the loop IR as machine code of a C compiler: many in one file, called by ctypes."""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np

from pullback.codegen import ir
from pullback.codegen.program import Program, Room, _output
from pullback.codegen.targets.c.c_file import Entry, emit, errors_of
from pullback.tracer.graph import Graph, Node
from pullback.tracer.lapack import EXTENTS, ROUTINES, WORKSPACE, address_of

COMPILER = shutil.which("cc")
WARNINGS = (
    "-Wall",
    "-Werror",
    *(f"-Wno-{one}" for one in ("unused", "maybe-uninitialized", "tautological-compare")),
)
FLAGS = ("-std=c11", "-O0", "-fwrapv", "-ffp-contract=off", *WARNINGS)
TOLERANCE = 1e-12
AT_ONCE = 50
Run = Callable[[Program, Sequence[np.ndarray]], Sequence[np.ndarray]]
BLAS = """
#include <stddef.h>
#define GEMM(NAME, T) void NAME(int order, int ta, int tb, int m, int n, int k, T alpha, \\
    const T *a, int sa, const T *b, int sb, T beta, T *c, int sc) \\
{ \\
    for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) { \\
        T total = 0; \\
        for (int l = 0; l < k; l++) \\
            total += (ta == 111 ? a[(ptrdiff_t)i * sa + l] : a[(ptrdiff_t)l * sa + i]) \\
                * (tb == 111 ? b[(ptrdiff_t)l * sb + j] : b[(ptrdiff_t)j * sb + l]); \\
        c[(ptrdiff_t)i * sc + j] = alpha * total + (beta == 0 ? 0 : beta * c[(ptrdiff_t)i * sc + j]); \\
    } \\
}
GEMM(cblas_dgemm, double)
GEMM(cblas_sgemm, float)
#define GEMM_OF_PAIRS(NAME, T) void NAME(int order, int ta, int tb, int m, int n, int k, const void *alpha, \\
    const void *a, int sa, const void *b, int sb, const void *beta, void *c, int sc) \\
{ \\
    for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) { \\
        T re = 0, im = 0; \\
        for (int l = 0; l < k; l++) { \\
            const T *x = (const T *)a + 2 * (ta == 111 ? (ptrdiff_t)i * sa + l : (ptrdiff_t)l * sa + i); \\
            const T *y = (const T *)b + 2 * (tb == 111 ? (ptrdiff_t)l * sb + j : (ptrdiff_t)j * sb + l); \\
            T p = ta == 111 ? x[1] : -x[1], q = tb == 111 ? y[1] : -y[1]; \\
            re += x[0] * y[0] - p * q; \\
            im += x[0] * q + p * y[0]; \\
        } \\
        T *z = (T *)c + 2 * ((ptrdiff_t)i * sc + j), keep = *(const T *)beta; \\
        z[0] = *(const T *)alpha * re + (keep == 0 ? 0 : keep * z[0]); \\
        z[1] = *(const T *)alpha * im + (keep == 0 ? 0 : keep * z[1]); \\
    } \\
}
#define TRSM(NAME, T) void NAME(int order, int side, int triangle, int ta, int diagonal, int m, int n, \\
    T alpha, const T *a, int sa, T *b, int sb) \\
{ \\
    int size = side == 141 ? m : n, sides = side == 141 ? n : m; \\
    ptrdiff_t sr = ta == 111 ? sa : 1, sc = ta == 111 ? 1 : sa; \\
    if (side == 142) { ptrdiff_t kept = sr; sr = sc; sc = kept; } \\
    int first = (triangle == 122) == ((ta == 111) == (side == 141)); \\
    for (int j = 0; j < sides; j++) for (int done = 0; done < size; done++) { \\
        int i = first ? done : size - 1 - done; \\
        T *x = side == 141 ? b + j : b + (ptrdiff_t)j * sb; \\
        ptrdiff_t step = side == 141 ? sb : 1; \\
        T found = x[i * step]; \\
        for (int k = first ? 0 : i + 1; k < (first ? i : size); k++) \\
            found -= a[i * sr + k * sc] * x[k * step]; \\
        x[i * step] = diagonal == 131 ? found / a[i * sr + i * sc] : found; \\
    } \\
}
TRSM(cblas_dtrsm, double)
TRSM(cblas_strsm, float)
#define TRSM_OF_PAIRS(NAME, T) void NAME(int order, int side, int triangle, int ta, int diagonal, int m, \\
    int n, const void *alpha, const void *given, int sa, void *out, int sb) \\
{ \\
    const T *a = given; \\
    int size = side == 141 ? m : n, sides = side == 141 ? n : m; \\
    ptrdiff_t sr = ta == 111 ? sa : 1, sc = ta == 111 ? 1 : sa; \\
    if (side == 142) { ptrdiff_t kept = sr; sr = sc; sc = kept; } \\
    int first = (triangle == 122) == ((ta == 111) == (side == 141)); \\
    for (int j = 0; j < sides; j++) for (int done = 0; done < size; done++) { \\
        int i = first ? done : size - 1 - done; \\
        T *x = (T *)out + 2 * (side == 141 ? j : (ptrdiff_t)j * sb), *y; \\
        ptrdiff_t step = side == 141 ? sb : 1; \\
        T re = x[2 * i * step], im = x[2 * i * step + 1]; \\
        for (int k = first ? 0 : i + 1; k < (first ? i : size); k++) { \\
            const T *c = a + 2 * (i * sr + k * sc); \\
            T p = ta == 113 ? -c[1] : c[1]; \\
            y = x + 2 * k * step; \\
            re -= c[0] * y[0] - p * y[1]; \\
            im -= c[0] * y[1] + p * y[0]; \\
        } \\
        const T *c = a + 2 * (i * sr + i * sc); \\
        T p = ta == 113 ? -c[1] : c[1], square = c[0] * c[0] + p * p; \\
        x[2 * i * step] = diagonal == 131 ? (re * c[0] + im * p) / square : re; \\
        x[2 * i * step + 1] = diagonal == 131 ? (im * c[0] - re * p) / square : im; \\
    } \\
}
TRSM_OF_PAIRS(cblas_ztrsm, double)
TRSM_OF_PAIRS(cblas_ctrsm, float)
GEMM_OF_PAIRS(cblas_zgemm, double)
GEMM_OF_PAIRS(cblas_cgemm, float)
"""
"""A CBLAS, as far as programs need one."""


def lapacke() -> str:
    """A LAPACKE, as far as programs need one, of SciPy's functions."""
    lines = []
    routines = {(one.function, one.is_complex): one for one in ROUTINES.values()}
    for dtype, kind in (("float64", "double"), ("float32", "float")):
        for one in routines.values():
            tokens, symbol = one.tokens, one.symbol(dtype)
            names = [f"a{place}" for place in range(len(tokens))]
            kinds = [
                "char " if token.isupper() else "int " if token in EXTENTS else f"{kind} *"
                for token in tokens
            ]
            own = [place for place, token in enumerate(tokens) if token not in (*WORKSPACE, "info")]
            parameters = ", ".join(f"{kinds[place]}{names[place]}" for place in own)
            given = [
                ("&" if token.isupper() or token in EXTENTS else "") + names[place]
                if place in own
                else token
                if token in ("work", "rwork", "iwork")
                else f"&{token}"
                for place, token in enumerate(tokens)
            ]
            last = names[max(place for place, token in enumerate(tokens) if token in EXTENTS)]
            first = names[min(place for place, token in enumerate(tokens) if token in EXTENTS)]
            ask = f"call({', '.join(given)});\n    " if "lwork" in tokens else "asked[0] = 0; "
            lines.append(
                f"int LAPACKE_{symbol}(int order, {parameters})\n{{\n"
                f"    void (*call)() = (void (*)()){address_of('cython_lapack', symbol)}ULL;\n"
                f"    {kind} asked[2], reals[2], *work = asked, *rwork = reals;\n"
                f"    int integers = 0, *iwork = &integers;\n"
                f"    int lwork = -1, lrwork = -1, liwork = -1, info = 0;\n"
                f"    {ask}lwork = (int)asked[0] + 1;\n"
                f"    lrwork = {last} * (5 * {last} + 2 * {first} + 8) + 1;\n"
                f"    liwork = integers + 8 * {last};\n"
                f"    work = malloc(lwork * sizeof(asked));\n"
                f"    rwork = malloc(lrwork * sizeof(*rwork));\n"
                f"    iwork = malloc(liwork * sizeof(int));\n"
                f"    call({', '.join(given)});\n"
                f"    free(work);\n    free(rwork);\n    free(iwork);\n    return info;\n}}\n"
            )
    return "".join(lines)


def load(source: str, folder: Path) -> ctypes.CDLL:
    """The machine code of a file, with a CBLAS and a LAPACKE."""
    path = folder / "programs.c"
    path.write_text(source + BLAS + lapacke(), encoding="utf-8")
    library = path.with_suffix(".so")
    assert COMPILER is not None
    command = [COMPILER, *FLAGS, "-shared", "-fPIC", "-o", str(library), str(path), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(library))


class CompiledByC:
    """Programs as C, compiled at once."""

    def __init__(self, programs: Sequence[Program], folder: Path) -> None:
        self._names = {id(one): f"program_{place}" for place, one in enumerate(programs)}
        source = emit([Entry(one.lowered, self._names[id(one)]) for one in programs])
        self._library = load(source, folder)

    def run(self, program: Program, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """What a call computes: the program's outputs, or its errors."""

        def call(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
            plan = program._plan
            filled = self._filled(program, [arrays[place] for place in plan.used_inputs])
            handed_out: set[int] = set()
            return tuple(_output(one, arrays, filled, plan, handed_out) for one in plan.outputs)

        return program._explaining(call)(arrays)

    def _filled(self, program: Program, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        ir_program, room = program.lowered, Room(program.lowered.counts)
        function = getattr(self._library, self._names[id(program)])
        function.restype = ctypes.c_int64
        while True:
            outputs = [
                np.full(_shape(one, ir_program, room), 77, one.dtype)
                for one in ir_program.filled
                if one.role != "scratch"
            ]
            given: list[Any] = [ctypes.c_void_p(one.ctypes.data) for one in (*inputs, *outputs)]
            if ir_program.growing:
                given.append((ctypes.c_int64 * len(room.rows))(*room.rows))
            code = function(*given)
            if code != -2:
                break
            room.enlarge(outputs[-1])
        if code:
            what = errors_of(ir_program)[code - 1]
            raise (ArithmeticError if isinstance(what, int) else IndexError)(what)
        found = iter(outputs)
        return [next(found) if one.role != "scratch" else np.empty(0) for one in ir_program.filled]


def _shape(buffer: ir.Buffer, program: ir.Program, room: Room) -> tuple[int, ...]:
    place = program.growing.get(buffer)
    return buffer.dims if place is None else (room.rows[place], *buffer.dims[1:])


# --- calls ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A call of a program, and what it gave."""

    program: Program
    arrays: Sequence[np.ndarray]
    results: Sequence[np.ndarray]


class Recorder:
    """Runs programs, and keeps what they were called with and what they gave."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.calls: list[Call] = []

    def __call__(self, program: Program, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        results = self.run(program, arrays)
        self.calls.append(Call(program, arrays, results))
        return results


def compare(calls: Sequence[Call], folder: Path) -> None:
    """The programs as C gives what they gave."""
    compiled = CompiledByC([one.program for one in calls], folder)
    for one in calls:
        found = compiled.run(one.program, one.arrays)
        agree(found, one.results, magnitudes(one.program.graph, one.arrays))


# --- what is compared -------------------------------------------------------------------------------------


def magnitudes(graph: Graph, arrays: Sequence[np.ndarray]) -> float:
    """How large the numbers are that the graph adds up on the way to its outputs."""
    known: dict[Node, Any] = dict(zip(graph.inputs, arrays))
    largest = 1.0
    with np.errstate(all="ignore"):
        for node in (one for one in graph.nodes if one not in known):
            operands = [known[operand] for operand in node.operands]
            known[node] = node.operator(*operands, **node.attributes)
            found = [known[node]]
            if node.operator.family in ("reduction", "contraction", "scan"):
                found.append(node.operator(*map(np.abs, operands), **node.attributes))
            numbers = [one for one in found if getattr(one, "dtype", np.dtype("bool")).kind == "f"]
            sizes = [np.abs(one).max(initial=0.0) for one in numbers]
            largest = max([largest, *(float(size) for size in sizes if np.isfinite(size))])
    return largest


def agree(
    found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], scale: float, tolerance: float = TOLERANCE
) -> None:
    """Assert that outputs are equal up to rounding, which is relative to what is added up."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        if one.dtype.kind != "f":
            np.testing.assert_array_equal(one, other)
            continue
        allowed = tolerance * float(np.finfo(one.dtype).eps / np.finfo(np.float64).eps)
        np.testing.assert_allclose(one, other, rtol=allowed, atol=allowed * scale)


# --- random programs --------------------------------------------------------------------------------------


def random_calls(count: int, first: int, run: Run) -> list[Call]:
    """Of random programs the calls for their values, and for values and gradients."""
    from test_random_programs import Drawn, check, programs

    found: list[Drawn] = []

    @hypothesis.seed(first)
    @hypothesis.settings(
        max_examples=count, database=None, phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    @hypothesis.given(programs())
    def collect(program: Drawn) -> None:
        found.append(program)

    collect()
    record = Recorder(run)
    for one in found:
        check(one.graph, one.arrays, record)
    return record.calls


def main() -> None:
    sys.path.append(str(Path(__file__).parent / "borders"))  # where pytest looks by itself
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=500)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    for first in range(0, given.count, AT_ONCE):
        count = min(AT_ONCE, given.count - first)
        calls = random_calls(count, given.seed + first, Program.__call__)
        with tempfile.TemporaryDirectory() as folder:
            compare(calls, Path(folder))
        print(f"{first + count} programs agree, in {len(calls)} functions", flush=True)


if __name__ == "__main__":
    main()
