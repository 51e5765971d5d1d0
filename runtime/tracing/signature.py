"""What distinguishes one call from another: the arguments in one canonical form, and the key made of them.

Arrays and tensors count with dtype and shape, tensors also with whether a gradient is asked of them. Python's
floats and integers are operands as well, but where a trace has found that structure needs their value: as
an axis, a size, an exponent. Those, and all else, are static and count with their value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError, LeakedTraceError
from ...tracer.records import record, replaced
from ...tracer.spec import SUPPORTED, Spec
from ..captures.objects import is_instance
from ..captures.tables import is_table
from ..values import dtypes
from ..values.flatten import flatten, is_container, key_orders, leaf_paths, path_text, unflatten
from ..values.foreign import how_to_pass, is_array_of_others, is_sparse, kind_named
from ..values.modes import is_recording
from ..values.plain_arrays import require_plain_array
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber, kind_of_value
from .parameters import UNSAID, parameters_of

ndarray = np.ndarray
Key = tuple[Any, ...]
ARRAYS = (ndarray, np.generic, Tensor)
_MISSING = object()
VARYING: dict[type, str] = {float: "a Python float", int: "a Python int"}
"""The types of Python's numbers that may be operands, and what they add to the key."""
LARGEST = 2**53
"""Integers up to here are exact in every dtype in which code computes with them."""
ALL = "all numbers"
NOWHERE: frozenset[int] = frozenset()
NO_OPERANDS = frozenset((bool, str, bytes, type(None)))
"""Types of which no value is an operand, and which are in a key as they are."""
EXACT = (bool, int, str, bytes, type(None))
"""Types whose values are equal only if they are the same in every respect."""


@record(frozen=True, slots=True)
class Leaf:
    """Where a leaf of the arguments is found, as the user would write it: `params['w']`."""

    name: str
    is_array: bool


@record(eq=False, slots=True)
class Call:
    """One call in canonical form: positional arguments, then keywords, containers taken apart into leaves."""

    signature: Signature
    key: Key
    leaves: list[Any]
    arrays: list[Any]
    """The leaves that are arrays, Tensors and numbers that vary: what the graph takes as inputs."""
    is_array: list[bool]
    kinds: list[type[Tensor]]
    """What stands for each of `arrays` in a trace."""
    positional: int
    keywords: tuple[str, ...]
    structures: list[Any]
    """For each argument how it was taken apart; None where it is a leaf."""
    form: Form | None = None
    """What it has in common with others, if that can be told at once."""

    def described(self) -> list[Leaf]:
        """The names of the leaves, and which of them are arrays."""
        return [Leaf(name, flag) for name, flag in zip(self.leaf_names(), self.is_array)]

    def leaf_names(self) -> list[str]:
        names = []
        for name, structure in zip(
            self.signature.argument_names(self.positional, self.keywords), self.structures
        ):
            paths = [""] if structure is None else [path_text(path) for path in leaf_paths(structure)]
            names += [f"{name}{path}" for path in paths]
        return names

    def leaf_name(self) -> str:
        """The name of the leaf that is looked at while `is_array` is filled."""
        return self.leaf_names()[len(self.is_array)]

    def with_arrays(self, arrays: Sequence[Any]) -> Call:
        """The call with other arrays in the places of its own."""
        return replaced(self, leaves=self.leaves_with(arrays), arrays=list(arrays))

    def leaves_with(self, arrays: Sequence[Any]) -> list[Any]:
        """The leaves of such a call."""
        waiting = iter(map(given_as, self.kinds, getattr(arrays, "given", arrays)))
        return [next(waiting) if flag else leaf for leaf, flag in zip(self.leaves, self.is_array)]

    def rebuild(self, leaves: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with other leaves in the places of these."""
        values, start = [], 0
        for structure in self.structures:
            count = 1 if structure is None else structure.num_leaves
            part = leaves[start : start + count]
            values.append(part[0] if structure is None else unflatten(structure, part))
            start += count
        return tuple(values[: self.positional]), dict(zip(self.keywords, values[self.positional :]))


class Signature:
    """The parameters of a function, and which of them are static.

    `dynamic` names parameters whose floats are operands in any case: those that are differentiated.

    Raises:
        ArgumentError: a static argument that the function does not have.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        static_argnums: Iterable[int] | int = (),
        static_argnames: Iterable[str] | str = (),
        dynamic: Iterable[int | str] = (),
    ) -> None:
        self.function = function
        self.name = name
        try:
            known = parameters_of(function)
        except ValueError:  # written in C: its parameters are taken as they come
            known = UNSAID
        self._known = known
        self.signature, self.parameters, self.positional = known.signature, known.listed, known.positional
        self.static = self._static_names(static_argnums, static_argnames)
        names = [one for one in dynamic if self._has_parameter(one)]
        self.dynamic = frozenset([one if isinstance(one, str) else self.positional[one] for one in names])
        self.constants: set[str] = set()
        """The leaves whose numbers structure needs, as a trace has found; `ALL` for every one."""
        self._positions: dict[Any, frozenset[int]] = {}
        """Of forms of calls the positions of the arguments with certain names."""
        self._takes_as_given = getattr(function, "takes_as_given", False)
        is_bound = bool(self.static) or known.are_bound or self.signature is None
        self.plain_count = -1 if is_bound else len(self.positional)
        """The number of positional arguments that need neither binding nor defaults; -1: always bind."""
        self._form: Form | None = None if self.static else known.forms.get(self.plain_count)
        """That of the last call, as the next one is likely to have it."""

    def _has_parameter(self, one: int | str) -> bool:
        return isinstance(one, str) or -len(self.positional) <= one < len(self.positional)

    def _static_names(self, numbers: Iterable[int] | int, names: Iterable[str] | str) -> frozenset[str]:
        numbers = (numbers,) if isinstance(numbers, int) else tuple(numbers)
        names = (names,) if isinstance(names, str) else tuple(names)
        count = len(self.positional)
        for number in numbers:
            if not isinstance(number, int):
                raise ArgumentError(
                    f"{self.name}: static_argnums has {number!r}, which is no position. Count from 0, or use "
                    "static_argnames for names."
                )
            if not -count <= number < count:
                raise ArgumentError(
                    f"{self.name}: static_argnums has {number}, but the function has {count} positional "
                    f"parameters: {', '.join(self.positional) or 'none'}. Count from 0, or use "
                    "static_argnames."
                )
        known = [one.name for one in self.parameters]
        for name in names:
            if name not in known:
                raise ArgumentError(
                    f"{self.name}: static_argnames has {name!r}, but the parameters are "
                    f"{', '.join(known) or 'none'}."
                )
        return frozenset(names) | {self.positional[number] for number in numbers}

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """The canonical form of a call: defaults filled in, containers taken apart.

        Raises:
            ArgumentError: the arguments do not fit the function, or a static one is not hashable.
            DTypeError: an array has a dtype that is not supported.
        """
        return self.call_bound(*self.bind(args, kwargs))

    def call_bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """The same for arguments that `bind` has given."""
        if self._form is not None and (alike := self._form.call(self, args, kwargs)) is not None:
            return alike
        keywords = tuple(kwargs)
        fixed = self._named(self.static, len(args), keywords)
        varying = self._named(self.dynamic, len(args), keywords)
        leaves: list[Any] = []
        structures: list[Any] = []
        orders: list[Any] = []
        places: set[int] = set()
        differentiated: set[int] = set()
        for position, value in enumerate((*args, *kwargs.values())):
            if position in fixed:
                places.add(len(leaves))
            elif position in varying and type(value) is float:
                differentiated.add(len(leaves))
            elif not isinstance(value, ARRAYS) and is_container(value):
                found, structure = flatten(value)
                leaves += found
                structures.append(structure)
                orders += key_orders(value)
                continue
            leaves.append(value)
            structures.append(None)
        key: list[Any] = [dtypes.default_float()]
        if keywords or len(args) != self.plain_count or any(one is not None for one in structures):
            key.append((len(args), keywords, *structures, *orders))
        arrays = Conformed()
        arrays.given = given = []
        is_array: list[bool] = []
        kinds: list[type[Tensor]] = []
        call = Call(self, (), leaves, arrays, is_array, kinds, len(args), keywords, structures)
        for place, leaf in enumerate(leaves):
            if type(leaf) is ndarray and leaf.flags.carray and leaf.dtype in SUPPORTED and not places:
                key += (leaf.dtype, leaf.shape)
                arrays.append(leaf)
                given.append(leaf)
                is_array.append(True)
                kinds.append(NumpyTensor)
                continue
            if type(leaf) in NO_OPERANDS:
                key += (type(leaf), leaf)
                is_array.append(False)
                continue
            is_static = place in places or (is_number(leaf) and self._is_constant(leaf, call))
            varies = isinstance(leaf, ARRAYS) or type(leaf) in VARYING
            concrete = (varies and not is_static) or place in differentiated
            concrete = concrete and type(leaf) is not bool
            if concrete:
                given.append(leaf)
                kinds.append(kind_of_value(leaf))
            key += self._array_key(leaf, arrays, call) if concrete else self._static_key(leaf, call)
            is_array.append(concrete)
        call.key = tuple(key)
        self._form = call.form = None if fixed or differentiated else Form.of(call, orders)
        if self._form is not None and self._form.is_of_all:
            self._known.forms[self.plain_count] = self._form
        return call

    def argument_names(self, positional: int, keywords: tuple[str, ...]) -> list[str]:
        """What to call the arguments of a call with so many positional ones."""
        names = list(self.positional[:positional])
        rest = next((one.name for one in self.parameters if one.kind is one.VAR_POSITIONAL), "argument")
        return [*names, *(f"{rest}[{index}]" for index in range(positional - len(names))), *keywords]

    def _named(self, wanted: frozenset[str], positional: int, keywords: tuple[str, ...]) -> frozenset[int]:
        """The positions of the arguments with these names."""
        if not wanted:
            return NOWHERE
        form = wanted, positional, keywords
        found = self._positions.get(form)
        if found is None:
            names = self.argument_names(positional, keywords)
            found = frozenset(position for position, name in enumerate(names) if name in wanted)
            self._positions[form] = found
        return found

    def _array_key(self, leaf: Any, arrays: list[Any], call: Call) -> Key:
        """What an array adds to the key; the array itself, ready for programs, is added to `arrays`."""
        value = leaf
        number = next((kind for kind in VARYING if isinstance(leaf, kind)), None)
        if number is not None and not isinstance(leaf, ARRAYS):
            arrays.append(np.asarray(leaf))
            return (VARYING[number],)
        if isinstance(leaf, Tensor):
            asked = leaf.requires_grad and is_recording()
            value = leaf._value
        if type(value) is not ndarray:
            require_plain_array(value, f"{self.name}: argument '{call.leaf_name()}'")
        if value.dtype not in SUPPORTED and value.dtype.newbyteorder("=") not in SUPPORTED:
            raise DTypeError(
                f"{self.name}: argument '{call.leaf_name()}' has dtype {value.dtype}; expected a bool, "
                f"integer, floating or complex dtype. Convert it first, e.g. with .astype(float)."
            )
        if isinstance(leaf, Tensor):
            arrays.append(leaf)
            return tensor_key(type(leaf), asked), value.dtype, value.shape
        arrays.append(conform(value))
        own = (NumpyScalar,) if isinstance(value, np.generic) else ()
        return *own, arrays[-1].dtype, value.shape

    def _is_constant(self, number: Any, call: Call) -> bool:
        """Whether structure needs the value of the number that is looked at."""
        if type(number) is int and not -LARGEST <= number <= LARGEST:
            return True
        return bool(self.constants) and (ALL in self.constants or call.leaf_name() in self.constants)

    def has_numbers(self, call: Call) -> bool:
        """Whether numbers of a call are operands that might be constants."""
        operands = zip(call.leaves, call.is_array)
        return ALL not in self.constants and any(flag and is_number(leaf) for leaf, flag in operands)

    def _static_key(self, leaf: Any, call: Call) -> Key:
        if type(leaf) is float:
            return float, leaf.hex()  # tells 0.0 from -0.0, and one nan is another's equal
        if is_array_of_others(leaf):
            raise ArgumentError(
                f"{self.name}: argument '{call.leaf_name()}' is a {kind_named(leaf)}, and what "
                f"another library computes with its arrays can't be traced.{how_to_pass(leaf)}"
            )
        # Slices are hashable from Python 3.12 on.
        content = (leaf.start, leaf.stop, leaf.step) if type(leaf) is slice else leaf
        try:
            hash(content)
        except TypeError:
            if is_sparse(leaf) or is_instance(leaf) or is_table(leaf):  # each call reads what it holds
                return type(leaf), Identity(leaf)
            if isinstance(leaf, np.ndarray):
                raise ArgumentError(
                    f"{self.name}: argument '{call.leaf_name()}' is an array, and declared static. Static "
                    "arguments are compared by their hash, which arrays have not: leave it out of "
                    "static_argnums, or pass a tuple of numbers."
                ) from None
            instead = how_to_pass(leaf) or " Pass a tuple for a list, a frozenset for a set, or arrays."
            raise ArgumentError(
                f"{self.name}: argument '{call.leaf_name()}' is a {type(leaf).__name__}, which is neither an "
                f"array nor hashable. What is no array is static and must be hashable.{instead}"
            ) from None
        return type(leaf), content

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with defaults filled in, by position as far as may be; as given where all are.

        A function that says so (`takes_as_given`) gets them as the call has them, without defaults.
        """
        if self.signature is None or (not kwargs and len(args) == self.plain_count):
            return args, kwargs
        if self._known.go_by_name and not self._takes_as_given and len(args) <= len(self.positional):
            missing, defaults = self.positional[len(args) :], self._known.defaults
            values = [
                kwargs[name] if name in kwargs else defaults.get(name, _MISSING) for name in missing
            ]
            if not any(value is _MISSING for value in values) and kwargs.keys() <= set(missing):
                return (*args, *values), {}
        elif self._known.go_by_position and not kwargs and len(args) == len(self.positional):
            return args, {} if self._takes_as_given else dict(self._known.of_keywords)
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(
                f"{self.name}{self.signature}: {error}; found {len(args)} positional arguments"
                + (f" and the keywords {', '.join(kwargs)}" if kwargs else "")
                + ". Call it as its signature says."
            ) from None
        if self._takes_as_given:
            return args, kwargs
        bound.apply_defaults()
        return bound.args, bound.kwargs


@record(eq=False, slots=True)
class Form:
    """What calls with one key have alike, whose leaves are arrays, text and the like, and the same objects.

    Attributes:
        former: a call, without its arrays and its signature.
        leaves: of each leaf its class, and what it has to be: the dtype and shape of an array.
        is_of_all: whether it keeps no object alive, so that it may be that of calls of other functions.
        row: what a table has found of it.
    """

    former: Call
    leaves: tuple[tuple[type, Any], ...]
    is_of_all: bool
    row: Any = None

    @staticmethod
    def of(call: Call, orders: Sequence[Any]) -> Form | None:
        """The form of a call; None where it has other leaves, or dicts."""
        leaves: list[tuple[type, Any]] = []
        is_of_all = True
        for leaf, is_array in zip(call.leaves, call.is_array):
            kind = type(leaf)
            if is_array and kind is ndarray and leaf.flags.carray and leaf.dtype in SUPPORTED:
                leaves.append((kind, (leaf.dtype, leaf.shape)))
            elif kind in NO_OPERANDS:
                leaves.append((kind, leaf))
            elif not is_array and _is_known_by_identity(leaf):
                leaves.append((kind, leaf))
                is_of_all = False
            else:
                return None
        if orders:
            return None
        kept = [None if flag else leaf for leaf, flag in zip(call.leaves, call.is_array)]
        return Form(replaced(call, signature=None, leaves=kept, arrays=[]), tuple(leaves), is_of_all)

    def call(self, signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        """The call of a function with these arguments; None where it is of another form."""
        former = self.former
        if len(args) != former.positional or tuple(kwargs) != former.keywords:
            return None
        if former.key[0] is not dtypes.default_float():
            return None
        leaves: list[Any] = []
        for value, structure in zip((*args, *kwargs.values()), former.structures):
            if structure is None:
                leaves.append(value)
                continue
            found, own = flatten(value)
            if own != structure:
                return None
            leaves += found
        arrays = Conformed()
        for leaf, (kind, what) in zip(leaves, self.leaves):
            if type(leaf) is not kind:
                return None
            if type(leaf) is ndarray:
                if (leaf.dtype, leaf.shape) != what or not leaf.flags.carray:
                    return None
                arrays.append(leaf)
            elif leaf is not what and (kind not in NO_OPERANDS or leaf != what):
                return None
        arrays.given = [*arrays]
        return Call(
            signature, former.key, leaves, arrays, former.is_array, former.kinds, former.positional,
            former.keywords, former.structures, self,
        )  # fmt: skip


    def described(self, signature: Signature) -> Call:
        """A call of a function, with what says of each array what it is."""
        leaves = [_ArrayText(*what) if kind is ndarray else what for kind, what in self.leaves]
        return replaced(self.former, signature=signature, leaves=leaves)


def _is_known_by_identity(leaf: Any) -> bool:
    """Whether a static argument is the same as long as it is the same object."""
    kind: Any = type(leaf)
    by_identity = kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__
    return kind in (FunctionType, MethodType) or (by_identity and is_instance(leaf))


class Identity:
    """In a key what is equal to itself alone."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class Conformed(list[Any]):
    """The array leaves of a call as programs take them, with those that the caller `given` has."""

    given: Sequence[Any]

    @staticmethod
    def of(leaves: Sequence[Any]) -> Conformed:
        found = Conformed(one if isinstance(one, Tensor) else conform(one) for one in leaves)
        found.given = leaves
        return found


def given_as(kind: type[Tensor], array: Any) -> Any:
    """What the function is given where a program gets an array: a number, or the array."""
    if type(array) is not ndarray or not issubclass(kind, NumpyScalar):
        return array
    return array.item() if kind is PythonNumber else array[()]


def is_number(leaf: Any) -> bool:
    """Whether structure may need the value of an operand: a number of Python's, an integer of NumPy's."""
    return type(leaf) in VARYING or issubclass(type(leaf), np.integer)


def tensor_key(kind: type[Tensor], asked: bool) -> Any:
    """What the kind of a Tensor, and whether a gradient is asked of it, add to the key."""
    return (kind, asked) if issubclass(kind, NumpyTensor) else asked


def conform(value: Any) -> np.ndarray:
    """A C-contiguous, aligned, writeable array in the machine's byte order, as programs take it.

    Raises:
        LeakedTraceError: the value is of a trace that has ended.
    """
    if isinstance(value, Tensor):
        value = value._value
    if not isinstance(value, np.ndarray | np.generic | float | int | complex):
        raise LeakedTraceError(
            f"{value!r} is a traced value of a trace that has ended; it has no numbers. A compiled function "
            "must return its results, not store them in globals or attributes."
        )
    array = np.asarray(value)
    if array.flags.carray and array.dtype.isnative:
        return array
    return np.require(array, array.dtype.newbyteorder("="), ["C", "A", "W"])


def spec_of_leaf(leaf: Any) -> Spec:
    """The spec of an array argument as the graph sees it: in the machine's byte order."""
    value = leaf._value if isinstance(leaf, Tensor) else np.asarray(leaf)
    dtype = value.dtype
    return Spec(tuple(value.shape), dtype if dtype.isnative else dtype.newbyteorder("="))


def described(call: Call) -> str:
    """The arguments of a call in words: `x: float64[3, 4], flag: True`."""
    return str(Description(call))


class Description:
    """The same, found when somebody asks: what is no array says of itself what it is, by the user's code.

    It keeps no array alive.
    """

    def __init__(self, call: Call) -> None:
        self._signature, self._form = call.signature, call.form
        if self._form is None:
            leaves = [_ArrayText.of(leaf) if isinstance(leaf, ARRAYS) else leaf for leaf in call.leaves]
            self._call = replaced(call, leaves=leaves, arrays=[])

    def __str__(self) -> str:
        call = self._call if self._form is None else self._form.described(self._signature)
        named = zip(call.leaf_names(), call.leaves)
        return ", ".join(f"{name}: {_leaf_text(leaf)}" for name, leaf in named) or "no arguments"


LONGEST_TEXT = 40


class _ArrayText:
    """Of an array or Tensor its dtype and shape."""

    __slots__ = ("_asks", "_dtype", "_shape")

    def __init__(self, dtype: np.dtype, shape: tuple[int, ...], asks: bool = False) -> None:
        self._dtype, self._shape, self._asks = dtype, tuple(shape), asks

    @staticmethod
    def of(leaf: Any) -> _ArrayText:
        value = leaf._value if isinstance(leaf, Tensor) else leaf
        return _ArrayText(value.dtype, value.shape, isinstance(leaf, Tensor) and leaf.requires_grad)

    def __repr__(self) -> str:
        return f"{self._dtype}{list(self._shape)}{', requires grad' if self._asks else ''}"


def _leaf_text(leaf: Any) -> str:
    text = repr(leaf)
    return text if isinstance(leaf, _ArrayText) or len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
