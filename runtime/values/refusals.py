"""Errors where a library can't take a Tensor: the function, the user's line, the cause, and what to do.

Under `grad`, `vjp` and their kin a gradient would get lost where a library makes an array or a number of a
value that depends on a differentiated argument. Other libraries just fail, with errors about a class that the
user has never seen, since the plain function gets arrays and numbers: these are explained where they leave
the user's function. And code in C may hide what was raised while it called back: that is raised again.
"""

from __future__ import annotations

import dis
import re
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from ...tracer.errors import (
    ArgumentError,
    EagerOnlyError,
    GradientError,
    PullbackError,
    Refusals,
    UnsupportedError,
    note_refusal,
    refusals,
)
from ...tracer.numpy_words import refused_by_numpy
from ...tracer.origin import at_caller, at_place, is_users_code, place_of_line
from ...tracer.trace import is_tracing
from ...tracer.tracebacks import hide_own_frames, misfit, own_frames_at_end
from ..bytecode.library_calls import call_at, library_call
from .saved import saved_values

# --- what to do instead -------------------------------------------------------------------------------------

STEPS = "Write out the method's steps with operations on tensors, e.g. a loop of Runge-Kutta steps"
ANEW = (
    "Give it like=x, as in numpy.array(..., like=x), or call it by the module's name numpy: as a default, as "
    "an attribute of a class, or imported by a method it is NumPy's own unless the function is compiled"
)
REMEDIES = {
    " = ...": "Make the array with numpy.zeros(..., like=x), or pass it as an argument",
    "numpy.ndarray.": "An array's own methods take no tensors: write a @ x for a.dot(x)",
    "numpy.random.": (
        "Draw numbers that do not depend on it, and transform them: mean + scale * "
        "numpy.random.standard_normal(shape)"
    ),
    "numpy.array": ANEW,
    "numpy.as": ANEW,
    "numpy.full": ANEW,
    "numpy.fromiter": "Use numpy.array([...]) of a list",
    "array.array": "Use numpy.array([...]) of a list",
    "statistics.": "Use numpy.mean, numpy.var, numpy.median and the like",
    "scipy.integrate.ode": STEPS,
    "scipy.integrate.solve_": STEPS,
    "scipy.integrate.": (
        "quad, dblquad, fixed_quad, simpson, solve_ivp and odeint take tensors, and so does a sum over "
        "nodes: t, w = numpy.polynomial.legendre.leggauss(n) gives those of [-1, 1], and numpy.sum(w * f(t))"
    ),
    "scipy.optimize.": (
        "root, root_scalar, brentq, minimize and least_squares take tensors. Else call it with "
        "pullback.stop_gradient(x), and take one Newton step from what it finds, which has the gradient of a "
        "solution of f(r, x) = 0: r - f(r, x) / df_dr"
    ),
    "scipy.interpolate.": (
        "Of scipy.interpolate, CubicSpline, PchipInterpolator, Akima1DInterpolator, interp1d, BSpline, "
        "make_interp_spline, splrep, splev, RegularGridInterpolator and interpn take tensors, and so does "
        "numpy.interp"
    ),
    "scipy.fft.": "Outside of transforms use pullback.fft or numpy.fft, which take tensors",
    "scipy.sparse.": (
        "Multiply with the matrix (A @ x, A.T @ x), or use a dense one: its .toarray(). One whose values are "
        "tensors is made by csr_matrix((values, (rows, columns)), shape), csc_matrix or coo_matrix"
    ),
    "scipy.ndimage.": "Write it with numpy.convolve or pullback.nn.functional.conv2d",
    "scipy.linalg.hessenberg": "scipy.linalg.qr, schur and eigvals take tensors",
    "scipy.linalg.ldl": (
        "scipy.linalg.cholesky takes tensors where the matrix is definite, and solve, with assume_a='sym', "
        "where it is not"
    ),
    "_banded": (
        "scipy.linalg.eigh of the whole matrix takes tensors; with bands solve_banded, solveh_banded, "
        "cholesky_banded and cho_solve_banded do"
    ),
    "scipy.linalg.": (
        "Of scipy.linalg, solve and its kin, cholesky, lu, qr, svd, eigh, eig, schur, lstsq, pinv, expm, "
        "sqrtm, logm, solve_sylvester and solve_continuous_are take tensors"
    ),
    "scipy.signal.": (
        "Of scipy.signal, convolve, correlate, fftconvolve, oaconvolve, convolve2d, correlate2d, lfilter, "
        "sosfilt, filtfilt, sosfiltfilt, savgol_filter, detrend and hilbert take tensors"
    ),
    "scipy.spatial.distance.": (
        "Measures of truth values (hamming, jaccard, dice, ...) are constant between their steps, and have "
        "no derivative; cdist and pdist with the other metrics, and functions of these names, take tensors"
    ),
    "KDTree": (
        "Take the indices that query() of pullback.stop_gradient(x) finds, and compute the distances to "
        "points[indices] with tensors"
    ),
    **dict.fromkeys(
        ("ConvexHull", "Delaunay", "Voronoi", "HalfspaceIntersection"),
        "Take the indices that it finds for pullback.stop_gradient(x), as .vertices or .simplices, and "
        "compute with x[indices]",
    ),
    "Rotation": (
        "Write the rotation as a matrix: scipy.linalg.expm of a skew-symmetric matrix takes tensors, and so "
        "do products of quaternions written out"
    ),
    "scipy.spatial.": (
        "Of scipy.spatial, distance_matrix, minkowski_distance and scipy.spatial.distance take tensors"
    ),
    "pandas.": "Take arrays out of pandas objects, with .to_numpy(), and compute with those",
    "xarray.": "Take arrays out of xarray objects, with .to_numpy(), and compute with those",
}  # fmt: skip
"""By a part of the function's name, in the order in which they are tried."""
DEFAULT = (
    "Write it with functions of numpy or pullback on tensors (numpy.stack makes one of a list), or give it a "
    "backward as a pullback.autograd.Function"
)

FOR_THE_VALUE_ALONE = "where no gradient is wanted, apply it to pullback.stop_gradient(x)"


def remedy(call: str) -> str:
    """What to write in the place of a call."""
    return next((text for part, text in REMEDIES.items() if part in call), DEFAULT)


def has_remedy(call: str) -> bool:
    """Whether it is known what to write in the place of a call."""
    return any(part in call for part in REMEDIES)


# --- gradients ----------------------------------------------------------------------------------------------


def array_refused() -> GradientError:
    """The error for a tensor that requires grad where an array is asked for."""
    call = library_call()
    instead = (
        "Use tensor.detach().numpy() if the array shall not have one, else a function that takes tensors"
        if saved_values() is None
        else f"{remedy(call)}; {FOR_THE_VALUE_ALONE}"
    )
    return noted(
        f"A NumPy array has no gradient, and {call or 'this'} makes one of a tensor that requires one"
        f"{at_caller()}. {instead}."
    )


def number_refused(call: str) -> GradientError:
    """The error for a tensor with a gradient of which a library takes the number."""
    return noted(
        f"{call or 'a function of a library'} computes with plain numbers, and is given a value that depends "
        f"on a differentiated argument{at_caller()}. A number has no gradient. {remedy(call)}; "
        f"{FOR_THE_VALUE_ALONE}."
    )


def noted(message: str, kind: type[PullbackError] = GradientError) -> Any:
    """The error, which is raised again where code in C hides it."""
    error = kind(message)
    found = refusals.get()
    if found is not None:
        found.of_plain_values = (*found.of_plain_values, error)
    return error


def raised_plainly(error: Exception, reason: Exception) -> Exception:
    """An error of the user's code on plain values, to be shown as it is: no refusal has led to it.

    Args:
        reason: why the code was not traced.
    """
    found = refusals.get()
    if found is not None:
        found.of_plain_values = ()
    if error is not reason:
        error.add_note(f"Python called it with arrays since it is not traced: {_shortened(str(reason))}")
    return error


# --- errors of others ---------------------------------------------------------------------------------------

ABOUT_TENSORS = re.compile(
    r"\b(Numpy|Torch)?Tensor\b|NumpyScalar|PythonNumber|Object of type |\btensor\(|'Node'"
)


class explaining_errors(Refusals):
    """Inside, the user's function runs on Tensors: what libraries raise about them is explained.

    A refusal that the function catches by a class of Python's is raised at its end: the plain function would
    not have met it, and what this one went on with is another program.
    """

    def __enter__(self) -> None:
        self._token = refusals.set(self)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None and not self.of_plain_values and not self.unsupported:
            refusals.reset(self._token)
            return
        shown: Any = explained(error, self.of_plain_values) if isinstance(error, Exception) else error
        refusals.reset(self._token)
        if error is None:
            shown = next(filter(_is_caught, [*self.of_plain_values, *self.unsupported]), None)
        elif isinstance(shown, UnsupportedError):
            note_refusal(shown)  # the function outside may catch it
        elif shown in self.of_plain_values and (outer := refusals.get()) is not None:
            outer.of_plain_values = (*outer.of_plain_values, shown)
        if isinstance(error, Exception):
            hide_own_frames(error)
        if shown is not error and shown is not None:
            raise shown


def _is_caught(error: BaseException) -> bool:
    """Whether the user's code has caught an error, and neither a library that has another way nor code that
    names the error's class, which knows of it."""
    raised = error.__traceback__
    if raised is None or not is_users_code(code := raised.tb_frame.f_code):
        return False
    classes = {kind.__name__ for kind in type(error).__mro__ if issubclass(kind, PullbackError)}
    return classes.isdisjoint((*code.co_names, *code.co_freevars))


def explained(error: Exception, refused: Sequence[PullbackError] = ()) -> Exception:
    """The error of pullback that another one hides, or an explanation of it; else the error itself."""
    raised = _innermost(error)
    if isinstance(error, PullbackError) or (raised is not None and _is_raise(raised)):
        return error
    hidden = error.__cause__ if isinstance(error.__cause__, PullbackError) else None
    if hidden is None and refused:
        hidden = refused[-1]
    if hidden is not None:
        hidden.__suppress_context__ = True
        return hidden
    if is_tracing() and READ_ONLY in str(error):
        call, place = _met_at(raised)
        return _made_late(
            EagerOnlyError,
            f"{call or 'a library'} asks for memory that it may write into, and a traced value has "
            f"none{at_place(place)}.",
        )
    if isinstance(error, TypeError) and (found := misfit(error)) is not None:
        return _made_late(ArgumentError, found)
    if not ABOUT_TENSORS.search(str(error)):
        entries = own_frames_at_end(error)
        return (refused_by_numpy(error, entries) if entries else None) or error
    if _is_of_plain_call(error):
        return error
    return _about_tensor(error, raised)


READ_ONLY = "buffer source array is read-only"
"""What functions written in Cython say of the array that a traced value answers with."""


def _met_at(raised: TracebackType | None) -> tuple[str, str]:
    """What the user's function called when an error was raised, and where."""
    if raised is None:
        return "", ""
    call = call_at(raised.tb_frame, raised.tb_lasti)
    return call, place_of_line(raised.tb_frame.f_code.co_filename, raised.tb_lineno)


def _about_tensor(error: Exception, raised: TracebackType | None) -> Exception:
    """An error of the same kind that says where the user's function has met a Tensor."""
    call, place = _met_at(raised)
    text = _as_of_plain_values(str(error))
    if operands := OPERANDS.search(text):
        what = next((one for one in operands.groups() if one in BUILTIN), "")
        if what:
            given = f"{call or 'an operator'}{' is given None' * (what == 'NoneType')}"
            shown = f"{given}{at_place(place)}: {_shortened(text)}."
            return _made_late(ArgumentError, f"{shown} {IN_PLACE_OF.get(what, NUMBER_OR_ARRAY)}.")
    kind = UnsupportedError if isinstance(error, AttributeError) else ArgumentError
    found = _made_late(
        kind,
        f"{call or 'a library'} cannot take the tensor that stands for an array or a number here, since the "
        f"function is differentiated or traced{at_place(place)}: {type(error).__name__}: "
        f"{_shortened(str(error)).rstrip('.')}. "
        f"{remedy(call)}; where no gradient is needed, apply it to numpy.asarray(pullback.stop_gradient(x)).",
    )
    found.__cause__ = error
    return found


OPERANDS = re.compile(r"(?:operand type\(s\) for .*:|between instances of) '([\w.]+)' and '([\w.]+)'")
BUILTIN = frozenset(
    ("str", "bytes", "NoneType", "dict", "set", "frozenset", "range", "slice", "object", "type", "function",
     "module", "builtin_function_or_method", "method", "generator", "ellipsis")
)  # fmt: skip
"""What no array is computed with, so that the plain function would fail as well."""
NUMBER_OR_ARRAY = "Pass an array or a number in its place"
IN_PLACE_OF = {
    "function": "Call it: the function itself is no number",
    "builtin_function_or_method": "Call it: the function itself is no number",
    "method": "Call it, with () behind: the method itself is no number",
    "str": "Convert the text to a number before, as float(text)",
}
STANDS_FOR = {
    "NumpyTensor": "numpy.ndarray", "NumpyScalar": "numpy.float64", "PythonNumber": "float",
    "TorchTensor": "Tensor",
}  # fmt: skip


def _as_of_plain_values(text: str) -> str:
    """An error's text with the classes that tensors stand for."""
    return re.sub(rf"\b({'|'.join(STANDS_FOR)})\b", lambda one: STANDS_FOR[one[0]], text)


def _made_late(kind: type[PullbackError], message: str) -> PullbackError:
    """An error that tells the user's line, and is made where the user's function has ended."""
    error = kind(message)
    error.__notes__ = []
    return error


NOT_OF_THE_KIND = re.compile(r"object is not (callable|an iterator|a mapping)")


def _is_of_plain_call(error: Exception) -> bool:
    """Whether the plain call fails alike, as what the tensor stands for is nothing of the kind, or lacks the
    attribute as well; then the error says so."""
    if isinstance(error, TypeError) and NOT_OF_THE_KIND.search(str(error)):
        error.args = (_as_of_plain_values(str(error)),)
        return True
    if not isinstance(error, AttributeError) or error.name is None:
        return False
    kind = error.obj.__class__
    if hasattr(kind, error.name):
        return False
    library = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    error.args = (f"'{library}{kind.__qualname__}' object has no attribute '{error.name}'",)
    return True


def _innermost(error: Exception) -> TracebackType | None:
    """Where the user's program was when the error was raised."""
    found, one = None, error.__traceback__
    while one is not None:
        if is_users_code(one.tb_frame.f_code):
            found = one
        one = one.tb_next
    return found


def _is_raise(raised: TracebackType) -> bool:
    """Whether the user's line itself says `raise`."""
    instructions = dis.get_instructions(raised.tb_frame.f_code)
    return any(one.offset == raised.tb_lasti and one.opname == "RAISE_VARARGS" for one in instructions)


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


LONGEST = 200
"""Characters of another error's text that a message quotes."""
