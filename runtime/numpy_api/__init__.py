"""NumPy's names on Tensors: what `np.sum(x)`, `x.std()` and `out=` mean in NumPy programs."""
