"""
The Nile, and a Kalman filter
=============================

How much water the Nile carried past Aswan in each year from 1871 to 1970 (Cobb, 1978; it ships with
statsmodels). A level that wanders, and measurements that scatter around it: how much of each? The
likelihood is a loop over a hundred years in which each step needs the one before; written with `pb.scan` it
stays a loop, forwards and backwards.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from statsmodels.datasets import nile

import pullback as pb

table = nile.load_pandas().data
years, volume = table["year"].to_numpy(), table["volume"].to_numpy()


@pb.compile
def filtered(logs, volume):
    """Negative log likelihood, and level and variance after each year; `logs` are of both variances."""
    wander, scatter = np.exp(logs[0]), np.exp(logs[1])

    def step(state, y):
        level, variance = state
        variance = variance + wander
        expected = variance + scatter
        surprise = y - level
        level = level + variance / expected * surprise
        variance = variance * scatter / expected
        loss = 0.5 * (np.log(2 * np.pi * expected) + surprise**2 / expected)
        return (level, variance), (loss, level, variance)

    _, (losses, levels, variances) = pb.scan(step, (volume[0], 1e6), volume)
    return losses[1:].sum(), (levels, variances)


# %%
# Maximum likelihood; the values found by Durbin and Koopman (2012) are 1469 and 15099.

both = pb.value_and_grad(filtered, has_aux=True)


def objective(logs):
    (value, _), gradient = both(logs, volume)
    return value, gradient


found = minimize(objective, np.log([1000.0, 10000.0]), jac=True, method="BFGS")
print("variances of the level's steps and of the measurements:", np.exp(found.x).round())

# %%

_, (levels, variances) = filtered(found.x, volume)
figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
axes.plot(years, volume, "o-", color="grey", markersize=3, linewidth=0.6, label="measured")
axes.plot(years, levels, linewidth=2, label="level, from the years so far")
width = 1.96 * np.sqrt(variances)
axes.fill_between(years[2:], (levels - width)[2:], (levels + width)[2:], alpha=0.25, label="95%")
axes.axvline(1898, color="crimson", linewidth=0.8, linestyle="--", label="the first Aswan dam is begun")
axes.set(xlabel="year", ylabel="10⁸ m³ a year", title="The Nile at Aswan")
axes.legend(ncols=2)
plt.show()
