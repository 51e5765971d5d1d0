"""The classes of the user's: which of their members are code, and how a trace copies them.

A method that reaches an array must read a traced one, in a trace. So there a class is copied: with copies of
its bases, of whatever in it is code, and the class itself for a last base. What the code asks of a copy
(`isinstance`, `super()`, `type(x) is C`) is answered as for the class.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Mapping, Sequence
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

from ...tracer.errors import TraceError
from .memoised import CACHED
from .objects import is_opaque

NOT_READ_BY = frozenset({
    "__init__", "__new__", "__post_init__", "__repr__", "__str__", "__format__", "__hash__", "__del__",
    "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__init_subclass__",
    "__class_getitem__", "__set_name__", "__setattr__", "__delattr__", "__sizeof__", "__dir__",
    "__subclasshook__", "__copy__", "__deepcopy__", "__getattribute__",
})  # fmt: skip
"""Special methods that a computation does not call."""
NAMELESS = "<string>"
"""The file of methods that `dataclass` makes."""
MAKERS = ("__init__", "__new__", "__post_init__")
"""Methods that run where a class is called."""
COPIED_FROM = "_copied_from"
"""Where the copy of a class that a trace makes says which class it copies."""
NOT_COPIED = frozenset((
    "__dict__", "__weakref__", "__slots__", "__module__", "__qualname__", "__doc__", "_abc_impl",
))  # fmt: skip
"""What a class has of its own, which a copy has as well or must not share."""


def copied_from(kind: type) -> type:
    """The class itself, or the one that it is a copy of."""
    found: type = vars(kind).get(COPIED_FROM, kind)
    return found


def names_in_namespace(kind: type) -> set[str]:
    """What a class has, with those of the user's that it is made from, but for what each read makes anew."""
    bases = [base for base in kind.__mro__ if not is_opaque(base.__module__)]
    return {name for base in bases for name in vars(base)} - {"__dict__", "__weakref__"}


@functools.lru_cache(maxsize=1024)
def special_methods(kind: Any) -> frozenset[str]:
    """The special methods of a class of the user's that operators and built-in functions may call."""
    return frozenset(
        name
        for base in kind.__mro__
        if not is_opaque(base.__module__)
        for name, value in vars(base).items()
        if name.startswith("__") and name.endswith("__") and name not in NOT_READ_BY
        if isinstance(value, FunctionType) and value.__code__.co_filename != NAMELESS
    )


def makers(kind: Any) -> frozenset[str]:
    """The methods of the user's that run where a class itself is called."""
    return frozenset(
        name
        for name in MAKERS
        for _, code in code_of(vars(kind).get(name))
        if not isinstance(code, FunctionType) or code.__code__.co_filename != NAMELESS
    )


def code_of(static: Any) -> list[tuple[str, Any]]:
    """The functions in what a class has under a name, each with the attribute that holds it, or ""."""
    if isinstance(static, FunctionType | CACHED):
        return [("", static)]
    if isinstance(static, staticmethod | classmethod):
        parts: Sequence[str] = ("__func__",)
    elif isinstance(static, property):
        parts = "fget", "fset", "fdel"
    elif isinstance(static, functools.cached_property | functools.partialmethod):
        parts = ("func",)
    elif isinstance(static, functools.singledispatchmethod):
        parts = ("dispatcher",)
    else:
        return []
    found = [(part, getattr(static, part)) for part in parts]
    return [(part, code) for part, code in found if isinstance(code, FunctionType | CACHED)]


def is_made_anew(static: Any) -> bool:
    """Whether reading it from the class gives another object each time."""
    return is_descriptor(static) or isinstance(
        static, functools.partialmethod | functools.singledispatchmethod
    )


def is_descriptor(static: Any) -> bool:
    """Whether it is an object of a class of the user's that answers where the attribute is read."""
    return hasattr(type(static), "__get__") and not is_opaque(type(static).__module__)


def _is_copy(kind: type) -> bool:
    return COPIED_FROM in vars(kind)


class CopiedClass(type):
    """The class of copies. They equal nothing else: `typing` keeps what it made of a class by that."""

    def mro(cls) -> list[type]:
        """As that of the class, of copies; what they copy comes last, where no `super()` leads to."""
        original = copied_from(cls)
        if original is cls:
            return super().mro()
        known = {copied_from(one): one for base in cls.__bases__ for one in base.__mro__ if _is_copy(one)}
        inherited = [known.get(one, one) for one in original.__mro__[1:]]
        originals = (one for one in original.__mro__ if one in known)
        return [cls, cls.__bases__[0], *inherited, original, *originals]

    def __instancecheck__(cls, instance: Any) -> bool:
        original = copied_from(cls)
        return type.__instancecheck__(cls, instance) if original is cls else isinstance(instance, original)

    def __subclasscheck__(cls, subclass: type) -> bool:
        original = copied_from(cls)
        return type.__subclasscheck__(cls, subclass) if original is cls else issubclass(subclass, original)


def copy_class(kind: Any, bases: Sequence[type]) -> Any:
    """A copy with these copies of its bases. Nobody is told: neither a metaclass nor `__init_subclass__`.

    Raises:
        TraceError: Python can't derive from the class, or it is an enumeration.
    """

    class Quiet:
        __slots__ = ()

        def __init_subclass__(cls) -> None:
            pass

    if issubclass(kind, enum.Enum):
        raise TraceError(
            f"methods of the enumeration {kind.__qualname__} read arrays, or make them, and its members have "
            "no copies that a trace could run. Write functions of a member, or pass the arrays as arguments."
        )
    names = {name: getattr(kind, name) for name in ("__module__", "__qualname__")}
    try:
        meta = _metaclass([*map(type, bases), CopiedClass, type(kind)])
        own = names | {"__slots__": (), COPIED_FROM: kind}
        copied: Any = type.__new__(meta, kind.__name__, (Quiet, *bases, kind), own)
    except TypeError as error:
        raise TraceError(
            f"methods of the class {kind.__qualname__} read arrays, or make them, and a trace needs a copy "
            f"of it, which Python refuses: {error}. Pass the arrays as arguments."
        ) from None
    del Quiet.__init_subclass__
    for name, static in vars(kind).items():
        if name not in NOT_COPIED and not isinstance(static, MemberDescriptorType | GetSetDescriptorType):
            type.__setattr__(copied, name, static)
    return copied


def _metaclass(metaclasses: Sequence[type]) -> type:
    needed = [
        one
        for one in dict.fromkeys(metaclasses)
        if not any(other is not one and type.__subclasscheck__(one, other) for other in metaclasses)
    ]
    return needed[0] if len(needed) == 1 else type(needed[-1].__name__, tuple(needed), {})


def with_code(static: Any, name: str, parts: Mapping[str, Any]) -> Any:
    """What a class has under a name, with other functions in the place of its own."""
    if isinstance(static, staticmethod | classmethod):
        return type(static)(parts["__func__"])
    if isinstance(static, property):
        kind: Any = type(static)
        changed = [parts.get(part, getattr(static, part)) for part in ("fget", "fset", "fdel")]
        return kind(*changed, static.__doc__)
    if isinstance(static, functools.cached_property):
        computed = functools.cached_property(parts["func"])
        computed.__set_name__(object, name)
        return computed
    if isinstance(static, functools.partialmethod):
        return functools.partialmethod(parts["func"], *static.args, **static.keywords)
    if isinstance(static, functools.singledispatchmethod):
        chosen: Any = functools.singledispatchmethod(static.func)
        chosen.dispatcher = parts["dispatcher"]
        return chosen
    return parts[""]
