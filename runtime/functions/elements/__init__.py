"""Functions of each element: arithmetic, comparison, special functions, complex and other numbers."""
