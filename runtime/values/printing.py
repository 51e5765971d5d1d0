"""The printed form of tensors, the same text as PyTorch 2.13 prints.

A tensor is printed in three steps: the visible part is taken (all of a small tensor, the edges of a large
one), one number format is chosen for all its elements, and the formatted cells are laid out in rows.
`set_printoptions` and `printoptions` change how, for the whole process as in PyTorch.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ...tracer.records import record

__all__ = ["format_scalar", "format_tensor", "printoptions", "set_printoptions"]

ELLIPSIS_CELL = " ..."


@record(frozen=True)
class PrintOptions:
    """How tensors are printed.

    Attributes:
        precision: digits after the decimal point.
        threshold: a tensor with more elements than this is summarised.
        edgeitems: how many entries a summary shows at each end of a dimension.
        linewidth: characters in a line.
        sci_mode: scientific notation always (True), never (False), or as the values need it (None).
    """

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}

_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors are printed, for the whole process.

    `profile` is "default", "short" or "full"; the other arguments override it. What is None stays as it is,
    except `sci_mode`, where None means "as the values need it" and every call sets it, as in PyTorch.

    Raises:
        ValueError: for an unknown profile.

    Example:
        >>> set_printoptions(precision=2)
        >>> tensor([0.125])
        tensor([0.12])
        >>> set_printoptions(profile="default")
    """
    global _options
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"profile must be one of {', '.join(map(repr, PROFILES))}, got {profile!r}")
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    base = _options if profile is None else PROFILES[profile]
    _options = replace(base, **changes, sci_mode=sci_mode)


@contextmanager
def printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> Iterator[None]:
    """`set_printoptions` for the length of a `with` block; the former options return afterwards.

    Example:
        >>> with printoptions(precision=1):
        ...     tensor([0.25])
        tensor([0.2])
    """
    global _options
    former = _options
    set_printoptions(precision, threshold, edgeitems, linewidth, profile, sci_mode)
    try:
        yield
    finally:
        _options = former


def format_tensor(
    array: np.ndarray,
    *,
    dtype_name: str,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    prefix: str = "tensor",
    default_float: str = "float32",
) -> str:
    """The printed form of a tensor that holds `array`.

    Args:
        array: the values, of any shape and any boolean, integer, floating or complex dtype.
        dtype_name: the dtype to name after the values, as "float64", where it is not the one that the
            printed values would be read back with.
        requires_grad: whether to say `requires_grad=True`; `grad_fn_name` takes its place.
        grad_fn_name: the operator that made the tensor, as "AddBackward0".
        prefix: what stands before the parenthesis; later lines are indented by its length.
        default_float: the dtype that Python floats become, which is not named.

    Example:
        >>> print(format_tensor(np.array([[1.0, 2.5], [-3.0, 4.0]]), dtype_name="float64"))
        tensor([[ 1.0000,  2.5000],
                [-3.0000,  4.0000]], dtype=torch.float64)
    """
    options = _options
    indent = len(prefix) + 1
    summarised = array.size > options.threshold
    suffixes = []
    # PyTorch names the shape where brackets cannot show it, and without edge items that of every tensor.
    if (array.size == 0 and array.ndim != 1) or (array.size > 0 and options.edgeitems == 0):
        suffixes.append(f"size={array.shape}")
    if not _dtype_is_implied(dtype_name, array.size == 0, default_float):
        suffixes.append(f"dtype=torch.{dtype_name}")
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")

    if array.size == 0:
        body = "[]"
    elif summarised and options.edgeitems == 0 and array.ndim > 0:
        body = "[...]"
    else:
        body = _format_values(array, summarised, indent, options)
    return _append_suffixes(f"{prefix}({body}", suffixes, indent, options.linewidth)


class HasItem(Protocol):
    """A tensor or array as far as `format_scalar` needs it."""

    @property
    def ndim(self) -> int: ...

    def item(self) -> Any: ...


def format_scalar(value: HasItem, format_spec: str = "") -> str:
    """What `Tensor.__format__` returns: the item of a 0-d tensor formatted, else `object`'s answer.

    Raises:
        TypeError: for a non-empty `format_spec` and a tensor that is not 0-d.

    Example:
        >>> format_scalar(np.array(3.14159), ".3f")
        '3.142'
    """
    if value.ndim == 0:
        return format(value.item(), format_spec)
    return object.__format__(value, format_spec)


def format_table(array: np.ndarray) -> list[list[str]]:
    """The elements of an array of up to two dimensions as they are printed, in rows; edges of a large one.

    Example:
        >>> format_table(np.array([[0.5, 1.0]]))
        [['0.5000', '1.0000']]
    """
    table = np.atleast_2d(array)
    elided = tuple(table.size > _options.threshold and n > 2 * _options.edgeitems for n in table.shape)
    visible = _visible_part(table, elided, _options.edgeitems)
    text = _choose_format(visible, _options).text if visible.size else str
    rows = [[text(value).strip() for value in row] for row in visible.tolist()]
    if elided[1]:
        rows = [[*row[: _options.edgeitems], "…", *row[_options.edgeitems :]] for row in rows]
    if elided[0]:
        rows.insert(_options.edgeitems, ["…"] * len(rows[0]))
    return rows


def _dtype_is_implied(dtype_name: str, is_empty: bool, default_float: str) -> bool:
    """Whether the printed values alone tell the dtype; those of an empty tensor tell the default only."""
    if is_empty:
        return dtype_name == default_float
    default_complex = "complex128" if default_float == "float64" else "complex64"
    return dtype_name in (default_float, default_complex, "int64", "bool")


def _append_suffixes(text: str, suffixes: list[str], indent: int, linewidth: int) -> str:
    """`text` closed after its suffixes, each on a line of its own where it does not fit on the last one."""
    # PyTorch counts two characters more on the last line of values, none on a line that a suffix began.
    used = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in suffixes:
        if used + len(f", {suffix}") > linewidth:
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
        else:
            text += f", {suffix}"
            used += len(f", {suffix}")
    return text + ")"


def _format_values(array: np.ndarray, summarised: bool, indent: int, options: PrintOptions) -> str:
    """The nested brackets with the visible elements."""
    elided = tuple(summarised and size > 2 * options.edgeitems for size in array.shape)
    visible = _visible_part(array, elided, options.edgeitems)
    element_format = _choose_format(visible, options)
    if array.ndim == 0:
        return element_format.text(visible.item())
    room = options.linewidth - indent - (array.ndim - 1)
    elements_per_line = max(1, room // (element_format.width + len(", ")))

    def lay_out(values: list, depth: int) -> str:
        """One bracket, `depth` brackets inside the outermost."""
        margin = " " * (indent + depth + 1)
        innermost = depth == array.ndim - 1
        if innermost:
            entries = [element_format.text(value) for value in values]
        else:
            entries = [lay_out(value, depth + 1) for value in values]
        if elided[depth]:
            entries.insert(options.edgeitems, ELLIPSIS_CELL if innermost else "...")
        if innermost:
            lines = [
                ", ".join(entries[start : start + elements_per_line])
                for start in range(0, len(entries), elements_per_line)
            ]
            return "[" + (",\n" + margin).join(lines) + "]"
        blank_lines = "\n" * (array.ndim - depth - 1)  # matrices stand one empty line apart, and so on
        return "[" + ("," + blank_lines + margin).join(entries) + "]"

    return lay_out(visible.tolist(), 0)


def _visible_part(array: np.ndarray, elided: tuple[bool, ...], edgeitems: int) -> np.ndarray:
    """`array` with only the first and last `edgeitems` entries along each dimension that is `elided`."""
    for dim, is_elided in enumerate(elided):
        if is_elided:
            size = array.shape[dim]
            edges = np.r_[0:edgeitems, size - edgeitems : size]
            array = np.take(array, edges, axis=dim)
    return array


@record(frozen=True)
class ElementFormat:
    """How one element is printed, and the width that elements are aligned to.

    `text` may return more than `width` characters: zeros, infinities and nans do not count for the width.
    """

    width: int
    text: Callable[[Any], str]


def _choose_format(visible: np.ndarray, options: PrintOptions) -> ElementFormat:
    """The one format for all elements of `visible`."""
    if visible.dtype.kind == "f":
        return _float_format(visible, options)
    if visible.dtype.kind == "c":
        return _complex_format(visible, options)
    width = max(len(str(value)) for value in visible.ravel().tolist())
    return ElementFormat(width, lambda value: str(value).rjust(width))


def _float_format(visible: np.ndarray, options: PrintOptions) -> ElementFormat:
    """Whole numbers as `1.`, others with every digit of the precision; far apart ones scientifically."""
    # Chosen in float64, where the float32 nearest to 1e-4 is less than 1e-4.
    values = visible.ravel().astype(np.float64)
    telling = values[np.isfinite(values) & (values != 0)]
    whole = bool(np.all(telling == np.ceil(telling)))
    scientific = _needs_scientific(np.abs(telling), whole) if options.sci_mode is None else options.sci_mode
    # PyTorch prints zeros, infinities and nans plainly where there is nothing else.
    scientific = scientific and telling.size > 0

    def text(value: float) -> str:
        if scientific:
            return f"{value:.{options.precision}e}"
        if whole:
            return f"{value:.0f}." if math.isfinite(value) else str(value)
        return f"{value:.{options.precision}f}"

    width = max((len(text(value)) for value in telling.tolist()), default=1)
    return ElementFormat(width, lambda value: text(value).rjust(width))


def _needs_scientific(magnitudes: np.ndarray, whole: bool) -> bool:
    """Whether finite, nonzero `magnitudes` are too large, too small or too far apart for plain notation."""
    if magnitudes.size == 0:
        return False
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    return largest / smallest > 1000 or largest > 1e8 or (not whole and smallest < 1e-4)


def _complex_format(visible: np.ndarray, options: PrintOptions) -> ElementFormat:
    """Real and imaginary parts, each in a format of its own."""
    real, imaginary = _float_format(visible.real, options), _float_format(visible.imag, options)

    def text(value: complex) -> str:
        part = imaginary.text(value.imag).lstrip()
        sign = "" if part.startswith("-") else "+"
        return f"{real.text(value.real)}{sign}{part}j"

    return ElementFormat(real.width + imaginary.width + 1, text)
