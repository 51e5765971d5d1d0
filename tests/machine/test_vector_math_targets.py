"""Loops over the elementary functions become loops over vectors on every processor: AVX-512, AVX2 and NEON.

A small loop is staged and optimised as kernels are, for a processor that need not be this one, and its
machine code is looked at.
"""

import ctypes
import inspect
import re
from dataclasses import dataclass

import numpy as np
import pytest
from extent import some_of
from llvmlite import binding as llvm
from llvmlite import ir

from pullback.codegen import vector_math
from pullback.codegen.machine.numba_backend import objects
from pullback.codegen.vector_math import staged
from pullback.codegen.vector_math.complex_numbers import PARTS
from pullback.codegen.vector_math.measure import results

pytestmark = pytest.mark.part(8)

TYPES = {"float32": ir.FloatType(), "float64": ir.DoubleType()}
LOOPS = {"igamma", "igammac", "zeta"}
"""What takes as many steps as it needs: single numbers, of the end of an array, go by a call."""
RARE = {"sin", "cos", "tan", "lgamma", "digamma"}
PERIODIC = {"exp", "expm1", "sigmoid", "power", "sin", "cos", "tan", "sinh", "cosh", "tanh"}
"""What of complex numbers is computed by sines and cosines of a part."""
OF_SINES = ("pullback.rare.", "pullback.sin_of_", "pullback.cos_of_", "pullback.tan_of_", "pullback.table.")


@dataclass(frozen=True)
class Processor:
    triple: str
    cpu: str
    vector_bits: int
    register: str  # of a vector, in machine code

    def machine(self) -> llvm.TargetMachine:
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(cpu=self.cpu, opt=2)


PROCESSORS = {
    "AVX-512": Processor("x86_64-unknown-linux-gnu", "x86-64-v4", 512, r"%zmm\d"),
    "AVX2": Processor("x86_64-unknown-linux-gnu", "x86-64-v3", 256, r"%ymm\d"),
    "NEON": Processor("aarch64-unknown-linux-gnu", "generic", 128, r"v\d+\.[24][sd]"),
}
NAMES = sorted(vector_math.FUNCTIONS)


@pytest.fixture(scope="module", autouse=True)
def all_targets() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def loop(name: str, dtype: str) -> ir.Module:
    """out[i] = function(x[i], ...) for i from 0 to n."""
    function, kind, index = vector_math.FUNCTIONS[name], TYPES[dtype], ir.IntType(64)
    count = len(inspect.signature(function).parameters)
    module = ir.Module()
    types = [kind.as_pointer()] * (count + 1)
    apply = ir.Function(module, ir.FunctionType(ir.VoidType(), [*types, index]), "apply")
    set.add(apply.attributes, '"prefer-vector-width"="512"')
    *arrays, n = apply.args
    for array in arrays:
        array.add_attribute("noalias")
    start, body, end = (apply.append_basic_block(label) for label in ("start", "body", "end"))
    builder = ir.IRBuilder(start)
    builder.cbranch(builder.icmp_signed(">", n, index(0)), body, end)
    builder.position_at_end(body)
    i = builder.phi(index)
    operands = [builder.load(builder.gep(array, [i])) for array in arrays[:count]]
    value = builder.call(staged.define(module, function, (kind,) * count), operands)
    builder.store(value, builder.gep(arrays[count], [i]))
    following = builder.add(i, index(1))
    i.add_incoming(index(0), start)
    i.add_incoming(following, body)
    builder.cbranch(builder.icmp_signed("<", following, n), body, end)
    builder.position_at_end(end)
    builder.ret_void()
    return module


def optimised(name: str, dtype: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    module = loop(name, dtype)
    module.triple = machine.triple
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    objects.optimise(parsed, machine)
    return parsed


def body_of(text: str, symbol: str) -> str:
    """The function `symbol` in LLVM code."""
    found = re.search(rf"^define [^\n]*@{symbol}\(.*?^}}", text, re.DOTALL | re.MULTILINE)
    assert found, symbol
    return found.group()


@pytest.mark.parametrize(
    ("name", "dtype", "processor"),
    [
        (name, dtype, processor)
        for name in NAMES
        for dtype in TYPES
        for processor in some_of([*PROCESSORS], (name, dtype))
    ],
)
def test_loops_vectorise(name: str, dtype: str, processor: str) -> None:
    """The loop holds vectors of the processor's size, its blocks with vectors hold no single numbers.

    No function of a library is needed.
    """
    machine = PROCESSORS[processor].machine()
    module = optimised(name, dtype, machine)
    declared = [function.name for function in module.functions if function.is_declaration]
    assert all(symbol.startswith("llvm.") for symbol in declared)
    kind, bits = {"float32": ("float", 32), "float64": ("double", 64)}[dtype]
    apply = body_of(str(module), "apply")

    lanes = [int(count) for count in re.findall(rf"store <(\d+) x {kind}>", apply)]
    assert lanes and max(lanes) * bits >= PROCESSORS[processor].vector_bits
    for block in re.split(r"\n(?=\S+:)", apply):
        if f" x {kind}>" in block:
            assert not re.search(rf"= (f\w+|call) [^<\n]*\b{kind} [%@]", block), block

    assembly = machine.emit_assembly(module)
    assert re.search(PROCESSORS[processor].register, assembly)
    named = re.findall(r"^\s(?:callq?|jmp|bl?|movabsq)\s+\$?([A-Za-z_][\w.]*)", assembly, re.MULTILINE)
    own = (f"pullback.rare.{name}_of_", f"pullback.{name}_of_", "pullback.table.") if name in RARE else ()
    own = (f"pullback.{name}.",) if name in LOOPS else own
    own = OF_SINES if name.endswith(PARTS) and name.rpartition("_")[0] in PERIODIC else own
    assert not [symbol for symbol in named if not symbol.startswith(own)]


@pytest.mark.parametrize("name", sorted(RARE))
def test_vectors_look_for_rare_arguments_inside_the_loop(name: str) -> None:
    """Only what computes them is a call, behind a jump; one in each round would take a loop's registers."""
    module = optimised(name, "float64", PROCESSORS["AVX-512"].machine())
    calls = re.findall(r"call [^\n]*@(pullback[\w.]+)\(", body_of(str(module), "apply"))
    assert (
        f"pullback.rare.{name}_of_{'large' if name in ('sin', 'cos', 'tan') else 'negative'}.double.each.8"
        in calls
    )
    assert not [symbol for symbol in calls if re.fullmatch(r"pullback\.rare\.\w+\.double\.\d+", symbol)]


@pytest.mark.drawn(2)
@pytest.mark.skipif(
    not {"avx2", "fma"} <= {name for name, has in llvm.get_host_cpu_features().items() if has},
    reason="runs the code for AVX2",
)
@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name in NAMES for dtype in some_of([*TYPES], name)]
)
def test_avx2_computes_the_same(name: str, dtype: str) -> None:
    machine = PROCESSORS["AVX2"].machine()
    engine = llvm.create_mcjit_compiler(optimised(name, dtype, machine), machine)
    engine.finalize_object()
    count = len(inspect.signature(vector_math.FUNCTIONS[name]).parameters)
    random = np.random.default_rng(0)
    operands = [(random.standard_normal(203) * 30).astype(dtype) for _ in range(count)]
    operands[0][7] = 1e20
    out = np.empty_like(operands[0])
    types = [ctypes.c_void_p] * (count + 1)
    apply = ctypes.CFUNCTYPE(None, *types, ctypes.c_int64)(engine.get_function_address("apply"))
    apply(*(array.ctypes.data for array in (*operands, out)), out.size)
    np.testing.assert_array_equal(out, results(name, operands))
