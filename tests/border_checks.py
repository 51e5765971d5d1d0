"""Runs one program plainly, compiled and under each transform, and says where the results differ.

Plain NumPy code sets what is right: values, dtypes, shapes and kinds. The kind of a value is NumPy's (an
array, a NumPy scalar, a Python number) or PyTorch's (a Tensor). A program is text with a function `f`, and
every run loads it anew, so that its state and its random numbers begin anew as well. An error of
`pullback.errors` is a refusal, any other one a finding.
"""

from __future__ import annotations

import contextlib
import functools
import re
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from border_compare import (
    Case,
    Differs,
    array_of,
    compare,
    compare_state,
    is_near,
    is_number,
    shown,
    state_of,
)

import pullback as pb
from pullback.codegen.program import Program as GeneratedCode

SECONDS = 30
"""After which a check counts as one that hangs; compiling takes a few seconds at most."""
STEPS = r"float16|astype\((int|np\.u?int|bool)|round|floor|rint|//|%|sign|divmod|\bint\(|heaviside"
"""What has steps: differences over less than a step see none."""


IN_SINGLE = 2e-6
"""How far sums of a few numbers in float32 may differ."""


@dataclass(frozen=True)
class Outcome:
    """What one check found: "ok", "refused", "skipped", or the kind of the difference."""

    check: str
    status: str
    detail: str = ""

    @property
    def is_finding(self) -> bool:
        return self.status not in ("ok", "refused", "skipped")


class Hangs(BaseException):
    """No error of the program: nothing that it catches."""


class Skipped(Exception):
    """There is nothing to compare with."""


def copied(arguments: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(one.copy() if isinstance(one, np.ndarray) else one for one in arguments)


def as_tensors(arguments: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(pb.tensor(one.copy()) if isinstance(one, np.ndarray) else one for one in arguments)


@dataclass
class Plain:
    """What plain code gives for calls with the first arguments, with them again, and with other ones."""

    results: list[Any]
    written: list[tuple[Any, ...]]
    states: list[dict[str, Any]]


def calls_of(variables: dict[str, Any], prepare: Callable[[Sequence[Any]], tuple[Any, ...]]) -> Iterator[Any]:
    first = variables["ARGUMENTS"]
    for arguments in (first, first, variables.get("ARGUMENTS_2", first)):
        yield prepare(arguments)


def run_calls(
    case: Case, transform: Callable[[Any], Any], prepare: Any = copied, by_reference: bool = False
) -> Plain:
    variables = case.loaded(by_reference)
    function = transform(variables["f"])
    ran = Plain([], [], [])
    for arguments in calls_of(variables, prepare):
        ran.results.append(kept(function(*arguments)))
        ran.written.append(arguments)
        ran.states.append(state_of(variables))
    return ran


def kept(result: Any) -> Any:
    """A result as it is now: later calls may write into what it shares memory with."""
    if isinstance(result, np.ndarray):
        return result.copy()
    if type(result) in (list, tuple):
        return type(result)(map(kept, result))
    return {key: kept(one) for key, one in result.items()} if type(result) is dict else result


class Checks:
    """The checks of one program: methods that raise Differs, Skipped, or what pullback raises."""

    def __init__(self, case: Case) -> None:
        self.case, self.tolerance = case, case.tolerance
        self.by_reference = not case.has_tensors
        self.plain, self.plain_error = self.run_plain()

    @property
    def is_double(self) -> bool:
        return self.tolerance < 1e-6

    def run_plain(self) -> tuple[Plain | None, Exception | None]:
        try:
            with quiet():
                return run_calls(self.case, lambda f: f, by_reference=self.by_reference), None
        except Exception as error:
            return None, error

    def expected(self) -> Plain:
        if self.plain is None:
            raise Skipped(f"plain code raises {self.plain_error!r}")
        return self.plain

    def does_rounding_decide(self) -> bool:
        """Whether plain code gives something else for floats that differ in their last digits: a step."""
        unit = np.finfo(np.float64 if self.is_double else np.float32).eps
        for step in (4 * unit, -4 * unit):
            prepare = partial(moved, step=step)
            found = run_calls(self.case, lambda f: f, prepare, self.by_reference)
            try:
                self.compare_calls(self.expected(), found)
            except Differs:
                return True
        return False

    def compare_calls(self, expected: Plain, found: Plain, tolerance: float | None = None) -> None:
        tolerance = tolerance or self.tolerance
        for place, (one, other) in enumerate(zip(expected.results, found.results)):
            compare(one, other, tolerance, f"call {place + 1}")
        for one_written, other_written in zip(expected.written, found.written):
            try:
                compare(one_written, other_written, tolerance, "arguments afterwards")
            except Differs as difference:
                raise Differs("written argument", difference.detail) from None
        for one_state, other_state in zip(expected.states, found.states):
            compare_state(one_state, other_state, tolerance)

    # --- what is called as the function is --------------------------------------------------------------

    def check_plain(self) -> None:
        """Pullback's functions on NumPy's data: by its meaning, of NumPy's kind."""
        if self.case.has_tensors:
            raise Skipped
        self.compare_calls(self.expected(), run_calls(self.case, lambda f: f))

    def check_compile(self) -> None:
        if self.plain is None:
            return self.compare_errors()
        self.compare_calls(self.plain, run_calls(self.case, pb.compile))

    def compare_errors(self) -> None:
        """Plain code raises: compiled code does so too."""
        try:
            found = run_calls(self.case, pb.compile)
        except type(self.plain_error):  # type: ignore[misc]
            return
        raise Differs("no error", f"plain raises {self.plain_error!r}, found {shown(found.results[0])}")

    def check_compile_inside(self) -> None:
        def nested(function: Any) -> Any:
            inner = pb.compile(function)
            return pb.compile(lambda *arguments: inner(*arguments))

        self.compare_calls(self.expected(), run_calls(self.case, nested))

    def check_cond(self) -> None:
        """In a branch; a function with state is left out, since both branches may be traced."""
        self.leave_out_stateful()

        def chosen(function: Any) -> Any:
            def either(number: Any, *arguments: Any) -> Any:
                return pb.cond(number > 0, function, function, *arguments)

            return functools.partial(pb.compile(either), np.float64(1.0))

        self.compare_calls(self.expected(), run_calls(self.case, chosen))

    def check_fori_loop(self) -> None:
        """In the one step of a loop."""
        self.leave_out_stateful()
        result = self.scalar_result()

        def looped(function: Any) -> Any:
            def steps(*arguments: Any) -> Any:
                return pb.fori_loop(0, 1, lambda _, carry: function(*arguments), one_like(result, 0))

            return pb.compile(steps)

        self.compare_calls(self.expected(), run_calls(self.case, looped))

    # --- rows -------------------------------------------------------------------------------------------

    def leave_out_stateful(self) -> None:
        if self.case.is_stateful:
            raise Skipped

    def rows(self, variables: dict[str, Any]) -> tuple[list[Any], list[int | None], list[list[Any]]]:
        """The arrays of both calls stacked, where they are arrays, and the arguments of each row."""
        first, second = variables["ARGUMENTS"], variables.get("ARGUMENTS_2", variables["ARGUMENTS"])
        axes = [0 if isinstance(one, np.ndarray) and one.ndim else None for one in first]
        if 0 not in axes:
            raise Skipped
        stacked = [np.stack(pair) if axis == 0 else pair[0] for axis, pair in zip(axes, zip(first, second))]
        each = [[one[row] if axis == 0 else one for axis, one in zip(axes, stacked)] for row in (0, 1)]
        return stacked, axes, each

    def expected_rows(self) -> Any:
        self.leave_out_stateful()
        self.expected()
        variables = self.case.loaded(self.by_reference)
        results = [kept(variables["f"](*copied(row))) for row in self.rows(variables)[2]]
        return stacked_results(results)

    def check_vmap(self) -> None:
        expected, variables = self.expected_rows(), self.case.loaded()
        stacked, axes, _ = self.rows(variables)
        found = pb.vmap(variables["f"], in_dims=tuple(axes))(*copied(stacked))
        compare(expected, found, self.tolerance, "rows")

    def check_compiled_map(self) -> None:
        expected, variables = self.expected_rows(), self.case.loaded()
        stacked, axes, _ = self.rows(variables)
        function, moving = variables["f"], [one for one, axis in zip(stacked, axes) if axis == 0]

        def mapped(*arrays: Any) -> Any:
            def one_row(row: Any) -> Any:
                parts = iter(row)
                return function(*(next(parts) if axis == 0 else one for one, axis in zip(stacked, axes)))

            return pb.map(one_row, arrays)

        compare(expected, pb.compile(mapped)(*copied(moving)), self.tolerance, "rows")

    # --- gradients --------------------------------------------------------------------------------------

    def scalar_result(self) -> Any:
        result = self.expected().results[0]
        if not is_number(result) or array_of(result).ndim or array_of(result).dtype.kind != "f":
            raise Skipped
        return result

    def differentiated(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """The places of arguments that have gradients."""
        places = (place for place, one in enumerate(arguments) if np.asarray(one).dtype.kind == "f")
        found = tuple(places)
        if not found:
            raise Skipped
        return found

    def check_value_and_grad(self) -> None:
        self.compare_gradient(lambda function, places: pb.value_and_grad(function, places), True)

    def check_compiled_value_and_grad(self) -> None:
        self.compare_gradient(lambda function, places: pb.compile(pb.value_and_grad(function, places)))

    def check_gradient_of_compiled(self) -> None:
        self.compare_gradient(lambda function, places: pb.value_and_grad(pb.compile(function), places))

    def check_vjp(self) -> None:
        result = self.scalar_result()

        def both(function: Any, places: tuple[int, ...]) -> Any:
            def call(*arguments: Any) -> Any:
                value, pull = pb.vjp(*of_floats(function, arguments, places))
                return value, pull(one_like(result, 1))

            return call

        self.compare_gradient(both)

    def compare_gradient(self, transform: Callable[..., Any], with_state: bool = False) -> None:
        expected, plain = self.scalar_result(), self.expected()
        variables = self.case.loaded()
        arguments = copied(variables["ARGUMENTS"])
        places = self.differentiated(arguments)
        value, gradients = transform(variables["f"], places)(*arguments)
        compare(expected, value, self.tolerance, "value")
        if with_state:
            compare_state(as_arrays(plain.states[0]), as_arrays(state_of(variables)), self.tolerance)
        originals = [variables["ARGUMENTS"][place] for place in places]
        for place, original, gradient in zip(places, originals, gradients):
            like = original if isinstance(original, pb.Tensor) else np.asarray(original)
            if isinstance(gradient, pb.Tensor) or array_of(gradient).dtype != like.dtype:
                raise Differs("gradient's kind", f"argument {place}: {shown(original)} has {shown(gradient)}")
        rng = np.random.default_rng(5)
        along = [np.round(rng.uniform(0.5, 1.5, np.shape(one)), 2) for one in originals]
        found = sum(float((array_of(gradient) * one).sum()) for gradient, one in zip(gradients, along))
        self.compare_slope(places, np.asarray(found), along, ", ".join(map(shown, gradients)))

    def compare_slope(self, places: tuple[int, ...], found: Any, along: list[np.ndarray], text: str) -> None:
        """A derivative along a direction, and central differences of the plain program.

        Where the program has a kink just there, every slope from the one behind it to the one ahead is right.
        """
        if not self.is_double and re.search(STEPS, self.case.text):
            return
        if not self.is_the_same_in_double():
            return
        steps = (1e-4, 1e-5, 3e-6) if self.is_double else (2e-2, 1e-2, 5e-3)
        tolerance = 1e-4 if self.is_double else 2e-2
        sides = [self.slopes(places, along, step) for step in steps]
        if len({one.shape for one in sides}) > 1 or not np.all(np.isfinite(sides)):
            return
        slopes = np.mean(sides, axis=1)
        bound = tolerance * max(1.0, np.abs(slopes).max(initial=0.0))
        if np.any(np.ptp(slopes, axis=0) > bound / 2):
            return  # a kink, or a step
        bends = np.ptp(sides, axis=1)
        is_kink = (bends[-1] > bound) & (bends[-1] > bends[0] / 2)  # smooth: they shrink as steps do
        reach = bound + np.where(is_kink, bends[-1] / 2, 0.0)
        if np.shape(found) != slopes[1].shape or not np.all(np.abs(found - slopes[1]) <= reach):
            raise Differs(
                "gradient", f"slope {shown(slopes[1])} by differences, found {shown(found)}: {text}"
            )

    def is_the_same_in_double(self) -> bool:
        """Programs ask for dtypes."""
        variables = self.case.loaded(self.by_reference)
        result = array_of(variables["f"](*map(in_double, copied(variables["ARGUMENTS"]))))
        plain = array_of(self.expected().results[0])
        return plain.shape == result.shape and is_near(plain, result, max(self.tolerance, 2e-3))

    def slopes(self, places: tuple[int, ...], along: list[np.ndarray], step: float) -> np.ndarray:
        """The one behind the point, and the one ahead."""

        def moved(distance: float) -> np.ndarray:
            variables = self.case.loaded(self.by_reference)
            arguments = [in_double(one) for one in copied(variables["ARGUMENTS"])]
            for place, one in zip(places, along):
                moved_one = arguments[place] + distance * one
                arguments[place] = float(moved_one) if type(arguments[place]) is float else moved_one
            return kept(array_of(variables["f"](*arguments))).astype(float)

        values = [moved(-step), moved(0.0), moved(step)]
        same = len({one.shape for one in values}) == 1
        return np.diff(values, axis=0) / step if same else np.full((2,), np.nan)

    def check_jvp(self) -> None:
        """A value of any shape and its tangent, and what the call leaves behind."""
        result = self.expected().results[0]
        if not is_number(result) or array_of(result).dtype.kind != "f":
            raise Skipped
        variables = self.case.loaded()
        arguments = copied(variables["ARGUMENTS"])
        places = self.differentiated(arguments)
        function, *floats = of_floats(variables["f"], arguments, places)
        tangents = tuple(np.asarray(one) * 0 + 1 if np.ndim(one) else type(one)(1) for one in floats)
        value, tangent = pb.jvp(function, tuple(floats), tangents)
        compare(result, value, self.tolerance, "value")
        compare_state(as_arrays(self.expected().states[0]), as_arrays(state_of(variables)), self.tolerance)
        ones = [np.ones(np.shape(one)) for one in floats]
        self.compare_slope(places, np.asarray(array_of(tangent), float), ones, "by jvp")

    # --- Tensors in the place of arrays -----------------------------------------------------------------

    def with_tensors(self) -> Plain:
        try:
            return run_calls(self.case, lambda f: f, as_tensors)
        except Exception as error:
            raise Skipped from error

    def check_tensors_compiled(self) -> None:
        # Beside integers and bools Tensors compute in float32, as PyTorch does, whatever the program names.
        expected = self.with_tensors()
        compiled = run_calls(self.case, pb.compile, as_tensors)
        self.compare_calls(expected, compiled, max(self.tolerance, IN_SINGLE))

    def check_tensors_backward(self) -> None:
        """`backward()` and `grad` agree on Tensors; each may refuse, and `backward()` may warn."""
        plain = self.with_tensors()
        result = plain.results[0]
        if not isinstance(result, pb.Tensor) or result.dim() or not result.is_floating_point():
            raise Skipped
        if re.search(r"\.(item|tolist)\(", self.case.text):
            raise Skipped  # as in PyTorch, without a warning
        if "deepcopy" in self.case.text:
            raise Skipped  # as in PyTorch, of a leaf it is another leaf
        variables = self.case.loaded()
        arguments = as_tensors(variables["ARGUMENTS"])
        leaves = [one for one in arguments if isinstance(one, pb.Tensor) and one.is_floating_point()]
        for leaf in leaves:
            leaf.requires_grad_()
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            value = variables["f"](*arguments)
        if not value.requires_grad or any("gradient" in str(one.message) for one in noted):
            raise Skipped
        value.backward()
        again = self.case.loaded()
        arguments = as_tensors(again["ARGUMENTS"])
        places = tuple(
            place
            for place, one in enumerate(arguments)
            if isinstance(one, pb.Tensor) and one.is_floating_point()
        )
        value, gradients = pb.value_and_grad(again["f"], places)(*arguments)
        compare(result, value, max(self.tolerance, 2e-4), "value under value_and_grad")
        for leaf, gradient in zip(leaves, gradients):
            one = array_of(leaf.grad) if leaf.grad is not None else np.zeros(leaf.shape)
            if not is_near(
                np.asarray(one, float), np.asarray(array_of(gradient), float), max(self.tolerance, 2e-4)
            ):
                raise Differs("gradient", f"by backward() {shown(leaf.grad)}, by grad {shown(gradient)}")


def as_arrays(state: dict[str, Any]) -> dict[str, Any]:
    """What a program stores while its gradient is taken may be a Tensor, as in PyTorch."""
    return {name: array_of(one) for name, one in state.items()}


def of_floats(function: Any, arguments: Sequence[Any], places: tuple[int, ...]) -> list[Any]:
    """The function of the arguments that have gradients alone, and these."""

    def of_these(*floats: Any) -> Any:
        given = list(arguments)
        for place, one in zip(places, floats):
            given[place] = one
        return function(*given)

    is_all = len(places) == len(arguments)
    return [function if is_all else of_these, *(arguments[place] for place in places)]


def one_like(result: Any, number: int) -> Any:
    if isinstance(result, pb.Tensor):
        return pb.full_like(result, number)
    return np.full_like(result, number) if isinstance(result, np.ndarray) else type(result)(number)


def moved(one: Any, step: float) -> Any:
    """A copy with floats, also those in containers, that are larger by a part of themselves."""
    if isinstance(one, list | tuple):
        return type(one)(moved(each, step) for each in one)
    if isinstance(one, np.ndarray | np.floating) and one.dtype.kind == "f":
        return (one * (1 + step)).astype(one.dtype)
    if type(one) is float:
        return one * (1 + step)
    return one.copy() if isinstance(one, np.ndarray) else one


def in_double(one: Any) -> Any:
    if isinstance(one, np.ndarray) and one.dtype.kind == "f":
        return one.astype(np.float64)
    return np.float64(one) if isinstance(one, np.floating) else one


def stacked_results(results: list[Any]) -> Any:
    if is_number(results[0]) and len({np.shape(array_of(one)) for one in results}) > 1:
        raise Skipped  # the values of a row decide its shape: there is no array of the rows
    if is_number(results[0]) and not isinstance(results[0], pb.Tensor):
        return np.stack(list(map(np.asarray, results)))
    if isinstance(results[0], pb.Tensor):
        return pb.stack(results)
    if isinstance(results[0], (tuple, list)):
        return type(results[0])(stacked_results(list(parts)) for parts in zip(*results))
    if isinstance(results[0], dict):
        return {key: stacked_results([one[key] for one in results]) for key in results[0]}
    raise Skipped


# --- all checks -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """Generated code is run by the interpreter, which takes less time than compiling it."""
    compiled = GeneratedCode.runner
    GeneratedCode.runner = property(lambda program: program.run_uncompiled)  # type: ignore[assignment]
    try:
        yield
    finally:
        GeneratedCode.runner = compiled  # type: ignore[method-assign]


@contextlib.contextmanager
def limited() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


NAMES = tuple(name.removeprefix("check_") for name in vars(Checks) if name.startswith("check_"))
DEFECTS = (pb.errors.GraphError, pb.errors.CompilationError)
"""Errors of pullback that say that pullback is wrong."""


def is_of_torch(error: Exception) -> bool:
    """Whether PyTorch refuses as well, where NumPy in the reference does not: functions of two dtypes."""
    return isinstance(error, pb.errors.DTypeError)


def outcome_of(checks: Checks, name: str) -> Outcome:
    try:
        with quiet(), limited():
            getattr(checks, f"check_{name}")()
    except Skipped:
        return Outcome(name, "skipped")
    except Differs as difference:
        with quiet():
            is_noise = difference.status == "value" and checks.does_rounding_decide()
        return Outcome(name, "skipped") if is_noise else Outcome(name, difference.status, difference.detail)
    except Hangs:
        return Outcome(name, "hangs")
    except pb.errors.PullbackError as error:
        text = f"{type(error).__name__}: {error}"
        works_plainly = name == "plain" and checks.plain is not None and not is_of_torch(error)
        if isinstance(error, DEFECTS) or works_plainly:
            return Outcome(name, "exception", text)
        return Outcome(name, "refused", text)
    except Exception as error:
        if type(error) is type(checks.plain_error):
            return Outcome(name, "ok")
        return Outcome(name, "exception", f"{type(error).__name__}: {error}")
    return Outcome(name, "ok")


def outcomes(case: Case, names: Sequence[str] = NAMES) -> list[Outcome]:
    checks = Checks(case)
    return [outcome_of(checks, name) for name in names]
