"""Functions that combine, count, order or accumulate elements."""
