"""Names of HIPS autograd's inner workings, of which pullback has others: what to write in their place."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from pullback.errors import UnsupportedError

OURS = __name__.rpartition(".")[0]
CONTAINERS = (
    "Lists, tuples, dicts, namedtuples and dataclasses are differentiated as they are; register other "
    "containers by optree.register_pytree_node(..., namespace='pullback')"
)
GRAPHS = "pullback.compile(f).graph(*args) is the graph of a function, and .source(*args) its code"
RULES = "Decorate a function with autograd.extend.primitive, and give it rules by defvjp or defjvp"
VECTORS = "autograd.extend.vspace(x) has the vectors like a value"
SUMS = "make_vjp pulls cotangents back, and adds them up"
REMEDIES = {
    **dict.fromkeys(("Box", "VSpace", "SparseObject", "SparseBox"), CONTAINERS),
    **dict.fromkeys(("ContainerVSpace", "SequenceVSpace", "ListVSpace", "TupleVSpace"), CONTAINERS),
    **dict.fromkeys(("DictVSpace", "NamedTupleVSpace", "make_sequence", "container_take"), CONTAINERS),
    **dict.fromkeys(("ArrayVSpace", "ComplexArrayVSpace"), VECTORS),
    **dict.fromkeys(("Node", "JVPNode", "VJPNode", "ConstGraphNode", "FullGraphNode"), GRAPHS),
    **dict.fromkeys(("full_graph", "trace", "new_box", "trace_stack", "TraceStack"), GRAPHS),
    **dict.fromkeys(("find_top_boxed_args", "toposort"), GRAPHS),
    **dict.fromkeys(("backward_pass", "add_outgrads", "sum_outgrads", "sparse_add"), SUMS),
    **dict.fromkeys(("primitive_vjps", "primitive_jvps", "wrap_namespace", "nograd_functions"), RULES),
    "register_notrace": "This function has a gradient; autograd.tracer.getval(x) is a value without it",
}
BORROWED = {
    **dict.fromkeys(("primitive", "vspace", "defvjp", "defvjp_argnum", "defvjp_argnums"), "extend"),
    **dict.fromkeys(("defjvp", "defjvp_argnum", "defjvp_argnums", "notrace_primitive"), "extend"),
    **dict.fromkeys(("make_vjp", "make_jvp"), "core"), **dict.fromkeys(("subvals", "subval"), "util"),
    **dict.fromkeys(("unbroadcast", "unbroadcast_f", "repeat_to_match_shape"), "numpy.numpy_vjps"),
    "unary_to_nary": "wrap_util", "flatten": "misc.flatten",
}  # fmt: skip
"""Names that HIPS autograd's modules have of each other, which programs import of any: where they are."""
OTHERS = "docs/autograd.md lists what there is"


def refuse(name: str) -> NoReturn:
    """Raise, and say what to write in the place of a name of HIPS autograd's insides.

    Raises:
        UnsupportedError: always.
    """
    raise UnsupportedError(
        f"autograd.{name} belongs to the inner workings of HIPS autograd, and pullback, which stands in its "
        f"place, has others. {REMEDIES[name.rpartition('.')[2]]}."
    )


class Refused:
    """A name of HIPS autograd's insides, which programs may import: every use of it is refused."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(self._name)

    __call__ = __getitem__ = __iter__ = __contains__ = __len__ = _refuse
    __instancecheck__ = __mro_entries__ = __setitem__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(self._name)


def missing_of(module: str) -> Callable[[str], Any]:
    """`__getattr__` of a module, for names that it does not have: those of the insides can be imported.

    Parts of a package are imported when they are asked for, as `import autograd` has `autograd.numpy`.
    """
    inside = module.partition("compat.autograd")[2].lstrip(".")

    def missing(name: str) -> Any:
        full = ".".join(filter(None, ("autograd", inside, name)))
        if name in REMEDIES:
            return Refused(full.removeprefix("autograd."))
        if inside and name in BORROWED:
            return getattr(importlib.import_module(f"{OURS}.{BORROWED[name]}"), name)
        part = f"{module}.{name}"
        is_package = "__path__" in vars(sys.modules[module])
        if is_package and not name.startswith("_") and importlib.util.find_spec(part):
            return importlib.import_module(part)
        raise AttributeError(f"pullback has no {full}; {OTHERS}")

    return missing
