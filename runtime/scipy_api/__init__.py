"""SciPy's functions on tensors, under its names."""
