"""What an operator is. One operator is one declaration (see `ops/`); this file says what it holds.

An operator called on ndarrays evaluates; on graph nodes it extends the graph; on tensors it does what the
runtime's tape wants. So a rule written with operators runs in all three, and can be differentiated again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from .dims import SizedRange
from .records import record
from .spec import Spec, spec_of

Attributes = Mapping[str, Any]
Scalar = bool | int | float
Array = Any  # an ndarray, a Node or a Tensor: whatever carries a value through a rule

PULL = ("y", "y_spec", "operands", "specs", "attributes")
PULL_OF_NODE = ("node.result", "node.specs[1]", "node.operands", "node.specs[0]", "node.attributes")
Function = Callable[..., Any]
Pull = Callable[..., tuple[Array | None, ...]]
"""Of g and `PULL`, which is what rules may need, the cotangent of each operand; or of g and a node of the
tape that has it all, `PULL_OF_NODE`."""
OPERATORS: dict[str, Operator] = {}
WRITTEN_OUT = "written out"
HOLOMORPHIC = "holomorphic"
"""Of complex numbers, with rules that are formulas of the derivative: they are given conjugates."""
OWN_RULES = "own rules"
"""Of complex numbers, with rules that say for them, too, what the gradient is."""
TOGETHER, EACH = "together", "each"
"""Of an operator that is linear in its operands with rules: in all at once, as a sum of parts, or in each of
them where the others are fixed, as a product."""
NEVER_RAISING = frozenset(("elementwise", "reduction", "scan", "movement", "contraction", "creation"))
"""Families of operators that have a result whatever their operands are."""
OF_ANY_NUMBERS = frozenset(("movement", "indexing", "creation"))
"""Families that complex numbers are as good for as others."""


def as_it_is(function: Function) -> Function:
    return function


class Value:
    """The base of what carries values other than ndarrays; the highest `rank` among operands decides."""

    __slots__ = ()
    __array_priority__ = 1000
    rank = 0

    @classmethod
    def apply(cls, operator: Operator, operands: tuple[Array, ...], attributes: Attributes) -> Array:
        raise NotImplementedError


@record(frozen=True, eq=False, slots=True)
class Rule:
    """A vjp rule for one operand: its function, and the names of what it needs.

    Parameters are found by name: `g` is the cotangent of the result, `y` the result, an operand's name
    that operand, `<operand>_spec` its spec, `y_spec` the result's, and the rest attributes. For a variadic
    operand, `index` says which one, and `specs` are the specs of all; its own name stands for the tuple of
    them. What is not named is not saved.
    """

    function: Callable[..., Array]
    parameters: tuple[str, ...]

    @property
    def needs_result(self) -> bool:
        return "y" in self.parameters


@record(frozen=True, eq=False, slots=True)
class Monoid:
    """How a reduction combines elements, in whatever order and grouping."""

    fold: Operator
    """Of two elements; elementwise, and generated code combines as its `scalar` says."""
    identity: Callable[[np.dtype], Scalar]
    """By dtype, the element that changes no other: where a total begins."""


@record(frozen=True, eq=False, slots=True)
class Search:
    """How a reduction finds a place: that of the first element which no other beats, a nan before all."""

    beats: Operator
    """Of two elements: whether the first is better. Elementwise, a comparison."""
    identity: Callable[[np.dtype], Scalar]
    """By dtype, an element that beats no other: where the search begins."""


def _first(x: Spec, **attributes: Any) -> int:
    return 0


def _no(**attributes: Any) -> bool:
    return False


@record(frozen=True, eq=False, slots=True)
class WholeCall:
    """How generated code computes an operator: by calls of a function, with whole rows or whole matrices."""

    functions: tuple[str, ...]
    """Of `codegen/whole_calls.py`, by name ..."""
    choose: Callable[..., int] = _first
    """... and by the first operand's spec and the attributes the place of the one that is called."""
    dims: int = 2
    """How many of the last dimensions a call takes."""
    transposes: Callable[..., bool] = _no
    """By the operator's attributes, whether the first operand is handed over transposed."""
    steps: Callable[[int], int] = int
    """Arithmetic for each element of the result, by the operand's last extent."""
    of_pairs: tuple[str, ...] = ()
    """The functions for complex matrices, in arrays with a last dimension of real and imaginary parts."""
    refusal: tuple[str, str] | None = None
    """Of functions that say whether there is a result: the public function, and what its matrix must be."""


@record(frozen=True, slots=True)
class Walk:
    """How a dimension of an operand is read: along a dimension of the result, from a place on, in steps."""

    dim: int
    start: int = 0
    step: int = 1
    backwards: bool = False
    """Whether from the last element to the first."""
    turns: bool = False
    """Whether behind the last element comes the first, and the start counts from there."""

    def place(self, position: int, extent: int) -> int:
        """Where in the operand's dimension the element at a position of the result's is taken from."""
        place = extent - 1 - position if self.backwards else self.start + self.step * position
        return place % extent if self.turns else place


Walks = Callable[..., tuple[Walk | None, ...]]
"""(spec of the operand, **attributes) -> how each of its dimensions is read; None: at its only element."""


@record(frozen=True, slots=True)
class Part:
    """An operand that fills a part of a result: from a place on, in steps, as many as it has elements."""

    operand: int
    """Its position among the operands."""
    starts: tuple[int, ...]
    """Where it begins; of a window, for which operands say it, ()."""
    steps: tuple[int, ...]
    behind: int | None = None
    """The dimension in which it begins where the part before ends."""

    def region(self, shape: tuple[int, ...]) -> list[SizedRange]:
        """The positions that it fills in each dimension, given the operand's shape."""
        return [*map(SizedRange.of, self.starts, shape, self.steps)]


@record(frozen=True, slots=True)
class Parts:
    """What a result is put together from: of parts that share a position the first one has it."""

    parts: tuple[Part, ...]
    around: Scalar = 0
    """What is beside the parts, a number ..."""
    base: int | None = None
    """... or an operand, at the same place."""


PartsOf = Callable[..., Parts]
"""(specs of the operands, **attributes) -> which parts of the result they are."""


@record(frozen=True, eq=False, slots=True)
class Movement:
    """Where an operator that computes nothing takes its elements from."""

    is_view: bool = False
    """Whether NumPy's result shows the memory of the operand."""
    rearranges: bool = False
    """Whether every element is one of the operand's."""
    shifts: bool = False
    """Whether it is read at another place than the operand."""
    chooses: bool = False
    """Whether code asks, by its place, where an element comes from."""
    walks: Walks | None = None
    """Of an operator each of whose elements comes from one place: which."""
    parts: PartsOf | None = None
    """Of one that puts operands beside each other, or into something: where they lie."""


NOWHERE = Movement()


@record(frozen=True, eq=False)
class Operator:
    """One operator: names, shape rule, value, vjp rules, and how it lowers."""

    name: str
    family: str
    operands: tuple[str, ...]
    """Names of the operands; a last one that starts with `*` takes any number."""
    infer: Callable[..., Spec]
    """(*operand specs, **attributes) -> Spec of the result. Raises ShapeError or DTypeError."""
    evaluate: Callable[..., Any]
    """(*ndarrays, **attributes) -> ndarray, with NumPy or SciPy."""
    rules: Mapping[str, Rule]
    """By operand name; an operand without one has no gradient."""
    grad_fn: str
    """The name of the tape's node is `{grad_fn}Backward0`, as PyTorch prints it."""
    doc: str = ""
    scalar: str | None = None
    """Elementwise: the expression of one element, e.g. `tanh({x})`."""
    monoid: Monoid | None = None
    """Of what combines elements, a reduction, a scan or a sum at positions: how it combines two."""
    search: Search | None = None
    """Of a reduction that gives a position: which."""
    recurrence: str | None = None
    """Of a scan that has no monoid: an element as an expression of the operands and of the one `before`."""
    movement: Movement = NOWHERE
    """Of what moves elements: where from."""
    call: WholeCall | None = None
    """Of what takes whole rows or matrices: what generated code calls."""
    fills: str = ""
    """Of what Python evaluates, without attributes: the function (*ndarrays, result), `scipy.special.erfinv`,
    that writes into its last array, and warns of nothing. Without it, what `evaluate` returns is copied."""
    into: Callable[..., None] | None = None
    """Of what Python evaluates: (*ndarrays, result, **attributes), which writes its value into the last one,
    where that spares a copy."""
    told_by_result: tuple[str, ...] = ()
    """Attributes that `into` goes without, as it reads them off the result: code serves all sizes."""
    noun: str = ""
    """What generated code calls a result that the user gave no name; by default `{name}_value`."""
    body: Callable[..., Array] | None = None
    """Composite: the same in simpler operators, for what comes after differentiation."""
    domain: tuple[float, float] = (-3.0, 3.0)
    """Where tests draw operands from."""
    cost: int = 1
    """Arithmetic per element, in multiplications: what it costs to compute again."""
    needs_own_rule: bool = False
    """Composite: its body has no derivative, or somewhere another one, as that of a norm at 0. So it stays
    whole while a graph may yet be differentiated again."""
    linear: str = ""
    """Whether a tangent goes the way of the value: TOGETHER or EACH; empty where it does not."""
    is_associative: bool = False
    """Of two operands: whether what has been combined may be combined again."""
    of_complex: str = ""
    """Whether operands may be complex: HOLOMORPHIC, OWN_RULES, or empty where they are refused."""

    torch: tuple[str, ...] = ()
    """The names under which PyTorch's front offers it; messages use the first. `sin` is a function and a
    method, `special.erf` and `nn.functional.tanh` functions of these namespaces, `pullback.expit` a function
    alone."""
    in_place: bool = False
    """Whether functions and methods of these names have a form that writes into the operand, `sin_`."""
    arguments: str = ""
    """How these functions take arguments, by a name that `runtime/functions/conventions.py` explains, or
    WRITTEN_OUT, where there is more to them than the operator."""
    numpy: tuple[str, ...] = ()
    """What NumPy calls it: functions and ufuncs that do the same on tensors."""
    scipy: tuple[str, ...] = ()
    """Ufuncs of `scipy.special` that do the same on tensors."""
    note: str = ""
    """A sentence for the documentation of its functions."""
    example: tuple[str, str] = ("", "")
    """Arguments and result of a call, for the documentation of its functions."""

    @property
    def variadic(self) -> bool:
        return self.operands[-1:] != () and self.operands[-1].startswith("*")

    @property
    def public_name(self) -> str:
        """What messages call it."""
        return self.torch[0].rpartition(".")[2] if self.torch else self.name

    def operand_name(self, position: int) -> str:
        """The name that rules know the operand at `position` by."""
        if self.variadic and position >= len(self.operands) - 1:
            return self.operands[-1][1:]
        return self.operands[position]

    def rule_for(self, position: int) -> Rule | None:
        return self.rules.get(self.operand_name(position))

    def needs(self, positions: Sequence[int], count: int) -> tuple[frozenset[int], bool]:
        """(operand positions, whether the result) that the rules of these operands, of `count`, read.

        It is what a tape saves, and what a compiled forward pass may have to hand to its backward pass.
        """
        wanted: set[int] = set()
        result = False
        names = [self.operand_name(position) for position in range(count)]
        for position in positions:
            rule = self.rule_for(position)
            if rule is not None:
                result = result or rule.needs_result
                wanted.update(index for index, name in enumerate(names) if name in rule.parameters)
        return frozenset(wanted), result

    def pull_back(
        self,
        position: int,
        cotangent: Array,
        operands: Sequence[Array],
        specs: Sequence[Spec],
        result: Array,
        result_spec: Spec,
        attributes: Attributes,
        form: Callable[[Function], Function] = as_it_is,
    ) -> Array:
        """The cotangent of the operand at `position`, perhaps of the broadcast shape (`sum_to_shape`).

        Of complex numbers it is PyTorch's gradient: g times the conjugate of the derivative, which for a
        holomorphic operator is the derivative at the conjugates. So its rules read these.
        """
        pull = self.pulling((position,), position + 1, form)
        return self.pulled(pull, cotangent, result, result_spec, operands, specs, attributes)[position]

    def pulled(
        self,
        pull: Pull,
        g: Array,
        y: Array,
        y_spec: Spec | None,
        operands: Sequence[Array],
        specs: Sequence[Spec],
        attributes: Attributes,
    ) -> tuple[Array | None, ...]:
        """What rules of the operator, made by `pulling`, give; of complex numbers see `pull_back`."""
        if self.of_complex == HOLOMORPHIC and g.dtype.kind == "c":
            y, operands = _conjugate(y), list(map(_conjugate, operands))
            attributes = {name: _conjugate(one) for name, one in attributes.items()}
        return pull(g, y, y_spec, operands, specs, attributes)

    @functools.cache  # noqa: B019  operators are there for good
    def pulling(
        self,
        positions: tuple[int, ...],
        count: int,
        form: Callable[[Function], Function] = as_it_is,
        of_node: bool = False,
    ) -> Pull:
        """The rules of the operands at some positions, of `count`, as one function, which is written here.

        Of `multiply` at (0, 1) it is

            lambda g, y, y_spec, operands, specs, attributes: (
                rule_0(g, operands[1]), rule_1(g, operands[0]),
            )

        and `of_node` it is `lambda g, node: (rule_0(g, node.operands[1]), rule_1(g, node.operands[0]))`.
        It gives None for the other operands. `form` may make other functions of the rules.
        """
        given, needs = (("g", "node"), PULL_OF_NODE) if of_node else (("g", *PULL), PULL)
        rules = {f"rule_{one}": form(self.rules[self.operand_name(one)].function) for one in positions}
        calls = [self._call_of_rule(one, *needs) if one in positions else "None" for one in range(count)]
        return cast(Pull, eval(f"lambda {', '.join(given)}: ({', '.join(calls)},)", rules))

    def _call_of_rule(
        self, position: int, y: str, y_spec: str, operands: str, specs: str, attributes: str
    ) -> str:
        """The call of an operand's rule with what it needs, as text, given the text for what it may need."""
        arguments = []
        plain = {"g": "g", "y": y, "y_spec": y_spec}
        for parameter in self.rules[self.operand_name(position)].parameters:
            if parameter in plain:
                arguments.append(plain[parameter])
            elif parameter == "index":
                arguments.append(str(position - len(self.operands) + 1))
            elif parameter == "specs":
                arguments.append(f"tuple({specs})")
            elif parameter.endswith("_spec"):
                arguments.append(f"{specs}[{self.operands.index(parameter[:-5])}]")
            elif self.variadic and parameter == self.operands[-1][1:]:
                arguments.append(f"tuple(({operands} or ())[{len(self.operands) - 1}:])")
            elif parameter in self.operands:
                arguments.append(f"{operands}[{self.operands.index(parameter)}]")
            else:
                arguments.append(f"{attributes}[{parameter!r}]")
        return f"rule_{position}({', '.join(arguments)})"

    def __call__(self, *operands: Array, **attributes: Any) -> Array:
        carrier: type[Value] | None = None
        for operand in operands:
            if type(operand) is np.ndarray or not isinstance(operand, Value):
                continue
            if carrier is None or operand.rank > carrier.rank:
                carrier = type(operand)
        if carrier is not None:
            return carrier.apply(self, operands, attributes)
        return self.evaluate(*operands, **attributes)

    def result_spec(self, *arrays: np.ndarray, **attributes: Any) -> Spec:
        return self.infer(*map(spec_of, arrays), **attributes)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


def _conjugate(value: Any) -> Any:
    """The conjugate of what is complex, a value or a number, also in a tuple; anything else as it is."""
    if type(value) is tuple:
        return tuple(map(_conjugate, value))
    if isinstance(value, Value | np.ndarray) and value.dtype.kind == "c":  # type: ignore[union-attr]
        return OPERATORS["conjugate"](value)
    return value.conjugate() if isinstance(value, complex) else value


def make_rules(name: str, vjp: Mapping[str, Callable[..., Array]]) -> dict[str, Rule]:
    """Rules from `{operand: function}`; the functions' parameter names say what they need."""
    return {operand: Rule(function, parameters_of(function)) for operand, function in vjp.items()}


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters; of a plain one without `inspect`, which takes long."""
    code = getattr(function, "__code__", None)
    variadic = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code is None or code.co_flags & variadic or hasattr(function, "__wrapped__"):
        return tuple(inspect.signature(function).parameters)
    return tuple(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def declare(
    name: str,
    family: str,
    operands: str,
    *,
    vjp: Mapping[str, Callable[..., Array]] | None = None,
    noun: str = "",
    torch: str = "",
    numpy: tuple[str, ...] = (),
    scipy: str = "",
    **fields: Any,
) -> Operator:
    """Make an operator and enter it in the table. `operands` are names with spaces between: "a b"."""
    if name in OPERATORS:
        raise ValueError(f"an operator {name!r} exists already")
    title = fields.pop("grad_fn", None) or "".join(part.capitalize() for part in name.split("_"))
    fields.setdefault("of_complex", HOLOMORPHIC if family in OF_ANY_NUMBERS else "")
    operator = Operator(
        name=name,
        family=family,
        operands=tuple(operands.split()),
        rules=make_rules(name, vjp or {}),
        grad_fn=title,
        noun=noun or f"{name}_value",
        torch=tuple(torch.split()),
        numpy=numpy,
        scipy=tuple(scipy.split()),
        **fields,
    )
    OPERATORS[name] = operator
    return operator


def names_in_numpy(function: Callable[..., Any], also: str = "") -> tuple[str, ...]:
    """What NumPy calls a function, if it is one of NumPy's, and further names."""
    name = getattr(function, "__name__", "")
    return (*([name] if getattr(np, name, None) is function else []), *also.split())


def operators(family: str | None = None) -> Iterator[Operator]:
    """All operators, or those of a family, in the order of their declaration."""
    return (one for one in OPERATORS.values() if family in (None, one.family))
