"""Copies of functions with other variables: stand-ins for parts of NumPy, over a live view of modules."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ...tracer.spec import SUPPORTED
from ..bytecode.write_instructions import (
    defines_classes,
)
from ..values.tensor import Tensor, make
from ..values.value_kinds import NumpyTensor, plain
from .explored_programs import Explored, ReachedByName, functions_of
from .program_containers import CONTAINERS, ContainerCopies


class _Variables(dict[str, Any]):
    """The variables of a module as they are at any time, but for those that are set here.

    Python looks up global variables in a subclass of dict by way of `__missing__`.
    """

    def __init__(self, variables: dict[str, Any]) -> None:
        super().__init__(__builtins__=variables.get("__builtins__", __builtins__))
        self._variables = variables
        self._replaced: dict[str, Any] = {"__builtins__": self["__builtins__"]}

    def __missing__(self, name: str) -> Any:
        return self._variables[name]

    def replace(self, name: str, value: Any) -> None:
        self._replaced[name] = self[name] = value

    def store(self) -> None:
        """Give the module what the function has assigned to its global variables."""
        for name, value in list(self.items()):
            former = self._replaced.get(name, self)
            if value is not former:
                self._variables[name] = plain(self.pop(name))


class _BuiltInNames(dict[str, Any]):
    """Built-in names, and before them those of a module: class bodies ask no `__missing__`."""

    def __init__(self, names: Mapping[str, Any], variables: _Variables) -> None:
        super().__init__(names)
        self._variables = variables

    def __getitem__(self, name: str) -> Any:
        try:
            return self._variables[name]
        except KeyError:
            return super().__getitem__(name)


class _ModuleView(ModuleType):
    """A module with some of its functions replaced; whatever else is read or set is the module's."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__)
        vars(self)["_module"] = module

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_module"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["_module"], name, value)


class Copies:
    """Copies of the functions that lead to what has a stand-in, made once each."""

    def __init__(self, found: Explored) -> None:
        self._reached = found.functions
        self._stand_ins = found.stand_ins
        self._replaces_arrays = found.replaces_arrays
        self._attributes = found.attributes
        self._arrays: dict[int, Tensor] = {}
        self.concerned = found.concerned
        self.variables: dict[int, _Variables] = {}
        self._copies: dict[FunctionType, FunctionType] = {}
        self._views: dict[int, _ModuleView] = {}
        self._containers = ContainerCopies()

    def of(self, function: FunctionType) -> FunctionType:
        """The copy of a function that is concerned."""
        if function in self._copies:
            return self._copies[function]
        one = self._reached[function]
        variables = self.variables.setdefault(id(function.__globals__), _Variables(function.__globals__))
        if one.imports():
            variables.replace("__builtins__", self._stand_ins.built_in_names())
        if defines_classes(function.__code__):
            names = self._stand_ins.built_in_names() if one.imports() else vars(builtins)
            variables.replace("__builtins__", _BuiltInNames(names, variables))
        cells = {
            name: CellType() if name in one.cells else cell
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ())
        }
        copied = self._copies[function] = FunctionType(
            function.__code__, variables, function.__name__, function.__defaults__, tuple(cells.values())
        )
        copied.__defaults__ = self._replacement(function.__defaults__, one)
        copied.__kwdefaults__ = self._replacement(function.__kwdefaults__, one)
        copied.__dict__.update(function.__dict__)
        for name, value in one.variables.items():
            replacement = self._replacement(value, one)
            if replacement is not value:
                variables.replace(name, replacement)
        for name, value in one.cells.items():
            cells[name].cell_contents = self._replacement(value, one)
        return copied

    def _stand_in(self, value: Any, attributes: frozenset[str]) -> Any:
        if type(value) is np.ndarray:
            if not self._replaces_arrays or value.dtype not in SUPPORTED:
                return None
            return self._arrays.setdefault(id(value), make(value, NumpyTensor))
        return self._stand_ins.of_plain_run(value, attributes, self._attributes)

    def _replacement(self, value: Any, one: ReachedByName) -> Any:
        stand_in = self._stand_in(value, one.attributes)
        if stand_in is not None:
            return stand_in
        if type(value) is FunctionType:
            return self.of(value) if value in self.concerned else value
        if type(value) in CONTAINERS:
            return self._containers.of(value, lambda element: self._replacement(element, one))
        functions = self.concerned.intersection(functions_of(value, one.attributes))
        if not functions:
            return value
        view = self._views.setdefault(id(value), _ModuleView(value))
        for name in one.attributes:
            found = vars(value).get(name)
            if type(found) is FunctionType and found in functions:
                vars(view)[name] = self.of(found)
        return view

    def store(self) -> None:
        """Give modules and containers what the function has written into their copies."""
        for variables in self.variables.values():
            variables.store()
        self._containers.store()
