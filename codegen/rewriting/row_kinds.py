"""What a value is to the rows of data: a function of each, a sum over them, or nothing of theirs.

- `Shared`: it does not depend on rows;
- `Rows`: one of its dimensions counts the rows, and what is at a row depends on this row alone;
- `Numbers`: the numbers of the rows themselves, which name rows but have no other meaning;
- `Power`: a power of the number of rows;
- `Total`: a sum over rows, of which linear operators make others: sums as they are, sums divided by the
  number of rows (means) or by another sum (weighted means), and a shared value, which counts once.
"""

from __future__ import annotations

from collections.abc import Mapping

from pullback.tracer.graph import Node

from ...tracer.records import record


@record(frozen=True)
class Shared:
    """A value that does not depend on rows."""

    of_parameters: bool


@record(frozen=True)
class Rows:
    """A value with a dimension of rows."""

    dim: int
    of_parameters: bool


@record(frozen=True)
class Numbers:
    """What the rows of a part are counted by."""

    dim: int
    of_parameters: bool = False


@record(frozen=True)
class Power:
    """The number of rows, or one by it."""

    exponent: int
    of_parameters: bool = False


COUNT = "the number of rows"
Denominator = Node | str | None
"""What a sum is divided by: nothing, `COUNT`, or another sum."""


@record(frozen=True)
class Total:
    """Sums over rows by what each is divided by, and what is added once."""

    sums: Mapping[Denominator, Node]
    shared: Node | None = None
    of_parameters: bool = False


@record(frozen=True)
class Refused:
    """A constant that says how many rows there are in a way that parts cannot make good."""

    reason: str
    of_parameters: bool = False


Kind = Shared | Rows | Numbers | Power | Total | Refused
