"""Libraries whose tables a trace follows: what has to be known of one, beside its own methods.

The condition is that what is asked of a table (`table["x"]`, `table.groupby("k").mean()`) depends on the
table and on what is given along, and changes nothing else but what it is asked of.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from ...tracer.records import record
from ..values.foreign import module_of
from .table_states import TableState


class State(Protocol):
    """What a table held when it was looked at."""

    def is_of(self, table: Any) -> bool: ...


@record(frozen=True, slots=True)
class Library:
    """What is done with the tables of a library.

    Attributes:
        is_table: whether an object of a class is one, so that what is asked of it is followed.
        copied: one that may be changed in the place of a table.
        state: what tells cheaply whether a table is as it was; None where nothing does.
        array: the array that a table, or a column, counts as with Tensors.
        is_own: whether nobody else sees an array that was taken from one, so that it may be written into.
        is_plain: whether an object of the library is a value that never changes, as a date or a dtype.
        pure: the names of methods that change no object, where they are not told to by `inplace`.
    """

    is_table: Callable[[type], bool]
    copied: Callable[[Any], Any]
    state: Callable[[Any], State | None]
    array: Callable[[Any], Any]
    is_own: Callable[[np.ndarray], bool]
    is_plain: Callable[[Any], bool]
    pure: frozenset[str]


def library_with(kind: Any) -> Library | None:
    """What is known of the library of a class; None where its objects are not followed."""
    return LIBRARIES.get(module_of(kind).partition(".")[0])


def library_of_code(value: Any) -> Library | None:
    """The same for a module, a function or a class."""
    name = value.__name__ if isinstance(value, ModuleType) else module_of(value)
    return LIBRARIES.get(name.partition(".")[0])


def is_table(value: Any) -> bool:
    """Whether a trace follows what is asked of an object."""
    kind: Any = type(value)
    return _is_class_of_tables(kind)


@functools.lru_cache(maxsize=1024)
def _is_class_of_tables(kind: type) -> bool:
    library = library_with(kind)
    return library is not None and library.is_table(kind)


# --- pandas -------------------------------------------------------------------------------------------


def _is_copied_on_write() -> bool:
    """Whether no object of pandas's shows what another one writes, as from its version 3 on."""
    return int(sys.modules["pandas"].__version__.partition(".")[0]) >= 3


def _is_of_pandas(kind: type) -> bool:
    """Whether it is that of a table, a column or labels."""
    return hasattr(kind, "to_numpy") and hasattr(kind, "copy") and not issubclass(kind, np.ndarray)


def _copied(table: Any) -> Any:
    return table.copy(deep=not _is_copied_on_write())


def _is_own(array: np.ndarray) -> bool:
    return _is_copied_on_write() and array.flags.writeable  # what it shows of a table is read-only there


def _is_plain(value: Any) -> bool:
    pandas: Any = sys.modules["pandas"]
    return pandas.api.types.is_scalar(value) or isinstance(value, pandas.api.extensions.ExtensionDtype)


_PURE = """
    abs add agg aggregate all any argmax argmin argsort asfreq assign astype between bfill clip copy corr
    count cov cumcount cummax cummin cumprod cumsum describe diff div dot drop drop_duplicates dropna
    duplicated eq ewm expanding explode factorize ffill fillna filter first floordiv ge get get_dummies
    get_group get_level_values get_loc groupby gt head idxmax idxmin infer_objects interpolate isin isna
    isnull items iterrows itertuples join keys kurt last le loc lt mad map mask max mean median melt merge
    min mod mode mul ne ngroup nlargest notna notnull nsmallest nth nunique pct_change pivot pivot_table
    pow prod quantile query rank reindex rename rename_axis replace resample reset_index rolling round
    searchsorted select_dtypes sem set_axis set_index shift size skew sort_index sort_values squeeze stack
    std sub sum swaplevel tail take to_dict to_frame to_list to_numpy to_series tolist transform transpose
    truediv unique unstack value_counts var where xs
"""

LIBRARIES = {
    "pandas": Library(
        is_table=_is_of_pandas,
        copied=_copied,
        state=TableState.of,
        array=lambda table: table.to_numpy(),
        is_own=_is_own,
        is_plain=_is_plain,
        pure=frozenset(_PURE.split()),
    ),
}
"""By their names; none is imported."""
