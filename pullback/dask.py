"""Sums over rows whose data lie on a cluster of Dask's: `pip install 'pullback[dask]'`."""

from pullback.runtime.distributed.clusters import gauss_newton_product, grad, hvp, value_and_grad

__all__ = ["gauss_newton_product", "grad", "hvp", "value_and_grad"]
