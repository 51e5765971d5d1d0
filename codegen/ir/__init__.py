"""The loop IR: what a generated program does, in typed statements that know no language's syntax."""

from .expressions import (
    FLOAT64,
    Apply,
    Buffer,
    Cast,
    Const,
    Expr,
    Extent,
    Load,
    Role,
    Select,
    Variable,
    apply,
    children,
    number,
    parts,
)
from .formulas import fill

__all__ = [
    "FLOAT64",
    "Apply",
    "Buffer",
    "Cast",
    "Const",
    "Expr",
    "Extent",
    "Load",
    "Role",
    "Select",
    "Variable",
    "apply",
    "children",
    "fill",
    "number",
    "parts",
]
