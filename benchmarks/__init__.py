"""Time of value and gradient beside other libraries: `python -m benchmarks`, from the checkout."""
