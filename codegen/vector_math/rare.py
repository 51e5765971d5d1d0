"""What vectors cannot do without jumps, in machine code: rare arguments, and loops.

A vector that holds none of the rare arguments passes by with a comparison and a jump.
A branch around a slow function of single numbers would keep LLVM from vectorising the loop. So the loop calls
a function, and LLVM is told of variants of it for vectors (its VFABI). They look whether any number of the
vector is rare, and are inlined once the loop is made of vectors; functions with loops, which are long, stay
functions. The slow function is called, one number at a time, from a function of its own, so that the loop's
registers are not disturbed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from llvmlite import binding as llvm
from llvmlite import ir

from .primitives import Condition, Number
from .staged import Staged, write
from .staged import define as define_function

_VECTOR_BITS = (128, 256, 512)  # of SSE and NEON, AVX2, AVX-512
KEPT = "llvm.compiler.used"
"""The variable of what LLVM is to keep until loops are vectorised."""
_PREFIX = "pullback.rare."
_SIZES = {"float": 32, "double": 64}
_INDEX = ir.IntType(32)

_preferred: WeakKeyDictionary[ir.Module, int] = WeakKeyDictionary()
"""By the module, the bits of the vectors that its loops are made of, where that is known."""

IsRare = Callable[[Number], Condition]


def define(
    module: ir.Module, kind: ir.Type, is_rare: IsRare, slow: Callable[[Number], Number]
) -> ir.Function:
    """The LLVM function (x, usual) in `module` that is slow(x) where is_rare(x), and `usual` elsewhere."""
    symbol = f"{_PREFIX}{slow.__name__}.{kind}"
    if symbol in module.globals:
        return module.globals[symbol]
    slow_function = define_function(module, slow, (kind,))
    slow_function.attributes.discard("alwaysinline")
    slow_function.attributes.update(("noinline", "optnone"))  # not worth the time to optimise it
    one = _function(module, symbol, kind, 2, "noinline")
    _write_choice(one, is_rare, slow_function, pass_usual=False)
    counts = lengths(kind)
    variants = [_define_variant(module, symbol, kind, lanes, is_rare, slow_function) for lanes in counts]
    offer(one, dict(zip(counts, variants)))
    return one


def prefer(module: ir.Module, bits: int) -> None:
    """Let functions with loops have variants for vectors of so many bits alone: each is long."""
    _preferred[module] = bits


def lengths(kind: ir.Type, bits: int | None = None) -> Sequence[int]:
    """Numbers in a vector: as many as fit, and of small ones also as many as large ones that fit."""
    size = _SIZES[str(kind)]
    if bits is None:
        return [one // size for one in _VECTOR_BITS]
    return sorted({bits // size, bits // max(_SIZES.values())})


def offer_vectors(function: ir.Function, python_function: Callable[..., Number]) -> None:
    """Let a function with loops be called, and by loops of vectors its variants for these.

    It is long, so a copy at each call would cost LLVM much and save nothing.
    """
    module, kind = function.module, function.function_type.return_type
    function.attributes.discard("alwaysinline")
    _set_attributes(function, "noinline")
    variants = {}
    for lanes in lengths(kind, _preferred.get(module)):
        vector, symbol = ir.VectorType(kind, lanes), f"{function.name}.{lanes}"
        variants[lanes] = _function(module, symbol, vector, len(function.args), "noinline")
        write(variants[lanes], python_function)
    offer(function, variants)


def offer(function: ir.Function, variants: dict[int, ir.Function]) -> None:
    """Tell LLVM of variants for vectors, by their length (its VFABI).

    The function keeps its arguments, also those that are the same in each call: the variants have them.
    """
    letters = "v" * len(function.args)
    mapping = (f"_ZGV_LLVM_N{n}{letters}_{function.name}({one.name})" for n, one in variants.items())
    _add_attribute(function, f'"vector-function-abi-variant"="{",".join(mapping)}"')
    _keep(function.module, [function, *variants.values()])


def inline_variants(module: llvm.ModuleRef, pass_builder: llvm.PassBuilder) -> None:
    """Inline what LLVM's vectoriser calls, as it comes after the inliner, and drop what nothing calls."""
    kept = next((one for one in module.global_variables if one.name == KEPT), None)
    if kept is None:
        return
    kept.name, kept.linkage = f"{_PREFIX}kept", "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, pass_builder)


def _define_variant(
    module: ir.Module, symbol: str, kind: ir.Type, lanes: int, is_rare: IsRare, slow: ir.Function
) -> ir.Function:
    """The function for a vector of `lanes` numbers."""
    vector = ir.VectorType(kind, lanes)
    each = _function(module, f"{symbol}.each.{lanes}", vector, 2, "noinline", "optnone", "cold")
    _write_loop(each, is_rare, slow)
    variant = _function(module, f"{symbol}.{lanes}", vector, 2, "alwaysinline")
    _write_choice(variant, is_rare, each, pass_usual=True)
    return variant


def _function(module: ir.Module, symbol: str, kind: ir.Type, operands: int, *attributes: str) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(kind, [kind] * operands), symbol)
    function.linkage = "internal"
    _set_attributes(function, *attributes)
    return function


def _set_attributes(function: ir.Function, *attributes: str) -> None:
    for attribute in (*attributes, "nounwind", "readnone", "willreturn"):
        _add_attribute(function, attribute)


def _write_choice(function: ir.Function, is_rare: IsRare, slow: ir.Function, pass_usual: bool) -> None:
    """The body: `usual`, or where any number is rare what `slow` says."""
    x, usual = function.args
    start, rare, end = (function.append_basic_block(label) for label in ("start", "rare", "end"))
    builder = ir.IRBuilder(start)
    builder.cbranch(is_rare(Staged(builder, x)).is_any(), rare, end).set_weights([1, 2**20])
    builder.position_at_end(rare)
    result = builder.call(slow, [x, usual] if pass_usual else [x])
    builder.branch(end)
    builder.position_at_end(end)
    chosen = builder.phi(x.type)
    chosen.add_incoming(usual, start)
    chosen.add_incoming(result, rare)
    builder.ret(chosen)


def _write_loop(function: ir.Function, is_rare: IsRare, slow: ir.Function) -> None:
    """The body: `slow` of each number that is rare."""
    x, usual = function.args
    kind, lanes = x.type.element, x.type.count
    start, loop, rare, next_one, end = (
        function.append_basic_block(label) for label in ("start", "loop", "rare", "next", "end")
    )
    builder = ir.IRBuilder(start)
    numbers, results = builder.alloca(x.type), builder.alloca(x.type)
    builder.store(x, numbers)
    builder.store(usual, results)
    first_number, first_result = (builder.bitcast(one, kind.as_pointer()) for one in (numbers, results))
    builder.branch(loop)

    builder.position_at_end(loop)
    lane = builder.phi(_INDEX)
    lane.add_incoming(_INDEX(0), start)
    number = builder.load(builder.gep(first_number, [lane]))
    builder.cbranch(is_rare(Staged(builder, number)).value, rare, next_one)

    builder.position_at_end(rare)
    builder.store(builder.call(slow, [number]), builder.gep(first_result, [lane]))
    builder.branch(next_one)

    builder.position_at_end(next_one)
    following = builder.add(lane, _INDEX(1))
    lane.add_incoming(following, next_one)
    builder.cbranch(builder.icmp_unsigned("<", following, _INDEX(lanes)), loop, end)

    builder.position_at_end(end)
    builder.ret(builder.load(results))


def _add_attribute(function: ir.Function, attribute: str) -> None:
    # llvmlite refuses attributes that it does not know, but writes what the set holds
    set.add(function.attributes, attribute)


def _keep(module: ir.Module, functions: list[ir.Function]) -> None:
    """Keep LLVM from dropping or changing functions before loops are vectorised."""
    name, pointer = KEPT, ir.IntType(8).as_pointer()
    if name not in module.globals:
        ir.GlobalVariable(module, ir.ArrayType(pointer, 0), name)
    used = module.globals[name]
    kept = [
        *(used.initializer.constant if used.initializer else []),
        *(function.bitcast(pointer) for function in functions),
    ]
    used.linkage, used.section = "appending", "llvm.metadata"
    used.value_type = ir.ArrayType(pointer, len(kept))
    used.type = used.value_type.as_pointer()
    used.initializer = ir.Constant(used.value_type, kept)
