"""Public functions that follow from declarations: what editors are told of them, and what they compute."""

import importlib
import inspect
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special
from operator_cases import ROWS
from operator_cases.rows import agrees

import pullback as pb
from pullback.runtime.functions import conventions
from pullback.runtime.functions.conventions import FUNCTIONS, MODULES
from pullback.runtime.values.tensor import Tensor
from pullback.tracer.operator import WRITTEN_OUT, Operator, operators

OFFERED = [one for one in operators() if one.torch]
MADE = [one for one in OFFERED if one.arguments != WRITTEN_OUT]
offered = pytest.mark.parametrize("operator", OFFERED, ids=lambda one: one.name)
made = pytest.mark.parametrize("operator", MADE, ids=lambda one: one.name)

HEADER = '"""Declared operators: `pytest --update-golden tests/functions/test_declared.py` writes it."""'
IMPORTED = {"typing": {"Any"}, "..values.tensor": {"Tensor"}, ".common": {"Dims", "Operand"}}
"""By module what annotations name."""


def stub_of(namespace: str) -> str:
    """The module as a type checker reads it: signatures, and what the functions are in a line."""
    functions = sorted(FUNCTIONS[namespace].items())
    listed = "\n".join(f'    "{name}",' for name, _ in functions)
    declarations = [declaration(*one) for one in functions]
    used = set(re.findall(r"\w+", " ".join(re.findall(r"^def .*", "\n".join(declarations), re.M))))
    imports = [
        f"from {module} import {', '.join(sorted(used & names))}"
        for module, names in IMPORTED.items()
        if used & names
    ]
    blocks = ["\n".join(one for one in imports if (" ." in one) == own) for own in (False, True)]
    head = "\n\n".join(filter(None, [HEADER, *blocks, f"__all__ = [\n{listed}\n]"]))
    return "\n".join([f"{head}\n", *declarations])


def declaration(name: str, function: Callable[..., Any]) -> str:
    signature = str(inspect.signature(function)).replace("'", "")
    summary = (function.__doc__ or "").partition("\n")[0]
    return f'def {name}{signature}:\n    """{summary}"""\n'


@pytest.mark.parametrize("namespace", MODULES)
def test_editors_are_told_of_every_function(namespace: str, request: pytest.FixtureRequest) -> None:
    path = Path(conventions.__file__).with_name(f"{MODULES[namespace]}.pyi")
    text = stub_of(namespace)
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def places(operator: Operator) -> list[tuple[Any, str]]:
    """Where its functions are: modules and names."""
    found = [one.rpartition(".") for one in operator.torch]
    names = {"": "pullback", "pullback": "pullback"}
    return [
        (importlib.import_module(names.get(space, f"pullback.{space}")), name) for space, _, name in found
    ]


@offered
def test_an_operator_has_the_names_that_it_declares(operator: Operator) -> None:
    for module, name in places(operator):
        assert name in dir(module) and name in module.__all__
        assert inspect.signature(getattr(module, name)).parameters
    for name in (one for one in operator.torch if "." not in one):
        assert callable(getattr(Tensor, name))
        assert not operator.in_place or callable(getattr(Tensor, f"{name}_")) == hasattr(pb, f"{name}_")


@made
def test_a_function_says_what_it_is(operator: Operator) -> None:
    module, name = places(operator)[0]
    function = getattr(module, name)
    assert function.__name__ == operator.public_name and function.__module__ == module.__name__
    assert pickle.loads(pickle.dumps(function)) is function
    assert "Args:" in function.__doc__ and f">>> {name}(" in function.__doc__


@pytest.mark.parametrize("operator", [one for one in MADE if one.example[1]], ids=lambda one: one.name)
def test_the_example_is_right(operator: Operator) -> None:
    module, name = places(operator)[0]
    call = f"{name}({operator.example[0]})"
    assert repr(eval(call, {**vars(pb), name: getattr(module, name)})) == operator.example[1]


@pytest.mark.parametrize("operator", [one for one in MADE if one.name in ROWS], ids=lambda one: one.name)
def test_a_function_and_a_method_compute_what_the_operator_does(operator: Operator) -> None:
    row = ROWS[operator.name]
    module, name = places(operator)[0]
    for case in row.cases:
        if case.attributes.get("dims") == ():  # to a function: all dimensions
            continue
        arrays = row.draw(case, row.dtypes[0])
        tensors = [pb.tensor(one) for one in arrays]
        options = {key.replace("dims", "dim"): value for key, value in case.attributes.items()}
        if operator.arguments == "position":
            options["dim"] = options["dim"][0]
        forms = [getattr(module, name), *([getattr(Tensor, name)] if "." not in operator.torch[0] else [])]
        for form in forms:
            result = form(*tensors, **options)
            agrees(result.numpy(), np.asarray(row.operator(*arrays, **case.attributes)), 0, f"{name} {case}")


def ufuncs(operator: Operator) -> list[np.ufunc]:
    found = [getattr(np, name) for name in operator.numpy]
    found += [getattr(scipy.special, name) for name in operator.scipy]
    return [one for one in found if isinstance(one, np.ufunc)]


@pytest.mark.parametrize("operator", [one for one in OFFERED if ufuncs(one)], ids=lambda one: one.name)
def test_a_ufunc_of_the_same_name_takes_tensors(operator: Operator) -> None:
    for ufunc in ufuncs(operator):
        dtype = "float64" if "d" in "".join(one.split("->")[0] for one in ufunc.types) else "int64"
        numbers = np.linspace(*operator.domain, 5) if dtype == "float64" else np.arange(1, 6)
        arrays = [numbers.astype(dtype)] * ufunc.nin
        wanted = ufunc(*arrays)
        result = ufunc(*map(pb.tensor, arrays))
        agrees(np.asarray(result), wanted, 8, ufunc.__name__)
