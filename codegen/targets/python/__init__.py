"""The loop IR as Python: what people read and Numba compiles."""
