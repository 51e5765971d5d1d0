"""What Numba knows while it compiles kernels: numbers, arrays, tuples and ranges, and what they can do.

Numba's own contexts, made once in a process, know strings, lists, dictionaries, dates and all of NumPy, and
start the memory management of compiled code: a tenth of a second, which is more than most kernels take. These
leave that out. Functions that kernels call come with their types (`callees`), and are entered here when they
are first called.
"""

from __future__ import annotations

import functools
import importlib
import operator
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any

from numba.core import cgutils, cpu, fastmathpass, types, typing
from numba.core.registry import cpu_target
from numba.core.typing import templates
from numba.np import arrayobj

IMPLEMENTATIONS = tuple(
    f"numba.{name}"
    for name in ("cpython.builtins", "cpython.numbers", "cpython.rangeobj", "cpython.tupleobj", "np.arrayobj")
)
"""Numba's modules with the implementations that kernels use; importing one enters them."""
_OPERATORS = frozenset(value for value in vars(operator).values() if isinstance(value, BuiltinFunctionType))


class KernelTyping(typing.Context):
    """Numba's rules for the types of results, without those for what kernels do not contain."""

    def __init__(self) -> None:
        self._operator_signatures: dict[tuple[Any, Any], Any] = {}
        super().__init__()

    def load_additional_registries(self) -> None:
        from numba.core.typing import mathdecl, npydecl  # which take long

        self.install_registry(npydecl.registry)  # arithmetic on numbers of any dtype
        self.install_registry(mathdecl.registry)

    def install_registry(self, registry: Any) -> None:
        """Enter what the registry holds, but for `@overload`s, each of which is compiled by itself."""
        if registry in self._registries:
            return
        loader = self._registries[registry] = templates.RegistryLoader(registry)
        kinds = (("functions", self.insert_function), ("attributes", self.insert_attributes))
        for kind, insert in kinds:
            for template in loader.new_registrations(kind):
                if not issubclass(template, templates._TemplateTargetHelperMixin):
                    insert(template(self))
        for value, kind in loader.new_registrations("globals"):
            known = self._lookup_global(value)
            if known is not None:
                self._remove_global(value)
            self._insert_global(value, kind if known is None else known.augment(kind))

    def refresh(self) -> None:
        """Numba calls this before each function; nothing is added here after the first."""
        if not self._registries:
            super().refresh()

    def resolve_function_type(self, function: Any, arguments: Any, keywords: Any) -> Any:
        """As Numba's, which asks all of NumPy's ufuncs for each use of an operator; once is enough."""
        if keywords or getattr(function, "typing_key", function) not in _OPERATORS:
            return super().resolve_function_type(function, arguments, keywords)
        found = self._operator_signatures.get((function, arguments))
        if found is None:
            found = super().resolve_function_type(function, arguments, keywords)
            self._operator_signatures[function, arguments] = found
        return found


class KernelTarget(cpu.CPUContext):
    """Numba's implementations for the processor, without those for what kernels do not contain."""

    def load_additional_registries(self) -> None:
        for name in IMPLEMENTATIONS:
            importlib.import_module(name)
        from numba.cpython import mathimpl  # as above

        self.install_registry(mathimpl.registry)

    def refresh(self) -> None:
        if not self._registries:
            super().refresh()
            self._defns["array.reshape"].versions.clear()
            self.insert_func_defn([(_reshape, "array.reshape", (types.Array, types.BaseTuple))])

    def post_lowering(self, module: Any, library: Any) -> None:
        """As Numba's, without the link to the memory management."""
        if self.fastmath:
            fastmathpass.rewrite_module(module, self.fastmath)


def _reshape(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """A view of the whole memory of an array; Numba's asks a C function whether there is one."""
    kind, shape_kind = signature.args
    if kind.layout != "C":
        raise NotImplementedError("a view of an array that is not contiguous")
    array = arrayobj.make_array(kind)(context, builder, arguments[0])
    view = arrayobj.make_array(signature.return_type)(context, builder)
    shape = cgutils.unpack_tuple(builder, arguments[1], len(shape_kind))
    strides = [array.itemsize]
    for extent in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], extent))
    arrayobj.populate_array(view, array.data, shape, strides, array.itemsize, array.meminfo, array.parent)
    return view._getvalue()


@dataclass(frozen=True)
class Contexts:
    """A pair of contexts that belong together."""

    typing: Any
    target: Any

    @property
    def is_complete(self) -> bool:
        return self.target is cpu_target.target_context


@functools.cache
def kernel_contexts() -> Contexts:
    types = KernelTyping()
    return Contexts(types, KernelTarget(types))


def complete_contexts() -> Contexts:
    """Numba's own, for what a kernel may contain besides: arrays of its own, NumPy's functions."""
    return Contexts(cpu_target.typing_context, cpu_target.target_context)
