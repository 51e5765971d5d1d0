"""What is wrong, in NumPy's words, where a call of NumPy's has failed.

A program of arrays is differentiated by functions that speak of tensors and dimensions, as PyTorch does. What
NumPy says of the same call, people of NumPy know and search for; so NumPy is asked: the call is made again
with plain arrays of these shapes and dtypes. Where NumPy would compute it, the words are translated.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np

from .errors import ArgumentError, DimensionError, LinearAlgebraError, PullbackError, ShapeError
from .failed_calls import FailedCall, call_of, is_said, is_tensor, leaves_of
from .origin import place_of_line
from .quiet import Quiet

LARGEST = 2**20
"""Elements of an array with whose values NumPy is asked. Of larger ones it is asked what is wrong with their
shapes, which it says before it computes."""
LONGEST_SENTENCE = 300
WORDS = (
    (r"\bNumpyTensor\b", "ndarray"),
    (r"\ba tensor\b", "an array"),
    (r"\b(tensor(?=s?\b)|Tensor(?=s\b))", "array"),
    (r"\b[Dd]imension (?=-?\d)", "axis "),
    (r"\bDimension out of range\b", "axis out of range"),
    (r"'dim'", "'axis'"),
    (r"'keepdim'", "'keepdims'"),
    (r"\btorch\.(?=(u?int|float|complex|bool)\d*\b)", ""),
    (r"\bdim(?= -?[\d(])", "axis"),
)
"""PyTorch's words, and NumPy's for them."""
REMEDIES = (
    (
        r"could not be broadcast together|non-broadcastable|shape mismatch: objects",
        "Sizes must be equal or 1, from the last axis on: give one operand an axis of size 1, as x[:, None], "
        "or reshape it",
    ),
    (r"could not broadcast input", "Reshape what is written, or write into another part"),
    (
        r"core dimension|not aligned",
        "The last axis of the first is summed with the last but one of the second, or its only one, and must "
        "be as long: transpose one, as x.T, or reshape it",
    ),
    (r"cannot reshape", "The product of the sizes must be the number of elements; one may be -1"),
    (r"is out of bounds for array of dimension", "Axes count from 0, or back from -1"),
    (r"is out of bounds for (axis|size)", "Positions count from 0, or back from -1"),
    (
        r"must match exactly|must have (the )?same (shape|number of dimensions)",
        "Reshape one, or take a part of it",
    ),
    (r"indices must|valid indices|integer \(or boolean\) type", "Convert it, as i.astype(int)"),
    (r"boolean index did not match", "A mask has the shape of the axes that it chooses from"),
    (r"truth value of an array", "To choose element by element use np.where(condition, a, b)"),
    (r"not supported for the input types", "Convert before, as x.astype(int) or x > 0"),
    (r"Singular matrix", "numpy.linalg.lstsq and numpy.linalg.pinv give solutions of least squares"),
    (r"inhomogeneous", "Pad the rows to one length, or compute with each by itself"),
    (r"must be square", "For others there are numpy.linalg.lstsq and numpy.linalg.pinv"),
)
"""By what NumPy says, what to do."""
UNCLEAR = re.compile(r"tuple index|object too deep|required positional argument: 'N'|einstein sum|newaxis")
"""What NumPy says worse than the words that are translated."""
KNOWN = (bool, int, float, complex, str, type(None), type(...), slice, np.dtype, np.generic, type)
"""Arguments that are given to NumPy as they are."""
_quiet = Quiet()


def in_words_of_numpy(error: PullbackError, call: FailedCall, place: str) -> str:
    """The message of an error that is raised in a call of NumPy's, as NumPy would say it.

    Args:
        place: the user's line, which the message may have.
    """
    says = _answer(call, isinstance(error, ShapeError | DimensionError))
    if not says or UNCLEAR.search(says):
        return _translated(str(error), call, place)
    what = says.removeprefix(f"{call.name}: ").removeprefix("matmul: ").rstrip(".")
    remedy = next((f" {text}." for part, text in REMEDIES if re.search(part, what)), "")
    return f"{call.name}: {what}.{remedy}\n  at {place}"


def refused_by_numpy(error: Exception, entries: Sequence[FrameType]) -> PullbackError | None:
    """An error that a function of pullback's has met, as one of pullback's own where NumPy raises it as well.

    Args:
        entries: the frames of pullback that it has gone through, the outermost first.
    """
    call = call_of(entries)
    users = entries[0].f_back
    if call is None or not call.name or users is None or not any(map(is_tensor, leaves_of(call))):
        return None
    kind = next((ours for theirs, ours in KINDS if isinstance(error, theirs)), None)
    if kind is None or not _answer(call, True):
        return None
    place = place_of_line(users.f_code.co_filename, users.f_lineno)
    found = kind(f"{error}\n  at {place}")
    found.__notes__ = []  # which say where this is made
    found.args = (in_words_of_numpy(found, call, place),)
    if not is_said(str(found), call.shown):
        found.add_note(f"  in {call.shown}")
    return found


KINDS: tuple[tuple[type[Exception], type[PullbackError]], ...] = (
    (np.linalg.LinAlgError, LinearAlgebraError), (IndexError, DimensionError), (TypeError, ArgumentError),
    (ValueError, ArgumentError),
)  # fmt: skip


def _answer(call: FailedCall, is_of_shapes: bool) -> str:
    """What NumPy says of a call with such arguments; nothing if it computes them, or is not to be asked."""
    assert call.plain is not None
    try:
        given, named = _plain(call.given, is_of_shapes), _plain(call.named, is_of_shapes)
    except LookupError:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _quiet.run(call.plain, *given, **named)
        except Exception as error:
            return " ".join(str(error).split())[:LONGEST_SENTENCE]
    return ""


def _plain(value: Any, is_of_shapes: bool) -> Any:
    """A copy of an argument in which arrays stand for tensors; of large ones, and of traced, only the shapes.

    Raises:
        LookupError: there is none, or NumPy may compute long before it says what is wrong.
    """
    if isinstance(value, Mapping) and not is_tensor(value):
        return {name: _plain(one, is_of_shapes) for name, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_plain(one, is_of_shapes) for one in value)
    if is_tensor(value):
        array = _plain_array(value._value, is_of_shapes)
        return value._as_plain(array) if hasattr(value, "_as_plain") else array
    if type(value) is np.ndarray:
        return _plain_array(value, is_of_shapes)
    if isinstance(value, KNOWN):
        return value
    raise LookupError


def _plain_array(payload: Any, is_of_shapes: bool) -> np.ndarray:
    shape = tuple(map(int, payload.shape))
    is_large = math.prod(shape) > LARGEST
    if is_large and not is_of_shapes:
        raise LookupError
    is_known = isinstance(payload, np.ndarray) and not is_large
    return payload.copy() if is_known else np.zeros(shape, payload.dtype)


def _translated(message: str, call: FailedCall, place: str) -> str:
    """A message of PyTorch's words in those of NumPy; the user's line in it stays as it is."""
    parts = message.split(place) if place else [message]
    for old, new in WORDS:
        parts = [re.sub(old, new, one) for one in parts]
    named = re.sub(r"^[A-Za-z_][\w.]*(\(\)( argument)?: |: |\(\) )", f"{call.name}: ", parts[0])
    return place.join([named, *parts[1:]])
