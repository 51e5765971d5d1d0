"""Names of HIPS autograd's inner workings, of which pullback has others: what to write in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from pullback.errors import UnsupportedError

CONTAINERS = (
    "Lists, tuples, dicts, namedtuples and dataclasses are differentiated as they are; register other "
    "containers by optree.register_pytree_node(..., namespace='pullback')"
)
GRAPHS = "pullback.compile(f).graph(*args) is the graph of a function, and .source(*args) its code"
RULES = "Decorate a function with autograd.extend.primitive, and give it rules by defvjp or defjvp"
REMEDIES = {
    "Box": CONTAINERS, "VSpace": CONTAINERS, "SparseObject": CONTAINERS,
    "Node": GRAPHS, "JVPNode": GRAPHS, "VJPNode": GRAPHS, "full_graph": GRAPHS, "trace": GRAPHS,
    "new_box": GRAPHS, "backward_pass": "make_vjp pulls cotangents back",
    "primitive_vjps": RULES, "primitive_jvps": RULES, "wrap_namespace": RULES,
    "register_notrace": "autograd.tracer.getval(x) is a value without its gradient",
}  # fmt: skip
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
    """`__getattr__` of a module, for names that it does not have: those of the insides can be imported."""
    inside = module.partition("compat.autograd")[2].lstrip(".")

    def missing(name: str) -> Refused:
        if name in REMEDIES:
            return Refused(f"{inside}.{name}".lstrip("."))
        raise AttributeError(f"pullback has no autograd.{inside}.{name}; {OTHERS}")

    return missing
