"""How kernels become machine code: what Numba and LLVM are spared, and that results stay what they are."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm

import pullback as pb
from pullback.codegen.machine import compile as kernels
from pullback.codegen.machine import store
from pullback.codegen.machine.compile import compile_function
from pullback.codegen.machine.kernel_types import ArrayType, CompileOptions, ScalarType
from pullback.codegen.machine.numba_backend import objects, outline
from pullback.codegen.machine.numba_backend.assembly import assembly
from pullback.codegen.machine.numba_backend.repeated import repeated_nests

INT64 = ScalarType(np.dtype("int64"))


def array(dtype: str = "float64", ndim: int = 1) -> ArrayType:
    return ArrayType(np.dtype(dtype), ndim, "C")


def functions(source: str, name: str, *types: ArrayType | ScalarType) -> tuple[Callable[..., Any], ...]:
    """A function of a source, compiled and not."""
    module = store.load_module(store.write_module(source, "test"))
    return compile_function(module, name, types), getattr(module, name)


@pytest.fixture
def optimised(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[list[tuple[str, str]]]:
    """Each module that LLVM optimises, before and after, with an empty cache."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernels, "_compiled", {})
    found: list[tuple[str, str]] = []
    optimise = objects.optimise

    def recorded(module: Any, *how: Any, **options: Any) -> None:
        before = str(module)
        optimise(module, *how, **options)
        found.append((before, str(module)))

    monkeypatch.setattr(objects, "optimise", recorded)
    yield found


# --- statements -------------------------------------------------------------------------------------------


@pytest.mark.drawn(6)
def test_names_that_run_into_positions() -> None:
    """Numba's reader of bytecode takes u_1 at 1534 for u_11 at 534."""
    names = [f"u_{number}" for number in range(1, 130)]
    lines = [f"    {name} = x[{place}]" for place, name in enumerate(names)]
    lines += [f"    for i in range({name}):\n        y[i] += {name} - 1" for name in names]
    source = "def count(x, y):\n" + "\n".join(lines) + "\n"
    compiled, uncompiled = functions(source, "count", array("int64"), array("int64"))
    x, y, expected = np.arange(129) % 7, np.zeros(8, "int64"), np.zeros(8, "int64")
    compiled(x, y)
    uncompiled(x, expected)
    np.testing.assert_array_equal(y, expected)


STATEMENTS = """
def choose(x, n, out):
    for i in range(n):
        out[i] = x[i - 1] if i >= 1 else -1.0
    for i in range(1, n, 3):
        out[i] += 10.0 if i > 2 and not i == 4 else x[0] if i < 2 or x[i] < 0 else 0.5

def widened(small, flag, out):
    for i in range(small.shape[0]):
        out[i] = small[i] if flag[i] else 7
        out[i] = 7 if i >= 1 and small[i - 1] > 0 else out[i]
        out[i] += small[i - 1] if i >= 1 else 1099511627776

def bounds(n, out):
    for block in range(0, n, 4):
        stop = min(block + 4, n, 9)
        for i in range(block, max(stop, block)):
            out[i] = bool(i - block)
    for i in range(n - 1, n - 3):
        out[i] = 99
"""


def test_choices_compute_the_side_that_is_taken() -> None:
    compiled, uncompiled = functions(STATEMENTS, "choose", array(), INT64, array())
    x, out, expected = np.linspace(-1, 1, 11), np.empty(11), np.empty(11)
    compiled(x, 11, out)
    uncompiled(x, 11, expected)
    np.testing.assert_array_equal(out, expected)


def test_choices_between_integers_of_two_widths() -> None:
    types = (array("int32"), array("bool"), array("int64"))
    compiled, uncompiled = functions(STATEMENTS, "widened", *types)
    small, flag = np.array([2**31 - 1, -5, 0, 3], "int32"), np.array([True, False, True, False])
    out, expected = np.empty(4, "int64"), np.empty(4, "int64")
    compiled(small, flag, out)
    uncompiled(small.astype("int64"), flag, expected)
    np.testing.assert_array_equal(out, expected)


def test_a_variable_that_has_been_read_keeps_its_kind() -> None:
    """Nothing is cut off in silence."""
    source = "def mixed(x, small, out):\n    y = small[0]\n    if y:\n        y = x[0]\n    out[0] = y\n"
    with pytest.raises(pb.errors.CompilationError) as raised:
        functions(source, "mixed", array("int64"), array("int32"), array("int64"))
    assert str(raised.value.__cause__) == "y is int32 and int64"


def test_blocks_and_empty_ranges() -> None:
    compiled, uncompiled = functions(STATEMENTS, "bounds", INT64, array("int64"))
    out, expected = np.full(11, 5), np.full(11, 5)
    compiled(11, out)
    uncompiled(11, expected)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    "statement",
    [
        "with n:\n        n -= 1",
        "for i in x:\n        n += 1",
        "n = [0]",
        "n = x.sum(axis=0)",
    ],
)
def test_other_statements_are_refused(statement: str) -> None:
    with pytest.raises(pb.errors.CompilationError):
        functions(f"def other(x, n):\n    {statement}\n", "other", array(), INT64)


# --- exact integers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("name", ["maximum", "minimum", "floor_divide", "remainder"])
def test_large_integers_are_not_rounded(name: str, dtype: str) -> None:
    """As float64, neighbours above 2**53 are one number."""
    a = np.array([2**53 + 1, 2**62 + 1, 2**62 + 3, 7, 8], dtype)
    b = np.array([2**53 + 2, 3, 2**61, 2, 8], dtype)
    function = getattr(np, name)
    result = pb.compile(lambda x, y: getattr(pb, name)(x, y))(a, b)
    np.testing.assert_array_equal(result, function(a, b))


@pytest.mark.filterwarnings("ignore:.*(divide by zero|overflow) encountered")
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint64"])
def test_integers_that_processors_do_not_divide(dtype: str) -> None:
    """By 0, and the least one by -1."""
    limits = np.iinfo(dtype)
    every = np.array([limits.min, limits.min + 1, limits.max, 0, 1, 3, 7], dtype)
    every = np.append(every, -every[1:])
    a, b = (one.ravel() for one in np.meshgrid(every, every))

    def divided(a, b):
        return a // b, a % b, np.fmod(a, b), a // every[0], a % every[7]

    for found, wanted in zip(pb.compile(divided)(a, b), divided(a, b)):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    x, y = pb.tensor(a), pb.tensor(b)
    for found, wanted in zip((x // y, x % y, pb.fmod(x, y)), divided(a, b)):
        np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint64"])
def test_integer_powers_wrap_around(dtype: str) -> None:
    """As floats, those above 2**53 would be rounded."""
    bases = np.array([0, 1, 2, 3, -1, -3, 7, 10], "int64").astype(dtype)
    a, b = (one.ravel() for one in np.meshgrid(bases, np.arange(64, dtype=dtype)))

    def powers(a, b):
        return a**b, a**41, 3**b

    for found, wanted in zip(pb.compile(powers)(a, b), powers(a, b)):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.filterwarnings("ignore:.*overflow encountered")
def test_integers_wrap_around_as_numpys() -> None:
    """LLVM takes it for impossible where it is told that numbers do not overflow: x + 1 > x is true then."""
    x = np.array([2**63 - 1, 3, -(2**63), 3037000500, 2**62])

    def compared(x):
        doubled = x * 2
        return x + 1 > x, x * x < 0, doubled // 2 == x, x * 6 // 3, x - 1 < x, np.where(x > 0, x + x, 0) < 0

    for found, wanted in zip(pb.compile(compared)(x), compared(x)):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("transform", [lambda f: f, pb.compile])
def test_integers_to_negative_powers(transform: Any) -> None:
    """Fractions are dropped of tensors, as PyTorch does; of arrays it is an error, as NumPy's."""
    a, b = np.array([2, 3, 1, -1, -1, 0]), np.array([-1, 2, -3, -3, -2, -1])
    power = transform(lambda a, b: pb.pow(a, b))
    assert power(pb.tensor(a), pb.tensor(b)).tolist() == [0, 9, 1, -1, 1, 0]
    with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
        power(a, b)
    np.testing.assert_array_equal(power(a, abs(b)), a ** abs(b))


def test_large_extremes_are_not_rounded() -> None:
    x = np.array([[2**53 + 1, 2**53], [-(2**53) - 1, 5]])
    largest, smallest = pb.compile(lambda x: (pb.amax(x, 1), pb.amin(x, 1)))(x)
    np.testing.assert_array_equal(largest, x.max(1))
    np.testing.assert_array_equal(smallest, x.min(1))


NESTED_CHOICE = """
def choose(x, out):
    for i in range(x.shape[0]):
        if i < 1:
            y = x[i]
        else:
            if i < 2:
                z = x[i] * 2.0
            else:
                z = x[i] * 3.0
            y = z
        out[i] = y
"""


def test_a_choice_inside_a_choice() -> None:
    compiled, _ = functions(NESTED_CHOICE, "choose", array(), array())
    compiled(np.ones(4), out := np.empty(4))
    assert out.tolist() == [1, 2, 3, 3]


# --- functions that are called often ----------------------------------------------------------------------


def _chain(name: str, calls: int) -> str:
    steps = "".join(f"        y_{k + 1} = {name}(y_{k} * 0.5 + {k / calls})\n" for k in range(calls))
    return f"""
from pullback.codegen.vector_math import {name}
def apply(x, out):
    for i in range(x.shape[0]):
        y_0 = x[i]
{steps}        out[i] = y_{calls}
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["exp", "sin", "sigmoid"])
def test_a_function_called_often_is_compiled_once(
    name: str, dtype: str, optimised: list[tuple[str, str]]
) -> None:
    calls = outline.MANY
    compiled, uncompiled = functions(_chain(name, calls), "apply", array(dtype), array(dtype))
    text = optimised[0][1]
    vectors = re.findall(rf"call .*<(\d+) x \w+> @{re.escape(outline.VARIANT)}pullback.{name}", text)
    assert len(vectors) == calls
    bodies = re.findall(rf"^define .*@{re.escape(outline.VARIANT)}", text, re.MULTILINE)
    assert len(bodies) == 1, "variants that nothing calls are dropped"
    x = np.linspace(-3, 3, 101, dtype=dtype)
    out, expected = np.empty_like(x), np.empty_like(x)
    compiled(x, out)
    uncompiled(x, expected)
    np.testing.assert_allclose(out, expected, rtol=40 * float(np.finfo(dtype).eps))


def test_a_function_called_often_has_vectors_where_an_argument_is_the_same(
    optimised: list[tuple[str, str]],
) -> None:
    chain = _chain("power", outline.MANY).replace("power(y_", "power(0.5, y_")
    functions(chain, "apply", array(), array())
    assert re.search(rf"call .*<\d+ x \w+> @{re.escape(outline.VARIANT)}pullback.power", optimised[0][1])


def test_a_function_called_often_keeps_nan_and_inf(optimised: list[tuple[str, str]]) -> None:
    compiled, _ = functions(_chain("sqrt", outline.MANY), "apply", array(), array())
    x = np.array([np.nan, -np.inf, -4.0, np.inf, np.inf, 0.0, 1.0, 1e300, np.nan])
    out = np.empty(9)
    compiled(x, out)
    assert np.isnan(out[[0, 1, 2, 8]]).all()
    assert np.isposinf(out[[3, 4]]).all()
    assert np.isfinite(out[5:8]).all()


def test_few_calls_are_inlined(optimised: list[tuple[str, str]]) -> None:
    functions(_chain("exp", outline.MANY - 1), "apply", array(), array())
    assert not re.search(r"call .*@pullback\.exp", optimised[0][1])


def test_a_function_with_loops_is_compiled_once_for_vectors_also_of_constants(
    optimised: list[tuple[str, str]],
) -> None:
    calls = "".join(f"        total += igammac({k}.5, x[i])\n" for k in range(3))
    source = f"""
from pullback.codegen.vector_math import igammac
def add(x, out):
    total = 0.0
    for i in range(x.shape[0]):
{calls}    out[()] = total
"""
    functions(source, "add", array(), array(ndim=0))
    text = optimised[0][1]
    assert len(re.findall(r"call .*<\d+ x double> @pullback\.igammac", text)) >= 3
    for one in optimised[0]:
        assert len(re.findall(r"^define .*<\d+ x double> @pullback\.igammac", one, re.MULTILINE)) == 1
    assert "specialized" not in text


# --- what is spared ---------------------------------------------------------------------------------------


def _programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    x, w = np.linspace(0, 1, 12).reshape(3, 4), np.ones((4, 4))
    rows = np.array([2, 0, 1, 2])
    return {
        "chain": (lambda x: pb.sum(pb.tanh(x) * pb.exp(-x * x)), (x,)),
        "products": (lambda x, w: pb.sum(pb.tanh(x @ w) @ w), (np.ones((40, 40)), np.ones((40, 40)))),
        "rows": (lambda x: pb.sum(pb.logsumexp(x, 1) * pb.softmax(x, 0).sum()), (x,)),
        "indices": (lambda x: pb.sum(x[rows] * pb.amax(x, 0) + pb.cumsum(x, 1)[1:].sum()), (x,)),
        "stencil": (lambda x: pb.sum((x[1:] - x[:-1]) ** 2) + pb.sum(pb.roll(x, 1, 0) * x.T.sum()), (x,)),
        "float32": (lambda x, w: pb.sum(pb.where(x > 0.5, x, 2 * x) @ w), (x.astype("f4"), w.astype("f4"))),
    }


@pytest.mark.parametrize("name", _programs())
def test_generated_code_needs_no_functions_of_numba(name: str, optimised: list[tuple[str, str]]) -> None:
    """Code from the cache would have to import it."""
    function, arguments = _programs()[name]
    pb.value_and_grad(pb.compile(function))(*arguments)
    assert optimised
    for before, _ in optimised:
        assert not re.search(r"@(numba_|NRT_)", before)


def _straight_line(count: int) -> Callable[..., Any]:
    rng = np.random.default_rng(0)
    drawn = [(rng.integers(max(0, known - 6), known, 2), rng.integers(4)) for known in range(2, count + 2)]

    def program(x: Any, y: Any) -> Any:
        values = [x, y]
        for places, kind in drawn:
            a, b = (values[place] for place in places)
            values.append([a * b, a + b * 0.5, pb.tanh(a), pb.exp(-a * a)][kind])
        return pb.sum(values[-1])

    return program


@pytest.mark.drawn(6)
@pytest.mark.parametrize("shape", [(), (10,)])
def test_work_grows_no_faster_than_the_program(
    shape: tuple[int, ...], optimised: list[tuple[str, str]]
) -> None:
    """The instructions that LLVM is given and that are left, and the characters of source, per operator."""
    sizes = []
    for count in (80, 160):
        rng = np.random.default_rng(1)
        arrays = tuple(np.asarray(rng.standard_normal(shape)) for _ in range(2))
        gradient = pb.value_and_grad(pb.compile(_straight_line(count)), argnums=(0, 1))
        gradient(*arrays)
        before, after = optimised[-1]
        lines = gradient.source(*arrays).count("\n")
        sizes.append(np.array([before.count("\n"), after.count("\n"), lines]) / count)
    assert (sizes[1] <= 1.1 * sizes[0]).all()


@pytest.mark.drawn(3)
def test_a_kernel_has_few_instructions_for_an_element(optimised: list[tuple[str, str]]) -> None:
    """Numba's own lowering takes an array apart for each element, and needs twice as many."""

    def source(loops: int) -> str:
        loop = "    for i in range(x.shape[0]):\n        for j in range(x.shape[1]):\n"
        body = "            out[i, j] = x[i, j] * y[j] + x[i, j] * x[i, j + 1]\n"
        return "def scale(x, y, out):\n" + loops * (loop + body)

    counts = []
    for loops in (1, 5):
        functions(source(loops), "scale", array(ndim=2), array(), array(ndim=2))
        counts.append(optimised[-1][0].count("\n"))
    assert (counts[1] - counts[0]) / 4 < 130


def _repeated() -> str:
    """Nests of two forms and one of its own: they read what others leave, and leave what is read behind."""
    text = """
def apply(x, y, z, k, out):
    n = x.shape[0]
    total = 0.5
    last = 0.25
    count = 0
"""
    for a, b in [("x", "z"), ("z", "x")] * 2:
        text += f"""
    for i in range(n):
        for j in range(y.shape[1]):
            g = y[i, j] + {a}[i]
            if g > total + 9.0:
                last = g
            y[i, j] = g * 0.3
        {b}[i] += y[i, 0] * 0.1
    for i_{a} in range(n):
        total += {a}[i_{a}] * last
        count += k[i_{a}]
    total = total * 0.5
"""
    return f"""{text}
    for i in range(3):
        out[i] = total * i
    out[3] = last
    out[4] = count
"""


def test_nests_that_are_repeated_are_compiled_once(optimised: list[tuple[str, str]]) -> None:
    types = (array(), array(ndim=2), array(), array("int64"), array())
    compiled, uncompiled = functions(_repeated(), "apply", *types)
    for text in optimised[-1]:
        assert len(re.findall(r"^define .*apply_nest", text, re.MULTILINE)) == 2
    rng, found = np.random.default_rng(0), []
    given = [rng.standard_normal(shape) for shape in (7, (7, 5), 7)]
    for function in (compiled, uncompiled):
        arrays = [*(one.copy() for one in given), np.arange(7), np.zeros(5)]
        function(*arrays)
        found.append(np.concatenate([np.ravel(one) for one in arrays]))
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_nests_are_of_one_form_where_variables_alone_are_others() -> None:
    """Literals, names of the module, and variables that are one or two tell nests apart."""
    values = "x[i] * 2.0", "x[i] * -0.0", "x[i] * 0.0", "exp(x[i])", "sin(x[i])", "x[i] + z[i]", "x[i] + y[i]"
    lines = [f"    for i in range(n):\n        y[i] = {one}" for one in values]
    tree = ast.parse("def f(x, y, z, n):\n" + "\n".join([*lines, lines[0]])).body[0]
    assert isinstance(tree, ast.FunctionDef)
    found = repeated_nests(tree, {"x", "y", "z", "n", "i"})
    assert [place for place, one in enumerate(tree.body) if one in found] == [0, 7]
    del tree.body[1]
    assert repeated_nests(tree, {"x", "y", "z", "n", "i"}) == {}, "of few nests none is a function"


def test_options_are_part_of_what_is_lowered() -> None:
    source = "def product(x, out):\n    for i in range(x.shape[0]):\n        out[i] = x[i] * 3.0\n"
    module = store.load_module(store.write_module(source, "test"))
    for options in (CompileOptions(), CompileOptions(fastmath=frozenset(), vector_width=0)):
        function = compile_function(module, "product", (array(), array()), options)
        x, out = np.arange(5.0), np.empty(5)
        function(x, out)
        np.testing.assert_array_equal(out, 3 * x)


LOOPS = """
def scaled(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i] * 3.0
    for i in range(x.shape[0]):
        out[i] += x[i] * x[i]
"""


@pytest.mark.parametrize("brief", [(), (0,), (0, 1)])
def test_brief_loops_are_not_made_of_vectors(
    optimised: list[tuple[str, str]], brief: tuple[int, ...]
) -> None:
    module = store.load_module(store.write_module(LOOPS, "test"))
    options = CompileOptions(vector_width=128, brief_loops=frozenset(brief))
    function = compile_function(module, "scaled", (array(), array()), options)
    x, out = np.arange(37.0), np.empty(37)
    function(x, out)
    np.testing.assert_array_equal(out, 3 * x + x * x)
    vectors = re.findall(r"fmul [a-z ]*<\d+ x double>", optimised[-1][1])
    assert bool(vectors) == (len(brief) < 2)
    assert ("llvm.loop.vectorize.enable" in optimised[-1][0]) == bool(brief)


STENCIL = """
def differences(x, y, out, other):
    out[0] = x[0] - x[1]
    other[0] = y[0] - y[1]
    for i in range(1, x.shape[0] - 1):
        product = x[i] * y[i]
        out[i] = product + (x[i] - x[i + 1])
        other[i] = product + (y[i] - y[i + 1])
"""


def test_stencils_behind_a_border_are_vectors(optimised: list[tuple[str, str]]) -> None:
    """What the border has read is not carried into the interior, and so past what is stored there."""
    function, plain = functions(STENCIL, "differences", *[array()] * 4)
    x, y, *results = np.random.default_rng(0).standard_normal((6, 37))
    function(x, y, *results[:2])
    plain(x, y, *results[2:])
    for found, expected in zip(results, results[2:]):
        np.testing.assert_allclose(found[:-1], expected[:-1], rtol=1e-12)
    assert re.search(r"load <\d+ x double>", optimised[-1][1])


def test_recurrences_are_written_once(optimised: list[tuple[str, str]]) -> None:
    """Copies of their steps, which wait for each other, would take LLVM longer than all else."""
    loop = "    for i in range(1, x.shape[0]):\n        out[i] = out[i - 1] * 0.75 + x[i]\n"
    functions(f"def decayed(x, out):\n{loop}", "decayed", array(), array())
    assert len(re.findall("fmul", optimised[-1][1])) == 1


def test_passes_that_are_spared_come_back(monkeypatch, tmp_path):
    """LLVM's options are for the process: whoever compiles next finds them as they were."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))  # nothing is there that need not be compiled
    said = []
    monkeypatch.setattr(objects.llvm, "set_option", lambda name, option: said.append(option))
    pb.compile(lambda x: x * 3.25 + 0.171)(np.ones(3))
    options = [one.split("=") for one in said]
    first, last = dict(reversed(options)), dict(options)
    assert first == {
        "-enable-constraint-elimination": "false", "-enable-mem-access-versioning": "false",
        "-enable-load-pre": "false", "-disable-lsr": "true", "-disable-post-ra": "true",
        "-funcspec-for-literal-constant": "false",
    }  # fmt: skip
    assert last == {name: {"true": "false", "false": "true"}[value] for name, value in first.items()}


def test_the_text_of_a_module_says_what_llvmlite_says(monkeypatch, tmp_path):
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))  # nothing is there that need not be compiled
    texts = []

    def recorded(module):
        texts.append((assembly(module), str(module)))
        return texts[-1][0]

    monkeypatch.setattr(objects, "assembly", recorded)
    pb.grad(pb.compile(lambda x, i: np.where(x[i] > 0, np.tanh(x) * x[i], i).sum()))(np.ones(3), np.arange(3))
    module = store.load_module(store.write_module(LOOPS, "test"))
    compile_function(module, "scaled", (array(), array()), CompileOptions(brief_loops=frozenset({0})))
    assert len(texts) > 1
    for ours, theirs in texts:
        assert str(llvm.parse_assembly(ours)) == str(llvm.parse_assembly(theirs))
