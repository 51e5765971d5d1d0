"""The public functions that follow from the declarations of operators alone: see `conventions.py`.

`declared.pyi` and its two neighbours say the same to type checkers and editors;
`pytest --update-golden tests/functions/test_declared.py` writes these.
"""

from .conventions import FUNCTIONS

globals().update(FUNCTIONS["pullback"])
__all__ = sorted(FUNCTIONS["pullback"])
