"""A border program as text with its arguments, and how results are compared: value, dtype, shape, kind."""

from __future__ import annotations

import functools
import linecache
import random
import re
import sys
import types
import zlib
from dataclasses import dataclass
from typing import Any

import border_reference
import numpy as np

import pullback as pb

IMPORTS = {
    "np": "import numpy as np", "pb": "import pullback as pb", "copy": "import copy", "math": "import math",
    "random": "import random", "functools": "import functools", "operator": "import operator",
    "collections": "import collections", "dataclasses": "import dataclasses", "scipy": "import scipy",
    "itertools": "import itertools", "array": "import array", "pickle": "import pickle",
}  # fmt: skip
LONG_TEXT = 300


@dataclass(frozen=True)
class Case:
    """A program: text that defines `f`, and the arguments of two calls, as text."""

    text: str
    arguments: tuple[str, ...]
    others: tuple[str, ...] = ()
    is_stateful: bool = False
    """Whether calls depend on earlier calls; what calls it more often than once is left out then."""

    @property
    def has_tensors(self) -> bool:
        return bool(
            re.search(r"\bpb\.(tensor|zeros|ones|full|arange|eye|linspace|as_tensor|grad)\b", self.text)
        )

    @property
    def tolerance(self) -> float:
        """Relative to the largest element; programs round to the precision that they name."""
        if re.search("float16|half", self.text):
            return 2e-2
        return 2e-4 if self.has_tensors or re.search("float32|'f4'", self.source) else 1e-9

    @property
    def source(self) -> str:
        """The whole program, which runs when it is pasted."""
        imports = [
            line for word, line in IMPORTS.items()
            if word == "np" or re.search(rf"(?<![\w.]){word}\.", self.text)
        ]  # fmt: skip
        calls = [self.arguments, self.others] if self.others else [self.arguments]
        named = [f"ARGUMENTS{'_2' * place} = ({', '.join(one)},)" for place, one in enumerate(calls)]
        return "\n".join((*imports, "", self.text.strip("\n"), "", *named)) + "\n"

    def loaded(self, by_reference: bool = False) -> dict[str, Any]:
        """The names that the program makes, with the state of a program that just began."""
        source = self.source
        file = f"<border program {zlib.crc32(source.encode()):x}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        module = sys.modules["border_program"] = types.ModuleType("border_program")
        variables = vars(module)
        np.random.seed(11)  # noqa: NPY002 (the programs draw from it)
        random.seed(11)
        if by_reference:
            source = source.replace(IMPORTS["pb"] + "\n", "\n")
            variables["pb"] = border_reference
        exec(_code(source, file), variables)
        return variables


@functools.lru_cache(maxsize=64)
def _code(source: str, file: str) -> Any:
    return compile(source, file, "exec")


class Differs(Exception):
    def __init__(self, status: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


# --- comparing ------------------------------------------------------------------------------------------


def shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    if isinstance(value, np.ndarray) and value.dtype.name not in text:
        text = f"{text} {value.dtype}"
    return text if len(text) < LONG_TEXT else text[:LONG_TEXT] + "..."


def is_number(value: Any) -> bool:
    return isinstance(value, (pb.Tensor, np.ndarray, np.generic, bool, int, float, complex))


def array_of(value: Any) -> np.ndarray:
    return value.detach().numpy() if isinstance(value, pb.Tensor) else np.asarray(value)


def kind_of(value: Any) -> type:
    """A Tensor, an array (0-d ones are arrays), one of NumPy's numbers, or one of Python's."""
    return next((kind for kind in (pb.Tensor, np.ndarray, np.generic) if isinstance(value, kind)), float)


def compare(expected: Any, found: Any, tolerance: float, where: str = "") -> None:
    """Raises Differs where `found` is not what plain code gives."""

    def differ(status: str) -> None:
        raise Differs(status, f"{where or 'result'}: plain {shown(expected)}, found {shown(found)}")

    if isinstance(expected, dict):
        if not isinstance(found, dict) or list(expected) != list(found):
            differ("structure")
        for key, one in expected.items():
            compare(one, found[key], tolerance, f"{where}[{key!r}]")
    elif isinstance(expected, (list, tuple)):
        if type(expected) is not type(found) or len(expected) != len(found):
            differ("structure")
        for place, (one, other) in enumerate(zip(expected, found)):
            compare(one, other, tolerance, f"{where}[{place}]")
    elif isinstance(expected, str):  # the text of what is differentiated is of a class of its own
        if not isinstance(found, str) or expected != found:
            differ("value")
    elif not is_number(expected):
        if type(expected) is not type(found):
            differ("value")
    elif not is_number(found):
        differ("structure")
    else:
        one, other = array_of(expected), array_of(found)
        if one.shape != other.shape:
            differ("shape")
        if one.dtype != other.dtype:
            differ("dtype")
        if not is_near(one, other, tolerance):
            differ("value")
        if kind_of(expected) is not kind_of(found):
            differ("kind")


def is_near(one: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    if one.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    finite = np.abs(one[np.isfinite(one)])
    scale = max(1.0, float(finite.max(initial=0.0)))
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def state_of(variables: dict[str, Any]) -> dict[str, Any]:
    """The numbers and arrays in a program's variables, in containers and in attributes."""
    found: dict[str, Any] = {}

    def walk(name: str, value: Any, depth: int) -> None:
        if is_number(value):
            found[name] = value.copy() if isinstance(value, np.ndarray) else value
        elif depth and isinstance(value, dict):
            for key, one in value.items():
                walk(f"{name}[{key!r}]", one, depth - 1)
        elif depth and isinstance(value, list):
            for place, one in enumerate(value):
                walk(f"{name}[{place}]", one, depth - 1)
        elif depth and type(value).__module__ == "border_program":
            for key, one in vars(value).items():
                walk(f"{name}.{key}", one, depth - 1)

    for name, value in variables.items():
        if not name.startswith(("_", "ARGUMENTS")) and name not in IMPORTS:
            walk(name, value, 3)
    return found


def compare_state(expected: dict[str, Any], found: dict[str, Any], tolerance: float) -> None:
    """What both have: how often a list was appended to is another question."""
    for name, one in expected.items():
        if name in found:
            try:
                compare(one, found[name], tolerance, name)
            except Differs as difference:
                raise Differs("state", difference.detail) from None
